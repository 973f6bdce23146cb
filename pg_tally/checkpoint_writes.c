/* SPDX-License-Identifier: PostgreSQL */
/*
 * checkpoint_writes.c
 *	  What a checkpoint has written (checkpoint_writes.h), from the checkpointer's own statistics of files.
 *
 * It writes single blocks, and nothing to relations and SLRUs but for checkpoints.
 */
#include "compat.h"

#include <stdio.h>
#include <string.h>

#include "checkpoint_writes.h"
#include "pg_tally.h"
#include "probe.h"

#define SPACES 64					/* tablespaces listed by name; the rest is "others" */

typedef struct space
{
	char		name[16];			/* "pg_default", or its number */
	uint64		buffers;
}			space;

/* Writes by index in the book, when the checkpoint began, and the reset before that. */
static uint64 before[BOOK_INDEXES];
static uint32 resets;

/* "pg_default", "16385", "slru" of a write's statistic; false: it is another's. */
static bool
space_of(uint32 index, char *name, size_t size)
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
	if (strncmp(kind, "slru ", strlen("slru ")) == 0)
	{
		strlcpy(name, "slru", size);
		return true;
	}
	at = memchr(kind, '@', (size_t) (operation - kind));
	if (at != NULL)
		snprintf(name, size, "%.*s", (int) (operation - at - 1), at + 1);
	else if (strncmp(kind, "main::", 6) == 0 || strncmp(kind, "fsm::", 5) == 0 ||
			 strncmp(kind, "vm::", 4) == 0 || strncmp(kind, "init::", 6) == 0)
		strlcpy(name, "pg_default", size);
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
	bool		slru = strcmp(a->name, "slru") == 0;

	if (slru != (strcmp(b->name, "slru") == 0))
		return slru;
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

static space *
find(space *spaces, int *count, const char *name)
{
	for (int i = 0; i < *count; i++)
		if (strcmp(spaces[i].name, name) == 0)
			return &spaces[i];
	if (*count == SPACES)
		return NULL;
	strlcpy(spaces[*count].name, name, sizeof(spaces[*count].name));
	spaces[*count].buffers = 0;
	return &spaces[(*count)++];
}

void
checkpoint_writes_describe(char *text, size_t size)
{
	space		spaces[SPACES];
	int			count = 0;
	uint64		others = 0;
	size_t		used = 0;
	char		name[16];

	text[0] = '\0';
	for (uint32 i = 0; i < tally.slot.book->used; i++)
	{
		space	   *of;

		if (!space_of(i, name, sizeof(name)) || written(i) == 0)
			continue;
		of = find(spaces, &count, name);
		if (of != NULL)
			of->buffers += written(i);
		else
			others += written(i);
	}
	sort(spaces, count);
	for (int i = 0; i < count; i++)
	{
		/* space for the others, too */
		if (used + 2 * sizeof(" pg_default=18446744073709551615") > size)
			others += spaces[i].buffers;
		else
			used += (size_t) snprintf(text + used, size - used, " %s=" UINT64_FORMAT,
									  spaces[i].name, spaces[i].buffers);
	}
	if (others > 0)
		snprintf(text + used, size - used, " others=" UINT64_FORMAT, others);
}
