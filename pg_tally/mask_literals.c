/* SPDX-License-Identifier: PostgreSQL */
/*
 * mask_literals.c
 *	  A query without its constants, where the server has not parsed it yet.
 *
 * The lexical rules of scan.l as far as they tell where a constant begins and ends: one pass, without memory or errors. Comments and
 * quoted identifiers are copied. What follows a quote that is not closed is taken for a constant. In the encodings of servers no
 * byte of a multibyte character is ASCII.
 */
#include "postgres.h"

#include <string.h>

#include "mask_literals.h"

typedef struct masking
{
	const char *at;
	const char *end;
	char	   *to;
	uint32		size;
	uint32		used;
} masking;

static void
put(masking *m, const char *from, const char *until)
{
	uint32		count = Min((uint32) (until - from), m->size - m->used);

	memcpy(m->to + m->used, from, count);
	m->used += count;
	m->at = until;
}

/* A constant ends there. */
static void
put_mask(masking *m, const char *until)
{
	put(m, "?", "?" + 1);
	m->at = until;
}

static bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool
begins_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

static bool
is_in_word(char c)
{
	return begins_word(c) || is_digit(c) || c == '$';
}

/* Does it begin there? */
static bool
has(const masking *m, const char *text)
{
	size_t		length = strlen(text);

	return (size_t) (m->end - m->at) >= length && memcmp(m->at, text, length) == 0;
}

static const char *
end_of_line(const masking *m)
{
	const char *p = m->at;

	while (p < m->end && *p != '\n' && *p != '\r')
		p++;
	return p;
}

/* They nest. */
static const char *
end_of_comment(const masking *m)
{
	const char *p = m->at + 2;
	int			depth = 1;

	for (; depth > 0 && p + 1 < m->end; p++)
		if (p[0] == '/' && p[1] == '*')
		{
			depth++;
			p++;
		}
		else if (p[0] == '*' && p[1] == '/')
		{
			depth--;
			p++;
		}
	return depth > 0 ? m->end : p;
}

/* After the quote at `p`, which is doubled within. */
static const char *
end_of_quoted(const masking *m, const char *p, bool escapes)
{
	char		quote = *p++;

	for (; p < m->end; p++)
		if (escapes && *p == '\\' && p + 1 < m->end)
			p++;
		else if (*p == quote)
		{
			if (p + 1 == m->end || p[1] != quote)
				return p + 1;
			p++;
		}
	return m->end;
}

/*
 * After a string and what goes on with it: behind blanks and comments up to a line's end, one of which is there, another quote. Only
 * where there are escapes does it matter that it is the same string.
 */
static const char *
end_of_string(const masking *m, const char *p, bool escapes)
{
	for (;;)
	{
		bool		line = false;

		p = end_of_quoted(m, p, escapes);
		if (!escapes)
			return p;
		for (const char *next = p;; next++)
		{
			if (m->end - next >= 2 && next[0] == '-' && next[1] == '-')
				while (next < m->end && *next != '\n' && *next != '\r')
					next++;
			if (next == m->end || strchr(" \t\n\r\f\v\'", *next) == NULL || (*next == '\'' && !line))
				return p;
			if (*next == '\'')
			{
				p = next;
				break;
			}
			line |= *next == '\n' || *next == '\r';
		}
	}
}

/* After "$tag$ ... $tag$"; NULL: none begins there. */
static const char *
end_of_dollars(const masking *m)
{
	const char *p = m->at + 1;
	size_t		tag;

	if (p < m->end && begins_word(*p))
		while (p < m->end && is_in_word(*p) && *p != '$')
			p++;
	if (p == m->end || *p != '$')
		return NULL;
	tag = (size_t) (p + 1 - m->at);
	for (p++; (size_t) (m->end - p) >= tag; p++)
		if (*p == '$' && memcmp(p, m->at, tag) == 0)
			return p + tag;
	return m->end;
}

/* "1", "1.5e-3", "0x1F", "1_000". A dollar sign behind it begins a quote. */
static const char *
end_of_number(const masking *m)
{
	const char *p = m->at;

	for (; p < m->end; p++)
		if ((*p == '+' || *p == '-') ? (p[-1] != 'e' && p[-1] != 'E') || has(m, "0x") || has(m, "0X")
			: (!is_in_word(*p) && *p != '.') || *p == '$')
			break;
	return p;
}

static const char *
end_of_word(const masking *m)
{
	const char *p = m->at;

	while (p < m->end && is_in_word(*p))
		p++;
	return p;
}

/* The prefix of a string: E'', B'', X'', N'', U&''; 0: it is a word. */
static int
prefix_length(const masking *m)
{
	static const char *const prefixes[] = {"e'", "E'", "b'", "B'", "x'", "X'", "n'", "N'", "u&'", "U&'"};

	for (size_t i = 0; i < lengthof(prefixes); i++)
		if (has(m, prefixes[i]))
			return (int) strlen(prefixes[i]) - 1;
	return 0;
}

/* Of a string that begins with that character. Bits have none. */
static bool
has_escapes(char c, bool escapes)
{
	return c == 'e' || c == 'E' || (escapes && strchr("bBxX", c) == NULL);
}

uint32
mask_literals(const char *query, uint32 length, bool escapes, char *to, uint32 size)
{
	masking		m = {.at = query,.end = query + length,.to = to,.size = size};
	const char *end;

	while (m.at < m.end && m.used < m.size)
	{
		char		c = *m.at;
		char		next = m.at + 1 < m.end ? m.at[1] : '\0';
		int			prefix = begins_word(c) ? prefix_length(&m) : 0;

		if (c == '-' && next == '-')
			put(&m, m.at, end_of_line(&m));
		else if (c == '/' && next == '*')
			put(&m, m.at, end_of_comment(&m));
		else if (c == '"')
			put(&m, m.at, end_of_quoted(&m, m.at, false));
		else if (c == '\'' || prefix > 0)
			put_mask(&m, end_of_string(&m, m.at + prefix, has_escapes(c, escapes)));
		else if (c == '$' && (end = end_of_dollars(&m)) != NULL)
			put_mask(&m, end);
		else if (is_digit(c) || (c == '.' && is_digit(next)))
			put_mask(&m, end_of_number(&m));
		else if (is_in_word(c))
			/* "$1" as well */
			put(&m, m.at, end_of_word(&m));
		else
			put(&m, m.at, m.at + 1);
	}
	return m.used;
}
