/* SPDX-License-Identifier: PostgreSQL */
/*
 * libtally_pq.h
 *	  The parts of libtally_pq.so, a library to be preloaded into programs that use libpq.
 *
 *	  interpose.c	defines libpq's functions; each measures the call of the real one
 *	  library.c		finds the real libpq for each caller
 *	  calls.c		the stack of a thread's calls, and their figures: the hot path
 *	  socket.c		probes on libpq's own calls to send, receive and wait
 *	  process.c		the process's segment, and a slot for each of its threads
 *	  load.c		actions at load, at a thread's end, after a fork, and at exit; uses all others
 *
 * A function of libpq may be called in a signal handler (as PQcancel is), in a child after a fork, before main or after
 * exit, with any lock held. So nothing here allocates, prints or waits indefinitely; errno is preserved; and a call that
 * cannot be measured is made nevertheless.
 */
#ifndef LIBTALLY_PQ_H
#define LIBTALLY_PQ_H

#include <stdbool.h>
#include <stdint.h>

#include "tally.h"

/* The measured functions: those of functions.h, then those that libpq calls (socket.c). */
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

/* A libpq in this process. It is never unloaded, and this record never changes. */
typedef struct pq_library
{
	uintptr_t	low;				/* it is mapped from here ... */
	uintptr_t	high;				/* ... to here, exclusive */
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
	bool		inside;				/* libpq itself, whose internal calls are not the program's */
} pq_caller;

/* The caller at this address; NULL if there is no libpq. Preserves errno. */
extern const pq_caller *pq_caller_of(uintptr_t address);
/*
 * Look for a libpq that was loaded with the program, so that a signal handler need not. `found` is called for each libpq found
 * from now on, and for those found before; possibly twice for the same one.
 */
extern void pq_library_look(void (*found) (const pq_library *library));

/* ---------------------------------------------------------------- calls.c */

/* A call in progress, on the stack of the function that measures it. */
typedef struct pq_call
{
	uint64_t	begin;
	uint32_t	generation;			/* of the process; 0: not measured */
	uint16_t	function;
	uint16_t	depth;				/* of its frame */
	const pq_library *library;
} pq_call;

/* A public function is called from this address. Returns the real function, or NULL if there is none. */
extern void *pq_enter(pq_call *call, enum pq_function function, const void *address);
/* It has returned. `failed` is true if it reported an error. */
extern void pq_leave(pq_call *call, bool failed);
/* The same for a function that libpq calls. */
extern void pq_enter_socket(pq_call *call, enum pq_function function);
extern void pq_leave_socket(pq_call *call, uint64_t bytes);
/* Does the result report an error? NULL does. */
extern bool pq_is_error(const pq_call *call, const void *result);
/* Forget the calling thread's calls and slot. */
extern void pq_forget_thread(void);

/* ---------------------------------------------------------------- socket.c */

/* Replace the entries of this library's import table. */
extern void pq_socket_exchange(const pq_library *library);

/* ---------------------------------------------------------------- process.c */

enum pq_account
{
	ACCOUNT_IDLE,
	ACCOUNT_OFF,
	ACCOUNTS
};

/* Changes after a fork, in the child. Never 0. */
extern uint32_t pq_generation;

/* Claim a slot for the calling thread; its account ACCOUNT_IDLE runs. False if there is none. */
extern bool pq_claim(tally_slot *slot, const pq_library *library, uint32_t accounts[ACCOUNTS]);

/* Indexes of a function's statistics in the slot's book; each may be TALLY_NONE. */
typedef struct pq_indexes
{
	uint32_t	account;
	uint32_t	inclusive;
	uint32_t	exclusive;
	uint32_t	failed;				/* TALLY_NONE until a call fails */
} pq_indexes;

extern void pq_touch(tally_slot *slot, enum pq_function function, pq_indexes *indexes);
extern uint32_t pq_touch_failed(tally_slot *slot, enum pq_function function);
/* Called when the thread ends. */
extern void pq_retire(tally_slot *slot);
/* Called when measuring begins in this process, in a child after a fork, and at exit. `thread_ended` gets a thread's slot. */
extern void pq_process_begin(void (*thread_ended) (void *slot));
extern void pq_process_forked(void);
extern void pq_process_end(void);

#endif							/* LIBTALLY_PQ_H */
