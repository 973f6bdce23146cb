/* SPDX-License-Identifier: PostgreSQL */
/*
 * files.c
 *	  Which kind of file a descriptor is, and what was done with it: file::<kind>::<operation>::<phase>.
 *
 * Descriptors that were open before us (a library loaded into a session) are asked for once, of
 * /proc. What is no file (a pipe, a socket) is not counted.
 */
#include "compat.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files.h"

#define DESCRIPTORS 4096			/* those above are "other" */
#define KINDS 250					/* different ones in a process; more are "other" */
#define KIND_UNKNOWN 0
#define KIND_NONE 1					/* no file */
#define KIND_OTHER 2
#define KIND_SIZE 40
#define ACCOUNTS 256				/* power of two */
#define CLOSED_FILES 256			/* power of two */

typedef struct descriptor
{
	uint8		kind;
	uint32		writes;				/* since the last sync */
	uint64		written;			/* bytes */
	int64		read_end;			/* where the last read ended */
	int64		write_end;
	uint64		name;				/* hash of the path with which it was opened */
} descriptor;

/* Writes to a file that was closed before it was synced. */
typedef struct closed_file
{
	uint64		name;
	uint32		writes;
	uint64		written;
} closed_file;

typedef struct file_account
{
	uint32		key;				/* 1 + (kind, operation, phase); 0 empty */
	uint32		index;				/* in the book */
} file_account;

static const char *const operation_names[FILE_OPERATIONS] = {
	[FILE_READ] = "read",
	[FILE_WRITE] = "write",
	[FILE_EXTEND] = "extend",
	[FILE_SYNC] = "sync",
	[FILE_WRITEBACK] = "writeback",
	[FILE_PREFETCH] = "prefetch",
	[FILE_TRUNCATE] = "truncate",
	[FILE_OPEN] = "open",
	[FILE_CLOSE] = "close",
	[FILE_UNLINK] = "unlink",
	[FILE_RENAME] = "rename",
};

file_note	files_note HOT_DATA;

uint64		files_slru_ticks = 0;

/* Of a checkpointer: since it was last asked for. */
static uint64 longest_sync = 0;
static char longest_path[128];

static descriptor descriptors[DESCRIPTORS];
static closed_file closed_files[CLOSED_FILES];
static char kinds[KINDS][KIND_SIZE] = {"unknown", "none", "other"};
static int	kind_count = KIND_OTHER + 1;
static file_account accounts[ACCOUNTS];

const char *
files_operation_name(file_operation operation)
{
	return operation_names[operation];
}

void
files_begin(void)
{
	files_note.pending = false;
	memset(accounts, 0, sizeof(accounts));
}

/* ---------------------------------------------------------------- kinds */

static bool
starts(const char *path, const char *with, const char **rest)
{
	size_t		length = strlen(with);

	if (strncmp(path, with, length) != 0)
		return false;
	*rest = path + length;
	return true;
}

/* "5/16384_fsm.1" or "16384", as in a tablespace's folder; NULL: no relation's file. */
static const char *
fork_of(const char *name)
{
	const char *file = strrchr(name, '/');
	const char *suffix;

	file = file != NULL ? file + 1 : name;
	if (strstr(name, "pgsql_tmp") != NULL)
		return "temporary";
	if (*file == 't' && isdigit((unsigned char) file[1]))
		return "temporary relation";
	if (!isdigit((unsigned char) *file))
		return NULL;
	suffix = file + strspn(file, "0123456789");
	if (strncmp(suffix, "_fsm", 4) == 0)
		return "fsm";
	if (strncmp(suffix, "_vm", 3) == 0)
		return "vm";
	if (strncmp(suffix, "_init", 5) == 0)
		return "init";
	return *suffix == '\0' || *suffix == '.' ? "main" : NULL;
}

