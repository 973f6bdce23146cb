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

static int
find_executable(struct dl_phdr_info *info, size_t size, void *data)
{
	executable *exe = data;
	const ElfW(Dyn) *dyn = NULL;
	size_t		jump_bytes = 0;
	size_t		rela_bytes = 0;
	size_t		relative = 0;
	bool		rela_type = true;
	long		page = sysconf(_SC_PAGESIZE);

	exe->base = info->dlpi_addr;
	for (int i = 0; i < info->dlpi_phnum; i++)
	{
		const ElfW(Phdr) *ph = &info->dlpi_phdr[i];

		if (ph->p_type == PT_DYNAMIC)
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
		return 1;
	exe->jumps = exe->jump != NULL ? jump_bytes / sizeof(ElfW(Rela)) : 0;
	exe->relas = exe->rela != NULL ? rela_bytes / sizeof(ElfW(Rela)) : 0;
	/* The linker sorts relative relocations to the front; they name no symbol. */
	relative = Min(relative, exe->relas);
	exe->rela += relative;
	exe->relas -= relative;
	exe->found = true;
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

const ElfW(Sym) *
executable_function(const char *name)
{
	const executable *exe = executable_self();
	uint32		hash = 5381;
	uint32		bucket_count;
	uint32		first;
	uint32		bloom_words;
	const uint32 *buckets;
	const uint32 *chain;
	uint32		index;

	if (!exe->found || exe->gnu_hash == NULL)
		return NULL;
	for (const char *c = name; *c; c++)
		hash = hash * 33 + (uint8) *c;
	bucket_count = exe->gnu_hash[0];
	first = exe->gnu_hash[1];
	bloom_words = exe->gnu_hash[2];
	buckets = exe->gnu_hash + 4 + bloom_words * (sizeof(ElfW(Addr)) / sizeof(uint32));
	chain = buckets + bucket_count;
	index = bucket_count > 0 ? buckets[hash % bucket_count] : 0;
	if (index < first)
		return NULL;
	for (;; index++)
	{
		const ElfW(Sym) *symbol = &exe->symbols[index];

		/* The lowest bit of a hash in the chain marks its end. */
		if ((chain[index - first] | 1) == (hash | 1) &&
			ELF64_ST_TYPE(symbol->st_info) == STT_FUNC && symbol->st_shndx != SHN_UNDEF &&
			strcmp(exe->strings + symbol->st_name, name) == 0)
			return symbol;
		if (chain[index - first] & 1)
			return NULL;
	}
}
