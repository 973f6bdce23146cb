/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_import_table.c
 *	  Tests which function a slot of the import table refers to, and that a probe stays in the slot.
 *
 * The loader is the witness: import_function must return in advance what the loader binds when the
 * function is called. This program is built to be bound lazily, immediately, and at a fixed address, where
 * a function's address is that of an entry in its own table.
 */
#include "postgres.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "helper.h"
#include "detour/executable.h"

typedef struct function
{
	const char *name;
	int			(*call) (void);		/* through the table */
	int			gives;
	import_slots at;
} function;

static int
call_plain(void)
{
	return helper_plain();
}

static int
call_chosen(void)
{
	return helper_chosen();
}

static int
call_compared(void)
{
	return helper_compared();
}

static int
call_versioned(void)
{
	return helper_versioned();
}

static function functions[] = {
	{"helper_plain", call_plain, 10},
	{"helper_chosen", call_chosen, 20},
	{"helper_compared", call_compared, 40},
	{"helper_versioned", call_versioned, 1},
};

/* Its address taken by an instruction: at a fixed address this is an entry of our own. */
static int	(*volatile compared) (void);

static import_slots *
wanted(const char *name, void *data)
{
	for (int i = 0; i < lengthof(functions); i++)
		if (strcmp(functions[i].name, name) == 0)
			return &functions[i].at;
	return NULL;
}

static bool
is_ours(const void *address)
{
	const executable *exe = executable_self();

	return (uintptr_t) address >= exe->low && (uintptr_t) address < exe->high;
}

static int	(*real) (void);
static int	probed = 0;

static int
probe(void)
{
	probed++;
	return real();
}

static void
slots_lead_to_what_the_loader_binds(void **state)
{
	const executable *exe = executable_self();
	bool		stays = getenv("LD_BIND_NOT") != NULL;

	assert_true(exe->found);
	import_table_scan(exe, wanted, NULL);
	for (int i = 0; i < lengthof(functions); i++)
	{
		function   *f = &functions[i];
		const char *reason = NULL;
		void	   *found;

		assert_non_null(f->at.slot[0]);
		found = import_function(exe, &f->at, &reason);
		assert_null(reason);
		assert_non_null(found);
		assert_false(is_ours(found));
		assert_int_equal(((int (*) (void)) found) (), f->gives);

		/* Now the loader's word. */
		assert_int_equal(f->call(), f->gives);
		if (!stays)
			assert_ptr_equal(*f->at.slot[0], found);
		assert_ptr_equal(import_function(exe, &f->at, &reason), found);
	}
	compared = helper_compared;
	assert_int_equal(compared(), 40);
}

/* An unbound slot is taken over, and called twice. */
static void
a_probe_stays_in_its_slot(void **state)
{
	const executable *exe = executable_self();

	import_table_scan(exe, wanted, NULL);
	if (exe->relro_end > exe->relro_start)
		assert_int_equal(mprotect((void *) exe->relro_start, exe->relro_end - exe->relro_start,
								  PROT_READ | PROT_WRITE), 0);
	for (int i = 0; i < lengthof(functions); i++)
	{
		function   *f = &functions[i];
		const char *reason = NULL;

		*(void **) &real = import_function(exe, &f->at, &reason);
		for (int s = 0; s < lengthof(f->at.slot) && f->at.slot[s] != NULL; s++)
			*f->at.slot[s] = (void *) probe;
		probed = 0;
		for (int n = 1; n <= 3; n++)
		{
			assert_int_equal(f->call(), f->gives);
			assert_int_equal(probed, n);
			assert_ptr_equal(*f->at.slot[0], (void *) probe);
		}
	}
}

/* It is reported rather than guessed. */
static void
functions_that_the_loader_would_not_find_are_refused(void **state)
{
	const executable *exe = executable_self();
	executable	other = *exe;
	char		strings[64] = "no_such_function";
	ElfW(Sym)	symbol = {.st_name = 0, .st_shndx = SHN_UNDEF};
	void	   *slot = (void *) exe->low;	/* within us: not bound */
	import_slots import = {{&slot}, 0};
	const char *reason = NULL;

	other.strings = strings;
	other.symbols = &symbol;
	other.versions = NULL;
	assert_null(import_function(&other, &import, &reason));
	assert_non_null(reason);
	slot = NULL;
	reason = NULL;
	assert_null(import_function(&other, &import, &reason));
	assert_non_null(reason);
}

int
main(void)
{
	const struct CMUnitTest probes[] = {
		cmocka_unit_test(a_probe_stays_in_its_slot),
	};
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(slots_lead_to_what_the_loader_binds),
		cmocka_unit_test(functions_that_the_loader_would_not_find_are_refused),
	};
	int			status;

	/* Each begins with slots that have not been bound. */
	if (fork() == 0)
		_exit(cmocka_run_group_tests(probes, NULL, NULL));
	if (wait(&status) < 0 || status != 0)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
