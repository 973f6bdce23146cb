/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_executable.c
 *	  Reads dynamic sections with relocated and unrelocated addresses, without holding the loader's lock.
 */
#include "postgres.h"

#include <dlfcn.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "detour/executable.h"
#include "helper.h"

/* ---------------------------------------------------------------- the loader, watched */

static int	walking = 0;			/* within dl_iterate_phdr, which holds a lock */

typedef int (*phdr_callback) (struct dl_phdr_info *info, size_t size, void *data);

/* Instead of the C library's. */
PGDLLEXPORT int
dl_iterate_phdr(phdr_callback callback, void *data)
{
	int			(*real) (phdr_callback, void *);
	int			result;

	*(void **) &real = dlsym(RTLD_NEXT, "dl_iterate_phdr");
	walking++;
	result = real(callback, data);
	walking--;
	return result;
}

static int	visits;

static bool
visit(const executable *module, const ElfW(Sym) *symbol, const char *name, void *data)
{
	assert_int_equal(walking, 0);
	visits++;
	return false;
}

static jmp_buf way_out;

static bool
visit_and_leave(const executable *module, const ElfW(Sym) *symbol, const char *name, void *data)
{
	longjmp(way_out, 1);
}

/* An error raised by a visitor must not leave the loader's lock held. */
static void
functions_are_visited_without_the_loaders_lock(void **state)
{
	executable_each_function(visit, NULL);
	assert_true(visits > 5);
	if (setjmp(way_out) == 0)
		executable_each_function(visit_and_leave, NULL);
	assert_int_equal(walking, 0);
	visits = 0;
	executable_each_function(visit, NULL);
	assert_true(visits > 5);
}

/* ---------------------------------------------------------------- made-up objects */

typedef struct made
{
	struct dl_phdr_info info;
	ElfW(Phdr)	headers[32];
	ElfW(Dyn)	section[64];
} made;

static bool
is_address(ElfW(Sxword) tag)
{
	switch (tag)
	{
		case DT_SYMTAB:
		case DT_STRTAB:
		case DT_GNU_HASH:
		case DT_JMPREL:
		case DT_RELA:
		case DT_VERSYM:
		case DT_VERNEED:
			return true;
		default:
			return false;
	}
}

/* This executable, with a dynamic section that we may change. */
static int
copy_first(struct dl_phdr_info *info, size_t size, void *data)
{
	made	   *m = data;

	m->info = *info;
	m->info.dlpi_phdr = m->headers;
	assert_true(info->dlpi_phnum <= lengthof(m->headers));
	for (int i = 0; i < info->dlpi_phnum; i++)
	{
		m->headers[i] = info->dlpi_phdr[i];
		if (info->dlpi_phdr[i].p_type != PT_DYNAMIC)
			continue;
		assert_true(info->dlpi_phdr[i].p_memsz <= sizeof(m->section));
		memcpy(m->section, (void *) (info->dlpi_addr + info->dlpi_phdr[i].p_vaddr),
			   info->dlpi_phdr[i].p_memsz);
		m->headers[i].p_vaddr = (uintptr_t) m->section - info->dlpi_addr;
	}
	return 1;
}

static void
assert_same(const executable *a, const executable *b)
{
	assert_true(a->found && b->found);
	assert_ptr_equal(a->symbols, b->symbols);
	assert_ptr_equal(a->strings, b->strings);
	assert_ptr_equal(a->gnu_hash, b->gnu_hash);
	assert_ptr_equal(a->jump, b->jump);
	assert_ptr_equal(a->rela, b->rela);
	assert_ptr_equal(a->versions, b->versions);
	assert_ptr_equal(a->needed, b->needed);
	assert_int_equal(a->jumps, b->jumps);
	assert_int_equal(a->relas, b->relas);
}

/* musl relocates no dynamic section, glibc none that is read-only. */
static void
addresses_may_be_relocated_or_not(void **state)
{
	const executable *self = executable_self();
	made		m = {0};
	executable	exe = {0};
	int			relocated = 0;

	dl_iterate_phdr(copy_first, &m);
	executable_read(&m.info, &exe);
	assert_same(self, &exe);
	assert_true(exe.base != 0);
	assert_string_equal(self->path, "");
	for (ElfW(Dyn) *dyn = m.section; dyn->d_tag != DT_NULL; dyn++)
		if (is_address(dyn->d_tag) && dyn->d_un.d_ptr >= exe.base)
		{
			dyn->d_un.d_ptr -= exe.base;
			relocated++;
		}
#ifdef __GLIBC__
	/* Here, it adds the base address to most of them. */
	assert_true(relocated >= 6);
#else
	assert_int_equal(relocated, 0);
#endif
	exe = (executable) {0};
	executable_read(&m.info, &exe);
	assert_same(self, &exe);
}

/* An object whose tables are elsewhere is left alone. */
static void
addresses_out_of_the_object_are_refused(void **state)
{
	const ElfW(Sxword) needed[] = {DT_SYMTAB, DT_STRTAB};

	for (int i = 0; i < lengthof(needed); i++)
	{
		made		m = {0};
		executable	exe = {0};

		dl_iterate_phdr(copy_first, &m);
		for (ElfW(Dyn) *dyn = m.section; dyn->d_tag != DT_NULL; dyn++)
			if (dyn->d_tag == needed[i])
				dyn->d_un.d_ptr = executable_self()->high + 4096;
		executable_read(&m.info, &exe);
		assert_false(exe.found);
	}
}

static void
an_imports_version_is_the_one_that_was_linked(void **state)
{
	const executable *self = executable_self();
	int			found = 0;

#ifdef __GLIBC__
	assert_int_equal(helper_versioned(), 1);
#else
	/* musl reads no versions, but the linker writes them. */
	assert_true(helper_versioned() > 0);
#endif
	for (size_t i = 0; i < self->jumps; i++)
	{
		size_t		index = ELF64_R_SYM(self->jump[i].r_info);

		if (strcmp(self->strings + self->symbols[index].st_name, "helper_versioned") == 0)
		{
			assert_string_equal(executable_import_version(self, index), "HELPER_1");
			found++;
		}
	}
	assert_int_equal(found, 1);
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_may_be_relocated_or_not),
		cmocka_unit_test(addresses_out_of_the_object_are_refused),
		cmocka_unit_test(an_imports_version_is_the_one_that_was_linked),
		cmocka_unit_test(functions_are_visited_without_the_loaders_lock),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
