/* SPDX-License-Identifier: PostgreSQL */
/*
 * imports.c
 *	  Probes on the server's calls into other libraries.
 *
 * The executable calls libc through its import table. We replace the entries of calls that can block by
 * probes, which charge the time of the call to the wait event that the server has announced. This changes
 * only data, so it works on every processor architecture.
 *
 * Calls that may sleep at any time (files, processes, name lookups, authentication) are always timed, outside
 * any wait event as "Call:<name>". So is sem_wait: a process that had queued for a lightweight lock and then
 * got it consumes the pending wake-up without announcing a wait (LWLockDequeueSelf). Calls that do not block
 * outside wait events (sockets are non-blocking, epoll_wait is always announced) cost two loads and a
 * branch there.
 *
 * The table is read-only after relocation (RELRO), so its pages are made writable and then read-only again.
 */
#include "base/compat.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdio_ext.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/own_segment.h"
#include "base/settings.h"
#include "detour/executable.h"
#include "detour/probe_table.h"
#include "file/files.h"
#include "ledger/ledger.h"
#include "ledger/server.h"
#include "ledger/wait_class.h"
#include "lock/blocking.h"
#include "lock/lock_detours.h"
#include "probe/import_list.h"
#include "probe/modules.h"
#include "probe/plain_wait.h"
#include "probe/probe.h"
#include "probe/waits.h"
#include "wait/interrupted_wait.h"
#include "wait/trace_ring.h"
#include "wal/wal.h"

enum
{
	CALL_BEFORE_FIRST = CALLS_IMPORTS - 1,
#define PLAIN(name) CALL_##name,
#define TIMED(ret, name, always, params, args, note) CALL_##name,
	TIMED_IMPORTS(TIMED)
	PLAIN_IMPORTS(PLAIN)
#undef PLAIN
#undef TIMED
	CALL_END
};

#define CALL_COUNT (CALL_END - CALLS_IMPORTS)

StaticAssertDecl(CALL_END <= TALLY_CALLS, "more imports than a book has counters");

#define UNNAMED(call) (CALL_CLASS | (call))

/* The event for a call outside any wait event: named after the call, another one, or none (0). */
static pg_attribute_always_inline uint32
unnamed_event(uint32 always, uint32 call)
{
	return always > true ? always : always ? UNNAMED(call) : 0;
}

