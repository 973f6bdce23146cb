/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_faults.c
 *	  Lets the Nth call of a libc function fail, for N = 1, 2, ... until the library succeeds without reaching the fault.
 *
 * The program is linked with --wrap for each function in FUNCTIONS (Makefile). Every scenario runs once for each function,
 * error and N, with a single failure and with a lasting one. Whatever fails, the library returns an error, or does less and
 * counts that. No descriptor, mapping or file is left over, no segment in use is replaced, nothing is counted twice, and the
 * next run, without failures, does everything.
 */
#include "statement_support.h"
#include "tally_plans.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

/* type, name, what it returns when it fails, parameters, arguments */
#define FUNCTIONS(X) \
	X(void *, calloc, NULL, (size_t n, size_t size), (n, size)) \
	X(int, fallocate, -1, (int fd, int mode, off_t offset, off_t length), (fd, mode, offset, length)) \
	X(int, fchmod, -1, (int fd, mode_t mode), (fd, mode)) \
	X(int, flock, -1, (int fd, int operation), (fd, operation)) \
	X(int, fstat, -1, (int fd, struct stat *st), (fd, st)) \
	X(int, fstatfs, -1, (int fd, struct statfs *fs), (fd, fs)) \
	X(int, fstatvfs, -1, (int fd, struct statvfs *fs), (fd, fs)) \
	X(int, ftruncate, -1, (int fd, off_t length), (fd, length)) \
	X(int, kill, -1, (pid_t pid, int signal), (pid, signal)) \
	X(int, link, -1, (const char *from, const char *to), (from, to)) \
	X(int, lstat, -1, (const char *path, struct stat *st), (path, st)) \
	X(void *, mmap, MAP_FAILED, (void *at, size_t size, int protection, int flags, int fd, off_t offset), \
	  (at, size, protection, flags, fd, offset)) \
	X(int, open, -1, (const char *path, int flags, mode_t mode), (path, flags, mode)) \
	X(ssize_t, pread, -1, (int fd, void *to, size_t size, off_t offset), (fd, to, size, offset)) \
	X(ssize_t, pwrite, -1, (int fd, const void *from, size_t size, off_t offset), (fd, from, size, offset)) \
	X(ssize_t, read, -1, (int fd, void *to, size_t size), (fd, to, size)) \
	X(int, rename, -1, (const char *from, const char *to), (from, to)) \
	X(int, sigaction, -1, (int number, const struct sigaction *action, struct sigaction *before), \
	  (number, action, before)) \
	X(int, stat, -1, (const char *path, struct stat *st), (path, st)) \
	X(int, unlink, -1, (const char *path), (path))

typedef enum function
{
#define ENUM(type, name, failed, parameters, arguments) FAULT_##name,
	FUNCTIONS(ENUM)
#undef ENUM
	FAULTS
} function;

static const char *const names[] = {
#define NAME(type, name, failed, parameters, arguments) #name,
	FUNCTIONS(NAME)
#undef NAME
};

static struct
{
	function	tried;
	function	which;				/* the same while the library runs, else FAULTS */
	int			error;
	int			nth;
	bool		lasts;				/* the later calls fail too */
	int			seen;				/* calls of it since it was armed */
	bool		met;
} fault = {.which = FAULTS};

static bool met[FAULTS];			/* in any run */

static bool
fails(function which)
{
	if (which != fault.which || (++fault.seen != fault.nth && !(fault.lasts && fault.seen > fault.nth)))
		return false;
	errno = fault.error;
	return fault.met = met[which] = true;
}

/* The library is linked statically, so these are its calls, and the tests'. */
#define WRAP(type, name, failed, parameters, arguments) \
	extern type __real_##name parameters; \
	extern type __wrap_##name parameters; \
	type __wrap_##name parameters { return fails(FAULT_##name) ? failed : __real_##name arguments; }
FUNCTIONS(WRAP)
#undef WRAP

