/* SPDX-License-Identifier: PostgreSQL */
/*
 * executable.h
 *	  What the running executable's dynamic section says: imports and exports.
 */
#ifndef PG_TALLY_EXECUTABLE_H
#define PG_TALLY_EXECUTABLE_H

#include "postgres.h"

#include <link.h>

typedef struct executable
{
	bool		found;
	uintptr_t	base;
	const ElfW(Sym) *symbols;
	const char *strings;
	const uint32 *gnu_hash;
	const ElfW(Rela) *jump;			/* DT_JMPREL */
	size_t		jumps;
	const ElfW(Rela) *rela;			/* DT_RELA past the relative ones */
	size_t		relas;
	uintptr_t	relro_start;		/* pages that are read-only after relocation */
	uintptr_t	relro_end;
} executable;

/* Of this process; the same every time. found is false if it cannot be read. */
extern const executable *executable_self(void);

/* An exported function of the executable; NULL if it is not there. Its address is base + st_value. */
extern const ElfW(Sym) *executable_function(const char *name);

#endif							/* PG_TALLY_EXECUTABLE_H */
