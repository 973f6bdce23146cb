/* SPDX-License-Identifier: PostgreSQL */
/*
 * executable.c
 *	  Reading the running executable's dynamic section (ELF specification, gABI chapter 5;
 *	  DT_GNU_HASH as the GNU linker writes it).
 *
 * The dynamic loader's own calls would do, but dladdr1, the only way to a function's size,
 * looks at every one of the server's 10,000 exports (0.1 ms of a session's start).
 */
#include "postgres.h"

#include <elf.h>
#include <string.h>
#include <unistd.h>

#include "executable.h"

/* Fill in what the program headers and the dynamic section of one object say. */
static void
read_object(const struct dl_phdr_info *info, executable *exe)
{
	const ElfW(Dyn) *dyn = NULL;
	size_t		jump_bytes = 0;
	size_t		rela_bytes = 0;
	size_t		relative = 0;
	bool		rela_type = true;
	long		page = sysconf(_SC_PAGESIZE);

	exe->base = info->dlpi_addr;
	exe->path = info->dlpi_name;
	exe->low = UINTPTR_MAX;
	for (int i = 0; i < info->dlpi_phnum; i++)
	{
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_LOAD)
		{
			exe->low = Min(exe->low, exe->base + ph->p_vaddr);
			exe->high = Max(exe->high, exe->base + ph->p_vaddr + ph->p_memsz);
		}
		else if (ph->p_type == PT_DYNAMIC)
			dyn = (const ElfW(Dyn) *) (exe->base + ph->p_vaddr);
		else if (ph->p_type == PT_GNU_RELRO)
		{
			exe->relro_start = (exe->base + ph->p_vaddr) & ~(uintptr_t) (page - 1);
			exe->relro_end = (exe->base + ph->p_vaddr + ph->p_memsz) & ~(uintptr_t) (page - 1);
		}
	}
	for (; dyn != NULL && dyn->d_tag != DT_NULL; dyn++)
	{
		switch (dyn->d_tag)
		{
			case DT_SYMTAB:
				exe->symbols = (const void *) dyn->d_un.d_ptr;
				break;
			case DT_STRTAB:
				exe->strings = (const void *) dyn->d_un.d_ptr;
				break;
			case DT_GNU_HASH:
				exe->gnu_hash = (const void *) dyn->d_un.d_ptr;
				break;
			case DT_JMPREL:
				exe->jump = (const void *) dyn->d_un.d_ptr;
				break;
			case DT_PLTRELSZ:
				jump_bytes = dyn->d_un.d_val;
				break;
			case DT_PLTREL:
				rela_type = dyn->d_un.d_val == DT_RELA;
				break;
			case DT_RELA:
				exe->rela = (const void *) dyn->d_un.d_ptr;
				break;
			case DT_RELASZ:
				rela_bytes = dyn->d_un.d_val;
				break;
			case DT_RELACOUNT:
				relative = dyn->d_un.d_val;
				break;
			default:
				break;
		}
	}
	if (exe->symbols == NULL || exe->strings == NULL || !rela_type)
		return;
	exe->jumps = exe->jump != NULL ? jump_bytes / sizeof(ElfW(Rela)) : 0;
	exe->relas = exe->rela != NULL ? rela_bytes / sizeof(ElfW(Rela)) : 0;
	/* The linker sorts relative relocations to the front; they name no symbol. */
	relative = Min(relative, exe->relas);
	exe->rela += relative;
	exe->relas -= relative;
	exe->found = true;
}

static int
find_executable(struct dl_phdr_info *info, size_t size, void *data)
{
	read_object(info, data);
	return 1;						/* the first object is the executable: stop */
}

const executable *
executable_self(void)
{
	static executable self;

	if (!self.found)
		dl_iterate_phdr(find_executable, &self);
	return &self;
}

/* DT_GNU_HASH, as the GNU linker writes it. */
typedef struct hash_table
{
	uint32		bucket_count;
	uint32		first;				/* index of the first symbol that is hashed */
	const uint32 *buckets;
	const uint32 *chain;
} hash_table;

static bool
read_hash_table(const executable *exe, hash_table *table)
{
	if (!exe->found || exe->gnu_hash == NULL || exe->gnu_hash[0] == 0)
		return false;
	table->bucket_count = exe->gnu_hash[0];
	table->first = exe->gnu_hash[1];
	table->buckets = exe->gnu_hash + 4 +
		exe->gnu_hash[2] * (sizeof(ElfW(Addr)) / sizeof(uint32));
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
	uint32		hash = 5381;
	uint32		index;

	if (!read_hash_table(exe, &table))
		return NULL;
	for (const char *c = name; *c; c++)
		hash = hash * 33 + (uint8) *c;
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

typedef struct walk
{
	executable_visitor visitor;
	void	   *data;
	uintptr_t	own;				/* an address within this module */
	bool		done;
} walk;

/* The hash table holds every exported symbol, in chains: one to a bucket. */
static bool
walk_functions(const executable *exe, walk *w)
{
	hash_table	table;

	if (!read_hash_table(exe, &table))
		return false;
	for (uint32 b = 0; b < table.bucket_count; b++)
	{
		uint32		index = table.buckets[b];

		if (index < table.first)
			continue;
		do
		{
			const ElfW(Sym) *symbol = &exe->symbols[index];

			if (is_function(symbol) &&
				w->visitor(exe, symbol, exe->strings + symbol->st_name, w->data))
				return true;
		} while ((table.chain[index++ - table.first] & 1) == 0);
	}
	return false;
}

static int
walk_object(struct dl_phdr_info *info, size_t size, void *data)
{
	walk	   *w = data;
	executable	exe = {0};
	const char *file = strrchr(info->dlpi_name, '/');

	file = file != NULL ? file + 1 : info->dlpi_name;
	/* libc, libm, libpthread, the loader, and what the kernel provides */
	if (strncmp(file, "libc.so", 7) == 0 || strncmp(file, "libm.so", 7) == 0 ||
		strncmp(file, "libpthread.so", 13) == 0 || strncmp(file, "ld-", 3) == 0 ||
		strncmp(file, "linux-vdso", 10) == 0 || strncmp(file, "libZydis", 8) == 0)
		return 0;
	read_object(info, &exe);
	if (w->own >= exe.low && w->own < exe.high)
		return 0;
	w->done = walk_functions(&exe, w);
	return w->done;
}

void
executable_each_function(executable_visitor visitor, void *data)
{
	walk		w = {visitor, data, (uintptr_t) executable_each_function, false};

	dl_iterate_phdr(walk_object, &w);
}
