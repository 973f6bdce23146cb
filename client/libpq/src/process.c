/* SPDX-License-Identifier: PostgreSQL */
/*
 * process.c
 *	  The segment of this process, and a slot for each of its threads that calls libpq.
 *
 * The first call of libpq creates the segment, so a program that never calls libpq has none. After a fork, a child has no
 * slot and creates its own segment. The file is removed when the process ends; if it is killed, calls _exit, or executes
 * another program, the file stays. Readers see that its process has ended, and remove it (crates/segment, ended_clients);
 * so does the next program that creates a segment with that name. Here, a file is removed only if it belongs to this
 * library and its process has ended, according to a lock. Pids are no criterion, because containers that share a directory may have equal pids.
 *
 * Concurrency contract: `state` says who creates the segment; the others wait for that, for a limited time. The segment
 * does not change until a fork.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "libtally_pq.h"

const char *const pq_function_names[FUNCTIONS] = {
#define PQ_FUNCTION(type, failed, name, parameters, arguments) [FUNCTION_##name] = #name,
#define PQ_ACTION(name, parameters, arguments) [FUNCTION_##name] = #name,
#include "functions.h"
#undef PQ_FUNCTION
#undef PQ_ACTION
	[FUNCTION_send] = "send",
	[FUNCTION_recv] = "recv",
	[FUNCTION_poll] = "poll",
};

#define GROUPS 4
#define STATISTICS 256				/* per thread: all statistics of all functions */
#define GROUP_NAME "libpq"
#define PRODUCER "libtally_pq "
#define WAIT_NS 1000000
#define WAITS 1000

_Static_assert(4 * FUNCTIONS + ACCOUNTS + 1 <= STATISTICS, "a thread's book has space for everything");

enum
{
	STATE_NONE,
	STATE_MAKING,
	STATE_READY,
	STATE_FAILED
};

uint32_t	pq_generation = 1;

static int	state;
static tally_segment segment;
static char path[PATH_MAX];			/* of the segment */
static pthread_key_t key;			/* its destructor is called when a thread ends */
static bool has_key;

/* Options, from PGTALLY_LIBPQ. */
static char directory[PATH_MAX] = "/dev/shm";
static char file[PATH_MAX];			/* empty: by the pid */
static bool forked;					/* by the process that read the options */
static bool keep;
static uint32_t threads = 256;
static char user[TALLY_TEXT_MAX];

/* ---------------------------------------------------------------- texts, without stdio */

static bool
append(char *to, size_t size, const char *text)
{
	size_t		length = strlen(to);

	if (length + strlen(text) >= size)
		return false;
	strcpy(to + length, text);
	return true;
}

static bool
append_number(char *to, size_t size, uint32_t number)
{
	char		digits[12];
	char	   *at = digits + sizeof(digits) - 1;

	*at = '\0';
	do
		*--at = (char) ('0' + number % 10);
	while ((number /= 10) > 0);
	return append(to, size, at);
}

/* False if the text is too long. */
static bool
set_path(void)
{
	path[0] = '\0';
	if (file[0] != '\0' && !forked)
		return append(path, sizeof(path), file);
	/* the file with this name is the parent's, even if it has ended */
	if (file[0] != '\0')
		return append(path, sizeof(path), file) && append(path, sizeof(path), ".") &&
			append_number(path, sizeof(path), (uint32_t) getpid());
	return append(path, sizeof(path), directory) && append(path, sizeof(path), "/pg_tally.libpq.") &&
		append_number(path, sizeof(path), (uint32_t) getpid());
}

/* ---------------------------------------------------------------- the file */

/* Lock an open file to show that its process is alive. The lock ends with the last descriptor, however the process ends. */
static bool
lock(int fd)
{
	struct flock first = {.l_type = F_WRLCK,.l_whence = SEEK_SET,.l_len = 1};

	return fcntl(fd, F_OFD_SETLK, &first) == 0;
}

/* Does the path name this file? */
static bool
is_named(uint64_t device, uint64_t inode)
{
	struct stat st;

	return lstat(path, &st) == 0 && (uint64_t) st.st_dev == device && (uint64_t) st.st_ino == inode;
}