#define PROBE(heat_code, heat_data, ret, name, always, params, args, before, note) \
	static ret (*real_##name) params heat_data = NULL; \
	PROBE_AS(probe_##name, real_##name, heat_code, ret, name, always, params, args, before, note)
/* A probe that calls that function instead of the real one when the call is timed. */
#define PROBE_AS(function, timed, heat_code, ret, name, always, params, args, before, note) \
	heat_code static pg_noinline ret function params \
	{ \
		ret result; \
		if (!probe_begin_wait(unnamed_event(always, CALL_##name), CALL_##name)) \
			return real_##name args; \
		before; \
		result = timed args; \
		note; \
		probe_end_wait(); \
		return result; \
	}

/*
 * The most frequent calls: the common case of a wait is straight-line code with no call except the real one (plain_wait.h).
 * `read` handles a wait for a message, `other` any wait that is not plain.
 */
#define GENERAL(timed, ret, name, always, params, args, before, note) \
	PROBE_AS(general_##name, timed, HOT_CODE, ret, name, always, params, args, before, note)
#define HOT_AS(read, other, ret, name, params, args, before, note, end) \
	HOT_CODE static pg_noinline ret plain_##name params \
	{ \
		ret result; \
		uint32		event = server_wait_event(); \
		/* first, count the WAL inserted so far */ \
		if (CALL_##name == CALL_pwrite && unlikely(event == WAIT_EVENT_WAL_WRITE)) \
			plain_wal_write(); \
		if (unlikely(!plain_wait_begin(event, CALL_##name))) \
			return other args; \
		before; \
		result = real_##name args; \
		note; \
		end; \
		return result; \
	} \
	/* no stack frame for calls that are not timed */ \
	HOT_CODE static ret probe_##name params \
	{ \
		if (unlikely(*(const volatile uint32 *) tally.level_word != tally.word_seen)) \
			return general_##name args; \
		if (tally.gate == GATE_READ) \
			return read args; \
		if (!tally.on) \
			return real_##name args; \
		return plain_##name args; \
	}
#define HOT_BEFORE(ret, name, always, params, args, before, note) \
	static ret (*real_##name) params HOT_SMALL = NULL; \
	GENERAL(real_##name, ret, name, always, params, args, before, note) \
	HOT_AS(general_##name, general_##name, ret, name, params, args, before, note, plain_wait_end())
#define HOT(ret, name, always, params, args, note) \
	HOT_BEFORE(ret, name, always, params, args, (void) 0, note)
#define SYNC(ret, name, always, params, args, note) \
	HOT_BEFORE(ret, name, always, params, args, files_syncing(fd), note)
#define OTHER(ret, name, always, params, args, note) \
	PROBE(,, ret, name, always, params, args, (void) 0, note)
#define SUBMIT(ret, name, always, params, args, before) \
	PROBE(HOT_CODE, HOT_SMALL, ret, name, always, params, args, before, NOT_A_FILE)

static int	(*real_epoll_wait) (int ep, struct epoll_event *ev, int n, int ms) HOT_SMALL = NULL;

/* A timed sleep. Waits for heavyweight locks are sliced to look up the blockers; nearly all others go straight through. */
static inline int
sleep_in_epoll(int ep, struct epoll_event *ev, int n, int ms)
{
	if (unlikely(blocking_is_lock(server_wait_event())))
		return blocking_sleep(real_epoll_wait, ep, ev, n, ms);
	return real_epoll_wait(ep, ev, n, ms);
}

/* A sleep that a signal may interrupt, or that resumes an interrupted one. */
HOT_CODE static pg_noinline int
general_epoll_wait(int ep, struct epoll_event *ev, int n, int ms)
{
	int			result;

	if (!probe_begin_wait(0, CALL_epoll_wait))
		return real_epoll_wait(ep, ev, n, ms);
	result = sleep_in_epoll(ep, ev, n, ms);
	if (unlikely(result < 0 || interrupted.resumed || tally.guessing))
		interrupted_end_sleep(result, ev);
	else
		probe_end_wait();
	return result;
}

static inline void
plain_sleep_end(int result, const struct epoll_event *ev)
{
	if (unlikely(result < 0))
		interrupted_end_sleep(result, ev);
	else
		plain_wait_end();
}

/* Most sleeps are for a message. After a commit, the commit is recorded first. Signals do not split them (tally_book.between). */
#define SLEEP(ret, name, always, params, args, note) \
	HOT_CODE static pg_noinline ret read_##name params \
	{ \
		ret result; \
		if (unlikely(server_wait_event() != WAIT_EVENT_CLIENT_READ)) \
			return general_##name args; \
		plain_read_begin(CALL_##name); \
		result = real_##name args; \
		plain_wait_end(); \
		return result; \
	} \
	HOT_CODE static pg_noinline ret other_##name params \
	{ \
		if (tally.gate != GATE_READ_AFTER_COMMIT) \
			return general_##name args; \
		plain_read_after_commit(); \
		return read_##name args; \
	} \
	HOT_AS(read_##name, other_##name, ret, name, params, args, (void) 0, note, plain_sleep_end(result, ev))

SLEEP_IMPORTS(SLEEP)
HOT_IMPORTS(HOT)
SYNC_IMPORTS(SYNC)
OTHER_IMPORTS(OTHER)
SUBMIT_IMPORTS(SUBMIT)

static int	(*real_sem_wait) (sem_t *s) HOT_SMALL = NULL;

/* A sleep in the queue of a lightweight lock: counted as one wait, and for the lock's own account. */
HOT_CODE static int
probe_sem_wait(sem_t *s)
{
	bool		lightweight = compat_queues_for_lock(server_wait_event());
	uint64		begin;
	int			result;

	if (!probe_begin_wait(UNNAMED(CALL_sem_wait), CALL_sem_wait))
		return real_sem_wait(s);
	begin = tally.slot.book->run_start;
	result = real_sem_wait(s);
	probe_end_wait();
	if (lightweight && locks_installed)
		lwlocks_slept(begin, tally.slot.book->run_start);
	return result;
}

static int	(*real_sem_post) (sem_t *s) HOT_SMALL = NULL;

/* Wakes a process, possibly because a lightweight lock is being released. */
HOT_CODE static int
probe_sem_post(sem_t *s)
{
	if (unlikely(locks_installed))
		lwlocks_waking();
	return real_sem_post(s);
}

static int	(*real_select) (int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *t);

/*
 * pg_usleep, which uses nanosleep since 16. The server announces few of its sleeps: not that of commit_delay
 * up to 18, and not those at a contended spinlock up to 15.
 */
static int
probe_select(int n, fd_set *r, fd_set *w, fd_set *e, struct timeval *t)
{
	uint32		unnamed = 0;
	int			result;

	if (n == 0)
		unnamed = t != NULL && commits_delayed(t->tv_sec, t->tv_usec) ? CALL_COMMIT_DELAY
			: UNNAMED(CALL_select);
	if (!probe_begin_wait(unnamed, CALL_select))
		return real_select(n, r, w, e, t);
	result = real_select(n, r, w, e, t);
	probe_end_wait();
	return result;
}

static int	(*real_nanosleep) (const struct timespec *t, struct timespec *left);

static int
probe_nanosleep(const struct timespec *t, struct timespec *left)
{
	int			result;

	if (!probe_begin_wait(commits_delayed(t->tv_sec, t->tv_nsec / 1000) ? CALL_COMMIT_DELAY
						  : UNNAMED(CALL_nanosleep), CALL_nanosleep))
		return real_nanosleep(t, left);
	result = real_nanosleep(t, left);
	probe_end_wait();
	return result;
}

static int	(*real_open) (const char *path, int flags, ...);

/* The mode is always passed on; an unused register is harmless. */
static int
probe_open(const char *path, int flags, ...)
{
	va_list		args;
	mode_t		mode;
	int			fd;

	va_start(args, flags);
	mode = va_arg(args, mode_t);
	va_end(args);
	if (!probe_begin_wait(UNNAMED(CALL_open), CALL_open))
	{
		fd = real_open(path, flags, mode);
		files_forget(fd);
		return fd;
	}
	fd = real_open(path, flags, mode);
	files_opened(path, flags, fd);
	probe_end_wait();
	return fd;
}

static int	(*real_close) (int fd);

static int
probe_close(int fd)
{
	int			result;

	if (!probe_begin_wait(UNNAMED(CALL_close), CALL_close))
	{
		files_forget(fd);
		return real_close(fd);
	}
	result = real_close(fd);
	files_closed(fd, result);
	probe_end_wait();
	return result;
}

/* Number of bytes that can be read from a stream without a system call. */
static inline size_t
buffered(const FILE *file)
{
#ifdef __GLIBC__
	return (size_t) (file->_IO_read_end - file->_IO_read_ptr);
#else
	return 0;
#endif
}

/* Does the buffer contain that many bytes? */
static inline bool
has_bytes(const FILE *file, size_t size)
{
#ifdef __GLIBC__
	return (uintptr_t) file->_IO_read_ptr + size <= (uintptr_t) file->_IO_read_end;
#else
	return size == 0;
#endif
}

/* Does the buffer contain the next line, or `size` bytes? */
static inline bool
has_line(const FILE *file, int size)
{
	size_t		there = buffered(file);

#ifdef __GLIBC__
	if (there > 0 && memchr(file->_IO_read_ptr, '\n', there) != NULL)
		return true;
#endif
	return there > 0 && there + 1 >= (size_t) size;
}

/*
 * A call that may block unless `at_once` holds: the stream's buffer contains the data, or has space for it. That is
 * the common case, so it gets no stack frame.
 */
#define PROBE_STREAM(ret, name, at_once, params, args) \
	static ret (*real_##name) params HOT_SMALL = NULL; \
	static pg_noinline ret timed_##name params \
	{ \
		ret result; \
		if (!probe_begin_wait(UNNAMED(CALL_##name), CALL_##name)) \
			return real_##name args; \
		result = real_##name args; \
		probe_end_wait(); \
		return result; \
	} \
	static ret probe_##name params \
	{ \
		if (likely(at_once)) \
			return real_##name args; \
		return timed_##name args; \
	}

/* A session begins with 3,000 reads of the relation cache file; nearly all of them are satisfied by the buffer. */
PROBE_STREAM(size_t, fread, has_bytes(file, size * count),
			 (void *data, size_t size, size_t count, FILE *file), (data, size, count, file))
PROBE_STREAM(char *, fgets, has_line(file, size), (char *line, int size, FILE *file), (line, size, file))
/* COPY TO a file or program writes row by row; it can only block when the buffer is flushed. */
PROBE_STREAM(size_t, fwrite, __fpending(file) + size * count < __fbufsize(file),
			 (const void *data, size_t size, size_t count, FILE *file), (data, size, count, file))

static pid_t (*real_fork) (void);

static pid_t
probe_fork(void)
{
	pid_t		pid = real_fork();

	if (pid == 0)
		lifecycle_forked();
	return pid;
}

/* An error unwinds stack frames; this ends timed functions in them. */
static void
before_jump(sigjmp_buf target)
{
	uint64		now;

	if (!tally.claimed)
		return;
	now = probe_now();
	MODULES_CALL(jump, target, now);
}

#define PROBE_JUMP(name) \
	static void (*real_##name) (sigjmp_buf target, int value) __attribute__((noreturn)); \
	static void \
	probe_##name(sigjmp_buf target, int value) \
	{ \
		before_jump(target); \
		real_##name(target, value); \
	}

PROBE_JUMP(siglongjmp)
/* Its name in a server built with _FORTIFY_SOURCE. */
PROBE_JUMP(__longjmp_chk)

static void (*real_exit) (int status) __attribute__((noreturn));

static void
probe_exit(int status)
{
	lifecycle_exit();
	real_exit(status);
}

typedef struct import
{
	const char *name;
	void	   *probe;
	void	  **real;
	import_slots at;				/* in the executable's table, once found */
} import;

static import imports[CALL_COUNT] = {
#define PLAIN(name) \
	[CALL_##name - CALLS_IMPORTS] = {#name, (void *) probe_##name, (void **) &real_##name, {{NULL}}},
#define TIMED(ret, name, always, params, args, note) \
	[CALL_##name - CALLS_IMPORTS] = {#name, (void *) probe_##name, (void **) &real_##name, {{NULL}}},
	TIMED_IMPORTS(TIMED)
	PLAIN_IMPORTS(PLAIN)
};

/* ---------------------------------------------------------------- the import table */

/* Maps names to numbers. Chains by the first two letters speed up the scan of the whole table. */
static inline int
chain_of(const char *name)
{
	return (name[0] + 8 * name[1]) & 127;
}

static import_slots *
find_import(const char *name, void *data)
{
	static int8 first[128];			/* 1 + lowest number of that chain */
	static int8 next[CALL_COUNT];
	static bool ready = false;

	StaticAssertStmt(CALL_COUNT < 127, "import numbers must fit a signed byte");
	if (!ready)
	{
		for (int i = CALL_COUNT - 1; i >= 0; i--)
		{
			next[i] = first[chain_of(imports[i].name)];
			first[chain_of(imports[i].name)] = (int8) (i + 1);
		}
		ready = true;
	}
	for (int i = first[chain_of(name)]; i != 0; i = next[i - 1])
		if (strcmp(imports[i - 1].name, name) == 0)
			return &imports[i - 1].at;
	return NULL;
}

/* Put the probe into the slots of its import. Returns NULL, or the reason why it is left out. */
static const char *
install(import *imp, const executable *exe)
{
	const char *reason = NULL;
	void	   *function;

	if (imp->at.slot[0] == NULL)
		return "this server does not import it";
	if (*imp->at.slot[0] == imp->probe)
		return NULL;
	function = import_function(exe, &imp->at, &reason);
	if (function == NULL)
		return reason;
	*imp->real = function;
	for (int s = 0; s < lengthof(imp->at.slot) && imp->at.slot[s] != NULL; s++)
		*imp->at.slot[s] = imp->probe;
	return NULL;
}

void
imports_install(void)
{
	const executable *exe = executable_self();
	const char *reason = NULL;
	char		text[96];
	bool		unlocked = false;

	if (!exe->found)
		reason = "the executable has no readable dynamic section";
	else
	{
		import_table_scan(exe, find_import, NULL);
		if (exe->relro_end > exe->relro_start)
		{
			unlocked = mprotect((void *) exe->relro_start, exe->relro_end - exe->relro_start,
								PROT_READ | PROT_WRITE) == 0;
			if (!unlocked)
			{
				snprintf(text, sizeof(text), "could not make the import table writable: %s",
						 strerror(errno));
				reason = text;
			}
		}
	}

	for (int i = 0; i < CALL_COUNT; i++)
	{
		import	   *imp = &imports[i];
		const char *left_out = reason;

		if (left_out == NULL && settings_leave_out(imp->name))
			left_out = LEFT_OUT_BY_SETTING;
		if (left_out == NULL)
			left_out = install(imp, exe);
		probe_table_set((uint32) i + CALLS_IMPORTS, "import", imp->name, left_out);
	}

	if (unlocked)
		mprotect((void *) exe->relro_start, exe->relro_end - exe->relro_start, PROT_READ);
}
