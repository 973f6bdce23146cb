/* SPDX-License-Identifier: PostgreSQL */
/*
 * sql_scan.c
 *	  Where the comments of an SQL text are (sql_scan.h).
 */
#include "compat.h"

#include <string.h>

#include "sql_scan.h"

static inline bool
is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static inline bool
begins_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (c & 0x80) != 0;
}

static inline bool
goes_on(char c)
{
	return begins_word(c) || is_digit(c);
}

/* The first character at `p` or behind it that is neither blank nor of a comment up to the line's end. */
static const char *
behind_blanks(const char *p)
{
	for (;;)
	{
		p += strspn(p, " \t\n\r\f\v");
		if (p[0] != '-' || p[1] != '-')
			return p;
		p += strcspn(p, "\n\r");
	}
}

/* Behind what begins at `p` with that quote, which doubled is part of it. */
static const char *
behind_quoted(const char *p, char quote, bool escapes)
{
	for (p++; *p != '\0'; p++)
	{
		if (escapes && p[0] == '\\' && p[1] != '\0')
			p++;
		else if (*p == quote && *++p != quote)
			break;
	}
	return p;
}

static bool
has_line_end(const char *from, const char *to)
{
	while (from < to && *from != '\n' && *from != '\r')
		from++;
	return from < to;
}

/* Behind a string. One with escapes goes on after a line's end: its next part has them, too. */
static const char *
behind_string(const char *p, bool escapes)
{
	for (;;)
	{
		const char *end = behind_quoted(p, '\'', escapes);

		p = behind_blanks(end);
		if (!escapes || *p != '\'' || !has_line_end(end, p))
			return end;
	}
}

static const char *
behind_comment(const char *p)
{
	int			depth = 0;

	while (*p != '\0')
	{
		int			step = p[0] == '/' && p[1] == '*' ? 1 : p[0] == '*' && p[1] == '/' ? -1 : 0;

		p += step == 0 ? 1 : 2;
		depth += step;
		if (depth == 0)
			break;
	}
	return p;
}

/* A word, or the string before which its only letter stands. */
static const char *
behind_word(const char *p)
{
	const char *end = p;

	while (goes_on(*end) || *end == '$')
		end++;
	if (end != p + 1)
		return end;
	if (*end == '\'' && strchr("eE", *p) != NULL)
		return behind_string(end, true);
	if (*end == '\'' && strchr("bBxX", *p) != NULL)
		return behind_string(end, false);
	if (end[0] == '&' && end[1] == '\'' && strchr("uU", *p) != NULL)
		return behind_string(end + 1, false);
	return end;
}

/* What is between dollar quotes; else the sign alone. */
static const char *
behind_dollar(const char *p)
{
	const char *tag = p + 1;

	if (begins_word(*tag))
		while (goes_on(*tag))
			tag++;
	if (*tag != '$')
		return p + 1;
	for (const char *end = strchr(tag + 1, '$'); end != NULL; end = strchr(end + 1, '$'))
		if (strncmp(end, p, (size_t) (tag + 1 - p)) == 0)
			return end + (tag + 1 - p);
	return p + strlen(p);
}

sql_token
sql_next_token(const char **at, const char **from)
{
	const char *p = behind_blanks(*at);

	while (*p == ';')
		p = behind_blanks(p + 1);
	*from = *at = p;
	if (*p == '\0')
		return SQL_END;
	if (p[0] == '/' && p[1] == '*')
	{
		*at = behind_comment(p);
		return SQL_COMMENT;
	}
	if (*p == '\'')
		*at = behind_string(p, compat_strings_have_escapes());
	else if (*p == '"')
		*at = behind_quoted(p, '"', false);
	else if (*p == '$')
		*at = behind_dollar(p);
	else if (begins_word(*p))
		*at = behind_word(p);
	else if (is_digit(*p))
		/* a dollar sign behind a number begins a quote, behind a word it does not */
		while (goes_on(**at))
			(*at)++;
	else
		*at = p + 1;
	return SQL_OTHER;
}
