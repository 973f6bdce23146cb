/* SPDX-License-Identifier: PostgreSQL */
/*
 * executable.h
 *	  What the dynamic sections of the running executable and its libraries say: imports and
 *	  exports. No server is needed: client/libpq uses this, too.
 */
#ifndef PG_TALLY_EXECUTABLE_H
#define PG_TALLY_EXECUTABLE_H

#include <link.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EXECUTABLE_SEGMENTS 16

/* A part of an object that is mapped readable. */
typedef struct loaded_segment
{
	uintptr_t	low;
	uintptr_t	high;				/* before this */
} loaded_segment;

typedef struct executable
{
	bool		found;
	uintptr_t	base;
	const ElfW(Sym) *symbols;
	const char *strings;
	const uint32_t *gnu_hash;
	const ElfW(Rela) *jump;			/* DT_JMPREL */
	size_t		jumps;
	const ElfW(Rela) *rela;			/* DT_RELA past the relative ones */
	size_t		relas;
	uintptr_t	relro_start;		/* pages that are read-only after relocation */
	uintptr_t	relro_end;
	uintptr_t	low;				/* it lies from here ... */
	uintptr_t	high;				/* ... to before this; what lies between its segments cannot be read */
	loaded_segment segments[EXECUTABLE_SEGMENTS];	/* further ones are not read */
	int			segment_count;
	const ElfW(Half) *versions;		/* DT_VERSYM: of each symbol; NULL: there are none */
	const ElfW(Verneed) *needed;	/* DT_VERNEED: what the numbers in it stand for */
	size_t		needs;
	const char *path;				/* empty for the executable itself */
} executable;

/*
 * What the program headers and the dynamic section of one object say. found is false if it
 * cannot be read: a table that it needs is missing, or lies outside of what is loaded.
 */
extern void executable_read(const struct dl_phdr_info *info, executable *exe);

/* The segment that has all of those bytes; NULL: none, so they may not be read. */
static inline const loaded_segment *
executable_segment(const executable *exe, const void *bytes, size_t size)
{
	const uintptr_t at = (uintptr_t) bytes;

	for (int i = 0; i < exe->segment_count; i++)
		if (at >= exe->segments[i].low && at < exe->segments[i].high && size <= exe->segments[i].high - at)
			return &exe->segments[i];
	return NULL;
}

/* Of this process; the same every time. found is false if it cannot be read. */
extern const executable *executable_self(void);

/* An exported function of the executable; NULL if it is not there. Its address is base + st_value. */
extern const ElfW(Sym) *executable_function(const char *name);

/* The version of an imported symbol, e.g. "GLIBC_2.2.5"; NULL if it has none. */
extern const char *executable_import_version(const executable *exe, size_t symbol);

/* The loaded objects in the loader's order, the executable first. Valid until the next call. */
extern const executable *executable_objects(int *count);

/* Called for each exported function; true ends the walk. */
typedef bool (*executable_visitor) (const executable *module, const ElfW(Sym) *symbol,
									const char *name, void *data);

/*
 * Every function that the executable and its libraries export, the executable's first, but not those of
 * the C library and of this module, which probes call. No lock of the loader is held, so the visitor may
 * raise an error.
 */
extern void executable_each_function(executable_visitor visitor, void *data);

#pragma GCC visibility push(hidden)

/* ---------------------------------------------------------------- import_table.c */

/* The slots of an object's import table, and which function each leads to. */

/* An imported function. Called by the PLT and called by address it may have a slot each. */
typedef struct import_slots
{
	void	  **slot[2];			/* as many as there are, then NULL */
	size_t		symbol;				/* in the object's table */
} import_slots;

/* Which of its imports does the caller want? Returns where to note the slots, or NULL. */
typedef import_slots *(*import_wanted) (const char *name, void *data);

/* Note the slots of all imports that are wanted. */
extern void import_table_scan(const executable *exe, import_wanted wanted, void *data);

/*
 * The function that the import leads to. Where the loader has not bound it yet (lazy binding),
 * this is what it would bind; nothing is changed. NULL, with a reason, if that is unknown.
 */
extern void *import_function(const executable *exe, const import_slots *import,
							 const char **reason);

#pragma GCC visibility pop

#endif							/* PG_TALLY_EXECUTABLE_H */
