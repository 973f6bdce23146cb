/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_open.c
 *	  Tests attaching, creating, and replacing files that do not fit.
 */
#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

static tally_options options;
static tally_segment segment;

static int
setup(void **state)
{
	*state = &segment;
	test_options(&options);
	test_open(&segment, &options);
	return 0;
}

/* Attaching is refused, opening creates a new file, and the old one stays unchanged. */
static void
assert_replaced(void)
{
	tally_segment other;
	struct stat before,
				after;

	assert_int_equal(tally_attach(test_path("segment"), &other), EINVAL);
	assert_int_equal(lstat(test_path("segment"), &before), 0);
	assert_int_equal(tally_open(test_path("segment"), &options, &other), 0);
	assert_true(other.created);
	assert_int_equal(lstat(test_path("segment"), &after), 0);
	assert_int_not_equal(before.st_ino, after.st_ino);
	assert_int_equal(other.inode, after.st_ino);
	tally_close(&other);
	assert_int_equal(tally_attach(test_path("segment"), &other), 0);
	assert_false(other.created);
	assert_int_equal(other.inode, after.st_ino);
	tally_close(&other);
}

static void
the_second_to_open_attaches(void **state)
{
	tally_segment other;

	(void) state;
	assert_int_equal(tally_open(test_path("segment"), &options, &other), 0);
	assert_false(other.created);
	assert_int_equal(other.inode, segment.inode);
	assert_int_equal(other.clock, segment.clock);
	tally_close(&other);
	assert_null(other.header);
	assert_int_equal(other.fd, -1);
}

static void
a_missing_file_is_not_attached(void **state)
{
	tally_segment other;

	(void) state;
	assert_int_equal(tally_attach(test_path("nobody"), &other), ENOENT);
	assert_int_equal(tally_attach(test_path("nobody/here"), &other), ENOENT);
}

