/* SPDX-License-Identifier: PostgreSQL */
/*
 * entry.h
 *	  Redirecting a function of the server at its entry.
 *
 * The first instructions of the function are moved to a trampoline within reach of it, and
 * a jump to the replacement is written in their place. Everything that depends on the
 * processor is in entry_<processor>.c.
 *
 * Call only where no other thread runs in the function: in the postmaster before the first
 * fork, or in a backend, which has one thread.
 */
#ifndef PG_TALLY_ENTRY_H
#define PG_TALLY_ENTRY_H

#include "postgres.h"

/*
 * Marks a replacement. Callers in the original's own source file may count on registers that
 * it leaves alone (gcc -fipa-ra), so a replacement leaves all of them alone. It must then be
 * compiled without vector registers.
 */
#if defined(__x86_64__)
#define ENTRY_REPLACEMENT __attribute__((no_caller_saved_registers))
#else
#define ENTRY_REPLACEMENT
#endif

/*
 * Redirect the exported function `name` to `replacement`; *original becomes a function that
 * does what the original did. False, with a reason, when the symbol is missing, the
 * instructions cannot be moved safely, or the machine forbids changing code: the function
 * is untouched then.
 */
extern bool entry_install(const char *name, void *replacement, void **original,
						  char *reason, size_t size);

#endif							/* PG_TALLY_ENTRY_H */
