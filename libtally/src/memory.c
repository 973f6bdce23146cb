/* SPDX-License-Identifier: PostgreSQL */
/*
 * memory.c
 *	  Memory of the segment, asked of the file system before it is touched.
 *
 * A write to a hole of a full tmpfs kills the writer with SIGBUS; even a read of one
 * through the mapping takes memory. So every page is reserved by fallocate first, which
 * says ENOSPC instead. Reserving what is reserved already changes nothing.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "internal.h"

#include <errno.h>
#include <fcntl.h>

#define PAGE 4096u

int
tally_reserve(const tally_segment *segment, uint64_t offset, uint64_t length)
{
	uint64_t	from = offset / PAGE * PAGE;
	uint64_t	to = (offset + length + PAGE - 1) / PAGE * PAGE;
	int			saved = errno;
	int			rc = 0;

	/* tmpfs gives up with EINTR when a signal is waiting */
	for (int i = 0; i < 16; i++)
	{
		rc = fallocate(segment->fd, 0, (off_t) from, (off_t) (to - from)) == 0 ? 0 : errno;
		if (rc != EINTR)
			break;
	}
	errno = saved;
	return rc;
}

/* Heads and histograms of TALLY_CHUNK statistics from `stat` on. */
int
tally_reserve_chunk(const tally_segment *segment, uint32_t index, uint32_t stat)
{
	const tally_header *header = segment->header;
	uint64_t	book = header->books.offset + (uint64_t) index * header->books.stride;
	uint64_t	heads = book + sizeof(tally_book);
	uint64_t	hists = heads + (uint64_t) header->stats_per_book * sizeof(tally_head);
	uint32_t	count = header->stats_per_book - stat;
	int			rc;

	if (count > TALLY_CHUNK)
		count = TALLY_CHUNK;
	rc = tally_reserve(segment, heads + stat * sizeof(tally_head), count * sizeof(tally_head));
	if (rc == 0)
		rc = tally_reserve(segment,
						   hists + (uint64_t) stat * TALLY_HIST_BUCKETS * sizeof(uint64_t),
						   (uint64_t) count * TALLY_HIST_BUCKETS * sizeof(uint64_t));
	return rc;
}

/* The book itself and its first chunk. */
int
tally_reserve_book(const tally_segment *segment, uint32_t index)
{
	const tally_header *header = segment->header;
	int			rc;

	/* the first chunk's heads lie in the book's first page */
	_Static_assert(sizeof(tally_book) + TALLY_CHUNK * sizeof(tally_head) <= PAGE, "one page");
	rc = tally_reserve_chunk(segment, index, 0);
	if (rc == 0)
		rc = tally_reserve(segment, header->books.offset + (uint64_t) index * header->books.stride,
						   sizeof(tally_book));
	return rc;
}

/* Give a book back, whatever it held: it reads as zeros afterwards. */
void
tally_discard_book(const tally_segment *segment, uint32_t index)
{
	const tally_header *header = segment->header;
	int			saved = errno;

	for (int i = 0; i < 16; i++)
		if (fallocate(segment->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					  (off_t) (header->books.offset + (uint64_t) index * header->books.stride),
					  (off_t) header->books.stride) == 0 || errno != EINTR)
			break;
	errno = saved;
}
