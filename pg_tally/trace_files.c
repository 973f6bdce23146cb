/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace_files.c
 *	  The relation and block, or the kind of file, of a traced process's operations (trace_files.h).
 *
 * A descriptor's name is asked for once, of /proc. All calls that open a file are timed while a process is traced, so
 * that an operation that opens one shows that the descriptor is another file now.
 */
#include "compat.h"

#include <errno.h>
#include <string.h>

#include "file_names.h"
#include "files.h"
#include "probe.h"
#include "trace_files.h"

#define DESCRIPTORS 1024			/* power of two; two that share an item are asked for alternately */

typedef struct traced_file
{
	int			fd;					/* -1: unused */
	bool		relation;
	tally_relation_key key;			/* of a relation: which, and which part of it */
	uint32		part;
	uint32		kind;				/* else 1 + directory number of the name of its kind */
} traced_file;

static traced_file files[DESCRIPTORS];

void
trace_files_begin(void)
{
	for (int i = 0; i < DESCRIPTORS; i++)
		files[i].fd = -1;
}

static void
learn(traced_file *file, int fd)
{
	char		path[MAXPGPATH];
	char		name[TALLY_NAME_MAX];
	char		kind[40];

	memset(file, 0, sizeof(*file));
	file->fd = fd;
	if (!file_names_of(fd, path, sizeof(path)))
		return;
	file->relation = file_names_relation(path, &file->key, &file->part);
	if (file->relation)
		return;
	file_names_kind(path, kind, sizeof(kind));
	probe_compose(name, "trace::", kind, NULL);
	file->kind = 1 + tally_register(tally.slot.segment, name, TALLY_NAME, "");
}

void
trace_files_describe(tally_trace_record *record)
{
	const file_note *note = &files_note;
	int			saved_errno = errno;
	traced_file *file;
	int64		ends;

	record->op = (uint8) (1 + note->operation);
	record->failed = note->error;
	record->word[4] = (uint32) note->bytes;
	record->word[5] = (uint32) (note->bytes >> 32);
	if (note->fd < 0)
		return;
	file = &files[note->fd & (DESCRIPTORS - 1)];
	if (file->fd != note->fd || note->operation == FILE_OPEN)
		learn(file, note->fd);
	if (!file->relation)
		record->word[0] = file->kind;
	else
	{
		record->more = (uint8) (1 + file->key.fork);
		record->word[0] = file->key.tablespace;
		record->word[1] = file->key.database;
		record->word[2] = file->key.relation;
		ends = files_ends_at();
		record->word[3] = ends < (int64) note->bytes || note->bytes == 0 ? TALLY_NONE
			: file->part * (uint32) RELSEG_SIZE + (uint32) ((ends - (int64) note->bytes) / BLCKSZ);
	}
	errno = saved_errno;
}