/* Is it a segment created by this library for the same user? */
static bool
is_ours(int fd, struct stat *st)
{
	tally_header header;

	return fstat(fd, st) == 0 && S_ISREG(st->st_mode) && st->st_uid == geteuid() &&
		pread(fd, &header, sizeof(header), 0) == (ssize_t) sizeof(header) &&
		memcmp(header.magic, TALLY_MAGIC, sizeof(header.magic)) == 0 &&
		strncmp(header.producer, PRODUCER, strlen(PRODUCER)) == 0;
}

/* Remove a segment that an earlier process has left at the path. Any other file stays. */
static void
remove_left(void)
{
	int			fd = open(path, O_RDWR | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0)
		return;
	if (is_ours(fd, &st) && lock(fd) && is_named((uint64_t) st.st_dev, (uint64_t) st.st_ino))
		unlink(path);
	close(fd);
}

/* ---------------------------------------------------------------- the process */

void
pq_process_end(void)
{
	/* readers take this as the end of everything; if it fails, the process looks killed */
	if (__atomic_load_n(&state, __ATOMIC_ACQUIRE) == STATE_READY && segment.fd >= 0)
	{
		uint64_t	now = tally_now(segment.clock);
		ssize_t		written = pwrite(segment.fd, &now, sizeof(now), offsetof(tally_header, ended_tick));

		(void) written;
	}
	/* identified by device and inode, because a truncated segment has no descriptor */
	if (!keep && __atomic_load_n(&state, __ATOMIC_ACQUIRE) == STATE_READY &&
		is_named(segment.device, segment.inode))
		unlink(path);
}

static void
read_option(const char *name, const char *value)
{
	if (strcmp(name, "directory") == 0 && strlen(value) < sizeof(directory))
		strcpy(directory, value);
	else if (strcmp(name, "file") == 0 && strlen(value) < sizeof(file))
		strcpy(file, value);
	else if (strcmp(name, "keep") == 0)
		keep = strcmp(value, "on") == 0;
	else if (strcmp(name, "threads") == 0 && atoi(value) > 0 && atoi(value) <= 65535)
		threads = (uint32_t) atoi(value);
}

/* NAME=VALUE, separated by commas. Unknown options are ignored, because the program must not be disturbed. */
static void
read_options(const char *text)
{
	char		one[PATH_MAX + 16];

	while (text != NULL && *text != '\0')
	{
		size_t		length = strcspn(text, ",");
		char	   *value;

		if (length < sizeof(one))
		{
			memcpy(one, text, length);
			one[length] = '\0';
			value = strchr(one, '=');
			if (value != NULL)
			{
				*value = '\0';
				read_option(one, value + 1);
			}
		}
		text += length + (text[length] == ',');
	}
}

void
pq_process_begin(void (*thread_ended) (void *slot))
{
	const char *name = secure_getenv("USER");

	read_options(secure_getenv("PGTALLY_LIBPQ"));
	if (name != NULL && strlen(name) < sizeof(user))
		strcpy(user, name);
	has_key = pthread_key_create(&key, thread_ended) == 0;
	/* a leftover of the program that this process executed before */
	if (file[0] == '\0' && set_path())
		remove_left();
}

/* The segment belongs to the parent: forget it. */
void
pq_process_forked(void)
{
	if (state == STATE_READY)
		tally_close(&segment);
	state = STATE_NONE;
	forked = true;
	if (++pq_generation == 0)
		pq_generation = 1;
}

/* ---------------------------------------------------------------- the segment */

static void
list_functions(const pq_library *library)
{
	char		name[64];
	uint32_t	index = 0;

	for (int i = 0; i < FUNCTIONS; i++)
	{
		if (i < PUBLIC_FUNCTIONS && library->real[i] == NULL)
			continue;
		name[0] = '\0';
		append(name, sizeof(name), "function ");
		append(name, sizeof(name), pq_function_names[i]);
		tally_probe_set(&segment, index++, name, TALLY_PROBE_INSTALLED, NULL);
	}
}

/* "libpq 15.20" */
static void
describe(const pq_library *library, char *text, size_t size)
{
	int			version = library->version == NULL ? 0 : library->version();

	text[0] = '\0';
	append(text, size, GROUP_NAME);
	if (version < 100000)
		return;
	append(text, size, " ");
	append_number(text, size, (uint32_t) (version / 10000));
	append(text, size, ".");
	append_number(text, size, (uint32_t) (version % 10000));
}

