/* SPDX-License-Identifier: PostgreSQL */
/*
 * files.c
 *	  Records file operations by kind of file, as statistics file::<kind>::<operation>::<phase>.
 *
 * Descriptors opened before the library was loaded are looked up once in /proc. Pipes and sockets are
 * ignored, except the pipe to the server's log.
 */
#include "base/compat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/file_names.h"
#include "file/files.h"
#include "file/relations.h"
#include "ledger/ledger.h"
#include "ledger/names.h"
#include "ledger/server.h"

#define DESCRIPTORS 4096			/* higher descriptors are "other" */
#define KINDS 250					/* different kinds in a process; further ones are "other" */
#define KIND_UNKNOWN 0
#define KIND_NONE 1					/* not a file */
#define KIND_OTHER 2
#define KIND_LOG_PIPE 3
#define KIND_SIZE 40
#define ACCOUNTS 256				/* power of two */

typedef struct descriptor
{
	uint8		kind;
	bool		slru;
	uint32		unsynced;			/* entry that counts its writes, or TALLY_NONE */
	uint64		name;				/* hash; 0: its writes are not counted */
	int64		read_end;			/* offset at which the last read ended */
	int64		write_end;
	relation_name relation;			/* that the file belongs to */
} descriptor;

typedef struct file_kind
{
	char		name[KIND_SIZE];
	bool		slru;
	bool		never_synced;
} file_kind;

typedef struct file_account
{
	uint32		key;				/* KEY and phase; 0: empty */
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

/* In the checkpointer: the longest sync since the last call of files_longest_sync. */
static uint64 longest_sync = 0;
static char longest_path[128];

/* For the current sync: the writes since the previous one. */
static uint64 syncing_writes = 0;
static uint64 syncing_bytes = 0;

/* The relation of a noted operation on a path instead of a descriptor. */
static relation_name path_relation;

/* Operations submitted together with the one in files_note. */
static file_note submitted[SUBMISSIONS];

static descriptor descriptors[DESCRIPTORS];
static file_kind kinds[KINDS] = {
	[KIND_UNKNOWN] = {.name = "unknown"},
	[KIND_NONE] = {.name = "none"},
	[KIND_OTHER] = {.name = "other"},
	[KIND_LOG_PIPE] = {.name = "log pipe",.never_synced = true},
};
static int	kind_count = KIND_LOG_PIPE + 1;
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
	files_retry_names();
	relations_begin();
}

void
files_retry_names(void)
{
	memset(accounts, 0, sizeof(accounts));
}

/* ---------------------------------------------------------------- kinds */

/* Kinds whose files are never synced. */
static bool
is_never_synced(const char *kind)
{
	static const char *const kinds_of[] = {"temporary", "shared memory", "statistics", "log"};

	for (int i = 0; i < lengthof(kinds_of); i++)
		if (strncmp(kind, kinds_of[i], strlen(kinds_of[i])) == 0)
			return true;
	return false;
}

static uint8
kind_number(const char *path)
{
	char		name[KIND_SIZE];

	file_names_kind(path, name, sizeof(name));
	for (int i = KIND_OTHER; i < kind_count; i++)
		if (strcmp(kinds[i].name, name) == 0)
			return (uint8) i;
	if (kind_count == KINDS)
		return KIND_OTHER;
	strlcpy(kinds[kind_count].name, name, KIND_SIZE);
	kinds[kind_count].slru = strncmp(name, "slru ", 5) == 0;
	kinds[kind_count].never_synced = is_never_synced(name);
	return (uint8) kind_count++;
}

/* Initialise a descriptor from the file's name and the flags it was opened with. */
static void
describe(descriptor *d, const char *path, int flags)
{
	const char *name = file_names_inside(path);

	uint8		kind = kind_number(name);

	*d = (descriptor) {
		.kind = kind,
		.slru = kinds[kind].slru,
		.read_end = -1,
		.write_end = -1,
		.unsynced = TALLY_NONE,
	};
	/* with O_DSYNC, each write is a sync */
	if (!kinds[d->kind].never_synced && (flags & O_DSYNC) == 0)
		d->name = tally_file_hash(name);
	relations_of(name, &d->relation);
}

