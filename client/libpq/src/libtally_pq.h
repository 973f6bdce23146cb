/* SPDX-License-Identifier: PostgreSQL */
/*
 * libtally_pq.h
 *	  The parts of libtally_pq.so, a library that is preloaded into programs which use libpq.
 *
 *	  interpose.c	defines libpq's functions; each calls the real one, measured
 *	  library.c		which libpq that is, for each caller
 *	  calls.c		the calls that a thread is in, and their figures: the hot path
 *	  socket.c		what libpq itself calls to send, to receive and to wait
 *	  process.c		the process's segment, and a slot for each of its threads
 *	  load.c		what happens at load, at a thread's end, after a fork, and at the end; uses all others
 *
 * A function of libpq may be called in a signal handler (PQcancel is), in a child after a fork, before main or after
 * exit, with any lock held. So nothing here allocates, prints or waits without an end; errno stays; and what cannot be
 * measured is called all the same.
 */
#ifndef LIBTALLY_PQ_H
#define LIBTALLY_PQ_H

#include <stdbool.h>
#include <stdint.h>

#include "tally.h"

/* Statistics are of these functions: those of functions.h, then those that libpq calls (socket.c). */
enum pq_function
{
#define PQ_FUNCTION(type, failed, name, parameters, arguments) FUNCTION_##name,
#define PQ_ACTION(name, parameters, arguments) FUNCTION_##name,
#include "functions.h"
#undef PQ_FUNCTION
#undef PQ_ACTION
	PUBLIC_FUNCTIONS,
	FUNCTION_send = PUBLIC_FUNCTIONS,
	FUNCTION_recv,
	FUNCTION_poll,
	FUNCTIONS
};

extern const char *const pq_function_names[FUNCTIONS];

/* ---------------------------------------------------------------- library.c */

/* A libpq of this process. It is never unloaded, and this never changes. */
typedef struct pq_library
{
	uintptr_t	low;				/* it is mapped from here ... */
	uintptr_t	high;				/* ... to before this */
	void	   *real[PUBLIC_FUNCTIONS];	/* NULL: it has no such function */
	int			(*result_status) (const void *result);
	int			(*version) (void);
} pq_library;

/* An object that calls libpq. */
typedef struct pq_caller
{
	uintptr_t	low;
	uintptr_t	size;
	const pq_library *library;
	bool		inside;				/* libpq itself, whose own calls are not the program's */
} pq_caller;

/* Who calls from this address; NULL: there is no libpq. Saves errno. */
extern const pq_caller *pq_caller_of(uintptr_t address);
/*
 * Look for a libpq that was loaded with the program, so that a signal handler need not. `found` is called for each libpq from
 * now on, and for those that were found before; for one perhaps twice.
 */
extern void pq_library_look(void (*found) (const pq_library *library));

/* ---------------------------------------------------------------- calls.c */

/* A call in progress; in the stack of the function that measures it. */
typedef struct pq_call
{
	uint64_t	begin;
	uint32_t	generation;			/* of the process; 0: it is not measured */
	uint16_t	function;
	uint16_t	depth;				/* of its frame */
	const pq_library *library;
} pq_call;

/* A public function is called from this address. Returns the real one; NULL: there is none. */
extern void *pq_enter(pq_call *call, enum pq_function function, const void *address);
/* It has returned. `failed`: with an error. */
extern void pq_leave(pq_call *call, bool failed);
/* The same for a function that libpq calls. */
extern void pq_enter_socket(pq_call *call, enum pq_function function);
extern void pq_leave_socket(pq_call *call, uint64_t bytes);
/* Whether a result is of an error. NULL is. */
extern bool pq_is_error(const pq_call *call, const void *result);
/* The calling thread is in no call any more, and has no slot. */
extern void pq_forget_thread(void);

/* ---------------------------------------------------------------- socket.c */

/* Exchange the entries of this library's import table. */
extern void pq_socket_exchange(const pq_library *library);

/* ---------------------------------------------------------------- process.c */

enum pq_account
{
	ACCOUNT_IDLE,
	ACCOUNT_OFF,
	ACCOUNTS
};

/* Changes when the process is another after a fork. Never 0. */
extern uint32_t pq_generation;

/* A slot for the calling thread, whose account ACCOUNT_IDLE runs. False: there is none. */
extern bool pq_claim(tally_slot *slot, const pq_library *library, uint32_t accounts[ACCOUNTS]);

/* The numbers of a function's statistics, in the slot's book; indexes may be TALLY_NONE. */
typedef struct pq_indexes
{
	uint32_t	account;
	uint32_t	inclusive;
	uint32_t	exclusive;
	uint32_t	failed;				/* TALLY_NONE until there is one */
} pq_indexes;

extern void pq_touch(tally_slot *slot, enum pq_function function, pq_indexes *indexes);
extern uint32_t pq_touch_failed(tally_slot *slot, enum pq_function function);
/* Called when the thread ends. */
extern void pq_retire(tally_slot *slot);
/* This process begins to be measured; a child after a fork; it ends. `thread_ended` gets a thread's slot. */
extern void pq_process_begin(void (*thread_ended) (void *slot));
extern void pq_process_forked(void);
extern void pq_process_end(void);

#endif							/* LIBTALLY_PQ_H */
