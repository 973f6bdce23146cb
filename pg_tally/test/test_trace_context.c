/* SPDX-License-Identifier: PostgreSQL */
/*
 * test_trace_context.c
 *	  A traceparent counts only in a comment, for the statement whose part of the text contains it, and for the execution that it
 *	  was sent with.
 *
 * Texts are assembled from pieces, so the test knows where their comments are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "../trace/trace_context.c"

#undef sprintf

/* ---------------------------------------------------------------- what the server and the rest have */

probe_state tally;
char	   *application_name = "psql";
#if PG_VERSION_NUM < 190000
bool		standard_conforming_strings = true;
#endif
static int	written;				/* contexts */
static unsigned char last_span;

void
trace_put(tally_trace_record *record)
{
	written++;
	last_span = ((const unsigned char *) (record->word + 4))[7];
}

uint64
hash_bytes_extended(const unsigned char *k, int keylen, uint64 seed)
{
	uint64		hash = 14695981039346656037u;

	for (int i = 0; i < keylen; i++)
		hash = (hash ^ k[i]) * 1099511628211u;
	return hash;
}

/* ---------------------------------------------------------------- one text */

#define TRACE "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902"
#define A "traceparent='" TRACE "0a-01'"
#define B "traceparent='" TRACE "0b-01'"
#define DOUBLED "traceparent=''" TRACE "0c-01''"
#define ESCAPED "traceparent=\\'" TRACE "0c-01\\'"

/* The last byte of the context's span; 0: there is none. */
static int
context_of(const char *text, int location, int length)
{
	int			before = written;

	trace_context_sent(text, location, length);
	return written == before ? 0 : last_span;
}

static void
new_message(tally_message message)
{
	tally.message = message;
	tally.handle_start++;
}

static void
comments_only(void **unused)
{
	static const struct
	{
		const char *text;
		int			span;
		bool		escapes;		/* with standard_conforming_strings off */
	}			cases[] = {
		{"select 1 /*" A "*/", 0xa},
		{"/*" A "*/ select 1", 0xa},
		{"/*" A "*/ select 1 /*" B "*/", 0xb},
		{"select 1 /*route='%2Fpay'," A ",x='y'*/", 0xa},
		{"select 1 /* route='/pay', " A " */", 0xa},
		{"select 1 /*a /* b */ " A "*/", 0xa},
		{"select 1 /*a /*" A "*/ b */", 0xa},
		{"select 1 /*" A, 0xa},
		{"select 1; /*" A "*/", 0xa},
		{"select 1 -- it's\n/*" A "*/", 0xa},
		{"select 1 /*x" A "*/", 0},
		{"select 1 /*x-" A "*/", 0},
		{"select 1 /*tracestate='a=" A "'*/", 0},
		{"select 1 /*x" A "," B "*/", 0xb},
		{"select 1 /*traceparent='00-xyz',*/", 0},
		{"select 1 /*traceparent='01-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba9020a-01'*/", 0},
		{"select 1 /*traceparent='00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba9020a-01'*/", 0},
		{"select 1 /*traceparent='" TRACE "0a-01*/ '", 0},
		{"select '/*" DOUBLED "*/'", 0},
		{"select '/*', " A, 0},
		{"select 'a'' /*" DOUBLED "*/'", 0},
		{"select 'a\\', '/*" DOUBLED "*/'", 0},
		{"select 'a\\' /*" A "*/", 0xa},
		{"select E'a\\' /*" ESCAPED "*/'", 0},
		{"select e'a''\\' /*" ESCAPED "*/'", 0},
		{"select E'a' -- b\n '\\' /*" ESCAPED "*/'", 0},
		{"select E'a' 'b\\' /*" A "*/", 0xa},
		{"select type'a\\' /*" A "*/", 0xa},
		{"select U&'a\\' /*" A "*/", 0xa},
		{"select x'1f' /*" A "*/", 0xa},
		{"select \"/*\", 1 \"" "a\"\"b*/\" /*" A "*/", 0xa},
		{"select \"/*" A "*/\"", 0},
		{"select $$/*" A "*/$$", 0},
		{"select $a$ $$ $b$ /*" A "*/ $a$", 0},
		{"select $a$$a $a$ /*" A "*/", 0xa},
		{"select $\xc3\xa4_1$/*" A "*/$\xc3\xa4_1$", 0},
		{"select a$b$ /*" A "*/ $b$", 0xa},
		{"select $1 /*" A "*/ $1", 0xa},
		{"select 1$$/*" A "*/$$", 0},
		{"select a /*" A "*/ $x", 0xa},
		{"select 1 +/*" A "*/ 2", 0xa},
		{"select 1 -- /*" A "*/", 0},
		{"select 1 */" A "/*", 0},
		{A, 0},
		{"", 0},
		{"select '", 0},
		{"select '\\", 0},
		{"select $a", 0},
		{"select '/*" DOUBLED "*/'", 0, true},
		{"select 'a\\'' /*" A "*/", 0xa, true},
		{"select 'a\\' /*" ESCAPED "*/'", 0, true},
		{"select B'\\' /*" A "*/", 0xa, true},
	};

	for (size_t i = 0; i < lengthof(cases); i++)
	{
#if PG_VERSION_NUM < 190000
		standard_conforming_strings = !cases[i].escapes;
#else
		if (cases[i].escapes)
			continue;
#endif
		new_message(MESSAGE_QUERY);
		if (context_of(cases[i].text, 0, 0) != cases[i].span)
			fail_msg("%s: %x", cases[i].text, cases[i].span);
	}
#if PG_VERSION_NUM < 190000
	standard_conforming_strings = true;
#endif
}