static bool
is_pipe(int fd)
{
	struct stat st;

	return fstat(fd, &st) == 0 && (S_ISFIFO(st.st_mode) || S_ISSOCK(st.st_mode));
}

static pg_noinline void
learn(int fd)
{
	char		name[MAXPGPATH];

	if (file_names_of(fd, name, sizeof(name)))
		describe(&descriptors[fd], name, fcntl(fd, F_GETFL));
	else
		descriptors[fd] = (descriptor) {
			.kind = fd == STDERR_FILENO && is_pipe(fd) ? KIND_LOG_PIPE : KIND_NONE,
			.read_end = -1,.write_end = -1,.unsynced = TALLY_NONE,
		};
}

/* Every process writes its log messages to this pipe. If its reader (mostly the log collector) stops, all processes stop. */
bool
files_is_log_pipe(void)
{
	int			saved_errno = errno;

	if (unlikely(descriptors[STDERR_FILENO].kind == KIND_UNKNOWN))
		learn(STDERR_FILENO);
	errno = saved_errno;
	return descriptors[STDERR_FILENO].kind == KIND_LOG_PIPE;
}

/* ---------------------------------------------------------------- writes until the next sync */

/*
 * The file is about to be synced, with all previous writes of all processes. A write just before the sync
 * itself may be counted for the next sync.
 */
void
files_syncing(int fd)
{
	int			saved_errno = errno;
	descriptor *d = fd >= 0 && fd < DESCRIPTORS ? &descriptors[fd] : NULL;

	if (d != NULL && unlikely(d->kind == KIND_UNKNOWN))
		learn(fd);
	syncing_writes = syncing_bytes = 0;
	if (d != NULL && d->name != 0)
		tally_unsynced_take(tally.slot.segment, d->name, &syncing_writes, &syncing_bytes);
	errno = saved_errno;
}

/* Take the writes of the sync that has ended. If it failed, they are still unsynced. */
static void
synced(descriptor *d)
{
	files_note.writes = syncing_writes;
	files_note.bytes = syncing_bytes;
	if (files_note.error != 0 && syncing_writes > 0)
		d->unsynced = tally_unsynced_add(tally.slot.segment, d->name, d->unsynced, syncing_writes,
										 syncing_bytes);
}

/* ---------------------------------------------------------------- notes */

#define KEY(kind, operation, failed) \
	(1 + ((uint32) (kind) << 16 | (uint32) (operation) << 9 | (uint32) (failed) << 8))

/* For each operation: 1 + the operation counted for the file's relation. */
static const uint8 kept[FILE_OPERATIONS] = {
	[FILE_READ] = 1 + TALLY_RELATION_READ,
	[FILE_WRITE] = 1 + TALLY_RELATION_WRITE,
	[FILE_EXTEND] = 1 + TALLY_RELATION_EXTEND,
	[FILE_SYNC] = 1 + TALLY_RELATION_SYNC,
	[FILE_TRUNCATE] = 1 + TALLY_RELATION_TRUNCATE,
};

static inline void
note(file_operation operation, uint8 kind, int fd, int64 result, int error)
{
	if (result < -1)
		error = (int) -result;
	error = result >= 0 ? 0 : error > 0 && error <= UINT8_MAX ? error : UINT8_MAX;
	files_note = (file_note) {
		.pending = kind != KIND_NONE,
		.operation = (uint8) operation,
		.kind = kind,
		.error = (uint8) error,
		.special = kinds[kind].slru || operation == FILE_SYNC,
		.kept = fd < DESCRIPTORS ? kept[operation] : 0,
		.fd = fd,
		.key = KEY(kind, operation, error != 0),
		.relation = fd < 0 ? &path_relation : fd < DESCRIPTORS ? &descriptors[fd].relation : NULL,
	};
}

