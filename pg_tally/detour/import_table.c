/* SPDX-License-Identifier: PostgreSQL */
/*
 * import_table.c
 *	  The slots of the executable's import table, and the function that each refers to.
 *
 * An executable that is not linked with -z now is bound lazily: until the first call, a slot refers to an
 * entry in the executable's own procedure linkage table, which makes the loader write the function's
 * address into the slot. If a probe called this entry, the loader would overwrite the probe. So the
 * function is looked up in advance as the loader does it: by name and version, in the loader's order.
 */

#include <dlfcn.h>
#include <elf.h>

#include "detour/executable.h"

/* Relocation types for function addresses in the table. */
static bool
is_import(ElfW(Xword) info)
{
#if defined(__x86_64__)
	return ELF64_R_TYPE(info) == R_X86_64_JUMP_SLOT || ELF64_R_TYPE(info) == R_X86_64_GLOB_DAT;
#elif defined(__aarch64__)
	return ELF64_R_TYPE(info) == R_AARCH64_JUMP_SLOT || ELF64_R_TYPE(info) == R_AARCH64_GLOB_DAT;
#else
	return false;
#endif
}

static void
scan(const executable *exe, const ElfW(Rela) *rela, size_t count, import_wanted wanted, void *data)
{
	for (size_t i = 0; i < count; i++)
	{
		size_t		index = ELF64_R_SYM(rela[i].r_info);
		const ElfW(Sym) *symbol = &exe->symbols[index];
		void	  **slot = (void **) (exe->base + rela[i].r_offset);
		import_slots *import;

		/* A defined symbol is the executable's own, not an import. */
		if (!is_import(rela[i].r_info) || symbol->st_shndx != SHN_UNDEF)
			continue;
		import = wanted(exe->strings + symbol->st_name, data);
		if (import == NULL)
			continue;
		import->symbol = index;
		for (int s = 0; s < (int) (sizeof(import->slot) / sizeof(import->slot[0])); s++)
			if (import->slot[s] == NULL || import->slot[s] == slot)
			{
				import->slot[s] = slot;
				break;
			}
	}
}

void
import_table_scan(const executable *exe, import_wanted wanted, void *data)
{
	scan(exe, exe->jump, exe->jumps, wanted, data);
	scan(exe, exe->rela, exe->relas, wanted, data);
}

static bool
is_within(const executable *exe, const void *address)
{
	return executable_segment(exe, address, sizeof(void *)) != NULL;
}

/* `handle` is from dlopen, or RTLD_DEFAULT. Resolves functions that are selected at run time (IFUNC). */
static void *
find_symbol(void *handle, const char *name, const char *version)
{
#ifdef __GLIBC__
	if (version != NULL)
		return dlvsym(handle, name, version);
#endif
	return dlsym(handle, name);
}

/* Searches the objects after the executable, one by one. */
static void *
search_objects(const executable *exe, const char *name, const char *version)
{
	int			count;
	const executable *objects = executable_objects(&count);
	void	   *found = NULL;

	for (int i = 1; i < count && found == NULL; i++)
	{
		void	   *handle = dlopen(objects[i].path, RTLD_LAZY | RTLD_NOLOAD);

		if (handle == NULL)
			continue;
		found = find_symbol(handle, name, version);
		/* It may come from a dependency of the object, which the loader searches later. */
		if (found != NULL && !is_within(&objects[i], found))
			found = NULL;
		dlclose(handle);
	}
	return found;
}

/*
 * In an executable at a fixed address, the loader's search may return an entry of the executable's own
 * table, so an address within the executable is not the function.
 */
static void *
resolve(const executable *exe, size_t index)
{
	const char *name = exe->strings + exe->symbols[index].st_name;
	const char *version = executable_import_version(exe, index);
	void	   *found = find_symbol(RTLD_DEFAULT, name, version);

	if (found == NULL || is_within(exe, found))
		found = search_objects(exe, name, version);
	return found;
}

void *
import_function(const executable *exe, const import_slots *import, const char **reason)
{
	void	   *function = *import->slot[0];

	if (function != NULL && is_within(exe, function))
	{
		function = resolve(exe, import->symbol);
		if (function == NULL)
			*reason = "its import slot is not bound yet, and the function was not found";
	}
	else if (function == NULL)
		*reason = "its import slot is not bound";
	return function;
}
