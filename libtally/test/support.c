/* SPDX-License-Identifier: PostgreSQL */
#include "support.h"

#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

static char directory[64];
static pid_t directory_owner;

static void
remove_directory(void)
{
	DIR		   *dir;
	struct dirent *file;
	char		name[400];

	if (getpid() != directory_owner || (dir = opendir(directory)) == NULL)
		return;
	while ((file = readdir(dir)) != NULL)
	{
		snprintf(name, sizeof(name), "%s/%s", directory, file->d_name);
		unlink(name);
	}
	closedir(dir);
	rmdir(directory);
}

const char *
test_path(const char *name)
{
	static char path[128];

	if (directory[0] == '\0')
	{
		strcpy(directory, "/dev/shm/tally_test.XXXXXX");
		assert_non_null(mkdtemp(directory));
		directory_owner = getpid();
		atexit(remove_directory);
	}
	snprintf(path, sizeof(path), "%s/%s", directory, name);
	return path;
}

void
test_options(tally_options *options)
{
	tally_options_init(options);
	options->slots = 8;
	options->groups = 4;
	options->stats_per_book = 32;
	options->directory = 128;
	options->events = 16;
}

void
test_open(tally_segment *segment, const tally_options *options)
{
	unlink(test_path("segment"));
	assert_int_equal(tally_open(test_path("segment"), options, segment), 0);
	assert_true(segment->created);
}

void
test_close(tally_segment *segment)
{
	tally_close(segment);
	unlink(test_path("segment"));
}

static char small_tmpfs[64];

int
test_teardown(void **state)
{
	tally_test_hook = NULL;
	if (small_tmpfs[0] != '\0')
	{
		umount2(small_tmpfs, MNT_DETACH);
		rmdir(small_tmpfs);
		small_tmpfs[0] = '\0';
	}
	test_close(*state);
	return 0;
}

void
test_claim(tally_segment *segment, const char *kind, tally_slot *slot)
{
	tally_identity identity = {.kind = kind};

	assert_int_equal(tally_claim(segment, &identity, slot), 0);
	tally_begin(slot, TALLY_NONE);
}

const char *
test_small_tmpfs(const char *size)
{
	char		made[] = "/dev/shm/tally_full.XXXXXX";
	char		option[32];

	snprintf(option, sizeof(option), "size=%s", size);
	assert_non_null(mkdtemp(made));
	if (geteuid() != 0 || mount("tally", made, "tmpfs", 0, option) != 0)
	{
		rmdir(made);
		print_message("SKIPPED: only root can mount a small tmpfs\n");
		skip();
	}
	return strcpy(small_tmpfs, made);
}

void
test_fill_but(const char *path, int free_blocks)
{
	static char block[4096];
	FILE	   *file = fopen(path, "w");
	int			blocks = 0;

	assert_non_null(file);
	setvbuf(file, NULL, _IONBF, 0);
	/* bounded, so that a failing test cannot fill a file system */
	while (blocks <= 1024 && fwrite(block, sizeof(block), 1, file) == 1)
		blocks++;
	assert_true(blocks <= 1024);
	assert_int_equal(ftruncate(fileno(file), blocks > free_blocks ? (blocks - free_blocks) * 4096L : 0), 0);
	fclose(file);
}

static void
sum_book(const tally_segment *segment, uint32_t entry, uint32_t stat, test_sum *sum)
{
	tally_book *book = tally_book_at(segment, entry);

	for (uint32_t i = 0; i < book->used; i++)
	{
		tally_head *head = &tally_heads_of(book)[i];

		if (head->stat != stat + 1)
			continue;
		sum->count += head->count;
		sum->total += head->total;
		if (head->count > 0 && head->min < sum->min)
			sum->min = head->min;
		if (head->max > sum->max)
			sum->max = head->max;
		for (uint32_t b = 0; b < TALLY_HIST_BUCKETS; b++)
		{
			uint64_t	n = tally_hist_of(segment, book, i)[tally_bucket_at(b)];

			sum->hist[b] += n;
			sum->in_histogram += n;
		}
	}
}