/* What is tried; 0 ends the list. */
static const struct
{
	function	which;
	int			errors[4];
}			tries[] = {
	{FAULT_calloc, {ENOMEM}},
	{FAULT_fallocate, {ENOSPC, EINTR, ENOMEM}},
	{FAULT_fchmod, {EPERM}},
	{FAULT_flock, {ENOLCK, EINTR}},
	{FAULT_fstat, {EIO}},
	{FAULT_fstatfs, {EIO}},
	{FAULT_fstatvfs, {EIO}},
	{FAULT_ftruncate, {ENOSPC, EFBIG}},
	{FAULT_kill, {EPERM}},
	{FAULT_link, {ENOSPC, EACCES}},
	{FAULT_lstat, {EIO}},
	{FAULT_mmap, {ENOMEM}},
	{FAULT_open, {EMFILE, ENOMEM, EIO}},
	{FAULT_pread, {EIO, EINTR}},
	{FAULT_pwrite, {ENOSPC}},
	{FAULT_read, {EIO}},
	{FAULT_rename, {ENOSPC, EACCES}},
	{FAULT_sigaction, {EINVAL}},
	{FAULT_stat, {ENOMEM}},
	{FAULT_unlink, {EIO}},
};

typedef struct scenario
{
	void		(*prepare) (void);
	void		(*run) (void);		/* with the fault */
	void		(*check) (void);	/* what it did, and that the same now succeeds */
} scenario;

static bool all_tried;

/* Reports the fault if an assertion failed. */
static int
teardown(void **state)
{
	(void) state;
	fault.which = FAULTS;
	if (!all_tried)
		print_message("with %s number %d%s: %s\n", names[fault.tried], fault.nth,
					  fault.lasts ? " and all later ones" : "", strerror(fault.error));
	return 0;
}

static int
entries_of(const char *directory)
{
	DIR		   *dir = opendir(directory);
	int			count = 0;

	assert_non_null(dir);
	while (readdir(dir) != NULL)
		count++;
	closedir(dir);
	return count;
}

/* Mappings of files of the test; others are the allocator's and the sanitizer's. */
static int
mappings(void)
{
	FILE	   *file = fopen("/proc/self/maps", "r");
	char		line[512];
	int			count = 0;

	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL)
		count += strstr(line, "/dev/shm/tally_test.") != NULL;
	fclose(file);
	return count;
}

static void
attempt(const scenario *tested, function which, int error, int nth, bool lasts)
{
	int			open_files = entries_of("/proc/self/fd");
	int			mapped = mappings();

	tested->prepare();
	fault.error = error;
	fault.nth = nth;
	fault.lasts = lasts;
	fault.seen = 0;
	fault.met = false;
	fault.tried = fault.which = which;
	tested->run();
	fault.which = FAULTS;
	tested->check();
	assert_int_equal(entries_of("/proc/self/fd"), open_files);
	assert_int_equal(mappings(), mapped);
}

static void
try_all(const char *name, const scenario *tested)
{
	int			faults = 0;

	all_tried = false;
	for (size_t i = 0; i < sizeof(tries) / sizeof(tries[0]); i++)
		for (int e = 0; tries[i].errors[e] != 0; e++)
			for (int lasts = 0; lasts <= 1; lasts++)
			{
				int			nth = 0;

				do
				{
					nth++;
					attempt(tested, tries[i].which, tries[i].errors[e], nth, lasts != 0);
					faults += fault.met;
				} while (fault.met);
			}
	all_tried = true;
	print_message("%s: %d faults\n", name, faults);
	assert_true(faults > 0);
}

/* ---------------------------------------------------------------- opening a segment */

static tally_options options;
static tally_segment segment;
static int	result;
static uint64_t existing;			/* inode of the file before; 0: there was none */
static bool fits;

static uint64_t
inode_at(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (uint64_t) st.st_ino : 0;
}

static uint32_t
timer_of(tally_segment *of)
{
	return tally_register(of, "a timer", TALLY_TIMER, "ticks");
}

/* A session that recorded one timer of that many ticks. */
static void
begin_session(tally_segment *of, uint64_t ticks, tally_slot *slot)
{
	test_claim(of, "one", slot);
	tally_record(slot, tally_touch(slot, timer_of(of)), ticks);
}

static void
add_session(tally_segment *of, uint64_t ticks)
{
	tally_slot	slot;

	begin_session(of, ticks, &slot);
	tally_retire(&slot);
}

static uint64_t
timer_total(void)
{
	test_sum	sum;

	test_sum_of(&segment, timer_of(&segment), &sum);
	return sum.total;
}

static void
remove_files(void)
{
	char		pattern[192];
	glob_t		found;

	unlink(test_path("segment"));
	/* temporary files, where unlink was what failed */
	snprintf(pattern, sizeof(pattern), "%s.new.*", test_path("segment"));
	if (glob(pattern, 0, NULL, &found) == 0)
	{
		for (size_t i = 0; i < found.gl_pathc; i++)
			unlink(found.gl_pathv[i]);
		globfree(&found);
	}
}