/* A successful operation on a known file, as nearly all are. files_done handles the others. */
static pg_attribute_always_inline void
note_plain(int fd, file_operation operation, uint8 kept_as, uint64 writes, uint64 bytes)
{
	descriptor *d = &descriptors[fd];

	files_note.pending = true;
	files_note.operation = (uint8) operation;
	files_note.kind = d->kind;
	files_note.error = 0;
	files_note.more = 0;
	files_note.special = d->slru || operation == FILE_SYNC;
	files_note.kept = kept_as;
	files_note.fd = fd;
	files_note.key = KEY(d->kind, operation, false);
	files_note.relation = &d->relation;
	files_note.writes = writes;
	files_note.bytes = bytes;
}

static pg_attribute_always_inline bool
is_known(int fd)
{
	return fd == (fd & (DESCRIPTORS - 1)) && descriptors[fd].kind > KIND_NONE;
}

HOT_CODE void
files_read(int fd, int64 result, int64 offset)
{
	descriptor *d = &descriptors[fd & (DESCRIPTORS - 1)];

	if (unlikely(!is_known(fd) || result <= 0 || offset < 0))
	{
		files_done(fd, FILE_READ, result, offset);
		return;
	}
	note_plain(fd, FILE_READ, 1 + TALLY_RELATION_READ, 0, (uint64) result);
	files_note.follows = d->read_end == offset;
	d->read_end = offset + result;
}

HOT_CODE void
files_written(int fd, int64 result, int64 offset)
{
	descriptor *d = &descriptors[fd & (DESCRIPTORS - 1)];

	if (unlikely(!is_known(fd) || result <= 0 || offset < 0 || server_wait_event() == WAIT_EVENT_DATA_FILE_EXTEND))
	{
		files_done(fd, FILE_WRITE, result, offset);
		return;
	}
	note_plain(fd, FILE_WRITE, 1 + TALLY_RELATION_WRITE, 0, (uint64) result);
	files_note.follows = d->write_end == offset;
	d->write_end = offset + result;
	if (d->name != 0)
		d->unsynced = tally_unsynced_add(tally.slot.segment, d->name, d->unsynced, 1, (uint64) result);
}

HOT_CODE void
files_synced(int fd, int result)
{
	if (unlikely(!is_known(fd) || result != 0))
	{
		files_done(fd, FILE_SYNC, result, 0);
		return;
	}
	note_plain(fd, FILE_SYNC, 1 + TALLY_RELATION_SYNC, syncing_writes, syncing_bytes);
	files_note.follows = false;
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
		server_wait_event() == WAIT_EVENT_DATA_FILE_EXTEND)
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
		if (moves && operation != FILE_READ && d->name != 0)
			d->unsynced = tally_unsynced_add(tally.slot.segment, d->name, d->unsynced, 1,
											 (uint64) result);
		else if (operation == FILE_SYNC)
			synced(d);
	}
	errno = saved_errno;
}

/*
 * Reads are submitted that the kernel executes asynchronously. They are noted as done, with the requested number
 * of bytes, because another process may collect the results.
 */
void
files_submitting(const void *ring)
{
	submission	submissions[SUBMISSIONS];
	int			count = submissions_read(ring, submissions);
	int			noted = 0;

	for (int i = 0; i < count; i++)
	{
		const submission *s = &submissions[i];

		files_done(s->fd, s->write ? FILE_WRITE : FILE_READ, s->bytes, s->offset);
		if (files_note.pending)
			submitted[noted++] = files_note;
	}
	if (noted == 0)
		return;
	files_note = submitted[0];
	files_note.more = (uint8) (noted - 1);
}

void
files_opened(const char *path, int flags, int fd)
{
	int			saved_errno = errno;
	uint8		kind;

	if (fd >= 0 && fd < DESCRIPTORS)
	{
		describe(&descriptors[fd], path, flags);
		kind = descriptors[fd].kind;
	}
	else
		kind = kind_number(path);
	note(FILE_OPEN, kind, fd, fd, saved_errno);
	errno = saved_errno;
}

