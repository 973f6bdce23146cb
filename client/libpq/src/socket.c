/* SPDX-License-Identifier: PostgreSQL */
/*
 * socket.c
 *	  Measures libpq's own calls to send, receive and wait.
 *
 * Their entries in libpq's import table are replaced, as pg_tally does in a server (pg_tally/detour/import_table.c). Calls by
 * others are not affected. Encrypted connections use these functions, too, so bytes are those on the socket.
 */
#include <errno.h>
#include <link.h>
#include <poll.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "detour/executable.h"
#include "libtally_pq.h"

/* Failures to send or receive mostly mean that nothing can be sent or received yet, so they are not counted. */
static ssize_t
measured_send(int fd, const void *data, size_t length, int flags)
{
	pq_call		call;
	ssize_t		sent;

	pq_enter_socket(&call, FUNCTION_send);
	sent = send(fd, data, length, flags);
	pq_leave_socket(&call, sent > 0 ? (uint64_t) sent : 0);
	return sent;
}

static ssize_t
measured_recv(int fd, void *data, size_t length, int flags)
{
	pq_call		call;
	ssize_t		received;

	pq_enter_socket(&call, FUNCTION_recv);
	received = recv(fd, data, length, flags);
	pq_leave_socket(&call, received > 0 ? (uint64_t) received : 0);
	return received;
}

static int
measured_poll(struct pollfd *fds, nfds_t count, int timeout)
{
	pq_call		call;
	int			ready;

	pq_enter_socket(&call, FUNCTION_poll);
	ready = poll(fds, count, timeout);
	pq_leave_socket(&call, 0);
	return ready;
}

typedef struct exchange
{
	const char *name;
	void	   *measured;
	import_slots at;
} exchange;

#define EXCHANGES 3

static import_slots *
is_exchanged(const char *name, void *data)
{
	exchange   *exchanges = data;

	for (int i = 0; i < EXCHANGES; i++)
		if (strcmp(exchanges[i].name, name) == 0)
			return &exchanges[i].at;
	return NULL;
}

typedef struct library_search
{
	const pq_library *library;
	executable	object;
} library_search;

static int
read_object(struct dl_phdr_info *info, size_t size, void *data)
{
	library_search *search = data;

	search->object = (executable) {0};
	executable_read(info, &search->object);
	return search->object.low == search->library->low;
}

void
pq_socket_exchange(const pq_library *library)
{
	exchange	exchanges[EXCHANGES] = {
		{.name = "send",.measured = (void *) measured_send},
		{.name = "recv",.measured = (void *) measured_recv},
		{.name = "poll",.measured = (void *) measured_poll},
	};
	library_search search = {.library = library};
	const executable *object = &search.object;
	size_t		relro;

	if (dl_iterate_phdr(read_object, &search) == 0 || !object->found)
		return;
	import_table_scan(object, is_exchanged, exchanges);
	relro = object->relro_end - object->relro_start;
	/* the table is read-only if libpq was bound when it was loaded */
	if (relro != 0 && mprotect((void *) object->relro_start, relro, PROT_READ | PROT_WRITE) != 0)
		return;
	for (int i = 0; i < EXCHANGES; i++)
		for (int s = 0; s < 2; s++)
			if (exchanges[i].at.slot[s] != NULL)
				__atomic_store_n(exchanges[i].at.slot[s], exchanges[i].measured, __ATOMIC_RELEASE);
	if (relro != 0)
		mprotect((void *) object->relro_start, relro, PROT_READ);
}
