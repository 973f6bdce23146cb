/* SPDX-License-Identifier: PostgreSQL */
/*
 * submissions.c
 *	  Reads a liburing ring before its entries are submitted (file_names.h).
 *
 * Inline functions in liburing's header fill a ring, so the offsets of these fields are compiled into the
 * executable: they can only change in a liburing with another name. Entries from sqe_head to sqe_tail are new.
 * io_uring_submit advances sqe_head even if the system call must be repeated (EINTR), so each entry is seen once.
 */
#include "base/compat.h"

#include <sys/uio.h>

#include "file/file_names.h"

#if COMPAT_IO_URING
#include <linux/io_uring.h>

/* The beginning of struct io_uring (liburing.h, 2.x). */
typedef struct ring_head
{
	unsigned int *khead;
	unsigned int *ktail;
	unsigned int *kring_mask;
	unsigned int *kring_entries;
	unsigned int *kflags;
	unsigned int *kdropped;
	unsigned int *array;
	struct io_uring_sqe *sqes;
	unsigned int sqe_head;
	unsigned int sqe_tail;
} ring_head;

/* False if it is neither a read nor a write. */
static bool
understand(const struct io_uring_sqe *sqe, submission *s)
{
	const struct iovec *parts = (const struct iovec *) (uintptr_t) sqe->addr;
	bool		vector = sqe->opcode == IORING_OP_READV || sqe->opcode == IORING_OP_WRITEV;

	*s = (submission) {
		.fd = sqe->fd,
		.write = sqe->opcode == IORING_OP_WRITE || sqe->opcode == IORING_OP_WRITEV,
		.offset = (int64) sqe->off,
		.bytes = vector ? 0 : sqe->len,
	};
	if (vector)
		for (unsigned int i = 0; i < sqe->len; i++)
			s->bytes += (int64) parts[i].iov_len;
	return vector || s->write || sqe->opcode == IORING_OP_READ;
}

int
submissions_read(const void *ring, submission *submissions)
{
	const ring_head *r = ring;
	int			count = 0;

	if (r->kring_mask == NULL || r->sqes == NULL)
		return 0;
	for (unsigned int at = r->sqe_head; at != r->sqe_tail && count < SUBMISSIONS; at++)
		if (understand(&r->sqes[at & *r->kring_mask], &submissions[count]))
			count++;
	return count;
}

#else

int
submissions_read(const void *ring, submission *submissions)
{
	return 0;
}

#endif