static void
the_file_mode_does_not_depend_on_the_umask(void **state)
{
	struct stat st;
	tally_segment other;

	(void) state;
	assert_int_equal(stat(test_path("segment"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0600);
	umask(0077);
	options.mode = 0640;
	assert_int_equal(tally_open(test_path("group"), &options, &other), 0);
	umask(0022);
	assert_int_equal(stat(test_path("group"), &st), 0);
	assert_int_equal(st.st_mode & 07777, 0640);
	tally_close(&other);
}

static void
a_truncated_segment_is_replaced(void **state)
{
	(void) state;
	assert_int_equal(truncate(test_path("segment"), 4095), 0);
	assert_replaced();
}

static void
a_segment_short_of_a_page_is_replaced(void **state)
{
	(void) state;
	assert_int_equal(truncate(test_path("segment"), (off_t) segment.size - 4096), 0);
	assert_replaced();
}

static void
a_zeroed_segment_is_replaced(void **state)
{
	(void) state;
	memset(segment.header, 0, sizeof(tally_header));
	assert_replaced();
}

static void
an_empty_file_is_replaced(void **state)
{
	(void) state;
	assert_int_equal(truncate(test_path("segment"), 0), 0);
	assert_replaced();
}

static void
another_version_is_replaced(void **state)
{
	(void) state;
	segment.header->version++;
	assert_replaced();
}

static void
another_byte_order_is_replaced(void **state)
{
	(void) state;
	segment.header->byte_order = 0x04030201;
	assert_replaced();
}

static void
another_boot_is_replaced(void **state)
{
	(void) state;
	segment.header->boot_id[3] ^= 1;
	assert_replaced();
}

static void
other_capacities_are_replaced_by_open_and_accepted_by_attach(void **state)
{
	tally_segment other;

	(void) state;
	options.slots = 9;
	assert_int_equal(tally_attach(test_path("segment"), &other), 0);
	tally_close(&other);
	assert_int_equal(tally_open(test_path("segment"), &options, &other), 0);
	assert_true(other.created);
	assert_int_equal(other.header->slots, 9);
	tally_close(&other);
}

static void
a_segment_with_another_clock_is_replaced_if_the_clock_is_given(void **state)
{
	tally_segment other;

	(void) state;
	options.clock = segment.clock == TALLY_CLOCK_MONOTONIC ? TALLY_CLOCK_COUNTER : TALLY_CLOCK_MONOTONIC;
	assert_int_equal(tally_open(test_path("segment"), &options, &other), 0);
	assert_true(other.created);
	assert_int_equal(other.clock, options.clock);
	tally_close(&other);
}

static void
a_header_with_any_changed_layout_word_is_refused(void **state)
{
	tally_segment other;

	(void) state;
	/* from the magic to the regions, except the words that depend on time and place */
	for (size_t at = 0; at < 240; at += 4)
	{
		uint32_t   *word = (uint32_t *) ((char *) segment.header + at);
		uint32_t	was = *word;

		if (at >= 36 && at < 72)
			continue;
		if (at == 84 || (at >= 124 && at < 128))
			continue;				/* padding */
		*word = was ^ 0x80000001u;
		assert_int_equal(tally_attach(test_path("segment"), &other), EINVAL);
		*word = was;
	}
	assert_int_equal(tally_attach(test_path("segment"), &other), 0);
	tally_close(&other);
}

static void
random_bytes_are_refused(void **state)
{
	uint64_t	seed = 3;
	tally_segment other;

	(void) state;
	for (int round = 0; round < 2000; round++)
	{
		/* magic, byte order and version are right; the rest up to the regions is random */
		unsigned char *at = (unsigned char *) segment.header;

		for (size_t i = 16; i < 240; i++)
			at[i] = (unsigned char) test_random(&seed);
		assert_int_equal(tally_attach(test_path("segment"), &other), EINVAL);
	}
	assert_replaced();
}

static void
a_symbolic_link_is_not_followed(void **state)
{
	struct stat st;
	char		target[128];

	(void) state;
	strcpy(target, test_path("target"));
	assert_int_equal(rename(test_path("segment"), target), 0);
	assert_int_equal(symlink(target, test_path("segment")), 0);
	assert_replaced();
	assert_int_equal(lstat(test_path("segment"), &st), 0);
	assert_true(S_ISREG(st.st_mode));
	assert_int_equal(lstat(target, &st), 0);
	assert_int_equal(st.st_ino, segment.inode);
}

static void
a_fifo_does_not_block_open(void **state)
{
	(void) state;
	assert_int_equal(unlink(test_path("segment")), 0);
	assert_int_equal(mkfifo(test_path("segment"), 0600), 0);
	assert_replaced();
}

static void
another_owners_file_is_refused_and_replaced_if_permitted(void **state)
{
	(void) state;
	if (geteuid() != 0)
	{
		print_message("SKIPPED: only root can give a file away\n");
		skip();
	}
	assert_int_equal(chown(test_path("segment"), 12345, (gid_t) -1), 0);
	assert_replaced();
}

static int
open_as_nobody(void *path)
{
	tally_segment other;

	if (setuid(12345) != 0)
		return 99;
	return tally_open(path, &options, &other);
}

static void
another_owners_file_in_a_sticky_directory_gives_eperm(void **state)
{
	char		directory[128];
	char		path[160];
	tally_segment other;
	pid_t		pid;

	(void) state;
	if (geteuid() != 0)
	{
		print_message("SKIPPED: only root can become another user\n");
		skip();
	}
	strcpy(directory, "/dev/shm/tally_sticky.XXXXXX");
	assert_non_null(mkdtemp(directory));
	assert_int_equal(chmod(directory, 01777), 0);
	snprintf(path, sizeof(path), "%s/segment", directory);
	assert_int_equal(tally_open(path, &options, &other), 0);
	tally_close(&other);
	pid = test_child(open_as_nobody, path);
	assert_int_equal(test_wait(pid), EPERM);
	unlink(path);
	/* and the attempt has left nothing behind */
	assert_int_equal(rmdir(directory), 0);
}

typedef struct creators
{
	uint32_t	ready;
	uint64_t	inode[16];
	bool		created[16];
} creators;

static int
create_at_once(void *argument)
{
	creators   *all = argument;
	uint32_t	number = __atomic_fetch_add(&all->ready, 1, __ATOMIC_SEQ_CST);
	tally_segment other;

	while (__atomic_load_n(&all->ready, __ATOMIC_SEQ_CST) < 16)
		;
	if (tally_open(test_path("segment"), &options, &other) != 0)
		return 1;
	all->inode[number] = other.inode;
	all->created[number] = other.created;
	return 0;
}

static void
assert_sixteen_agree(void)
{
	creators   *all = test_shared(sizeof(creators));
	pid_t		pids[16];
	int			created = 0;

	for (int i = 0; i < 16; i++)
		pids[i] = test_child(create_at_once, all);
	for (int i = 0; i < 16; i++)
		assert_int_equal(test_wait(pids[i]), 0);
	for (int i = 0; i < 16; i++)
	{
		assert_int_equal(all->inode[i], all->inode[0]);
		created += all->created[i];
	}
	assert_int_equal(created, 1);
}

static void
sixteen_creators_at_once_end_with_one_segment(void **state)
{
	(void) state;
	for (int round = 0; round < 30; round++)
	{
		unlink(test_path("segment"));
		assert_sixteen_agree();
	}
}

static void
sixteen_replacers_of_a_misfit_at_once_end_with_one_segment(void **state)
{
	(void) state;
	for (int round = 0; round < 30; round++)
	{
		tally_segment other;

		assert_int_equal(tally_attach(test_path("segment"), &other), 0);
		other.header->version++;
		tally_close(&other);
		assert_sixteen_agree();
	}
}

static void
a_new_segment_has_what_the_options_gave(void **state)
{
	tally_segment other;
	tally_header *header;

	(void) state;
	options.host = "/var/lib/postgresql/15/main";
	options.producer = "test 1";
	options.server = "PostgreSQL 15.20";
	options.socket_dir = "/tmp";
	options.server_pid = 77;
	options.server_port = 5433;
	options.level = TALLY_LEVEL_LOCKS;
	assert_int_equal(tally_open(test_path("given"), &options, &other), 0);
	header = other.header;
	assert_string_equal(header->host, options.host);
	assert_string_equal(header->producer, "test 1");
	assert_string_equal(header->server, "PostgreSQL 15.20");
	assert_string_equal(header->socket_dir, "/tmp");
	assert_int_equal(header->server_pid, 77);
	assert_int_equal(header->server_port, 5433);
	assert_int_equal(TALLY_LEVEL_OF(header->level_word), TALLY_LEVEL_LOCKS);
	assert_int_equal(TALLY_RESETS_OF(header->level_word), 0);
	assert_int_equal(header->pid_namespace, tally_pid_namespace());
	assert_int_equal(strlen(header->boot_id), 36);
	tally_close(&other);
}

static void
a_later_run_attaches_and_writes_its_own_pid(void **state)
{
	tally_segment other;

	(void) state;
	options.server_pid = 88;
	options.server_port = 5434;
	assert_int_equal(tally_open(test_path("segment"), &options, &other), 0);
	assert_false(other.created);
	assert_int_equal(segment.header->server_pid, 88);
	assert_int_equal(segment.header->server_port, 5434);
	tally_close(&other);
}

static void
another_systems_segment_is_replaced(void **state)
{
	tally_segment other;

	(void) state;
	/* the figures of a removed cluster, whose inode the new cluster's directory got */
	options.system_id = 7000000000000000001u;
	assert_int_equal(tally_open(test_path("segment"), &options, &other), 0);
	assert_true(other.created);
	assert_int_not_equal(other.inode, segment.inode);
	tally_close(&other);
	options.system_id = 7000000000000000002u;
	assert_int_equal(tally_open(test_path("segment"), &options, &other), 0);
	assert_true(other.created);
	assert_true(other.header->system_id == 7000000000000000002u);
	tally_close(&other);
	assert_int_equal(tally_open(test_path("segment"), &options, &other), 0);
	assert_false(other.created);
	tally_close(&other);
}

static int	prepared;

static void
prepare(tally_segment *made)
{
	struct stat st;

	prepared++;
	assert_non_null(made->header);
	assert_true(made->header->statements_since_ns == made->header->created_realtime_ns);
	/* under the reader's name there is no file yet, or still the one being replaced */
	assert_true(stat(test_path("prepared"), &st) != 0 || (uint64_t) st.st_ino != made->inode);
	made->header->statements_since_ns = 7;
}

static void
a_new_segment_is_prepared_before_anybody_can_read_it(void **state)
{
	tally_segment other;

	(void) state;
	prepared = 0;
	options.prepare = prepare;
	assert_int_equal(tally_open(test_path("prepared"), &options, &other), 0);
	assert_true(other.created && prepared == 1 && other.header->statements_since_ns == 7);
	tally_close(&other);
	/* an existing file is not */
	assert_int_equal(tally_open(test_path("prepared"), &options, &other), 0);
	assert_true(!other.created && prepared == 1 && other.header->statements_since_ns == 7);
	tally_close(&other);
	/* a file that replaces another is */
	options.slots++;
	assert_int_equal(tally_open(test_path("prepared"), &options, &other), 0);
	assert_true(other.created && prepared == 2 && other.header->statements_since_ns == 7);
	tally_close(&other);
}

static void
accepting_any_capacities_replaces_nothing(void **state)
{
	tally_segment other;

	(void) state;
	options.slots++;
	options.events = 32;
	options.any_capacities = true;
	assert_int_equal(tally_open(test_path("segment"), &options, &other), 0);
	assert_false(other.created);
	assert_int_equal(other.inode, segment.inode);
	assert_int_equal(other.cold.slots, options.slots - 1);
	tally_close(&other);
	/* after a restart of the server no process uses it */
	options.server_pid = 99;
	assert_int_equal(tally_open(test_path("segment"), &options, &other), 0);
	assert_true(other.created);
	assert_int_equal(other.cold.slots, options.slots);
	tally_close(&other);
	options.system_id = 5;
	assert_int_equal(tally_open(test_path("segment"), &options, &other), 0);
	assert_true(other.created);
	tally_close(&other);
}

static void
a_moved_data_directory_keeps_its_segment(void **state)
{
	tally_segment other;

	(void) state;
	options.host = "/srv/moved";
	assert_int_equal(tally_open(test_path("segment"), &options, &other), 0);
	assert_false(other.created);
	assert_string_equal(other.header->host, "/srv/moved");
	tally_close(&other);
}

static void
a_segment_on_a_disk_needs_any_file_system(void **state)
{
	char		directory[64] = "/var/tmp/tally_disk.XXXXXX";
	char		path[96];
	struct statfs fs;
	tally_segment other;

	(void) state;
	assert_non_null(mkdtemp(directory));
	snprintf(path, sizeof(path), "%s/segment", directory);
	assert_int_equal(statfs(directory, &fs), 0);
	if (fs.f_type == 0x01021994)
		print_message("SKIPPED: /var/tmp is in memory here\n");
	else
	{
		assert_int_equal(tally_open(path, &options, &other), EMEDIUMTYPE);
		assert_int_equal(access(path, F_OK), -1);
		options.any_file_system = true;
		assert_int_equal(tally_open(path, &options, &other), 0);
		tally_close(&other);
		unlink(path);
	}
	/* the attempt has left nothing behind */
	assert_int_equal(rmdir(directory), 0);
}

static void
an_unmapped_segment_takes_probes_and_its_truncation_is_survived(void **state)
{
	tally_segment other;
	const tally_probe *probe = tally_at(&segment, &segment.cold.probes, 3);

	(void) state;
	assert_int_equal(tally_attach_unmapped(test_path("segment"), &other), 0);
	assert_null(other.header);
	tally_probe_set(&other, 3, "import fsync", TALLY_PROBE_LEFT_OUT, "because");
	assert_int_equal(probe->state, TALLY_PROBE_LEFT_OUT);
	assert_string_equal(probe->name, "import fsync");
	assert_string_equal(probe->reason, "because");
	assert_true(tally_seconds_per_tick(&other) > 0);
	assert_int_equal(tally_map(&other), 0);
	assert_int_equal(other.header->slots, options.slots);
	tally_close(&other);

	assert_int_equal(tally_attach_unmapped(test_path("segment"), &other), 0);
	assert_int_equal(truncate(test_path("segment"), 4096), 0);
	assert_int_equal(tally_map(&other), EINVAL);
	tally_probe_set(&other, 3, "import fsync", TALLY_PROBE_INSTALLED, NULL);
	tally_close(&other);
}

static int
write_after_the_end(void *argument)
{
	tally_segment mine;
	tally_slot	slot;
	uint32_t	cpu;

	(void) argument;
	if (tally_attach(test_path("segment"), &mine) != 0 || tally_guard(&mine) != 0)
		return 1;
	test_claim(&mine, "one", &slot);
	cpu = tally_touch(&slot, tally_register(&mine, "work::cpu", TALLY_ACCOUNT, "ticks"));
	tally_switch(&slot, cpu, tally_now(mine.clock));
	if (truncate(test_path("segment"), 4096) != 0)
		return 2;
	for (int i = 0; i < 1000; i++)
	{
		char		name[32];

		snprintf(name, sizeof(name), "work::wait %d", i);
		tally_switch(&slot, tally_touch(&slot, tally_register(&mine, name, TALLY_ACCOUNT, "ticks")),
					 tally_now(mine.clock));
		if (slot.word != mine.header->level_word)
			tally_follow(&slot, 0, tally_now(mine.clock));
	}
	tally_event_add(&mine, TALLY_EVENT_NOTE, "nobody reads this");
	tally_sweep(&mine);
	tally_retire(&slot);
	return mine.fd == -1 ? 0 : 3;
}

static sigjmp_buf own_recovery;
static int	own_faults;

static void
recover(int number, siginfo_t *info, void *context)
{
	(void) number;
	(void) info;
	(void) context;
	own_faults++;
	siglongjmp(own_recovery, 1);
}

/* Another library in the process reads a file that another process truncates, and handles that itself. */
static void
fault_elsewhere(void)
{
	char		name[] = "/tmp/pg_tally_test_XXXXXX";
	int			fd = mkstemp(name);
	volatile char *bytes;

	unlink(name);
	if (fd < 0 || ftruncate(fd, 4096) != 0)
		abort();
	bytes = mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
	if (bytes == MAP_FAILED || ftruncate(fd, 0) != 0)
		abort();
	if (sigsetjmp(own_recovery, 1) == 0)
	{
		(void) bytes[0];
		abort();
	}
	munmap((void *) bytes, 4096);
	close(fd);
}

static int
write_after_faults_elsewhere(void *argument)
{
	struct sigaction action = {.sa_sigaction = recover,.sa_flags = SA_SIGINFO};
	int			written;

	sigemptyset(&action.sa_mask);
	if (sigaction(SIGBUS, &action, NULL) != 0)
		return 10;
	/* the guard is installed with the first attached segment */
	for (int i = 0; i < 2; i++)
	{
		tally_segment mine;

		if (tally_attach(test_path("segment"), &mine) != 0 || tally_guard(&mine) != 0)
			return 11;
		fault_elsewhere();
		fault_elsewhere();
		if (own_faults != 2 * (i + 1))
			return 12;
		if (i == 0)
			tally_close(&mine);
	}
	written = write_after_the_end(argument);
	return written != 0 ? written : own_faults == 4 ? 0 : 13;
}

/* Each signal went to the library's handler, and the guard was in place when the segment's own file was truncated. */
static void
a_guard_stays_when_another_file_is_cut_short(void **state)
{
	(void) state;
	assert_int_equal(test_wait(test_child(write_after_faults_elsewhere, NULL)), 0);
}

static int
be_sent_a_signal(void *argument)
{
	tally_segment mine;

	if (signal(SIGBUS, argument == NULL ? SIG_DFL : SIG_IGN) == SIG_ERR ||
		tally_attach(test_path("segment"), &mine) != 0 || tally_guard(&mine) != 0)
		return 10;
	raise(SIGBUS);
	return write_after_the_end(NULL);
}

/* kill -BUS has the same effect as without the guard. */
static void
a_signal_that_was_sent_ends_the_process_unless_it_is_ignored(void **state)
{
	int			ignores;

	(void) state;
	assert_int_equal(test_wait(test_child(be_sent_a_signal, NULL)), 256 + SIGBUS);
	assert_int_equal(test_wait(test_child(be_sent_a_signal, &ignores)), 0);
}

static void
a_guarded_writer_survives_the_truncation_of_its_file(void **state)
{
	struct stat st;

	(void) state;
	assert_int_equal(test_wait(test_child(write_after_the_end, NULL)), 0);
	/* and has not changed the rest of it */
	assert_int_equal(stat(test_path("segment"), &st), 0);
	assert_int_equal(st.st_size, 4096);
}

static void
ticks_have_the_length_that_the_monotonic_clock_shows(void **state)
{
	const struct timespec nap = {.tv_nsec = 100000000};
	uint64_t	ticks,
				ns;
	double		seconds;

	(void) state;
	nanosleep(&nap, NULL);
	tally_clock_pair(segment.clock, &ticks, &ns);
	seconds = (double) (ticks - segment.header->clock_tick0) * tally_seconds_per_tick(&segment);
	assert_float_equal((float) (seconds * 1e9 / (double) (ns - segment.header->clock_ns0)), 1.0f, 1e-3f);
}


int
main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(the_second_to_open_attaches),
		TEST(a_missing_file_is_not_attached),
		TEST(the_file_mode_does_not_depend_on_the_umask),
		TEST(a_truncated_segment_is_replaced),
		TEST(a_segment_short_of_a_page_is_replaced),
		TEST(a_zeroed_segment_is_replaced),
		TEST(an_empty_file_is_replaced),
		TEST(another_version_is_replaced),
		TEST(another_byte_order_is_replaced),
		TEST(another_boot_is_replaced),
		TEST(other_capacities_are_replaced_by_open_and_accepted_by_attach),
		TEST(a_segment_with_another_clock_is_replaced_if_the_clock_is_given),
		TEST(a_header_with_any_changed_layout_word_is_refused),
		TEST(random_bytes_are_refused),
		TEST(a_symbolic_link_is_not_followed),
		TEST(a_fifo_does_not_block_open),
		TEST(another_owners_file_is_refused_and_replaced_if_permitted),
		TEST(another_owners_file_in_a_sticky_directory_gives_eperm),
		TEST(sixteen_creators_at_once_end_with_one_segment),
		TEST(sixteen_replacers_of_a_misfit_at_once_end_with_one_segment),
		TEST(a_new_segment_has_what_the_options_gave),
		TEST(a_later_run_attaches_and_writes_its_own_pid),
		TEST(another_systems_segment_is_replaced),
		TEST(a_new_segment_is_prepared_before_anybody_can_read_it),
		TEST(accepting_any_capacities_replaces_nothing),
		TEST(a_moved_data_directory_keeps_its_segment),
		TEST(a_segment_on_a_disk_needs_any_file_system),
		TEST(an_unmapped_segment_takes_probes_and_its_truncation_is_survived),
		TEST(a_guarded_writer_survives_the_truncation_of_its_file),
		TEST(a_guard_stays_when_another_file_is_cut_short),
		TEST(a_signal_that_was_sent_ends_the_process_unless_it_is_ignored),
		TEST(ticks_have_the_length_that_the_monotonic_clock_shows),
	};

	return cmocka_run_group_tests_name("open", tests, NULL, NULL);
}