static void
prepare_nothing(void)
{
	remove_files();
	test_options(&options);
	options.statements = 100;
	options.files = 64;
	options.relations = 64;
	options.plans = 16;
	existing = 0;
	fits = false;
}

static void
prepare_a_fit(void)
{
	prepare_nothing();
	test_open(&segment, &options);
	add_session(&segment, 7);
	existing = segment.inode;
	fits = true;
	tally_close(&segment);
}

static void
prepare_a_misfit(void)
{
	prepare_nothing();
	test_open(&segment, &options);
	segment.header->version++;
	existing = segment.inode;
	tally_close(&segment);
}

static void
run_open(void)
{
	result = tally_open(test_path("segment"), &options, &segment);
}

/* 0, or the errno value of what failed; EPERM stands for EACCES. */
static void
assert_result(void)
{
	if (result != 0 && fault.met && result == (fault.error == EACCES ? EPERM : fault.error))
		return;
	assert_int_equal(result, 0);
}

/* Open, count another session, and close. The file is the one that `segment` was. */
static void
assert_usable(uint64_t before)
{
	add_session(&segment, 100);
	assert_int_equal(timer_total(), before + 100);
	assert_int_equal(test_sessions(&segment), before == 0 ? 1 : 2);
	assert_at_rest(&segment);
	assert_int_equal(inode_at(test_path("segment")), segment.inode);
	tally_close(&segment);
	/* the next process finds the file usable */
	run_open();
	assert_int_equal(result, 0);
	assert_false(segment.created);
	assert_int_equal(timer_total(), before + 100);
	tally_close(&segment);
}

static void
check_open(void)
{
	assert_result();
	if (result != 0)
	{
		/* nothing is half done, and existing files are still there */
		assert_null(segment.header);
		assert_int_equal(segment.fd, -1);
		assert_int_equal(inode_at(test_path("segment")), existing);
		if (fault.tried != FAULT_unlink)
			assert_int_equal(entries_of(test_path("")), existing == 0 ? 2 : 3);
		run_open();
		assert_int_equal(result, 0);
	}
	assert_int_equal(segment.created, !fits);
	assert_true(!fits || segment.inode == existing);
	assert_usable(fits ? 7 : 0);
	if (fault.tried != FAULT_unlink)
		assert_int_equal(entries_of(test_path("")), 3);
}

static void
opening_makes_a_whole_segment_or_none(void **state)
{
	static const scenario tested = {prepare_nothing, run_open, check_open};

	(void) state;
	try_all("no segment", &tested);
}

static void
opening_never_replaces_a_segment_that_fits(void **state)
{
	static const scenario tested = {prepare_a_fit, run_open, check_open};

	(void) state;
	try_all("a segment that fits", &tested);
}

static void
a_misfit_is_replaced_or_stays(void **state)
{
	static const scenario tested = {prepare_a_misfit, run_open, check_open};

	(void) state;
	try_all("a misfit", &tested);
}

/* Like the postmaster, and then its children. */
static void
run_attach(void)
{
	result = tally_attach_unmapped(test_path("segment"), &segment);
	if (result != 0)
		return;
	tally_probe_set(&segment, 3, "import fsync", TALLY_PROBE_INSTALLED, NULL);
	result = tally_map(&segment);
	if (result != 0)
		tally_close(&segment);
}

static void
check_attach(void)
{
	assert_result();
	assert_int_equal(inode_at(test_path("segment")), existing);
	if (result != 0)
	{
		run_attach();
		assert_int_equal(result, 0);
	}
	/* only a report that could not be written is missing */
	if (fault.tried != FAULT_pwrite)
		assert_int_equal(((tally_probe *) tally_at(&segment, &segment.cold.probes, 3))->state, TALLY_PROBE_INSTALLED);
	assert_usable(7);
}

static void
attaching_takes_a_segment_or_leaves_it(void **state)
{
	static const scenario tested = {prepare_a_fit, run_attach, check_attach};

	(void) state;
	try_all("attach", &tested);
}

/* A process installs the guard once, so each fault has a separate process. Returns whether the fault was reached. */
static int
guard_and_lose_the_file(void *argument)
{
	tally_slot	slot;

	(void) argument;
	result = tally_guard(&segment);
	fault.which = FAULTS;
	assert_result();
	if (result != 0)
		assert_int_equal(tally_guard(&segment), 0);
	begin_session(&segment, 1, &slot);
	if (truncate(test_path("segment"), 4096) != 0)
		return 2;
	tally_record(&slot, 1, 1);
	tally_retire(&slot);
	return segment.fd == -1 ? fault.met : 3;
}

