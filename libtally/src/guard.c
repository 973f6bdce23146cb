/* SPDX-License-Identifier: PostgreSQL */
/*
 * guard.c
 *	  A writer survives a page of the segment that cannot be had.
 *
 * The file can be truncated under the mapping, and its file system can be full when a page that was given
 * back is touched again: both raise SIGBUS. The handler then maps private memory full of zeros over the
 * whole segment. The writer continues there unseen and stops at its next look at the level word, since
 * level 0 is off. The descriptor is dropped too, so that the writer no longer reserves or frees memory of
 * the file.
 *
 * A SIGBUS elsewhere goes to the handler that was there before.
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
		sigaction(SIGBUS, &before, NULL);	/* the instruction is repeated, and faults under that handler */
	errno = saved;
}

int
tally_guard(tally_segment *segment)
{
	struct sigaction action = {.sa_sigaction = on_sigbus,.sa_flags = SA_SIGINFO | SA_RESTART};
	bool		installed = guarded != NULL;

	sigemptyset(&action.sa_mask);
	if (!installed && sigaction(SIGBUS, &action, &before) != 0)
		return errno;
	guarded = segment;
	return 0;
}
