/* SPDX-License-Identifier: PostgreSQL */
/*
 * client_totals.c
 *	  Totals over the books of all processes (wal.h), read with the protocol of format/FORMAT.md.
 *
 * If a session ends during a reading, its figures move into a group, so the reading is repeated, after a short
 * sleep if they are just moving. If sessions end faster than that, there is no result.
 */
#include "base/compat.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/own_segment.h"
#include "ledger/ledger.h"
#include "wal/wal.h"
#include "tally_names.h"
#include "tally_read.h"

#define READ_TRIES 50				/* attempts to read all books */
#define CLIENT_KIND "client backend"	/* kind of processes that work for clients */
#define PAUSE_NS 50000				/* while a session's figures are moving */

typedef struct book_sum
{
	uint64		commands;
	uint64		ticks;
	uint64		off_stretches;
} book_sum;

static bool
is_handle(const char *name)
{
	static const char handle[] = "::" TALLY_STAT_COMMAND_HANDLE;
	size_t		length = strnlen(name, TALLY_NAME_MAX);

	return length > strlen(handle) && strncmp(name, TALLY_STAT_COMMAND, strlen(TALLY_STAT_COMMAND)) == 0 &&
		strcmp(name + length - strlen(handle), handle) == 0;
}

static book_sum
sum_heads(tally_segment *segment, const tally_book_copy *copy)
{
	book_sum	sum = {0};

	for (uint32 i = 0; i < copy->book.used; i++)
	{
		const tally_head *head = &copy->heads[i];
		const char *name;

		if (!tally_read_is_head(segment, copy, i))
			continue;
		name = pg_tally_stat_name(segment, head->stat);
		if (is_handle(name))
		{
			sum.commands += head->count;
			sum.ticks += head->total;
		}
		else if (strcmp(name, TALLY_STAT_OFF) == 0)
			sum.off_stretches += head->count;
	}
	return sum;
}

void
client_totals_read(tally_segment *segment, tally_client_totals *sum)
{
	static tally_head heads[BOOK_INDEXES];
	const struct timespec pause = {.tv_nsec = PAUSE_NS};
	tally_book_copy copy = {.heads = heads};
	int			saved_errno = errno;

	sum->known = 0;
	if (segment->cold.stats_per_book > BOOK_INDEXES)
		return;
	for (int i = 0; i < READ_TRIES && !sum->known; i++)
	{
		tally_books_mark mark;
		bool		begun = tally_read_books_begin(segment, &mark);

		/* this library's own call is not probed, because it is not a wait of the server */
		if (!begun)
			nanosleep(&pause, NULL);
		*sum = (tally_client_totals) {.resets = mark.resets,.tick = tally_now(segment->clock)};
		for (uint32 s = 0; s < segment->cold.slots + segment->cold.groups && begun; s++)
		{
			tally_slot_entry entry;
			book_sum	of;

			/* a slot whose owner has not followed the last reset still has older figures */
			if (tally_read_entry(segment, s, &entry) == TALLY_READ_ABSENT ||
				tally_read_book(segment, s, &copy) == TALLY_READ_ABSENT || copy.lags_reset)
				continue;
			of = sum_heads(segment, &copy);
			sum->off_stretches += of.off_stretches;
			/* sessions of the tally command and of replication are not clients (crates/segment/src/own.rs) */
			if (strncmp(entry.kind, CLIENT_KIND, sizeof(entry.kind)) != 0)
				continue;
			sum->commands += of.commands;
			sum->ticks += of.ticks;
		}
		sum->known = begun && tally_read_books_end(segment, &mark);
	}
	errno = saved_errno;
}

tally_client_activity
client_totals_between(const tally_segment *segment, const tally_client_totals *from,
					  const tally_client_totals *to)
{
	double		ns = tally_seconds_per_tick(segment) * 1e9;

	if (!from->known || !to->known || from->resets != to->resets ||
		from->off_stretches != to->off_stretches || to->commands < from->commands ||
		to->ticks < from->ticks || to->tick <= from->tick)
		return (tally_client_activity) {0};
	return (tally_client_activity) {
		.ns = (uint64) ((double) (to->tick - from->tick) * ns),
		.commands = to->commands - from->commands,
		.handle_ns = (uint64) ((double) (to->ticks - from->ticks) * ns)
	};
}