static void
prepare_guard(void)
{
	prepare_a_fit();
	run_open();
}

static void
run_guard(void)
{
	int			rc = test_wait(test_child(guard_and_lose_the_file, NULL));

	assert_in_range(rc, 0, 1);
	if ((fault.met = rc != 0))
		met[fault.tried] = true;
}

static void
check_guard(void)
{
	tally_close(&segment);
}

static void
a_guard_that_could_not_be_installed_is_at_the_next_attempt(void **state)
{
	static const scenario tested = {prepare_guard, run_guard, check_guard};

	(void) state;
	try_all("guard", &tested);
}

/* ---------------------------------------------------------------- a session's work */

#define ACCOUNTS 24					/* more than a chunk of a book */
#define STATEMENTS 60
#define RELATIONS 8
#define PLANS 4

typedef struct work
{
	bool		claimed;
	uint64_t	switches;			/* accounts that were closed */
	uint64_t	recorded;			/* by the timer */
	uint64_t	executed;			/* statements */
	uint64_t	plans;
	uint64_t	plans_refused;
	uint64_t	writes;
	uint64_t	operations;
} work;

static work done;

static void
switch_to(tally_slot *slot, int account)
{
	char		name[32];

	snprintf(name, sizeof(name), "work::wait %d", account);
	tally_switch(slot, tally_touch(slot, tally_register(slot->segment, name, TALLY_ACCOUNT, "ticks")),
				 tally_now(slot->segment->clock));
}

static void
execute_statements(tally_slot *slot, work *to)
{
	char		text[900];
	tally_cache cache;

	if (tally_cache_open(slot, &cache) != 0)
		return;
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (uint64_t id = 1; id <= STATEMENTS; id++)
	{
		tally_statement_key key = test_key(id);
		const tally_plan_use use = {.now = id,.ticks = id,.rows = 1};
		const tally_plan_text shape = {.bytes = "Seq Scan",.size = 8};
		uint64_t	before;

		(void) test_execute(&cache, &key, 10, text);
		to->executed++;
		if (id > PLANS)
			continue;
		if (tally_plan_put(slot->segment, &key, 1, &shape, &use, &before))
			to->plans++;
		else
			to->plans_refused++;
	}
}

static void
use_relations(tally_slot *slot, work *to)
{
	tally_relations relations;

	if (tally_relations_open(slot, &relations) != 0)
		return;
	for (uint32_t n = 0; n < RELATIONS; n++)
	{
		tally_relation_key key = {.tablespace = 1663,.database = 5,.relation = 16384 + n};
		uint32_t	entry = tally_relation_find(slot->segment, &key);
		uint64_t	tag = entry == 0 ? TALLY_RELATION_OTHERS : tally_relation_hash(&key);

		tally_relation_add(tally_local_relation_for(&relations, tag, entry), TALLY_RELATION_READ, 5, 8192, false);
		to->operations++;
	}
}

static void
do_work(work *to)
{
	const tally_identity identity = {.kind = "two",.database_id = 5,.user_id = 10};
	tally_slot	slot;
	uint32_t	timer;

	memset(to, 0, sizeof(*to));
	result = tally_claim(&segment, &identity, &slot);
	if (result != 0)
		return;
	to->claimed = true;
	tally_begin(&slot, tally_touch(&slot, tally_register(&segment, "work::cpu", TALLY_ACCOUNT, "ticks")));
	for (int i = 0; i < ACCOUNTS; i++, to->switches++)
		switch_to(&slot, i);
	timer = tally_touch(&slot, timer_of(&segment));
	tally_record(&slot, timer, 100);
	to->recorded += timer != TALLY_NONE;
	execute_statements(&slot, to);
	use_relations(&slot, to);
	to->writes += tally_unsynced_add(&segment, tally_file_hash("base/5/1"), TALLY_NONE, 1, 8192) != TALLY_NONE;
	tally_retire(&slot);
	to->switches++;
}

static uint64_t
relation_operations(void)
{
	uint64_t	sum = 0;

	for (uint32_t n = 0; n < segment.cold.relations.count; n++)
		sum += tally_relation_at(&segment, n)->of[TALLY_RELATION_READ].count;
	return sum;
}

