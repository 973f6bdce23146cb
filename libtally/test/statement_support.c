/* SPDX-License-Identifier: PostgreSQL */
#include "statement_support.h"
#include "tally_read.h"

#include <stdlib.h>
#include <string.h>

#define PATIENCE_NS 1000000000		/* limit for a writer preempted during a change */

void
test_open_statements(tally_segment *segment, uint32_t slots, uint32_t statements)
{
	tally_options options;

	test_options(&options);
	options.slots = slots;
	options.statements = statements;
	test_open(segment, &options);
}

void
test_open_cache(tally_segment *segment, tally_slot *slot, tally_cache *cache)
{
	test_claim(segment, "one", slot);
	assert_int_equal(tally_cache_open(slot, cache), 0);
}

tally_statement_key
test_key(uint64_t id)
{
	return (tally_statement_key) {.id = id,.database_id = 5,.user_id = 10,.toplevel = 1};
}

tally_local_statement *
test_execute(tally_cache *cache, const tally_statement_key *key, uint64_t ticks, const char *text)
{
	tally_local_statement *local = tally_cache_find(cache, key);

	if (local == NULL)
	{
		tally_statement_text given = {.bytes = text,.encoding = 6};
		uint32_t	known = tally_statement_known(cache->segment, key);

		if (text != NULL)
			given.length = given.whole = (uint32_t) strlen(text);
		local = tally_cache_enter(cache, key, text == NULL || known != TALLY_NONE ? NULL : &given, known);
	}
	if (local == NULL)
		return NULL;
	tally_seq_begin(&local->seq);
	tally_local_statement_count(local, ticks, 0);
	local->counts.rows += 3;
	/* some have more than an entry's own lines hold */
	if (ticks % 2 == 1)
	{
		local->more |= TALLY_MORE_RARE;
		local->counts.errors++;
	}
	tally_parts_add(local->parts, 1 + (uint32_t) (ticks % 5), 1, ticks);
	tally_seq_end(&local->seq);
	return local;
}

void
test_execute_all(tally_cache *cache, uint64_t id, uint64_t ticks, int times)
{
	tally_statement_key key = test_key(id);

	for (int i = 0; i < times; i++)
		assert_non_null(test_execute(cache, &key, ticks, "select $1"));
}

/* ---------------------------------------------------------------- reading */

typedef struct copied_local
{
	uint64_t	item;
	tally_local_statement local;
} copied_local;

typedef struct copies
{
	tally_set_copy *sets;
	uint64_t   *flushes;			/* number of flushes of each set before the caches were read */
	copied_local *locals;
	uint32_t	count;
} copies;

static void
copy_caches(const tally_segment *segment, copies *all, uint64_t until)
{
	all->count = 0;
	for (uint32_t slot = 0; slot < segment->header->slots; slot++)
		for (uint32_t i = 0; i < tally_read_local_limit(segment, slot); i++)
		{
			copied_local *copy = &all->locals[all->count];
			tally_read_result result;

			do
				result = tally_read_local_statement(segment, slot, i, &copy->local);
			while (result == TALLY_READ_TORN && tally_monotonic_ns() < until);
			if (result == TALLY_READ_ABSENT)
				continue;
			copy->item = tally_log_item(copy->local.generation, i, slot);
			all->count++;
		}
}

/*
 * Returns false if there were too many flushes since the caches were read. A torn copy is used after `until`: then
 * its writer is dead, not only preempted.
 */
static bool
copy_all(const tally_segment *segment, copies *all, uint64_t until)
{
	for (uint32_t s = 0; s < segment->header->sets.count; s++)
		all->flushes[s] = tally_read_set_flushes(segment, s);
	copy_caches(segment, all, until);
	for (uint32_t s = 0; s < segment->header->sets.count; s++)
		if (tally_read_set(segment, s, &all->sets[s]) != TALLY_READ_CONSISTENT ||
			(all->sets[s].torn > 0 && tally_monotonic_ns() < until) ||
			!tally_read_log_covers(&all->sets[s].set, all->flushes[s]))
			return false;
	return true;
}

static bool
is_logged(const tally_segment *segment, const copies *all, const copied_local *copy)
{
	uint32_t	number[2];

	tally_sets_for(segment, tally_statement_hash(&copy->local.key), number);
	for (int which = 0; which < 2; which++)
		for (uint32_t i = 0; i < TALLY_SET_LOG; i++)
			if (all->sets[number[which]].set.log[i] == copy->item)
				return true;
	return false;
}

static test_statement *
statement_for(test_reading *reading, const tally_statement_key *key)
{
	for (uint32_t i = 0; i < reading->count; i++)
		if (tally_statement_same(&reading->statements[i].key, key))
			return &reading->statements[i];
	if (reading->count == reading->capacity)
	{
		reading->capacity = reading->capacity * 2 + 256;
		reading->statements = realloc(reading->statements,
									  reading->capacity * sizeof(test_statement));
		assert_non_null(reading->statements);
	}
	memset(&reading->statements[reading->count], 0, sizeof(test_statement));
	reading->statements[reading->count].key = *key;
	return &reading->statements[reading->count++];
}