void
test_sum_of(const tally_segment *segment, uint32_t stat, test_sum *sum)
{
	memset(sum, 0, sizeof(*sum));
	sum->min = UINT64_MAX;
	for (uint32_t i = 0; i < segment->header->entries.count; i++)
		if (tally_entry_at(segment, i)->state != TALLY_SLOT_FREE)
			sum_book(segment, i, stat, sum);
}

static uint64_t
count_in(tally_book *book, uint32_t stat)
{
	uint32_t	used = __atomic_load_n(&book->used, __ATOMIC_ACQUIRE);

	for (uint32_t i = 0; i < used; i++)
		if (tally_heads_of(book)[i].stat == stat + 1)
			return tally_heads_of(book)[i].count;
	return 0;
}

/* Returns false if the slot has another owner now. */
static bool
read_slot(tally_slot_entry *entry, tally_book *book, uint32_t stat, uint32_t *generation,
		  uint64_t *count)
{
	uint64_t	seq = __atomic_load_n(&book->seq, __ATOMIC_ACQUIRE);
	uint32_t	state = __atomic_load_n(&entry->state, __ATOMIC_ACQUIRE);

	*count = 0;
	*generation = __atomic_load_n(&entry->generation, __ATOMIC_ACQUIRE);
	if (state != TALLY_SLOT_LIVE && state != TALLY_SLOT_RETIRED && state != TALLY_SLOT_MERGING)
		return true;
	*count = count_in(book, stat);
	__atomic_thread_fence(__ATOMIC_ACQUIRE);
	/* the seq of a book stays odd if its writer was killed during an update */
	if (seq != __atomic_load_n(&book->seq, __ATOMIC_RELAXED) ||
		*generation != __atomic_load_n(&entry->generation, __ATOMIC_RELAXED))
		return false;
	return true;
}

static bool
try_live_count(const tally_segment *segment, uint32_t stat, uint64_t *sum)
{
	tally_header *header = segment->header;
	uint64_t	first = __atomic_load_n(&header->merge_count, __ATOMIC_SEQ_CST);
	uint64_t	counts[64];
	uint32_t	generations[64];
	uint64_t	last;

	assert_true(header->slots <= 64);
	for (uint32_t i = 0; i < header->slots; i++)
		while (!read_slot(tally_entry_at(segment, i), tally_book_at(segment, i), stat,
						  &generations[i], &counts[i]))
			;
	last = __atomic_load_n(&header->merge_count, __ATOMIC_SEQ_CST);
	if (__atomic_load_n(&header->merge_active, __ATOMIC_SEQ_CST) != 0)
		return false;
	*sum = 0;
	for (uint32_t i = header->slots; i < header->entries.count; i++)
		if (tally_entry_at(segment, i)->state == TALLY_SLOT_GROUP)
			*sum += count_in(tally_book_at(segment, i), stat);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__atomic_load_n(&header->merge_active, __ATOMIC_SEQ_CST) != 0 ||
		__atomic_load_n(&header->merge_count, __ATOMIC_SEQ_CST) != last ||
		last - first > header->merge_log.count)
		return false;
	for (uint64_t n = first; n < last; n++)
	{
		uint64_t	merge = *(uint64_t *) tally_at(segment, &header->merge_log,
												  (uint32_t) (n % header->merge_log.count));

		if (generations[(uint32_t) merge] == merge >> 32)
			counts[(uint32_t) merge] = 0;
	}
	for (uint32_t i = 0; i < header->slots; i++)
		*sum += counts[i];
	return true;
}

uint64_t
test_live_count(const tally_segment *segment, uint32_t stat)
{
	uint64_t	sum;

	while (!try_live_count(segment, stat, &sum))
		;
	return sum;
}

uint64_t
test_accounts(const tally_segment *segment, uint32_t entry)
{
	tally_book *book = tally_book_at(segment, entry);
	uint64_t	sum = book->pend_ticks;

	for (uint32_t i = 0; i < book->used; i++)
	{
		tally_head *head = &tally_heads_of(book)[i];

		if (tally_dir_at(segment, head->stat - 1)->kind == TALLY_ACCOUNT)
			sum += head->total;
	}
	return sum;
}