void
files_kind_of(const char *path, char *kind, size_t size)
{
	static const struct
	{
		const char *folder;
		const char *kind;
	}			folders[] = {
		{"pg_xact/", "slru Xact"},
		{"pg_subtrans/", "slru Subtrans"},
		{"pg_multixact/offsets/", "slru MultiXactOffset"},
		{"pg_multixact/members/", "slru MultiXactMember"},
		{"pg_commit_ts/", "slru CommitTs"},
		{"pg_serial/", "slru Serial"},
		{"pg_notify/", "slru Notify"},
		{"global/pg_control", "control"},
		{"pg_stat/", "statistics"},
		{"pg_stat_tmp/", "statistics"},
		{"pg_replslot/", "replication"},
		{"pg_logical/", "replication"},
		{"pg_dynshmem/", "shared memory"},
		{"/dev/shm/", "shared memory"},
		{"log/", "log"},
	};
	const char *rest;
	const char *fork = NULL;
	size_t		data = DataDir != NULL ? strlen(DataDir) : 0;

	if (data > 0 && strncmp(path, DataDir, data) == 0 && path[data] == '/')
		path += data + 1;
	if (starts(path, "./", &rest))
		path = rest;

	strlcpy(kind, "other", size);
	if (starts(path, "pg_wal/", &rest))
	{
		if (strspn(rest, "0123456789ABCDEF") == 24 || strncmp(rest, "xlogtemp.", 9) == 0)
			strlcpy(kind, "wal", size);
		return;
	}
	for (int i = 0; i < lengthof(folders); i++)
		if (starts(path, folders[i].folder, &rest))
		{
			strlcpy(kind, folders[i].kind, size);
			return;
		}
	if (starts(path, "base/", &rest))
	{
		fork = fork_of(rest);
		if (fork != NULL)
			strlcpy(kind, fork, size);
	}
	else if (starts(path, "global/", &rest))
	{
		fork = fork_of(rest);
		if (fork != NULL)
			snprintf(kind, size, "%s@pg_global", fork);
	}
	else if (starts(path, "pg_tblspc/", &rest))
	{
		fork = fork_of(rest);
		if (fork != NULL)
			snprintf(kind, size, "%s@%.*s", fork, (int) Min(strspn(rest, "0123456789"), 10), rest);
	}
}

static uint8
kind_number(const char *path)
{
	char		name[KIND_SIZE];

	files_kind_of(path, name, sizeof(name));
	for (int i = KIND_OTHER; i < kind_count; i++)
		if (strcmp(kinds[i], name) == 0)
			return (uint8) i;
	if (kind_count == KINDS)
		return KIND_OTHER;
	strlcpy(kinds[kind_count], name, KIND_SIZE);
	return (uint8) kind_count++;
}

/* The path that /proc tells of a descriptor; false: it is no file. */
static bool
path_of(int fd, char *path, size_t size)
{
	char		link[32];
	ssize_t		length;

	snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
	length = readlink(link, path, size - 1);
	if (length <= 0 || path[0] != '/')
		return false;
	path[length] = '\0';
	return true;
}

static pg_noinline void
learn(int fd)
{
	char		path[MAXPGPATH];

	descriptors[fd] = (descriptor) {
		.kind = path_of(fd, path, sizeof(path)) ? kind_number(path) : KIND_NONE,
		.read_end = -1,
		.write_end = -1,
	};
}

/* ---------------------------------------------------------------- writes until the next sync */

static uint64
hash_of(const char *path)
{
	uint64		hash = UINT64CONST(14695981039346656037);

	for (; *path != '\0'; path++)
		hash = (hash ^ (unsigned char) *path) * UINT64CONST(1099511628211);
	return hash;
}

static inline closed_file *
closed_file_of(uint64 name)
{
	return &closed_files[name >> 32 & (CLOSED_FILES - 1)];
}

/* A descriptor ends with writes that were not synced through it. */
static void
keep_writes(const descriptor *d)
{
	closed_file *file = closed_file_of(d->name);

	if (d->writes == 0 || d->name == 0)
		return;
	if (file->name != d->name)
		*file = (closed_file) {.name = d->name};
	file->writes += d->writes;
	file->written += d->written;
}

/* What is synced with this descriptor, of what this process has written. */
static void
take_writes(descriptor *d)
{
	closed_file *file = closed_file_of(d->name);

	files_note.writes = d->writes;
	files_note.bytes = d->written;
	d->writes = 0;
	d->written = 0;
	if (d->name != 0 && file->name == d->name)
	{
		files_note.writes += file->writes;
		files_note.bytes += file->written;
		*file = (closed_file) {0};
	}
}

/* ---------------------------------------------------------------- notes */

static inline void
note(file_operation operation, uint8 kind, int fd, int64 result, int error)
{
	if (result < -1)
		error = (int) -result;
	files_note = (file_note) {
		.pending = kind != KIND_NONE,
		.operation = (uint8) operation,
		.kind = kind,
		.error = result >= 0 ? 0 : error > 0 && error <= UINT8_MAX ? (uint8) error : UINT8_MAX,
		.fd = fd,
	};
}

