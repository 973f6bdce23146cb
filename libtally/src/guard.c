/* SPDX-License-Identifier: PostgreSQL */
/*
 * guard.c
 *	  A page of the segment that cannot be had is not the death of its writer.
 *
 * The file can be cut short under the mapping, and its file system can run out of room where a
 * page is touched again after it was given back: both are SIGBUS. The handler then lays private
 * memory, full of zeros, over the whole mapping. The writer goes on writing where nobody reads: a
 * level of 0 is off, and a book of zeros is no book, so it stops at its next look at the level
 * word. The descriptor goes too, lest the writer reserve or give back memory of the file.
 *
 * A SIGBUS elsewhere goes to who had the signal before.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "internal.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

static tally_segment *volatile guarded;
static struct sigaction before;

/* Async-signal-safe: two system calls and a store. */
static void
on_sigbus(int number, siginfo_t *info, void *context)
{
	tally_segment *segment = guarded;
	int			saved = errno;

	(void) number;
	(void) context;
	if (segment != NULL && segment->header != NULL &&
		(uintptr_t) info->si_addr - (uintptr_t) segment->header < segment->size &&
		mmap(segment->header, segment->size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED)
		segment->fd = -1;
	else
		sigaction(SIGBUS, &before, NULL);	/* the instruction is tried again, and its fault is theirs */
	errno = saved;
}

int
tally_guard(tally_segment *segment)
{
	struct sigaction action = {.sa_sigaction = on_sigbus,.sa_flags = SA_SIGINFO | SA_RESTART};
	bool		installed = guarded != NULL;

	sigemptyset(&action.sa_mask);
	guarded = segment;
	return installed || sigaction(SIGBUS, &action, &before) == 0 ? 0 : errno;
}
