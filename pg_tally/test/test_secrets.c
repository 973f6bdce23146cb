/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_secrets.c
 *	  Tests what is hidden in texts of statements, and how texts are divided into tokens.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include <cmocka.h>

#include "statement/secrets.h"
#include "base/sql_lexer.h"

/* ---------------------------------------------------------------- tokens */

/* All tokens except white space, each in brackets. */
static void
divide(const char *text, bool backslashes, char *to)
{
	sql_lexer	lexer = {.text = text,.end = (uint32_t) strlen(text),.backslashes = backslashes};
	uint32_t	next = 0;

	*to = '\0';
	for (;;)
	{
		sql_token	token = sql_lexer_next(&lexer);

		assert_int_equal(token.at, next);
		next += token.length;
		if (token.kind == SQL_END)
			break;
		assert_true(token.length > 0);
		if (token.kind != SQL_BLANK)
			to += sprintf(to, "[%.*s]", (int) token.length, text + token.at);
	}
	assert_int_equal(next, strlen(text));
}

static void
texts_are_divided_as_the_server_does_it(void **unused)
{
	static const char *const cases[][2] = {
		{"select 'it''s', \"a\"\"b\"", "[select]['it''s'][,][\"a\"\"b\"]"},
		{"'a'\n  'b' 'c'", "['a'\n  'b']['c']"},
		{"'a' -- no 'string'\n'b'", "['a' -- no 'string'\n'b']"},
		{"'a' /* no continuation */\n'b'", "['a'][/* no continuation */]['b']"},
		{"e'a\\'b' E'\\\\' f", "[e'a\\'b'][E'\\\\'][f]"},
		{"'a\\' b", "['a\\'][b]"},
		{"b'01' x'ff' n'n' U&'\\0041' u&\"d\" uescape '!'", "[b'01'][x'ff'][n'n'][U&'\\0041'][u&\"d\"][uescape]['!']"},
		{"be'x'", "[be]['x']"},
		{"$$a 'b' $c$$ $t$ $$ $t $T$ $t$ $1 a$1$", "[$$a 'b' $c$$][$t$ $$ $t $T$ $t$][$1][a$1$]"},
		{"-- a 'b'\n/* c /* 'd' */ e */ f", "[-- a 'b'][/* c /* 'd' */ e */][f]"},
		{"1 1.5 .5 1. 1e5 1.5E-3 0xFf 1_000 1..2 1e", "[1][1.5][.5][1.][1e5][1.5E-3][0xFf][1_000][1][.][.2][1][e]"},
		{"a=-1 b<>-c d@-e f->>g h:=i j=>k l+--m", "[a][=][-][1][b][<>][-][c][d][@-][e][f][->>][g][h][:][=][i][j][=>][k][l][+][--m]"},
		{"\xc3\xa4'\xc3\xb6'", "[\xc3\xa4]['\xc3\xb6']"},
		/* without an end */
		{"a 'b", "[a]['b]"},
		{"a E'b\\", "[a][E'b\\]"},
		{"a \"b", "[a][\"b]"},
		{"a $x$b$y$", "[a][$x$b$y$]"},
		{"a /* b /* c */", "[a][/* b /* c */]"},
		{"", ""},
	};
	char		seen[400];

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		divide(cases[i][0], false, seen);
		assert_string_equal(seen, cases[i][1]);
	}
	divide("'a\\' b'", true, seen);
	assert_string_equal(seen, "['a\\' b']");
}

/* xorshift: the same numbers each time */
static uint32_t state = 20260101;

static uint32_t
next_number(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % below;
}

/* Pieces of any kind, without sense. */
static void
fill(char *text, int most)
{
	static const char *const pieces[] = {"'", "\"", "\\", "$", "$$", "$a$", "E'", "U&'", "--", "/*", "*/", "\n", " ", "set ", "a.b", "=", "to ", "-", "1", "e", ".", ";", ",", "select ", "\xc3\xa4"};

	*text = '\0';
	for (int n = (int) next_number((uint32_t) most); n > 0; n--)
		strcat(text, pieces[next_number(sizeof(pieces) / sizeof(pieces[0]))]);
}