static uint64_t
account_closings(void)
{
	uint64_t	sum = 0;

	for (uint32_t n = 0; n < segment.cold.directory.count; n++)
	{
		test_sum	of;

		if (tally_dir_at(&segment, n)->state != TALLY_NAME_PUBLISHED || !tally_stat_is_account(&segment, n))
			continue;
		test_sum_of(&segment, n, &of);
		sum += of.count;
	}
	return sum;
}

static uint64_t
all_executions(void)
{
	test_reading reading;
	uint64_t	sum;

	test_read(&segment, &reading);
	sum = reading.executions;
	test_read_free(&reading);
	return sum;
}

static void
add_work(work *to, const work *more)
{
	to->switches += more->switches;
	to->recorded += more->recorded;
	to->executed += more->executed;
	to->operations += more->operations;
	to->writes = more->writes;		/* the sync has taken those before */
}

/* All its work is in the segment exactly once. */
static void
assert_counted(const work *made)
{
	const tally_header *header = segment.header;
	uint64_t	w,
				b;

	/* accounts and sessions always have a place */
	assert_int_equal(account_closings(), made->switches);
	assert_int_equal(relation_operations(), made->operations);
	/* a timer has no place in a group without memory; this is counted */
	if (header->overflow_memory == 0)
		assert_int_equal(timer_total(), 100 * made->recorded);
	else
		assert_true(timer_total() <= 100 * made->recorded);
	assert_int_equal(all_executions() + header->statements_dropped, made->executed);
	tally_unsynced_take(&segment, tally_file_hash("base/5/1"), &w, &b);
	assert_int_equal(w, made->writes);
	assert_at_rest(&segment);
	assert_statements_at_rest(&segment);
}

static void
prepare_work(void)
{
	prepare_nothing();
	options.slots = 2;
	test_open(&segment, &options);
}

static void
run_work(void)
{
	do_work(&done);
}

static void
check_work(void)
{
	tally_header *header = segment.header;
	uint64_t	left_out = header->overflow_memory;
	uint64_t	dropped;
	work		more;

	if (done.claimed)
		assert_true(done.recorded == 1 || left_out > 0);
	else
	{
		assert_true(fault.met);
		assert_int_equal(result, ENOMEM);
		assert_int_equal(header->refused_memory, 1);
		assert_int_equal(header->refused_claims, 1);
	}
	if (!fault.met)
		assert_int_equal(left_out, 0);
	if (left_out == 0 && done.claimed)
	{
		assert_int_equal(done.executed, STATEMENTS);
		assert_int_equal(header->statements_dropped, 0);
		assert_int_equal(done.plans, PLANS);
		assert_int_equal(done.operations, RELATIONS);
	}
	assert_int_equal(header->overflow_plans, done.plans_refused);
	assert_counted(&done);
	dropped = header->statements_dropped;
	/* when the system no longer refuses, everything is done */
	do_work(&more);
	assert_int_equal(result, 0);
	assert_int_equal(more.recorded, 1);
	assert_int_equal(more.executed, STATEMENTS);
	assert_int_equal(header->statements_dropped, dropped);
	assert_int_equal(more.plans, PLANS);
	assert_int_equal(more.operations, RELATIONS);
	add_work(&done, &more);
	assert_counted(&done);
	assert_true(timer_total() >= 100);
	assert_int_equal(test_sessions(&segment), 1 + done.claimed);
	tally_close(&segment);
}

static void
a_session_does_less_and_counts_what_it_leaves_out(void **state)
{
	static const scenario tested = {prepare_work, run_work, check_work};

	(void) state;
	try_all("a session", &tested);
}

/* ---------------------------------------------------------------- the slots of the dead */

static pid_t living;
static int	release_living;			/* closing it ends that process */

static int
die_without_retiring(void *argument)
{
	tally_slot	slot;

	(void) argument;
	begin_session(&segment, 10, &slot);
	return 0;
}

static int
die_while_merging(void *steps)
{
	tally_slot	slot;

	begin_session(&segment, 10, &slot);
	test_die_after(*(int *) steps);
	tally_retire(&slot);
	return 0;
}

static int
live_until_released(void *both_ends)
{
	int		   *ends = both_ends;
	tally_slot	slot;
	char		nothing;

	close(ends[1]);
	begin_session(&segment, 1000, &slot);
	return write(ends[0], "", 1) == 1 && read(ends[0], &nothing, 1) == 0 ? 0 : 1;
}