HOT_CODE void
files_done(int fd, file_operation operation, int64 result, int64 offset)
{
	int			saved_errno = errno;
	bool		moves = (operation == FILE_READ || operation == FILE_WRITE) && result > 0;
	descriptor *d = fd >= 0 && fd < DESCRIPTORS ? &descriptors[fd] : NULL;

	if (d != NULL && unlikely(d->kind == KIND_UNKNOWN))
		learn(fd);
	if (operation == FILE_WRITE &&
		*(volatile uint32 *) my_wait_event_info == WAIT_EVENT_DATA_FILE_EXTEND)
		operation = FILE_EXTEND;
	note(operation, d != NULL ? d->kind : KIND_OTHER, fd, result, saved_errno);
	if (moves)
		files_note.bytes = (uint64) result;
	if (d != NULL)
	{
		if (moves && offset >= 0)
		{
			int64	   *end = operation == FILE_READ ? &d->read_end : &d->write_end;

			files_note.follows = *end == offset;
			*end = offset + result;
		}
		if (moves && operation != FILE_READ)
		{
			d->writes++;
			d->written += (uint64) result;
		}
		else if (operation == FILE_SYNC)
			take_writes(d);
	}
	errno = saved_errno;
}

void
files_opened(const char *path, int fd)
{
	int			saved_errno = errno;
	uint8		kind = kind_number(path);

	if (fd >= 0 && fd < DESCRIPTORS)
		descriptors[fd] = (descriptor) {
			.kind = kind,.read_end = -1,.write_end = -1,.name = hash_of(path)
		};
	note(FILE_OPEN, kind, fd, fd, saved_errno);
	errno = saved_errno;
}

void
files_closed(int fd, int result)
{
	uint8		kind = fd >= 0 && fd < DESCRIPTORS ? descriptors[fd].kind : KIND_OTHER;

	/* one that was never used: it is too late to ask */
	note(FILE_CLOSE, kind == KIND_UNKNOWN ? KIND_NONE : kind, -1, result, errno);
	if (fd >= 0 && fd < DESCRIPTORS)
	{
		keep_writes(&descriptors[fd]);
		descriptors[fd] = (descriptor) {.kind = KIND_UNKNOWN};
	}
}

void
files_forget(int fd)
{
	if (fd >= 0 && fd < DESCRIPTORS)
		descriptors[fd] = (descriptor) {.kind = KIND_UNKNOWN};
}

void
files_path_done(const char *path, file_operation operation, int result)
{
	int			saved_errno = errno;

	note(operation, kind_number(path), -1, result, saved_errno);
	errno = saved_errno;
}

/* Of a path that is too long the end is told, which has the file's name. */
static void
fit(const char *whole, char *path, size_t size)
{
	size_t		length = strlen(whole);

	if (length < size)
		strlcpy(path, whole, size);
	else
		snprintf(path, size, "...%s", whole + length - (size - 1 - strlen("...")));
}

void
files_path(char *path, size_t size)
{
	char		whole[MAXPGPATH];
	size_t		data = strlen(DataDir);

	if (files_note.fd < 0 || !path_of(files_note.fd, whole, sizeof(whole)))
		strlcpy(path, kinds[files_note.kind], size);
	else if (strncmp(whole, DataDir, data) == 0 && whole[data] == '/')
		fit(whole + data + 1, path, size);
	else
		fit(whole, path, size);
}

uint64
files_longest_sync(char *path, size_t size)
{
	uint64		ticks = longest_sync;

	strlcpy(path, longest_path, size);
	longest_sync = 0;
	longest_path[0] = '\0';
	return ticks;
}

/* ---------------------------------------------------------------- statistics */

static pg_noinline uint32
touch(file_account *account, uint32 key)
{
	char		name[TALLY_NAME_MAX];

	snprintf(name, sizeof(name), "file::%s::%s%s::%s", kinds[files_note.kind],
			 operation_names[files_note.operation], files_note.error != 0 ? " failed" : "",
			 probe_phase_name(tally.phase));
	account->index = probe_touch(name, TALLY_TIMER);
	account->key = key;
	return account->index;
}

HOT_CODE void
files_record(uint64 ticks)
{
	uint32		key = 1 + ((uint32) files_note.kind << 16 | (uint32) files_note.operation << 9 |
						   (uint32) (files_note.error != 0) << 8 | (uint32) tally.phase);
	file_account *account = &accounts[(key * 2654435761u) >> 24 & (ACCOUNTS - 1)];
	uint32		index = account->key == key ? account->index : touch(account, key);
	uint64		seq;

	if (kinds[files_note.kind][0] == 's' && strncmp(kinds[files_note.kind], "slru ", 5) == 0)
		files_slru_ticks += ticks;
	if (unlikely(tally.checkpointer) && files_note.operation == FILE_SYNC && ticks > longest_sync)
	{
		longest_sync = ticks;
		files_path(longest_path, sizeof(longest_path));
	}
	files_note.pending = false;
	if (index == TALLY_NONE)
		return;
	seq = tally_book_begin(tally.slot.book);
	tally_add_amount(&tally.slot, index, ticks,
					 files_note.operation == FILE_SYNC ? 0 : files_note.bytes, files_note.follows);
	tally_book_publish(tally.slot.book, seq);
}
