/* SPDX-License-Identifier: PostgreSQL */
/*
 * executable.c
 *	  Reads the running executable's dynamic section (ELF specification, gABI chapter 5; DT_GNU_HASH as the
 *	  GNU linker writes it).
 *
 * The dynamic loader's own calls would suffice, but dladdr1, the only way to get a function's size, checks
 * each of the server's 10,000 exports (0.1 ms of a session's start).
 */

#include <elf.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "detour/executable.h"

/*
 * An address in the dynamic section. In the file, it is relative to the load address. glibc adds the load
 * address if the dynamic section is writable; musl, and glibc otherwise, leave it unchanged. NULL if it is
 * outside the readable part of the object.
 */
static const void *
table_at(const executable *exe, uintptr_t address)
{
	if (address < exe->base)
		address += exe->base;
	return executable_segment(exe, (const void *) address, 1) != NULL ? (const void *) address : NULL;
}

/* The value of a tag in the dynamic section; 0 if the tag is missing. */
static size_t
dynamic_value(const ElfW(Dyn) *dyn, ElfW(Sxword) tag)
{
	for (; dyn != NULL && dyn->d_tag != DT_NULL; dyn++)
		if (dyn->d_tag == tag)
			return dyn->d_un.d_val;
	return 0;
}

static const void *
dynamic_table(const executable *exe, const ElfW(Dyn) *dyn, ElfW(Sxword) tag)
{
	size_t		address = dynamic_value(dyn, tag);

	return address == 0 ? NULL : table_at(exe, address);
}

void
executable_read(const struct dl_phdr_info *info, executable *exe)
{
	const ElfW(Dyn) *dyn = NULL;
	size_t		rela_type;
	size_t		relative;
	long		page = sysconf(_SC_PAGESIZE);

	exe->base = info->dlpi_addr;
	exe->path = info->dlpi_name;
	exe->low = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++)
	{
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD)
		{
			uintptr_t	low = exe->base + ph->p_vaddr;

			if (low < exe->low)
				exe->low = low;
			if (low + ph->p_memsz > exe->high)
				exe->high = low + ph->p_memsz;
			if ((ph->p_flags & PF_R) != 0 && exe->segment_count < EXECUTABLE_SEGMENTS)
				exe->segments[exe->segment_count++] = (loaded_segment) {low, low + ph->p_memsz};
		}
		else if (ph->p_type == PT_DYNAMIC)
			dyn = (const ElfW(Dyn) *) (exe->base + ph->p_vaddr);
		else if (ph->p_type == PT_GNU_RELRO)
		{
			exe->relro_start = (exe->base + ph->p_vaddr) & ~(uintptr_t) (page - 1);
			exe->relro_end = (exe->base + ph->p_vaddr + ph->p_memsz) & ~(uintptr_t) (page - 1);
		}
	}
	exe->symbols = dynamic_table(exe, dyn, DT_SYMTAB);
	exe->strings = dynamic_table(exe, dyn, DT_STRTAB);
	exe->gnu_hash = dynamic_table(exe, dyn, DT_GNU_HASH);
	exe->versions = dynamic_table(exe, dyn, DT_VERSYM);
	exe->needed = dynamic_table(exe, dyn, DT_VERNEED);
	exe->needs = dynamic_value(dyn, DT_VERNEEDNUM);
	exe->jump = dynamic_table(exe, dyn, DT_JMPREL);
	exe->rela = dynamic_table(exe, dyn, DT_RELA);
	rela_type = dynamic_value(dyn, DT_PLTREL);
	if (exe->symbols == NULL || exe->strings == NULL || (rela_type != 0 && rela_type != DT_RELA))
		return;
	exe->jumps = exe->jump != NULL ? dynamic_value(dyn, DT_PLTRELSZ) / sizeof(ElfW(Rela)) : 0;
	exe->relas = exe->rela != NULL ? dynamic_value(dyn, DT_RELASZ) / sizeof(ElfW(Rela)) : 0;
	/* The linker puts relative relocations, which name no symbol, at the front. */
	relative = dynamic_value(dyn, DT_RELACOUNT);
	if (relative > exe->relas)
		relative = exe->relas;
	exe->rela += relative;
	exe->relas -= relative;
	exe->found = true;
}

static int
find_executable(struct dl_phdr_info *info, size_t size, void *data)
{
	executable *self = data;

	executable_read(info, self);
	self->path = "";				/* musl gives the one that the program was started with */
	return 1;						/* the first object is the executable: stop */
}

const executable *
executable_self(void)
{
	static executable self;
	static bool read = false;

	if (!read)
		dl_iterate_phdr(find_executable, &self);
	read = true;
	return &self;
}

