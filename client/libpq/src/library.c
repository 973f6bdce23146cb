/* SPDX-License-Identifier: PostgreSQL */
/*
 * library.c
 *	  Finds the libpq that a caller would have called without this library.
 *
 * A libpq that was loaded with the program, or globally (RTLD_GLOBAL), is the next one in the loader's order, for all
 * callers. Python modules and the like load a libpq that nobody else sees (RTLD_LOCAL), possibly several in one process;
 * dlsym(RTLD_NEXT) does not find these. So we look up the caller's object, and libpq among its dependencies. A caller
 * without such a dependency was reached by a tail call from a module; then the libpq found first is used. A callback of
 * libpq, such as a notice receiver, that ends with a call of libpq looks like libpq itself, so that call is not counted.
 *
 * libpq is never unloaded, because we keep the addresses of its functions.
 *
 * Concurrency contract: entries are added and never change. A signal handler may add one, so there is no lock, and two
 * threads may add the same object twice. None of our locks is held while the loader's functions are called.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dlfcn.h>
#include <errno.h>
#include <limits.h>
#include <link.h>
#include <string.h>

#include <libpq-fe.h>

#include "libtally_pq.h"

#define LIBRARIES 8
#define CALLERS 64
/* A function that every version of libpq has. */
#define KNOWN_BY "PQexec"

typedef struct entry
{
	pq_caller	caller;
	bool		ready;				/* stored last */
} entry;

static entry callers[CALLERS];
static uint32_t caller_count;		/* reserved */
static struct
{
	pq_library	library;
	pq_caller	anyone;				/* stands for callers that are not in the table */
	bool		ready;				/* stored last */
}			libraries[LIBRARIES];
static uint32_t library_count;		/* reserved */

static void (*on_found) (const pq_library *library);	/* pq_library_look */

static const pq_caller *
known_caller(uintptr_t address)
{
	for (uint32_t i = 0; i < CALLERS; i++)
	{
		if (!__atomic_load_n(&callers[i].ready, __ATOMIC_ACQUIRE))
			continue;
		if (address - callers[i].caller.low < callers[i].caller.size)
			return &callers[i].caller;
	}
	return NULL;
}

/* The first libpq found, or the one that contains this address; -1 if there is none. */
static int
known_library(uintptr_t address)
{
	for (int i = 0; i < LIBRARIES; i++)
		if (__atomic_load_n(&libraries[i].ready, __ATOMIC_ACQUIRE) &&
			(address == 0 || (address >= libraries[i].library.low && address < libraries[i].library.high)))
			return i;
	return -1;
}

/* A loaded object. */
typedef struct object
{
	uintptr_t	address;			/* input: an address within it */
	uintptr_t	low;				/* 0: not found */
	uintptr_t	high;
	char		path[PATH_MAX];		/* empty: the program itself */
} object;

static int
is_object_at(struct dl_phdr_info *info, size_t size, void *data)
{
	object	   *found = data;
	uintptr_t	low = UINTPTR_MAX;
	uintptr_t	high = 0;

	for (int i = 0; i < info->dlpi_phnum; i++)
	{
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type != PT_LOAD)
			continue;
		if (info->dlpi_addr + ph->p_vaddr < low)
			low = info->dlpi_addr + ph->p_vaddr;
		if (info->dlpi_addr + ph->p_vaddr + ph->p_memsz > high)
			high = info->dlpi_addr + ph->p_vaddr + ph->p_memsz;
	}
	if (found->address < low || found->address >= high || strlen(info->dlpi_name) >= sizeof(found->path))
		return 0;
	found->low = low;
	found->high = high;
	strcpy(found->path, info->dlpi_name);
	return 1;
}

/* The function in this object and its dependencies. NULL for the program itself, whose libpq is the loader's next. */
static void *
find_from(const char *path, const char *name)
{
	void	   *handle = path[0] == '\0' ? NULL : dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	void	   *found;

	if (handle == NULL)
		return NULL;
	found = dlsym(handle, name);
	dlclose(handle);
	return found;
}

/* The path of the n-th object. */
typedef struct nth
{
	int			skip;
	char		path[PATH_MAX];
} nth;

static int
is_nth_object(struct dl_phdr_info *info, size_t size, void *data)
{
	nth		   *wanted = data;

	if (wanted->skip-- > 0)
		return 0;
	wanted->path[0] = '\0';
	if (strlen(info->dlpi_name) < sizeof(wanted->path))
		strcpy(wanted->path, info->dlpi_name);
	return 1;
}

