/* SPDX-License-Identifier: PostgreSQL */
/*
 * executable.h
 *	  Imports and exports of the running executable and its libraries, from their dynamic sections.
 *	  Independent of the server; client/libpq uses this, too.
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
	const ElfW(Rela) *rela;			/* DT_RELA without the relative relocations */
	size_t		relas;
	uintptr_t	relro_start;		/* pages that are read-only after relocation */
	uintptr_t	relro_end;
	uintptr_t	low;				/* it extends from here ... */
	uintptr_t	high;				/* ... to here, exclusive; gaps between segments cannot be read */
	loaded_segment segments[EXECUTABLE_SEGMENTS];	/* further segments are ignored */
	int			segment_count;
	const ElfW(Half) *versions;		/* DT_VERSYM: version number of each symbol, or NULL */
	const ElfW(Verneed) *needed;	/* DT_VERNEED: names of these versions */
	size_t		needs;
	const char *path;				/* empty for the executable itself */
} executable;

/*
 * Reads the program headers and the dynamic section of one object. found is false if it
 * cannot be read, because a required table is missing or outside the loaded segments.
 */
extern void executable_read(const struct dl_phdr_info *info, executable *exe);

/* The segment that contains all of those bytes; NULL if none does, and they must not be read. */
static inline const loaded_segment *
executable_segment(const executable *exe, const void *bytes, size_t size)
{
	const uintptr_t at = (uintptr_t) bytes;

	for (int i = 0; i < exe->segment_count; i++)
		if (at >= exe->segments[i].low && at < exe->segments[i].high && size <= exe->segments[i].high - at)
			return &exe->segments[i];
	return NULL;
}

/* The executable of this process; the same every time. found is false if it cannot be read. */
extern const executable *executable_self(void);

/* An exported function of the executable, or NULL. Its address is base + st_value. */
extern const ElfW(Sym) *executable_function(const char *name);

/* The version of an imported symbol, e.g. "GLIBC_2.2.5"; NULL if it has none. */
extern const char *executable_import_version(const executable *exe, size_t symbol);

/* The loaded objects in the loader's order, the executable first. Valid until the next call. */
extern const executable *executable_objects(int *count);

/* Called for each exported function; true ends the walk. */
typedef bool (*executable_visitor) (const executable *module, const ElfW(Sym) *symbol,
									const char *name, void *data);

/*
 * Visit every function exported by the executable and its libraries, starting with the executable, except those
 * of the C library and of this module, which probes call. No lock of the loader is held, so the visitor may
 * raise an error.
 */
extern void executable_each_function(executable_visitor visitor, void *data);

#pragma GCC visibility push(hidden)

/* ---------------------------------------------------------------- import_table.c */

/* The slots of an object's import table, and the function that each refers to. */

/* An imported function. It may have one slot for calls through the PLT, and one for its address. */
typedef struct import_slots
{
	void	  **slot[2];			/* the slots, terminated by NULL if fewer */
	size_t		symbol;				/* in the object's table */
} import_slots;

/* Selects imports. Returns where to store the slots, or NULL. */
typedef import_slots *(*import_wanted) (const char *name, void *data);

/* Find the slots of all selected imports. */
extern void import_table_scan(const executable *exe, import_wanted wanted, void *data);

/*
 * The function that an import refers to. If the loader has not bound it yet (lazy binding), this is the
 * function that it would bind; nothing is changed. NULL, with a reason, if that is unknown.
 */
extern void *import_function(const executable *exe, const import_slots *import,
							 const char **reason);

#pragma GCC visibility pop

#endif							/* PG_TALLY_EXECUTABLE_H */