void
files_closed(int fd, int result)
{
	uint8		kind = fd >= 0 && fd < DESCRIPTORS ? descriptors[fd].kind : KIND_OTHER;

	/* a descriptor that was never used: it is too late to look it up */
	note(FILE_CLOSE, kind == KIND_UNKNOWN ? KIND_NONE : kind, -1, result, errno);
	if (fd >= 0 && fd < DESCRIPTORS)
		descriptors[fd] = (descriptor) {.kind = KIND_UNKNOWN};
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
	uint64		writes,
				bytes;

	note(operation, kind_number(path), -1, result, saved_errno);
	if (operation == FILE_TRUNCATE)
		relations_of(file_names_inside(path), &path_relation);
	else if (operation == FILE_UNLINK && result == 0)
	{
		/* it will not be synced, and a new file may get its name */
		tally_unsynced_take(tally.slot.segment, tally_file_hash(file_names_inside(path)), &writes,
							&bytes);
		relations_unlinked(file_names_inside(path));
	}
	errno = saved_errno;
}

void
files_renamed(const char *from, const char *to, int result)
{
	int			saved_errno = errno;

	note(FILE_RENAME, kind_number(to), -1, result, saved_errno);
	if (result == 0)
		tally_unsynced_rename(tally.slot.segment, tally_file_hash(file_names_inside(from)),
							  tally_file_hash(file_names_inside(to)));
	errno = saved_errno;
}

/* A path that is too long is truncated at its beginning, because its end has the file's name. */
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

	if (files_note.fd < 0 || !file_names_path(files_note.fd, whole, sizeof(whole)))
		strlcpy(path, kinds[files_note.kind].name, size);
	else
		fit(file_names_inside(whole), path, size);
}

int64
files_ends_at(void)
{
	const descriptor *d = files_note.fd >= 0 && files_note.fd < DESCRIPTORS ? &descriptors[files_note.fd] : NULL;

	return d == NULL ? -1 : files_note.operation == FILE_READ ? d->read_end : d->write_end;
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

	probe_compose(name, TALLY_STAT_FILE, kinds[files_note.kind].name, "::", operation_names[files_note.operation],
				  files_note.error != 0 ? " failed" : "", "::", probe_phase_name(tally.phase), NULL);
	account->index = probe_touch(name, TALLY_TIMER);
	account->key = key;
	return account->index;
}

/* An operation on an SLRU, or a sync. */
static pg_noinline void
record_special(uint64 ticks)
{
	if (kinds[files_note.kind].slru)
		files_slru_ticks += ticks;
	if (tally.checkpointer && files_note.operation == FILE_SYNC && ticks > longest_sync)
	{
		longest_sync = ticks;
		files_path(longest_path, sizeof(longest_path));
	}
}

static inline void
record(uint64 ticks)
{
	uint32		key = files_note.key + (uint32) tally.phase;
	file_account *account = &accounts[(key * 2654435761u) >> 24 & (ACCOUNTS - 1)];
	uint32		index = likely(account->key == key) ? account->index : touch(account, key);
	uint64		bytes = files_note.operation == FILE_SYNC ? 0 : files_note.bytes;
	uint64		seq;

	if (unlikely(files_note.special))
		record_special(ticks);
	/* the same for the relation that the file is a part of */
	if (files_note.kept != 0 && files_note.relation->tag != 0)
		relations_record(files_note.relation, (tally_relation_operation) (files_note.kept - 1), ticks, bytes,
						 files_note.error != 0);
	files_note.pending = false;
	if (unlikely(index == TALLY_NONE))
		return;
	seq = tally_seq_begin(&tally.slot.book->seq);
	tally_add_amount(&tally.slot, index, ticks, bytes, files_note.follows);
	tally_seq_publish(&tally.slot.book->seq, seq);
}

/* The time of a submission is divided evenly among its operations. */
static pg_noinline void
record_submitted(uint64 ticks)
{
	int			count = 1 + files_note.more;

	for (int i = 0; i < count; i++)
	{
		files_note = submitted[i];
		record(ticks / (uint64) count + (i == 0 ? ticks % (uint64) count : 0));
	}
}

HOT_CODE void
files_record(uint64 ticks)
{
	if (unlikely(files_note.more > 0))
		record_submitted(ticks);
	else
		record(ticks);
}
