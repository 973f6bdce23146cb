/* SPDX-License-Identifier: PostgreSQL */
/*
 * memory.c
 *	  Reserves memory of the segment before it is touched.
 *
 * A write to a hole in a full tmpfs kills the writer with SIGBUS; even a read through the mapping allocates
 * memory. So every page is first reserved with fallocate, which returns ENOSPC instead. Reserving a page
 * again has no effect.
 *
 * Headroom of the file system is left free for others: a server has its own shared memory there, and a user's query
 * must not fail because this library has used it up. For the same reason a segment uses at most a quarter of its file
 * system: a container's /dev/shm may have only 64 MB, and memory that is free now may be needed later. In such a file
 * system, the memory of ended sessions is freed.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#define PAGE 4096u

/* Headroom: a quarter of the file system, but at most this. */
#define HEADROOM_MAX (UINT64_C(256) << 20)

/* Limit of the segment: a quarter of the file system, but at least this. */
#define SHARE_MIN (UINT64_C(4) << 20)

/* Size and free space of the file system. False if unknown or unlimited. Preserves errno. */
static bool
look_at(int fd, uint64_t *size, uint64_t *available)
{
	struct statvfs fs;
	int			saved = errno;
	int			rc = fstatvfs(fd, &fs);

	errno = saved;
	if (rc != 0 || fs.f_blocks == 0)
		return false;
	*size = (uint64_t) fs.f_blocks * fs.f_frsize;
	*available = (uint64_t) fs.f_bavail * fs.f_frsize;
	return true;
}

static uint64_t
share_of(uint64_t size)
{
	return size / 4 > SHARE_MIN ? size / 4 : SHARE_MIN;
}

/* Bytes of memory allocated to the segment's file; 0 if unknown. */
static uint64_t
held(const tally_segment *segment)
{
	struct stat st;
	int			saved = errno;
	int			rc = fstat(segment->fd, &st);

	errno = saved;
	return rc == 0 ? (uint64_t) st.st_blocks * 512 : 0;
}

static bool
leaves_headroom(const tally_segment *segment, uint64_t length)
{
	uint64_t	size,
				available,
				headroom;

	if (!look_at(segment->fd, &size, &available))
		return true;				/* fallocate will find out */
	headroom = size / 4 < HEADROOM_MAX ? size / 4 : HEADROOM_MAX;
	if (available < headroom + length)
		return false;
	/* if even the whole segment is smaller, its current size does not matter */
	return segment->size <= share_of(size) || held(segment) + length <= share_of(size);
}

uint64_t
tally_memory_share(const tally_segment *segment)
{
	uint64_t	size,
				available;

	return look_at(segment->fd, &size, &available) && segment->size > share_of(size) ? share_of(size) : 0;
}

/* fallocate, repeated on EINTR, which tmpfs returns if a signal is pending. Returns 0 or an errno value; preserves errno. */
static int
allocate(const tally_segment *segment, int mode, uint64_t offset, uint64_t length)
{
	int			saved = errno;
	int			rc = EINTR;

	for (int i = 0; i < 16 && rc == EINTR; i++)
		rc = fallocate(segment->fd, mode, (off_t) offset, (off_t) length) == 0 ? 0 : errno;
	errno = saved;
	return rc;
}

int
tally_reserve(const tally_segment *segment, uint64_t offset, uint64_t length)
{
	uint64_t	from = offset / PAGE * PAGE;
	uint64_t	to = (offset + length + PAGE - 1) / PAGE * PAGE;

	return leaves_headroom(segment, to - from) ? allocate(segment, 0, from, to - from) : ENOSPC;
}

/* Heads and histograms of TALLY_CHUNK statistics, starting with `stat`. */
int
tally_reserve_chunk(const tally_segment *segment, uint32_t index, uint32_t stat)
{
	uint64_t	book = tally_offset(&segment->cold.books, index);
	uint64_t	heads = book + sizeof(tally_book);
	uint64_t	hists = heads + (uint64_t) segment->cold.stats_per_book * sizeof(tally_head);
	uint64_t	chunk = TALLY_CHUNK_BUCKETS * sizeof(uint64_t);
	int			rc;

	rc = tally_reserve(segment, heads + stat * sizeof(tally_head), TALLY_CHUNK * sizeof(tally_head));
	if (rc == 0)
		rc = tally_reserve(segment, hists + stat / TALLY_CHUNK * chunk, chunk);
	return rc;
}

/* The book itself and its first chunk. */
int
tally_reserve_book(const tally_segment *segment, uint32_t index)
{
	int			rc;

	/* the heads of the first chunk are in the book's first page */
	_Static_assert(sizeof(tally_book) + TALLY_CHUNK * sizeof(tally_head) <= PAGE, "one page");
	rc = tally_reserve_chunk(segment, index, 0);
	if (rc == 0)
		rc = tally_reserve(segment, tally_offset(&segment->cold.books, index), sizeof(tally_book));
	return rc;
}

void
tally_discard(const tally_segment *segment, const tally_region *region, uint32_t index)
{
	(void) allocate(segment, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, tally_offset(region, index), region->stride);
}

/* Does the segment use so much of its limit that ended sessions must not keep their memory? */
bool
tally_memory_is_short(const tally_segment *segment)
{
	uint64_t	share = tally_memory_share(segment);

	return share != 0 && held(segment) > share / 2;
}