static void
prepare_dead(void)
{
	int			ends[2];
	int			steps = 20;		/* in the middle of the merge */
	char		nothing;

	prepare_nothing();
	test_open(&segment, &options);
	assert_int_equal(test_wait(test_child(die_without_retiring, NULL)), 0);
	assert_true(test_killed(die_while_merging, steps));
	assert_int_not_equal(segment.header->merge_lock, 0);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
	living = test_child(live_until_released, ends);
	close(ends[0]);
	release_living = ends[1];
	/* it has begun */
	assert_int_equal(read(release_living, &nothing, 1), 1);
}

static void
run_sweep(void)
{
	tally_sweep(&segment);
}

static void
run_take_over(void)
{
	tally_take_over(&segment);
}

static void
check_dead(void)
{
	/* the live process was not taken for dead */
	assert_int_not_equal(tally_slot_of_process(&segment, living), TALLY_NONE);
	tally_sweep(&segment);
	assert_int_equal(timer_total(), 1020);
	assert_int_equal(test_sessions(&segment), 2);
	assert_int_equal(tally_claimed_slots(&segment), 1);
	close(release_living);
	assert_int_equal(test_wait(living), 0);
	tally_sweep(&segment);
	assert_int_equal(timer_total(), 1020);
	assert_int_equal(test_sessions(&segment), 3);
	assert_int_equal(segment.header->lost_merges, 0);
	assert_at_rest(&segment);
	tally_close(&segment);
}

static void
a_sweep_merges_each_dead_slot_once_and_no_living_one(void **state)
{
	static const scenario tested = {prepare_dead, run_sweep, check_dead};

	(void) state;
	try_all("a sweep", &tested);
}

static void
taking_over_merges_each_dead_slot_once_and_no_living_one(void **state)
{
	static const scenario tested = {prepare_dead, run_take_over, check_dead};

	(void) state;
	try_all("taking over", &tested);
}

/* ---------------------------------------------------------------- what dead writers held of statements */

static int
die_with_statements(void *argument)
{
	tally_slot	slot;
	work	   *to = argument;

	memset(to, 0, sizeof(*to));
	test_claim(&segment, "one", &slot);
	execute_statements(&slot, to);
	return 0;
}

static work *dead;

static void
prepare_repair(void)
{
	prepare_nothing();
	test_open(&segment, &options);
	assert_int_equal(test_wait(test_child(die_with_statements, dead)), 0);
	assert_int_equal(dead->executed, STATEMENTS);
}

static void
run_repair(void)
{
	tally_take_over(&segment);
	tally_statements_repair(&segment);
}

static void
check_repair(void)
{
	work		more;

	/* as the next start does */
	run_repair();
	assert_statements_at_rest(&segment);
	assert_int_equal(all_executions() + segment.header->statements_dropped, STATEMENTS);
	do_work(&more);
	assert_int_equal(more.executed, STATEMENTS);
	assert_int_equal(all_executions() + segment.header->statements_dropped, 2 * STATEMENTS);
	assert_statements_at_rest(&segment);
	tally_close(&segment);
}

static void
a_repair_that_failed_is_done_by_the_next(void **state)
{
	static const scenario tested = {prepare_repair, run_repair, check_repair};

	(void) state;
	dead = test_shared(sizeof(*dead));
	try_all("repair", &tested);
	munmap(dead, sizeof(*dead));
}

/* ---------------------------------------------------------------- */

/* Every listed fault was reached, so the program is linked with --wrap. */
static void
every_function_has_failed(void **state)
{
	(void) state;
	for (int i = 0; i < FAULTS; i++)
		if (!met[i])
			fail_msg("no call of %s failed", names[i]);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_teardown(opening_makes_a_whole_segment_or_none, teardown),
		cmocka_unit_test_teardown(opening_never_replaces_a_segment_that_fits, teardown),
		cmocka_unit_test_teardown(a_misfit_is_replaced_or_stays, teardown),
		cmocka_unit_test_teardown(attaching_takes_a_segment_or_leaves_it, teardown),
		cmocka_unit_test_teardown(a_guard_that_could_not_be_installed_is_at_the_next_attempt, teardown),
		cmocka_unit_test_teardown(a_session_does_less_and_counts_what_it_leaves_out, teardown),
		cmocka_unit_test_teardown(a_sweep_merges_each_dead_slot_once_and_no_living_one, teardown),
		cmocka_unit_test_teardown(taking_over_merges_each_dead_slot_once_and_no_living_one, teardown),
		cmocka_unit_test_teardown(a_repair_that_failed_is_done_by_the_next, teardown),
		cmocka_unit_test(every_function_has_failed),
	};

	return cmocka_run_group_tests_name("faults", tests, NULL, NULL);
}