const char *
executable_import_version(const executable *exe, size_t symbol)
{
	const char *need = (const char *) exe->needed;
	int			version;

	if (exe->versions == NULL || need == NULL)
		return NULL;
	version = exe->versions[symbol] & 0x7fff;	/* the top bit marks hidden versions */
	for (size_t n = 0; n < exe->needs; n++)
	{
		const ElfW(Verneed) *of_library = (const void *) need;
		const char *aux = need + of_library->vn_aux;

		for (int i = 0; i < of_library->vn_cnt; i++)
		{
			const ElfW(Vernaux) *one = (const void *) aux;

			if ((one->vna_other & 0x7fff) == version)
				return exe->strings + one->vna_name;
			aux += one->vna_next;
		}
		need += of_library->vn_next;
	}
	return NULL;
}

/* ---------------------------------------------------------------- loaded objects */

typedef struct object_list
{
	executable *objects;
	int			count;
	int			capacity;
} object_list;

static int
add_object(struct dl_phdr_info *info, size_t size, void *data)
{
	object_list *list = data;

	if (list->count == list->capacity)
	{
		int			capacity = list->capacity + 64;
		executable *more = realloc(list->objects, (size_t) capacity * sizeof(*more));

		if (more == NULL)
			return 1;
		list->objects = more;
		list->capacity = capacity;
	}
	list->objects[list->count] = (executable) {0};
	executable_read(info, &list->objects[list->count]);
	if (list->count++ == 0)
		list->objects[0].path = "";
	return 0;
}

/*
 * dl_iterate_phdr holds a lock of the loader, which a siglongjmp or fork in the callback would never
 * release. So the callback only collects the objects.
 */
const executable *
executable_objects(int *count)
{
	static object_list list;		/* static, so that an error in the caller does not leak it */

	list.count = 0;
	dl_iterate_phdr(add_object, &list);
	*count = list.count;
	return list.objects;
}

/* ---------------------------------------------------------------- exports */

/* DT_GNU_HASH, as the GNU linker writes it. */
typedef struct hash_table
{
	uint32_t	bucket_count;
	uint32_t	first;				/* index of the first hashed symbol */
	const uint32_t *buckets;
	const uint32_t *chain;
} hash_table;

static bool
read_hash_table(const executable *exe, hash_table *table)
{
	if (!exe->found || exe->gnu_hash == NULL || exe->gnu_hash[0] == 0)
		return false;
	table->bucket_count = exe->gnu_hash[0];
	table->first = exe->gnu_hash[1];
	table->buckets = exe->gnu_hash + 4 +
		exe->gnu_hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32_t));
	table->chain = table->buckets + table->bucket_count;
	return true;
}

static bool
is_function(const ElfW(Sym) *symbol)
{
	return ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF;
}

const ElfW(Sym) *
executable_function(const char *name)
{
	const executable *exe = executable_self();
	hash_table	table;
	uint32_t	hash = 5381;
	uint32_t	index;

	if (!read_hash_table(exe, &table))
		return NULL;
	for (const char *c = name; *c; c++)
		hash = hash * 33 + (unsigned char) *c;
	index = table.buckets[hash % table.bucket_count];
	if (index < table.first)
		return NULL;
	for (;; index++)
	{
		const ElfW(Sym) *symbol = &exe->symbols[index];

		/* The lowest bit of a hash in the chain marks its end. */
		if ((table.chain[index - table.first] | 1) == (hash | 1) && is_function(symbol) &&
			strcmp(exe->strings + symbol->st_name, name) == 0)
			return symbol;
		if (table.chain[index - table.first] & 1)
			return NULL;
	}
}

/* The hash table contains every exported symbol, in one chain per bucket. Returns true to end the walk. */
static bool
walk_functions(const executable *exe, executable_visitor visitor, void *data)
{
	hash_table	table;

	if (!read_hash_table(exe, &table))
		return false;
	for (uint32_t b = 0; b < table.bucket_count; b++)
	{
		uint32_t	index = table.buckets[b];

		if (index < table.first)
			continue;
		do
		{
			const ElfW(Sym) *symbol = &exe->symbols[index];

			if (is_function(symbol) && visitor(exe, symbol, exe->strings + symbol->st_name, data))
				return true;
		} while ((table.chain[index++ - table.first] & 1) == 0);
	}
	return false;
}

/* May functions of this object be probed? */
static bool
is_walked(const executable *exe)
{
	const uintptr_t own = (uintptr_t) executable_each_function;
	const char *file = strrchr(exe->path, '/');

	file = file != NULL ? file + 1 : exe->path;
	/* libc, libm, libpthread, the loader, and the kernel's vDSO */
	if (strncmp(file, "libc.so", 7) == 0 || strncmp(file, "libm.so", 7) == 0 ||
		strncmp(file, "libpthread.so", 13) == 0 || strncmp(file, "ld-", 3) == 0 ||
		strncmp(file, "linux-vdso", 10) == 0 || strncmp(file, "libZydis", 8) == 0)
		return false;
	/* The executable is never "this module", even if a test is linked into it. */
	return exe->path[0] == '\0' || own < exe->low || own >= exe->high;
}

void
executable_each_function(executable_visitor visitor, void *data)
{
	int			count;
	const executable *objects = executable_objects(&count);

	for (int i = 0; i < count; i++)
		if (is_walked(&objects[i]) && walk_functions(&objects[i], visitor, data))
			return;
}