/* ---------------------------------------------------------------- what is hidden */

static bool
is_shown(const char *name, bool sure)
{
	if (strcasecmp(name, "search_path") == 0 || strcasecmp(name, "work_mem") == 0)
		return true;
	return !sure && strchr(name, '.') == NULL && strcmp(name, "primary_conninfo") != 0;
}

static const char *
hidden(secrets_text from, const char *text)
{
	static char bytes[2000];
	secrets_masked masked = {.bytes = bytes,.size = sizeof(bytes) - 1};

	from.bytes = text;
	from.length = (uint32_t) strlen(text);
	from.is_shown = is_shown;
	secrets_mask(&from, &masked);
	assert_true(masked.length <= masked.size);
	bytes[masked.length] = '\0';
	return bytes;
}

static const char *
message(const char *text, bool backslashes)
{
	static char bytes[2000];
	secrets_masked masked = {.bytes = bytes,.size = sizeof(bytes) - 1};

	secrets_mask_message(text, (uint32_t) strlen(text), backslashes, &masked);
	assert_true(masked.length <= masked.size);
	bytes[masked.length] = '\0';
	return bytes;
}

static void
each_kind_hides_what_it_should(void **unused)
{
	static const struct
	{
		secrets_kind kind;
		const char *text;
		const char *seen;
	}			cases[] = {
		{SECRETS_NONE, "fetch 'a' -- b'c", "fetch 'a' -- b'c"},
		{SECRETS_ALL, "create role a password 'b' valid until E'c\\'d' in role e -- was f", "create role a password $1 valid until $2 in role e /* ... */"},
		{SECRETS_ALL, "alter role a password 'b'\n'c' /* d */", "alter role a password $1 /* ... */"},
		{SECRETS_ALL, "alter role a password $$b$$", "alter role a password $1"},
		{SECRETS_ALL, "alter role a password U&'b!0041' uescape '!'", "alter role a password $1 uescape $2"},
		{SECRETS_ALL, "alter server a options (set password 'b')", "alter server a options (set password $1)"},
		{SECRETS_STRINGS, "/* tally */ create view a as select dblink('b', 5) -- 'c'", "/* tally */ create view a as select dblink($1, 5) /* ... */"},
		/* whether backslashes escape decides where it ends */
		{SECRETS_ALL, "alter role a password 'b\\'' c' createdb", "alter role a password $1"},
		{SECRETS_ALL, "alter role a password E'b\\'c' createdb", "alter role a password $1 createdb"},
		{SECRETS_SETTING, "set app.password = hunter2", "set app.password = $1"},
		{SECRETS_SETTING, "set session app.a to 'b', c, -5, default", "set session app.a to $1, $2, -$3, default"},
		{SECRETS_SETTING, "SET LOCAL \"request.jwt.claims\" TO 'a'", "SET LOCAL \"request.jwt.claims\" TO $1"},
		{SECRETS_SETTING, "set passwrod = a b", "set passwrod = $1 $2"},
		{SECRETS_SETTING, "alter role set in database to_ set primary_conninfo = 'a' -- b", "alter role set in database to_ set primary_conninfo = $1 /* ... */"},
		{SECRETS_SETTING, "alter system set app . \"key\" /* x */ to a;", "alter system set app . \"key\" /* x */ to $1;"},
		{SECRETS_SETTING, "set search_path = a, 'b'", "set search_path = a, 'b'"},
		{SECRETS_SETTING, "set work_mem to '64MB'", "set work_mem to '64MB'"},
		{SECRETS_SETTING, "set time zone 'UTC'", "set time zone 'UTC'"},
		{SECRETS_SETTING, "set transaction isolation level serializable", "set transaction isolation level serializable"},
		{SECRETS_SETTING, "set app.a from current", "set app.a from current"},
		{SECRETS_CODE, "do $x$ begin perform dblink('a'); execute $y$alter role$y$; set a.b = c; end $x$", "do $x$ begin perform dblink($1); execute $2; set a.b = $3; end $x$"},
		{SECRETS_CODE, "do 'begin perform dblink(''a''); end'", "do $1"},
		{SECRETS_CODE, "do $$ a -- b 'c'\n d 'e $$", "do $$ a /* ... */\n d $1$$"},
		{SECRETS_CODE, "create function f(a text default 'b') returns int set a.b = 'c', d as $$ select 'e' $$ language sql", "create function f(a text default $1) returns int set a.b = $2, $3 as $$ select $4 $$ language sql"},
		{SECRETS_CODE, "create function f() begin atomic update t set a = 5, b = 'c'; end", "create function f() begin atomic update t set a = 5, b = $1; end"},
		{SECRETS_CONSTANTS, "select 'a', -1.5 from t where b = $1 and c in (x'ff', 2) -- 'd'", "select $1, -$2 from t where b = $1 and c in ($3, $4) -- 'd'"},
		/* cut off */
		{SECRETS_STRINGS, "create view a as select 'b", "create view a as select $1"},
		{SECRETS_STRINGS, "a \"b", "a $1"},
		{SECRETS_STRINGS, "a /* b", "a /* ... */"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		const secrets_text from = {.kind = cases[i].kind,.numbers = cases[i].kind == SECRETS_CONSTANTS};

		assert_string_equal(hidden(from, cases[i].text), cases[i].seen);
	}
}

static void
constants_of_the_server_are_hidden_too(void **unused)
{
	static const secrets_place places[] = {{7, 0}, {12, 0}, {17, 4, true}};
	const secrets_text from = {.kind = SECRETS_NONE,.places = places,.place_count = 3};
	const secrets_text twice = {.kind = SECRETS_STRINGS,.places = places,.place_count = 3};

	assert_string_equal(hidden(from, "select 'a', - 1, (b,c) 'd'"), "select $1, $2, $3 /*, ... */) 'd'");
	assert_string_equal(hidden(twice, "select 'a', - 1, (b,c) 'd'"), "select $1, $2, $3 /*, ... */) $4");
}

static void
a_text_alone_says_whether_it_is_one_query(void **unused)
{
	static const struct
	{
		const char *text;
		secrets_kind kind;
		bool		backslashes;
	}			cases[] = {
		{"select 1", SECRETS_NONE},
		{"  /* a */ ((SELECT 1) union select 2)", SECRETS_NONE},
		{"with a as (select 1) select ';' ; -- b", SECRETS_NONE},
		{"alter role a password 'b'; select 1", SECRETS_ALL},
		{"select 1; alter role a", SECRETS_ALL},
		{"explain select 1", SECRETS_STRINGS},
		{"a + 1", SECRETS_STRINGS},
		/* one statement or two */
		{"select 'a\\''; alter role a password 'b", SECRETS_ALL},
		{"select 'a\\''; alter role a password 'b'", SECRETS_ALL, true},
		{"select 'a\\b'; ", SECRETS_NONE},
		{"", SECRETS_STRINGS},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
	{
		const secrets_text text = {.bytes = cases[i].text,.length = (uint32_t) strlen(cases[i].text),.backslashes = cases[i].backslashes};

		if (secrets_kind_of_text(&text) != cases[i].kind)
			fail_msg("\"%s\"", cases[i].text);
	}
}

static void
a_message_is_shown_without_constants(void **unused)
{
	static const struct
	{
		const char *text;
		const char *seen;
		bool		backslashes;
	}			cases[] = {
		{"select count(*) from t where a = 'secret'", "select count(*) from t where a = $1"},
		{"select a from t where a <> $1 and b <> $3 and c <> 'secret'", "select a from t where a <> $1 and b <> $3 and c <> $4"},
		{"select 'it''s', 'x'", "select $1, $2"},
		{"select E'a\\'b', 'c', 5", "select $1, $2, $3"},
		{"select b'01', X'ff', n'n', U&'d\\0061t', u&'x'", "select $1, $2, $3, $4, $5"},
		{"select E'a'\n'\\'s secret', 1", "select $1, $2"},
		{"select E'a' -- b's\n \t'\\'s secret'\r'\\'s' from t", "select $1 from t"},
		{"select E'a' -- b", "select $1 -- b"},
		{"select E'a'\n", "select $1\n"},
		{"select 'a'\n 'b'", "select $1"},
		{"select b'\\', 'secret', X'\\', 'secret'", "select $1, $2, $3, $4", true},
		/* whether a backslash escapes is what the setting was when the text was analysed */
		{"select 'a\\', 'secret', b", "select $1"},
		{"select 'a\\', 'secret', b", "select $1", true},
		{"select E'a' 'b\\', secret", "select $1 $2"},
		{"select 1$a$my secret$a$, 1$$x y$$", "select $1$2, $3$4"},
		{"select true'x'", "select true$1"},
		{"select $$a'b$$, $q$ $$ $q$, $1, a$b$c", "select $2, $3, $1, a$b$c"},
		{"select $tag$ never closed", "select $1"},
		{"select 'never closed, 5", "select $1"},
		{"select 1, 1.5e-3, .5, 0x1F, 1_000, 1e+10, t1.c2, a1", "select $1, $2, $3, $4, $5, $6, t1.c2, a1"},
		{"select 1-1, 1 -1, 0xe-1", "select $1-$2, $3 -$4, $5-$6"},
		{"select x -- 'kept' 5\n, 'y'", "select x -- 'kept' 5\n, $1"},
		{"select /* 'a' /* 5 */ 'b' */ 'c'", "select /* 'a' /* 5 */ 'b' */ $1"},
		{"select /* never closed 'x'", "select /* never closed 'x'"},
		{"select \"it's 5\", \"a\"\"'b\" from \"t\"", "select \"it's 5\", \"a\"\"'b\" from \"t\""},
		{"select \xc3\xa4" "1, '\xc3\xa4'", "select \xc3\xa4" "1, $1"},
		{"update t set a = b, c = 'secret'", "update t set a = b, c = $1"},
		/* of all else, and of several, what is hidden in any statement */
		{"create role r password 'p'; alter role r password $x$p$x$", "create role r password $1; alter role r password $2"},
		{"select 1; alter role r connection limit 1 -- is p", "select $1; alter role r connection limit $2 /* ... */"},
		{"set app.password = hunter2", "set app.password = $1"},
		{"alter system set primary_conninfo = 'password=p' /* p */", "alter system set primary_conninfo = $1 /* ... */"},
		{"explain select dblink('p') -- p", "explain select dblink($1) /* ... */"},
		{"do $x$ begin perform dblink('p'); end $x$", "do $1"},
		{"", ""},
		{"'", "$1"},
		{"$", "$"},
		{"e", "e"},
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		assert_string_equal(message(cases[i].text, cases[i].backslashes), cases[i].seen);
}

/* Texts in which the test knows the secrets: strings and numbers in a query, and also comments in any other statement. */
static void
no_secret_of_a_message_is_shown(void **unused)
{
	static const char *const secret[] = {"'SECRET'", "'it''s SECRET'", "E'a\\'SECRET'", "'a'\n 'SECRET'", "'a' -- b\n'SECRET'", "$$SECRET 'b' $c$ d$$",
	"$a$ $$ SECRET $b$ $a$", "U&'SECRET'", "X'SECRET'", "n'SECRET'", "4711", "4711.5e-3", ".4711", "0x4711", "'a' 'SECRET'"};
	static const char *const comment[] = {"/* SECRET 4711 */", "/* a /* 'b' */ SECRET */", "-- it's SECRET\n", "--4711\r"};
	static const char *const kept[] = {"kept", "\"ke'pt\"", "\"$$\"\"a\"", "$1", "a$b$", "t1.c2", "@>", "(", ")", "\xc3\xa4", "u&\"kept\"", "select"};

	for (int round = 0; round < 50000; round++)
	{
		bool		query = next_number(2) == 0;
		char		text[2000];
		char		expected[2000];
		int			number = 1;

		strcpy(text, query ? "with a as ($1) " : "alter role a ($1) ");
		strcpy(expected, text);
		for (int n = 1 + (int) next_number(12); n > 0; n--)
		{
			uint32_t	what = next_number(4);
			const char *piece = what == 0 ? comment[next_number(4)] : what == 1 ? kept[next_number(sizeof(kept) / sizeof(kept[0]))] :
				secret[next_number(sizeof(secret) / sizeof(secret[0]))];
			char		mark[16];

			if (what == 1 || (what == 0 && query))
				strcat(expected, piece);
			else if (what == 0)
				strcat(strcat(expected, "/* ... */"), piece[0] == '-' ? piece + strlen(piece) - 1 : "");
			else
			{
				snprintf(mark, sizeof(mark), strcmp(piece, "'a' 'SECRET'") == 0 ? "$%d $%d" : "$%d", number + 1, number + 2);
				number += strcmp(piece, "'a' 'SECRET'") == 0 ? 2 : 1;
				strcat(expected, mark);
			}
			strcat(strcat(text, piece), ", ");
			strcat(expected, ", ");
		}
		if (strcmp(message(text, false), expected) != 0)
			fail_msg("round %d: %s\nis shown as: %s\ninstead of:  %s", round, text, message(text, false), expected);
	}
}

/* A truncated result is a prefix of the whole, and nothing is written beyond it. */
static void
cut_as_whole(const char *text, bool backslashes)
{
	char		whole[1000];
	char	   *cut = malloc(5);
	secrets_masked all = {.bytes = whole,.size = sizeof(whole)};
	secrets_masked some = {.bytes = cut,.size = 5};

	secrets_mask_message(text, (uint32_t) strlen(text), backslashes, &all);
	secrets_mask_message(text, (uint32_t) strlen(text), backslashes, &some);
	assert_true(all.length <= all.size && (some.length == all.length || (some.length > 5 && all.length > 5)));
	assert_memory_equal(whole, cut, all.length < 5 ? all.length : 5);
	free(cut);
}

/*
 * No text makes it read outside (valgrind, sanitizers) or lose its place; and what it shows of a string that stands where the
 * lexer says there is one is nothing.
 */
static void
no_text_is_too_odd(void **unused)
{
	for (int i = 0; i < 100000; i++)
	{
		char		text[200];
		char		seen[1000];
		char	   *exact;
		secrets_text from = {.kind = (secrets_kind) next_number(SECRETS_CONSTANTS + 1),.backslashes = next_number(2) != 0};

		fill(text, 20);
		/* no byte after the text, so that a sanitizer sees a reading beyond it */
		exact = malloc(strlen(text) + 1);
		strcpy(exact, text);
		divide(exact, from.backslashes, seen);
		(void) hidden(from, exact);
		cut_as_whole(exact, from.backslashes);
		from.kind = SECRETS_ALL;
		if (strchr(hidden(from, exact), '\'') != NULL && memchr(hidden(from, exact), '"', strlen(hidden(from, exact))) == NULL)
			fail_msg("%s: %s", exact, hidden(from, exact));
		free(exact);
	}
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(texts_are_divided_as_the_server_does_it),
		cmocka_unit_test(each_kind_hides_what_it_should),
		cmocka_unit_test(constants_of_the_server_are_hidden_too),
		cmocka_unit_test(a_text_alone_says_whether_it_is_one_query),
		cmocka_unit_test(a_message_is_shown_without_constants),
		cmocka_unit_test(no_secret_of_a_message_is_shown),
		cmocka_unit_test(no_text_is_too_odd),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