/* The function in any object. */
static void *
find_anywhere(const char *name)
{
	void	   *found = NULL;
	nth			one;

	for (int i = 0; found == NULL; i++)
	{
		one.skip = i;
		if (dl_iterate_phdr(is_nth_object, &one) == 0)
			break;
		found = find_from(one.path, name);
		if (found == (void *) PQexec)
			found = NULL;
	}
	return found;
}

/* The libpq with this PQexec, whether it is the loader's next one or not; -1 if it cannot be kept loaded. */
static int
add_library(void *known, bool is_next)
{
	int			there = known_library((uintptr_t) known);
	object		of = {.address = (uintptr_t) known};
	pq_library *added;
	void	   *handle;
	uint32_t	index;
	void		(*found) (const pq_library *library);

	if (there >= 0)
		return there;
	dl_iterate_phdr(is_object_at, &of);
	if (of.low == 0)
		return -1;
	handle = dlopen(of.path[0] == '\0' ? NULL : of.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_NODELETE);
	index = handle == NULL ? LIBRARIES : __atomic_fetch_add(&library_count, 1, __ATOMIC_RELAXED);
	if (index >= LIBRARIES)
		return -1;
	added = &libraries[index].library;
	added->low = of.low;
	added->high = of.high;
	/* another preloaded library may define some of the functions, so the loader's order is followed for each */
	for (int i = 0; i < PUBLIC_FUNCTIONS; i++)
		added->real[i] = dlsym(is_next ? RTLD_NEXT : handle, pq_function_names[i]);
	added->result_status = (int (*) (const void *)) dlsym(is_next ? RTLD_NEXT : handle, "PQresultStatus");
	added->version = (int (*) (void)) dlsym(is_next ? RTLD_NEXT : handle, "PQlibVersion");
	libraries[index].anyone.library = added;
	__atomic_store_n(&libraries[index].ready, true, __ATOMIC_RELEASE);
	found = __atomic_load_n(&on_found, __ATOMIC_ACQUIRE);
	if (found != NULL)
		found(added);
	return (int) index;
}

/* The libpq for calls from this object. */
static int
find_library(const object *of)
{
	void	   *next = dlsym(RTLD_NEXT, KNOWN_BY);
	void	   *known = next;
	int			library;

	if (known == NULL && of->low != 0)
		known = find_from(of->path, KNOWN_BY);
	library = known == NULL ? known_library(0) : add_library(known, known == next);
	if (library < 0 && (known = find_anywhere(KNOWN_BY)) != NULL)
		library = add_library(known, false);
	return library;
}

static const pq_caller *
add_caller(uintptr_t address)
{
	object		of = {.address = address};
	int			library;
	uint32_t	index = CALLERS;

	dl_iterate_phdr(is_object_at, &of);
	library = find_library(&of);
	if (library < 0)
		return NULL;
	if (of.low != 0)
		index = __atomic_fetch_add(&caller_count, 1, __ATOMIC_RELAXED);
	if (index >= CALLERS)
		return &libraries[library].anyone;
	callers[index].caller = (pq_caller) {
		.low = of.low,
		.size = of.high - of.low,
		.library = &libraries[library].library,
		.inside = of.low == libraries[library].library.low,
	};
	__atomic_store_n(&callers[index].ready, true, __ATOMIC_RELEASE);
	return &callers[index].caller;
}

const pq_caller *
pq_caller_of(uintptr_t address)
{
	const pq_caller *caller = known_caller(address);
	int			saved = errno;

	if (caller != NULL)
		return caller;
	caller = add_caller(address);
	dlerror();					/* clear the error, so that the program's next call does not see ours */
	errno = saved;
	return caller;
}

void
pq_library_look(void (*found) (const pq_library *library))
{
	void	   *known = dlsym(RTLD_NEXT, KNOWN_BY);

	__atomic_store_n(&on_found, found, __ATOMIC_RELEASE);
	/* libraries that a constructor has called before ours ran */
	for (int i = 0; i < LIBRARIES; i++)
		if (__atomic_load_n(&libraries[i].ready, __ATOMIC_ACQUIRE))
			found(&libraries[i].library);
	if (known != NULL)
		add_library(known, true);
	dlerror();
}
