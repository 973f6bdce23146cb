/* SPDX-License-Identifier: PostgreSQL */
/*
 * directory.c
 *	  The directory of statistics' names: open addressing, append-only, lock-free.
 *
 * Concurrency contract: a writer changes an entry from FREE to RESERVED by compare-and-swap, fills it, and
 * changes it to PUBLISHED (release); after that its name never changes. A process that finds RESERVED waits
 * briefly and then skips the entry, because its writer may be dead. Only a class of 0 may be replaced
 * later. Entry 0 is always "other::overflow".
 */
#include "internal.h"

#include <string.h>

void
tally_text(char *to, size_t size, const char *from)
{
	size_t		length = from == NULL ? 0 : strnlen(from, size - 1);

	if (length > 0)
		memcpy(to, from, length);
	memset(to + length, 0, size - length);
}

/* Not inlined, because its loop would then take more instructions. */
__attribute__((noinline)) uint64_t
tally_text_hash(const char *text)
{
	uint64_t	hash = UINT64_C(0xcbf29ce484222325);

	for (; *text != '\0'; text++)
		hash = (hash ^ (unsigned char) *text) * UINT64_C(0x100000001b3);
	return hash;
}

#define RESERVED_SPINS 1000			/* about 10 us */

static uint32_t
settled_state(tally_dir_entry *entry)
{
	uint32_t	state = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);

	for (int i = 0; state == TALLY_NAME_RESERVED && i < RESERVED_SPINS; i++)
	{
		tally_relax();
		state = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);
	}
	return state;
}

static void
publish(tally_dir_entry *entry, uint64_t hash, const char *name, tally_stat_kind kind,
		const char *unit, tally_account_class class)
{
	TALLY_STOP("name reserved");
	entry->kind = kind;
	entry->account_class = (uint8_t) class;
	entry->hash = hash;
	TALLY_STOP("entry without its name");
	tally_text(entry->name, sizeof(entry->name), name);
	tally_text(entry->unit, sizeof(entry->unit), unit);
	TALLY_STOP("name to be published");
	__atomic_store_n(&entry->state, TALLY_NAME_PUBLISHED, __ATOMIC_RELEASE);
	TALLY_STOP("name published");
}

/* Set the class of an entry from a writer that did not know classes. All writers store the same class. */
static void
complete(tally_dir_entry *entry, tally_account_class class)
{
	if (class != TALLY_CLASS_UNKNOWN &&
		__atomic_load_n(&entry->account_class, __ATOMIC_RELAXED) == TALLY_CLASS_UNKNOWN)
		__atomic_store_n(&entry->account_class, (uint8_t) class, __ATOMIC_RELAXED);
}

/* Does it have that name? It is published. */
static bool
is_named(const tally_dir_entry *entry, uint64_t hash, const char *name, tally_stat_kind kind)
{
	return entry->hash == hash && entry->kind == (uint32_t) kind && strncmp(entry->name, name, sizeof(entry->name)) == 0;
}

static uint32_t
register_entry(tally_segment *segment, const char *name, tally_stat_kind kind, const char *unit,
			   tally_account_class class)
{
	char		cut[TALLY_NAME_MAX];
	uint32_t	count = segment->cold.directory.count;
	size_t		length = strnlen(name, sizeof(cut) - 1);
	uint64_t	hash;

	memcpy(cut, name, length);
	cut[length] = '\0';
	hash = tally_text_hash(cut);
	if (kind == TALLY_ACCOUNT && strcmp(cut, TALLY_STAT_OVERFLOW) == 0)
	{
		tally_dir_entry *first = tally_dir_at(segment, 0);

		if (first->state == TALLY_NAME_FREE)		/* only in the creator, before the file has its name */
			publish(first, hash, cut, kind, unit, class);
		return 0;
	}
	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t	at = (uint32_t) ((hash + i) % count);
		tally_dir_entry *entry = tally_dir_at(segment, at);
		uint32_t	state = settled_state(entry);

		if (state == TALLY_NAME_FREE)
		{
			if (__atomic_compare_exchange_n(&entry->state, &state, TALLY_NAME_RESERVED, false,
											__ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			{
				publish(entry, hash, cut, kind, unit, class);
				return at;
			}
			state = settled_state(entry);
		}
		if (state == TALLY_NAME_PUBLISHED && is_named(entry, hash, cut, kind))
		{
			complete(entry, class);
			return at;
		}
	}
	tally_count_one(&segment->header->overflow_directory);
	return kind == TALLY_ACCOUNT ? 0 : TALLY_NONE;
}

/* A timer and an account with the same name are separate entries. */
uint32_t
tally_register(tally_segment *segment, const char *name, tally_stat_kind kind, const char *unit)
{
	return register_entry(segment, name, kind, unit, TALLY_CLASS_UNKNOWN);
}

uint32_t
tally_register_account(tally_segment *segment, const char *name, tally_account_class class)
{
	return register_entry(segment, name, TALLY_ACCOUNT, "ticks", class);
}

/* ---------------------------------------------------------------- names of applications */

/* The number of a published name, or TALLY_NONE. */
static uint32_t
find(tally_segment *segment, const char *name, tally_stat_kind kind)
{
	uint32_t	count = segment->cold.directory.count;
	uint64_t	hash = tally_text_hash(name);

	for (uint32_t i = 0; i < count; i++)
	{
		uint32_t	at = (uint32_t) ((hash + i) % count);
		tally_dir_entry *entry = tally_dir_at(segment, at);
		uint32_t	state = settled_state(entry);

		if (state == TALLY_NAME_FREE)
			break;
		if (state == TALLY_NAME_PUBLISHED && is_named(entry, hash, name, kind))
			return at;
	}
	return TALLY_NONE;
}

/*
 * Clients choose these names, so there is a limit: they must leave space for the names of statistics. If two processes
 * register the same name at the same time, both count it.
 */
static uint32_t
register_new(tally_segment *segment, const char *name)
{
	uint32_t   *applications = &segment->header->applications;
	uint32_t	limit = segment->cold.directory.count / 4;

	if (limit > TALLY_APPLICATIONS)
		limit = TALLY_APPLICATIONS;
	if (__atomic_fetch_add(applications, 1, __ATOMIC_RELAXED) < limit)
		return tally_register(segment, name, TALLY_NAME, "");
	__atomic_fetch_sub(applications, 1, __ATOMIC_RELAXED);
	return TALLY_NONE;
}

uint16_t
tally_register_application(tally_segment *segment, const char *name)
{
	char		entry[sizeof(TALLY_STAT_APPLICATION) + TALLY_TEXT_MAX];
	uint32_t	at;

	if (name == NULL || name[0] == '\0')
		return 0;
	memcpy(entry, TALLY_STAT_APPLICATION, sizeof(TALLY_STAT_APPLICATION) - 1);
	tally_text(entry + sizeof(TALLY_STAT_APPLICATION) - 1, TALLY_TEXT_MAX, name);
	at = find(segment, entry, TALLY_NAME);
	if (at == TALLY_NONE)
		at = register_new(segment, entry);
	/* a directory may have more entries than the key can number */
	if (at < UINT16_MAX)
		return (uint16_t) (at + 1);
	tally_count_one(&segment->header->overflow_applications);
	return 0;
}
