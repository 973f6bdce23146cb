/* SPDX-License-Identifier: PostgreSQL */
/*
 * guard.c
 *	  Lets a writer survive unavailable pages of the segment.
 *
 * The file may be truncated under the mapping, or its file system may be full when a page that was freed
 * is touched again: both raise SIGBUS. The handler then maps private zeroed memory over the whole
 * segment. The writer continues there unseen, and stops when it next reads the level word, because level
 * 0 is off. The descriptor is dropped, too, so that the writer no longer reserves or frees memory of the
 * file.
 *
 * A SIGBUS elsewhere is passed to the previous handler. It may survive that, so the guard stays. Only if the signal is going to
 * end the process, as it would without us, is the previous handler restored.
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

/* Was the signal sent by a process, so that no instruction will raise it again? */
static bool
was_sent(const siginfo_t *info)
{
	return info->si_code <= 0;
}

/* Calls the previous handler as it would have been called without us. It may leave with siglongjmp. */
static void
pass_on(int number, siginfo_t *info, void *context)
{
	const struct sigaction to = before;
	sigset_t	own;

	if ((to.sa_flags & SA_SIGINFO) == 0 && (to.sa_handler == SIG_DFL || to.sa_handler == SIG_IGN))
	{
		if (to.sa_handler == SIG_IGN && was_sent(info))
			return;
		/* The process ends: by the instruction, which is repeated, or by the signal, which is raised again after this handler. */
		sigaction(number, &to, NULL);
		if (was_sent(info))
			raise(number);
		return;
	}
	if ((to.sa_flags & SA_RESETHAND) != 0)
		before = (struct sigaction) {.sa_handler = SIG_DFL};
	pthread_sigmask(SIG_BLOCK, &to.sa_mask, NULL);
	sigemptyset(&own);
	sigaddset(&own, number);
	if ((to.sa_flags & SA_NODEFER) != 0)
		pthread_sigmask(SIG_UNBLOCK, &own, NULL);
	if ((to.sa_flags & SA_SIGINFO) != 0)
		to.sa_sigaction(number, info, context);
	else
		to.sa_handler(number);
	/* the kernel restores the mask when the handler returns */
}

/* Async-signal-safe: makes two system calls and a store, or is as safe as the previous handler. */
static void
on_sigbus(int number, siginfo_t *info, void *context)
{
	tally_segment *segment = guarded;
	int			saved = errno;

	if (segment != NULL && segment->header != NULL &&
		(uintptr_t) info->si_addr - (uintptr_t) segment->header < segment->size &&
		mmap(segment->header, segment->size, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0) != MAP_FAILED)
		segment->fd = -1;
	else
		pass_on(number, info, context);
	errno = saved;
}

int
tally_guard(tally_segment *segment)
{
	struct sigaction action = {.sa_sigaction = on_sigbus,.sa_flags = SA_SIGINFO | SA_RESTART};
	bool		installed = guarded != NULL;

	sigemptyset(&action.sa_mask);
	if (!installed && sigaction(SIGBUS, NULL, &before) != 0)
		return errno;
	/* On the stack that the previous handler expects. */
	action.sa_flags |= before.sa_flags & SA_ONSTACK;
	if (!installed && sigaction(SIGBUS, &action, &before) != 0)
		return errno;
	guarded = segment;
	return 0;
}