uint64_t
test_sessions(const tally_segment *segment)
{
	uint64_t	sum = 0;

	for (uint32_t i = segment->header->slots; i < segment->header->entries.count; i++)
		if (tally_entry_at(segment, i)->state == TALLY_SLOT_GROUP)
			sum += tally_entry_at(segment, i)->sessions;
	return sum;
}

/* Uses pread, because most of a book is a hole, which would get memory if it were read through the mapping. */
static bool
is_zero(int fd, uint64_t at, uint64_t end)
{
	static const char zero[4096];
	char		page[sizeof(zero)];

	while (at < end)
	{
		size_t		wanted = end - at < sizeof(page) ? end - at : sizeof(page);

		if (pread(fd, page, wanted, (off_t) at) != (ssize_t) wanted ||
			memcmp(page, zero, wanted) != 0)
			return false;
		at += wanted;
	}
	return true;
}

/* A process killed while it adds a head leaves the head for others to overwrite, but without counts. */
static bool
count_nothing(int fd, uint64_t at, uint32_t heads)
{
	tally_head	head;

	for (uint32_t i = 0; i < heads; i++, at += sizeof(head))
	{
		if (pread(fd, &head, sizeof(head), (off_t) at) != (ssize_t) sizeof(head))
			return false;
		head.stat = 0;
		if (head.min == UINT64_MAX)
			head.min = 0;
		if (memcmp(&head, &(tally_head) {0}, sizeof(head)) != 0)
			return false;
	}
	return true;
}

void
assert_at_rest(const tally_segment *segment)
{
	tally_header *header = segment->header;

	assert_int_equal(tally_claimed_slots(segment), 0);
	assert_int_equal(header->merge_lock, 0);
	assert_int_equal(header->merge_active, 0);
	assert_int_equal(tally_journal_of(segment)->active, 0);
	for (uint32_t i = 0; i < header->slots; i++)
	{
		tally_book *book = tally_book_at(segment, i);
		uint64_t	heads = (uint64_t) ((char *) tally_heads_of(book) - (char *) header);
		uint64_t	hists = (uint64_t) ((char *) tally_hist_of(segment, book, 0) - (char *) header);
		uint64_t	end = (uint64_t) ((char *) book - (char *) header) + header->books.stride;

		assert_int_equal(tally_entry_at(segment, i)->pid, 0);
		assert_int_equal(book->used, 0);
		assert_int_equal(book->seq % 2, 0);
		assert_true(count_nothing(segment->fd, heads, segment->cold.stats_per_book));
		assert_true(is_zero(segment->fd, hists, end));
	}
}

void *
test_shared(size_t size)
{
	void	   *at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	assert_true(at != MAP_FAILED);
	return at;
}

pid_t
test_child(int (*work) (void *argument), void *argument)
{
	pid_t		pid = fork();

	assert_true(pid >= 0);
	if (pid == 0)
	{
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		/* after a failed assertion, the child must not continue with the parent's other tests */
		setenv("CMOCKA_TEST_ABORT", "1", 1);
		_exit(work(argument));
	}
	return pid;
}

int
test_wait(pid_t pid)
{
	int			status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status);
}

/* splitmix64 */
static int	steps_left;

static void
die_when_none_is_left(const char *where)
{
	(void) where;
	if (steps_left-- == 0)
		raise(SIGKILL);
}

void
test_die_after(int steps)
{
	steps_left = steps;
	tally_test_hook = die_when_none_is_left;
}

bool
test_killed(int (*work) (void *steps), int steps)
{
	int			result = test_wait(test_child(work, &steps));

	assert_true(result == 0 || result == 256 + SIGKILL);
	return result != 0;
}

uint64_t
test_random(uint64_t *seed)
{
	uint64_t	z = (*seed += UINT64_C(0x9e3779b97f4a7c15));

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}