static void
add(test_reading *reading, const tally_statement_key *key, const tally_counts *counts,
	const tally_part *parts, const uint64_t *hist, const uint32_t *small_hist)
{
	test_statement *to = statement_for(reading, key);

	tally_moments_merge(&to->counts.exec, &counts->exec);
	tally_moments_merge(&to->counts.plan, &counts->plan);
	to->counts.rows += counts->rows;
	to->counts.errors += counts->errors;
	for (int i = 0; i < 8; i++)
		to->counts.jit[i] += counts->jit[i];
	reading->executions += counts->exec.count;
	for (int i = 0; i < TALLY_PARTS; i++)
	{
		to->in_parts += parts[i].stat != 0 ? parts[i].ticks : 0;
		reading->in_parts += parts[i].stat != 0 ? parts[i].ticks : 0;
	}
	for (int b = 0; b < TALLY_HIST_BUCKETS; b++)
	{
		bool		in_range = counts->exec.count > 0 && b >= (int) tally_bucket(counts->exec.min) &&
			b <= (int) tally_bucket(counts->exec.max);
		uint64_t	n = hist != NULL ? hist[b] : !in_range ? 0 : counts->exec.count > 1 ? small_hist[b] : 1;

		to->hist[b] += n;
		reading->in_histograms += n;
	}
	to->in_table |= hist != NULL;
}

void
test_read(const tally_segment *segment, test_reading *reading)
{
	uint64_t	until = tally_monotonic_ns() + PATIENCE_NS;
	const tally_header *header = segment->header;
	copies		all = {
		.sets = calloc(header->sets.count, sizeof(tally_set_copy)),
		.flushes = calloc(header->sets.count, sizeof(uint64_t)),
		.locals = calloc((size_t) header->slots * TALLY_LOCAL_STATEMENTS, sizeof(copied_local))
	};

	assert_true(all.sets != NULL && all.flushes != NULL && all.locals != NULL);
	memset(reading, 0, sizeof(*reading));
	while (!copy_all(segment, &all, until))
		reading->again++;
	for (uint32_t s = 0; s < header->sets.count; s++)
		for (uint32_t i = 0; i < all.sets[s].count; i++)
		{
			const tally_statement_copy *copy = &all.sets[s].statements[i];

			add(reading, &copy->entry.key, &copy->figures.counts, copy->figures.parts,
				copy->figures.hist, NULL);
		}
	for (uint32_t i = 0; i < all.count; i++)
	{
		const tally_local_statement *local = &all.locals[i].local;

		if (!is_logged(segment, &all, &all.locals[i]))
			add(reading, &local->key, &local->counts, local->parts, NULL, local->hist);
	}
	free(all.sets);
	free(all.flushes);
	free(all.locals);
}

void
test_read_free(test_reading *reading)
{
	free(reading->statements);
	memset(reading, 0, sizeof(*reading));
}

const test_statement *
test_find(const test_reading *reading, const tally_statement_key *key)
{
	for (uint32_t i = 0; i < reading->count; i++)
		if (tally_statement_same(&reading->statements[i].key, key))
			return &reading->statements[i];
	return NULL;
}

/* Number of a statement's shared entry, or TALLY_NONE. */
uint32_t
test_entry_of(const tally_segment *segment, uint64_t id)
{
	tally_statement_key key = test_key(id);

	for (uint32_t n = 0; n < segment->header->statements.count; n++)
		if (tally_set_at(segment, n / TALLY_WAYS)->tags[n % TALLY_WAYS] != 0 &&
			tally_statement_same(&tally_statement_at(segment, n)->key, &key))
			return n;
	return TALLY_NONE;
}

uint64_t
test_executions(const tally_segment *segment, uint64_t id)
{
	tally_statement_key key = test_key(id);
	test_reading reading;
	const test_statement *found;
	uint64_t	count;

	test_read(segment, &reading);
	found = test_find(&reading, &key);
	count = found != NULL ? found->counts.exec.count : 0;
	test_read_free(&reading);
	return count;
}

/* ---------------------------------------------------------------- at rest */

void
assert_statements_at_rest(const tally_segment *segment)
{
	uint32_t	pins = 0;
	uint32_t	cached = 0;

	for (uint32_t s = 0; s < segment->header->sets.count; s++)
	{
		const tally_set *set = tally_set_at(segment, s);

		assert_int_equal(set->lock, 0);
		assert_int_equal(set->lock_boot_ns, 0);
		for (uint32_t way = 0; way < TALLY_WAYS; way++)
		{
			const tally_statement *statement = tally_statement_at(segment, s * TALLY_WAYS + way);

			pins += set->pins[way];
			if (set->reserved == 0)
			{
				assert_int_equal(set->tags[way], 0);
				continue;
			}
			assert_int_equal(statement->seq % 2, 0);
			assert_int_equal(statement->state, set->tags[way] != 0);
			if (statement->state == 1)
				assert_true((uint32_t) tally_statement_hash(&statement->key) == set->tags[way]);
		}
	}
	for (uint32_t slot = 0; slot < segment->header->slots; slot++)
	{
		uint32_t	limit = tally_cache_limit(segment, slot);

		for (uint32_t i = 0; i < limit; i++)
		{
			assert_int_equal(tally_local_statements_of(segment, slot)[i].seq % 2, 0);
			cached += tally_local_statements_of(segment, slot)[i].state;
		}
		if (limit > 0)
			assert_int_equal(tally_current_of(segment, slot)->seq % 2, 0);
	}
	assert_true(pins <= cached);
}
