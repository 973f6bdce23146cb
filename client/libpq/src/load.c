/* SPDX-License-Identifier: PostgreSQL */
/*
 * load.c
 *	  Actions when the library is loaded, when a thread ends, after a fork, and when the process ends.
 */
#include <errno.h>
#include <pthread.h>

#include "libtally_pq.h"

static void
of_thread_ended(void *slot)
{
	int			saved = errno;

	pq_retire(slot);
	pq_forget_thread();
	errno = saved;
}

static void
after_fork(void)
{
	pq_process_forked();
	pq_forget_thread();
}

__attribute__((constructor)) static void
before_main(void)
{
	int			saved = errno;

	pq_process_begin(of_thread_ended);
	pthread_atfork(NULL, NULL, after_fork);
	pq_library_look(pq_socket_exchange);
	errno = saved;
}

__attribute__((destructor)) static void
after_main(void)
{
	pq_process_end();
}
