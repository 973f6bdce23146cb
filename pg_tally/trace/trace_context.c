/* SPDX-License-Identifier: PostgreSQL */
/*
 * trace_context.c
 *	  Finds the traceparent of a traced session's statement (trace.h).
 *
 * sqlcommenter puts a comment at the end of a message, some frameworks at its beginning. A message may contain several
 * statements. A comment within a statement's part of the text, or after the last one, belongs to that statement; if the message
 * names a single trace, all its statements belong to it. So a text is searched once, and part by part if it names several traces.
 */
#include "base/compat.h"

#include <string.h>

#include "common/hashfn.h"
#include "utils/guc.h"

#include "base/sql_lexer.h"
#include "ledger/ledger.h"
#include "trace/trace.h"
#include "wait/trace_ring.h"

#define KEY "traceparent='"
#define PARENT_LENGTH 55			/* 00-<32 digits>-<16 digits>-<2 digits> */

typedef struct traceparent
{
	unsigned char trace[16];
	unsigned char span[8];
	unsigned char flags;
} traceparent;

/* The client's last text. */
static struct
{
	sql_lexer	text;				/* at: its statements were analysed up to here; end: set only if it names contexts */
	uint64		arrival;			/* of its message */
	enum {NO_CONTEXT, ONE_CONTEXT, CONTEXTS} names;
	traceparent first;
}			sent;

/* The context in that text for the statement that it prepares, until the statement is executed. */
static struct
{
	bool		waits;
	uint64		hash;				/* of the text */
	traceparent parent;
}			prepared;

static int
digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Parse bytes in lower-case hexadecimal digits, as the recommendation requires. False if they are invalid or all zero. */
static bool
read_bytes(const char *text, unsigned char *to, int count, bool may_be_zero)
{
	unsigned char any = 0;

	for (int i = 0; i < count; i++)
	{
		int			high = digit(text[2 * i]);
		int			low = digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		to[i] = (unsigned char) (high << 4 | low);
		any |= to[i];
	}
	return may_be_zero || any != 0;
}

/* `text` has at least PARENT_LENGTH characters. */
static bool
read_parent(const char *text, traceparent *parent)
{
	traceparent found;

	if (text[0] != '0' || text[1] != '0' || text[2] != '-' || text[35] != '-' || text[52] != '-' ||
		!read_bytes(text + 3, found.trace, 16, false) || !read_bytes(text + 36, found.span, 8, false) ||
		!read_bytes(text + 53, &found.flags, 1, true))
		return false;
	*parent = found;
	return true;
}

/* The next token other than white space, a comment up to the end of the line, and a semicolon. */
static sql_token
next_token(sql_lexer *text)
{
	for (;;)
	{
		sql_token	token = sql_lexer_next(text);
		char		first = text->text[token.at];

		if (token.kind != SQL_BLANK && (token.kind != SQL_COMMENT || first != '-') && (token.kind != SQL_OTHER || first != ';'))
			return token;
	}
}

/* The last traceparent in a comment, which begins with two characters that are not part of a key. */
static bool
find_in_comment(const sql_lexer *text, const sql_token *comment, traceparent *parent)
{
	const size_t key = strlen(KEY);
	const char *from = text->text + comment->at;
	const char *to = from + comment->length;
	bool		found = false;

	while ((from = memmem(from, (size_t) (to - from), KEY, key)) != NULL)
	{
		bool		begins = strchr(" \t\r\n,;*", from[-1]) != NULL;

		from += key;
		if (begins && to - from > PARENT_LENGTH && from[PARENT_LENGTH] == '\'' && read_parent(from, parent))
			found = true;
	}
	return found;
}

/* The last traceparent of the statement between the current position and `end`, or after it if no other statement follows. */
static bool
find_in_statement(sql_lexer text, uint32 end, traceparent *parent)
{
	traceparent behind;
	bool		is_behind = false;
	bool		found = false;

	for (sql_token token; (token = next_token(&text)).kind != SQL_END;)
	{
		if (token.kind == SQL_COMMENT && token.at < end)
			found |= find_in_comment(&text, &token, parent);
		else if (token.kind == SQL_COMMENT)
			is_behind |= find_in_comment(&text, &token, &behind);
		else if (token.at >= end)
			return found;
	}
	if (is_behind)
		*parent = behind;
	return found || is_behind;
}

/* A new text. */
static void
begin_text(const char *text)
{
	sql_lexer	lexer;
	traceparent parent;

	sent.text = (sql_lexer) {.text = text,.backslashes = compat_strings_have_escapes()};
	sent.arrival = tally.handle_start;
	sent.names = NO_CONTEXT;
	if (strstr(text, KEY) == NULL)
		return;
	sent.text.end = (uint32) strlen(text);
	lexer = sent.text;
	for (sql_token token; sent.names != CONTEXTS && (token = next_token(&lexer)).kind != SQL_END;)
	{
		if (token.kind != SQL_COMMENT || !find_in_comment(&lexer, &token, &parent))
			continue;
		if (sent.names == NO_CONTEXT)
		{
			sent.first = parent;
			sent.names = ONE_CONTEXT;
		}
		else if (memcmp(&parent, &sent.first, sizeof(parent)) != 0)
			sent.names = CONTEXTS;
	}
}

static bool
find_in_text(const char *text, int location, int length, traceparent *parent)
{
	sql_lexer	from;

	/* an unknown arrival may be that of another message */
	if (text != sent.text.text || tally.handle_start != sent.arrival || tally.handle_start == 0)
		begin_text(text);
	*parent = sent.first;
	if (sent.names != CONTEXTS || location < 0)
		return sent.names == ONE_CONTEXT;
	from = sent.text;
	/* comments before it belong to it, wherever the server locates its start */
	from.at = Min(from.at, (uint32) location);
	sent.text.at = length > 0 ? (uint32) location + (uint32) length : sent.text.end;
	return find_in_statement(from, sent.text.at, parent);
}

static bool
find_in_name(traceparent *parent)
{
	size_t		length = application_name != NULL ? strlen(application_name) : 0;

	for (size_t at = 0; at + PARENT_LENGTH <= length; at++)
		if (read_parent(application_name + at, parent))
			return true;
	return false;
}

static void
put(const traceparent *parent)
{
	tally_trace_record record = {.kind = TALLY_TRACE_CONTEXT};

	record.op = parent->flags;
	memcpy(record.word, parent->trace, sizeof(parent->trace));
	memcpy(record.word + 4, parent->span, sizeof(parent->span));
	trace_put(&record);
}

static uint64
hash_of(const char *text)
{
	return hash_bytes_extended((const unsigned char *) text, (int) strlen(text), 0);
}

void
trace_context_sent(const char *text, int location, int length)
{
	traceparent parent;
	bool		found = find_in_text(text, location, length, &parent);

	if (tally.message != MESSAGE_QUERY)
	{
		prepared.waits = found;
		prepared.hash = found ? hash_of(text) : 0;
		prepared.parent = parent;
	}
	if (found || find_in_name(&parent))
		put(&parent);
}

void
trace_context_starts(const char *text)
{
	traceparent parent;

	if (prepared.waits && text != NULL && hash_of(text) == prepared.hash)
	{
		prepared.waits = false;
		put(&prepared.parent);
	}
	else if (find_in_name(&parent))
		put(&parent);
}
