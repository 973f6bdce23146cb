/* SPDX-License-Identifier: PostgreSQL */
/*
 * checkpoint_writes.c
 *	  What a checkpoint has written (checkpoint_writes.h), from the checkpointer's own statistics of files.
 *
 * It writes single blocks, and nothing to relations and SLRUs but for checkpoints.
 */
#include "compat.h"

#include <stdlib.h>
#include <string.h>

#include "checkpoint_writes.h"
#include "pg_tally.h"
#include "probe.h"

#define SPACES 64					/* tablespaces counted apart; the rest is "others" */

typedef struct space
{
	uint32		tablespace;			/* its OID, or TALLY_SPACE_SLRU */
	uint64		buffers;
}			space;

/* Writes by index in the book, when the checkpoint began, and the reset before that. */
static uint64 before[BOOK_INDEXES];
static uint32 resets;

/* The tablespace of a write's statistic; false: it is another's. */
static bool
space_of(uint32 index, uint32 *tablespace)
{
	const char *stat = pg_tally_stat_name(tally.slot.segment, tally.slot.heads[index].stat);
	const char *kind = stat + strlen("file::");
	const char *operation;
	const char *at;

	if (strncmp(stat, "file::", strlen("file::")) != 0)
		return false;
	operation = strstr(kind, "::");
	if (operation == NULL || strncmp(operation, "::write::", strlen("::write::")) != 0)
		return false;
	at = memchr(kind, '@', (size_t) (operation - kind));
	if (strncmp(kind, "slru ", strlen("slru ")) == 0)
		*tablespace = TALLY_SPACE_SLRU;
	else if (at != NULL)
		*tablespace = strncmp(at, "@pg_global::", strlen("@pg_global::")) == 0 ? TALLY_SPACE_GLOBAL :
			(uint32) strtoul(at + 1, NULL, 10);
	else if (strncmp(kind, "main::", 6) == 0 || strncmp(kind, "fsm::", 5) == 0 ||
			 strncmp(kind, "vm::", 4) == 0 || strncmp(kind, "init::", 6) == 0)
		*tablespace = TALLY_SPACE_DEFAULT;
	else
		return false;
	return true;
}

void
checkpoint_writes_begin(void)
{
	for (uint32 i = 0; i < tally.slot.book->used; i++)
		before[i] = tally.slot.heads[i].count;
	resets = tally.slot.book->resets;
}

/* Of a reset meanwhile: what was written after it. */
static uint64
written(uint32 index)
{
	uint64		count = tally.slot.heads[index].count;

	return resets == tally.slot.book->resets ? count - before[index] : count;
}

/* SLRUs first, then those with most. */
static bool
comes_before(const space *a, const space *b)
{
	if ((a->tablespace == TALLY_SPACE_SLRU) != (b->tablespace == TALLY_SPACE_SLRU))
		return a->tablespace == TALLY_SPACE_SLRU;
	return a->buffers > b->buffers;
}

static void
sort(space *spaces, int count)
{
	for (int i = 1; i < count; i++)
	{
		space		moved = spaces[i];
		int			to = i;

		for (; to > 0 && comes_before(&moved, &spaces[to - 1]); to--)
			spaces[to] = spaces[to - 1];
		spaces[to] = moved;
	}
}

static void
add(space *spaces, int *count, uint32 tablespace, uint64 buffers, uint64 *others)
{
	int			i = 0;

	while (i < *count && spaces[i].tablespace != tablespace)
		i++;
	if (i == SPACES)
	{
		*others += buffers;
		return;
	}
	if (i == *count)
		spaces[(*count)++] = (space) {.tablespace = tablespace};
	spaces[i].buffers += buffers;
}

static void
list_space(tally_checkpoint_writes *list, uint32 tablespace, uint64 buffers)
{
	list->space[list->spaces].tablespace = tablespace;
	list->space[list->spaces++].buffers = (uint32) Min(buffers, PG_UINT32_MAX);
}

void
checkpoint_writes_list(tally_checkpoint_writes *list)
{
	space		spaces[SPACES];
	int			count = 0;
	uint64		others = 0;
	uint32		tablespace;

	for (uint32 i = 0; i < tally.slot.book->used; i++)
		if (space_of(i, &tablespace) && written(i) > 0)
			add(spaces, &count, tablespace, written(i), &others);
	sort(spaces, count);
	for (int i = 0; i < count; i++)
	{
		if (list->spaces < TALLY_CHECKPOINT_SPACES - 1)	/* one is kept for the others */
			list_space(list, spaces[i].tablespace, spaces[i].buffers);
		else
			others += spaces[i].buffers;
	}
	if (others > 0)
		list_space(list, TALLY_SPACE_OTHERS, others);
}