/* No token looks at all that follows: a client chooses the text, and nothing can interrupt this. */
static void
in_linear_time(void **unused)
{
	static const char *const repeated[] = {"E'' '' ", "E''\n''", "$a$x ", "$", "''", "\"\"", "/*", "--\n", "1$$ ", "U&'' "};
	const size_t size = 1 << 21;
	char	   *text = malloc(size + sizeof(A) + 8);

	for (size_t i = 0; i < lengthof(repeated); i++)
	{
		size_t		length = strlen(repeated[i]);
		size_t		at = 0;
		clock_t		begun = clock();

		for (; at + length <= size; at += length)
			memcpy(text + at, repeated[i], length);
		strcpy(text + at, "/*" A "*/");
		new_message(MESSAGE_QUERY);
		(void) context_of(text, 0, 0);
		if (clock() - begun > CLOCKS_PER_SEC)
			fail_msg("%s", repeated[i]);
	}
	free(text);
}

/* ---------------------------------------------------------------- texts at random */

static uint32_t state = 20261129;	/* xorshift: the same numbers each time */

static uint32_t
next_number(uint32_t below)
{
	state ^= state << 13;
	state ^= state >> 17;
	state ^= state << 5;
	return state % below;
}

static const char *const pieces[] = {
	"'/*" DOUBLED "*/'", "''", "E'\\'/*" ESCAPED "*/'", "\"/*" A "*/\"", "\"\"\"\"", "$$/*" A "*/;$$", "$a$ $$ $b$/*" B "*/ $a$",
	"a$b$", "$1", "-- /*" A "*/ '\n", "-- $$ ;\n", "1", "1.5e3", "U&'\\'", "n'x'", "';'", "/* ; */", "/* ' /* $$ */ \" */", "+",
	"(", ")", "type 'a\\'", "E'a'\n'\\''", "\xc3\xa9t\xc3\xa9", "/*x" A "*/",
};

#define STATEMENTS 5

/*
 * Messages of up to five statements. `late`: the server lets a statement begin at its first token, as from 18 on, not behind the
 * semicolon before.
 */
