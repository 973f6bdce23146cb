/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_glob.c
 *	  Globs match as fnmatch(3) does, and globs that would take fnmatch forever are fast.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <fnmatch.h>

#include <cmocka.h>

#include "function/glob.h"

/* xorshift: the same numbers each time */
static uint32_t state = 20250101;

static uint32_t
next_number(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % below;
}

static void
fill(char *text, const char *letters, uint32_t most)
{
	uint32_t	length = next_number(most + 1);

	for (uint32_t i = 0; i < length; i++)
		text[i] = letters[next_number((uint32_t) strlen(letters))];
	text[length] = '\0';
}

static void
globs_match_as_in_the_c_library(void **unused)
{
	static const char *const pieces[] = {"*", "?", "a", "b", "_", "[ab]", "[!a]", "[^_b]", "[a-b]", "[]a]", "\\*", "\\a", "["};
	int			matched = 0;

	for (int i = 0; i < 200000; i++)
	{
		char		glob[64] = "";
		char		name[12];

		for (uint32_t n = next_number(6); n > 0; n--)
			strcat(glob, pieces[next_number(sizeof(pieces) / sizeof(pieces[0]))]);
		fill(name, "ab_*", 8);
		if (glob_matches(glob, name) != (fnmatch(glob, name, 0) == 0))
			fail_msg("glob \"%s\", name \"%s\"", glob, name);
		matched += glob_matches(glob, name);
	}
	assert_true(matched > 10000);
	assert_true(glob_is("heap_*") && glob_is("?") && glob_is("[a]") && !glob_is("heap_insert"));
}

/* fnmatch would try every way to divide the name among the stars. */
static void
many_stars_take_no_longer(void **unused)
{
	char		glob[GLOB_MAX + 1] = "";
	char		name[256];

	while (strlen(glob) + 6 < GLOB_MAX)
		strcat(glob, "*[a-z]");
	strcat(glob, "X");
	memset(name, 'e', sizeof(name) - 1);
	name[sizeof(name) - 1] = '\0';
	assert_false(glob_matches(glob, name));
	name[sizeof(name) - 2] = 'X';
	assert_true(glob_matches(glob, name));
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(globs_match_as_in_the_c_library),
		cmocka_unit_test(many_stars_take_no_longer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
