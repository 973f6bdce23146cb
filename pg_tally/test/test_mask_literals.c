/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_mask_literals.c
 *	  No constant is left of a query, and all else is.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "mask_literals.h"

static const struct
{
	const char *query;
	const char *masked;
	bool		escapes;
}			cases[] = {
	{"select count(*) from t where a = 'secret'", "select count(*) from t where a = ?"},
	{"select 'it''s', 'x'", "select ?, ?"},
	{"select E'a\\'b', 'c\\', 5", "select ?, ?, ?"},
	{"select 'a\\'b', 5", "select ?, ?", true},
	{"select b'01', X'ff', n'n', U&'d\\0061t', u&'x'", "select ?, ?, ?, ?, ?"},
	{"select E'a'\n'\\'s secret', 1", "select ?, ?"},
	{"select E'a' -- b's\n \t'\\'s secret'\r'\\'s' from t", "select ? from t"},
	{"select E'a' 'b\\', secret", "select ? ?, secret"},
	{"select E'a' -- b", "select ? -- b"},
	{"select E'a'\n", "select ?\n"},
	{"select 'a'\n'\\'s secret', 1", "select ?, ?", true},
	{"select b'\\', 'secret', X'\\', 'secret'", "select ?, ?, ?, ?", true},
	{"select 1$a$my secret$a$, 1$$x y$$", "select ??, ??"},
	{"select true'x'", "select true?"},
	{"select $$a'b$$, $q$ $$ $q$, $1, a$b$c", "select ?, ?, $1, a$b$c"},
	{"select $tag$ never closed", "select ?"},
	{"select 'never closed, 5", "select ?"},
	{"select 1, 1.5e-3, .5, 0x1F, 1_000, 1e+10, t1.c2, a1", "select ?, ?, ?, ?, ?, ?, t1.c2, a1"},
	{"select 1-1, 1 -1, 0xe-1", "select ?-?, ? -?, ?-?"},
	{"select x -- 'kept' 5\n, 'y'", "select x -- 'kept' 5\n, ?"},
	{"select /* 'a' /* 5 */ 'b' */ 'c'", "select /* 'a' /* 5 */ 'b' */ ?"},
	{"select /* never closed 'x'", "select /* never closed 'x'"},
	{"select \"it's 5\", \"a\"\"'b\" from \"t\"", "select \"it's 5\", \"a\"\"'b\" from \"t\""},
	{"create role r password 'p'; alter role r password $x$p$x$", "create role r password ?; alter role r password ?"},
	{"select 'a'\n 'b'", "select ?\n ?"},
	{"select \xc3\xa4" "1, '\xc3\xa4'", "select \xc3\xa4" "1, ?"},
	{"", ""},
	{"'", "?"},
	{"$", "$"},
	{"e", "e"},
};

static void
constants_are_masked(void **state)
{
	char		text[200];

	(void) state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		uint32_t	length = mask_literals(cases[i].query, (uint32_t) strlen(cases[i].query), cases[i].escapes, text,
										   sizeof(text) - 1);

		text[length] = '\0';
		assert_string_equal(text, cases[i].masked);
	}
}

/* Whatever it is given, in memory of exactly that size: it reads and writes nothing beyond, and cuts as the whole begins. */
static void
nothing_beyond_is_read_or_written(void **state)
{
	static const char letters[] = "'\"$e-/*\\1.a \n";
	uint32_t	seed = 20261129;

	(void) state;
	for (int round = 0; round < 200000; round++)
	{
		uint32_t	length = (uint32_t) round % 13;
		char	   *query = malloc(length + 1);
		char		whole[64];
		char		cut[8];
		uint32_t	all;
		uint32_t	some;

		for (uint32_t i = 0; i < length; i++)
		{
			seed = seed * 1664525 + 1013904223;
			query[i] = letters[(seed >> 16) % (sizeof(letters) - 1)];
		}
		query = realloc(query, length > 0 ? length : 1);
		all = mask_literals(query, length, (round & 1) != 0, whole, sizeof(whole));
		some = mask_literals(query, length, (round & 1) != 0, cut, 5);
		assert_true(all <= length + 1 && some <= 5 && some == (all < 5 ? all : 5));
		assert_memory_equal(whole, cut, some);
		free(query);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(constants_are_masked),
		cmocka_unit_test(nothing_beyond_is_read_or_written),
	};

	return cmocka_run_group_tests_name("mask_literals", tests, NULL, NULL);
}