static void
each_statement_its_own(void **unused)
{
	for (int round = 0; round < 20000; round++)
	{
		char		text[1 << 15];
		int			at = 0;
		int			count = 1 + (int) next_number(STATEMENTS);
		bool		late = next_number(2) == 0;
		int			location[STATEMENTS];
		int			length[STATEMENTS];
		int			own[STATEMENTS] = {0};
		int			only = 0;
		bool		several = false;

		for (int i = 0; i < count; i++)
		{
			bool		word = false;
			bool		last = i == count - 1;
			int			parts = (int) next_number(8);

			location[i] = at;
			/* the part of the last statement ends before the semicolon or with the text; a comment may follow */
			for (int part = 0; part <= parts + (last ? 2 : 0); part++)
			{
				int			span = 1 + (int) next_number(200);

				if (part == parts / 2)
				{
					if (late)
						location[i] = at;
					at += sprintf(text + at, "select ");
					word = true;
				}
				else if (next_number(6) == 0)
				{
					at += sprintf(text + at, "/*a='b',traceparent='" TRACE "%02x-01'*/ ", span);
					own[i] = span;
					several |= only != 0 && only != span;
					only = span;
				}
				else if (part <= parts && word)
					at += sprintf(text + at, "%s ", pieces[next_number(lengthof(pieces))]);
				if (part == parts)
				{
					length[i] = last && next_number(2) == 0 ? 0 : at - location[i];
					if (!last || length[i] != 0)
						at += sprintf(text + at, ";");
				}
			}
		}
		text[at] = '\0';
		new_message(MESSAGE_QUERY);
		for (int i = 0; i < count; i++)
		{
			int			expected = several ? own[i] : only;

			if (context_of(text, location[i], length[i]) != expected)
				fail_msg("round %d, statement %d of: %s: not %x", round, i, text, expected);
		}
	}
}

/* Finding a statement at the end of a megabyte of others reads only the text after the statement before it. */
static void
ways_are_not_walked_twice(void **unused)
{
	static char text[1 << 20];
	int			at = sprintf(text, "/*" A "*/ select 1 /*" B "*/");
	int			first = at;

	while (at < (int) sizeof(text) - 100)
		at += sprintf(text + at, ";select 1");
	new_message(MESSAGE_QUERY);
	assert_int_equal(context_of(text, 0, first), 0xb);
	for (int from = first; from < at; from += 9)
	{
		assert_int_equal(context_of(text, from + 1, 8), 0);
		assert_int_equal(sent.text.at, from + 9);
	}
}

/* ---------------------------------------------------------------- executions */

static int
execute(const char *text)
{
	int			before = written;

	new_message(MESSAGE_BIND);
	trace_context_starts(text);
	new_message(MESSAGE_EXECUTE);
	return written == before ? 0 : last_span;
}

static void
the_execution_that_it_was_sent_with(void **unused)
{
	static const char first[] = "select 1 /*" A "*/";
	static const char second[] = "select 2 /*" B "*/";

	new_message(MESSAGE_PARSE);
	assert_int_equal(context_of(first, 0, 0), 0xa);
	assert_int_equal(execute("select 3"), 0);
	assert_int_equal(execute(first), 0xa);
	assert_int_equal(execute(first), 0);
	new_message(MESSAGE_PARSE);
	assert_int_equal(context_of(second, 0, 0), 0xb);
	assert_int_equal(execute(first), 0);
	assert_int_equal(execute(second), 0xb);
	assert_int_equal(execute(second), 0);
	/* a simple query needs no execution of its own, nor is it one of what was prepared */
	new_message(MESSAGE_PARSE);
	assert_int_equal(context_of(first, 0, 0), 0xa);
	new_message(MESSAGE_QUERY);
	assert_int_equal(context_of(second, 0, 0), 0xb);
	assert_int_equal(execute(second), 0);
	assert_int_equal(execute(first), 0xa);
	/* the same bytes at the same place, in a message whose arrival is not known */
	tally.handle_start = 0;
	assert_int_equal(context_of(first, 0, 0), 0xa);
	application_name = "of 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba9020d-01";
	assert_int_equal(execute(second), 0xd);
	new_message(MESSAGE_QUERY);
	assert_int_equal(context_of(second, 0, 0), 0xb);
	assert_int_equal(context_of("select 1", 0, 0), 0xd);
	application_name = "psql";
}

int
main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(comments_only),
		cmocka_unit_test(in_linear_time),
		cmocka_unit_test(each_statement_its_own),
		cmocka_unit_test(ways_are_not_walked_twice),
		cmocka_unit_test(the_execution_that_it_was_sent_with),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