static bool
make(const pq_library *library)
{
	tally_options options;
	char		server[64];

	if (!set_path())
		return false;
	describe(library, server, sizeof(server));
	tally_options_init(&options);
	options.slots = threads;
	options.groups = GROUPS;
	options.stats_per_book = STATISTICS;
	options.traces = 1;
	options.host = program_invocation_short_name;
	options.producer = PRODUCER PQ_VERSION;
	options.server = server;
	options.server_pid = (uint32_t) getpid();
	options.flags = keep ? 0 : TALLY_SEGMENT_TRANSIENT;
	remove_left();
	/* the name belongs to another file, so the process is not measured */
	if (tally_create(path, &options, false, &segment) != 0)
		return false;
	(void) lock(segment.fd);
	tally_guard(&segment);
	list_functions(library);
	return true;
}

static bool
is_ready(const pq_library *library)
{
	int			seen = STATE_NONE;

	if (__atomic_compare_exchange_n(&state, &seen, STATE_MAKING, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
	{
		seen = make(library) ? STATE_READY : STATE_FAILED;
		__atomic_store_n(&state, seen, __ATOMIC_RELEASE);
	}
	for (int i = 0; seen == STATE_MAKING && i < WAITS; i++)
	{
		const struct timespec wait = {.tv_nsec = WAIT_NS};

		nanosleep(&wait, NULL);
		seen = __atomic_load_n(&state, __ATOMIC_ACQUIRE);
	}
	return seen == STATE_READY;
}

/* ---------------------------------------------------------------- slots */

bool
pq_claim(tally_slot *slot, const pq_library *library, uint32_t accounts[ACCOUNTS])
{
	char		name[TALLY_TEXT_MAX] = "";
	tally_identity identity = {.kind = "thread",.user = user,.application = name};
	int			saved = errno;
	bool		claimed = is_ready(library);

	if (claimed)
	{
		identity.pid = (int32_t) syscall(SYS_gettid);
		prctl(PR_GET_NAME, name);
		claimed = tally_claim(&segment, &identity, slot) == 0;
	}
	if (claimed)
	{
		accounts[ACCOUNT_IDLE] = tally_touch(slot, tally_register_account(&segment, TALLY_STAT_APPLICATION_IDLE,
																		  TALLY_CLASS_ACTIVITY));
		accounts[ACCOUNT_OFF] = tally_touch(slot, tally_register_account(&segment, TALLY_STAT_OFF,
																		 TALLY_CLASS_OTHER));
		tally_begin(slot, accounts[TALLY_LEVEL_OF(slot->word) == TALLY_LEVEL_OFF ? ACCOUNT_OFF : ACCOUNT_IDLE]);
		if (has_key)
			pthread_setspecific(key, slot);
	}
	errno = saved;
	return claimed;
}

/* function::NAME::FIGURE::libpq */
static uint32_t
touch_figure(tally_slot *slot, enum pq_function function, const char *figure)
{
	char		name[TALLY_NAME_MAX] = TALLY_STAT_FUNCTION;

	append(name, sizeof(name), pq_function_names[function]);
	append(name, sizeof(name), figure);
	return tally_touch(slot, tally_register(&segment, name, TALLY_TIMER, "ticks"));
}

void
pq_touch(tally_slot *slot, enum pq_function function, pq_indexes *indexes)
{
	char		name[TALLY_NAME_MAX] = GROUP_NAME "::";
	int			saved = errno;

	append(name, sizeof(name), pq_function_names[function]);
	indexes->inclusive = touch_figure(slot, function, "::" TALLY_STAT_FUNCTION_INCLUSIVE "::" GROUP_NAME);
	indexes->exclusive = touch_figure(slot, function, "::" TALLY_STAT_FUNCTION_EXCLUSIVE "::" GROUP_NAME);
	indexes->account = tally_touch(slot, tally_register_account(&segment, name, TALLY_CLASS_OTHER));
	indexes->failed = TALLY_NONE;
	errno = saved;
}

uint32_t
pq_touch_failed(tally_slot *slot, enum pq_function function)
{
	int			saved = errno;
	uint32_t	index = touch_figure(slot, function, "::" TALLY_STAT_FUNCTION_THROWN "::" GROUP_NAME);

	errno = saved;
	return index;
}

void
pq_retire(tally_slot *slot)
{
	if (slot->segment != NULL && __atomic_load_n(&state, __ATOMIC_ACQUIRE) == STATE_READY)
		tally_retire(slot);
}
