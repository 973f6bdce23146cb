/* SPDX-License-Identifier: PostgreSQL */
/*
 * sql_lexer.c
 *	  See sql_lexer.h.
 *
 * In all server encodings, bytes below 128 are always ASCII characters, so characters need not be decoded.
 */
#include <string.h>

#include "base/sql_lexer.h"

#define OPERATORS "~!@#^&|`?+-*/%<>="
#define PREFIXES "eEbBxXnN"

static char
at(const sql_lexer *l, uint32_t i)
{
	return i < l->end ? l->text[i] : '\0';
}

static bool
is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == '\f' || c == '\v';
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
continues_word(char c)
{
	return begins_word(c) || is_digit(c) || c == '$';
}

/* ---------------------------------------------------------------- comments */

static bool
begins_comment(const sql_lexer *l, uint32_t i)
{
	return (at(l, i) == '-' && at(l, i + 1) == '-') || (at(l, i) == '/' && at(l, i + 1) == '*');
}

static uint32_t
line_comment_end(const sql_lexer *l, uint32_t i)
{
	while (i < l->end && l->text[i] != '\n' && l->text[i] != '\r')
		i++;
	return i;
}

/* Comments nest. */
static uint32_t
block_comment_end(const sql_lexer *l, uint32_t i, bool *ended)
{
	uint32_t	depth = 0;

	while (i < l->end)
	{
		if (l->text[i] == '/' && at(l, i + 1) == '*')
		{
			depth++;
			i += 2;
		}
		else if (l->text[i] == '*' && at(l, i + 1) == '/')
		{
			i += 2;
			if (--depth == 0)
				return i;
		}
		else
			i++;
	}
	*ended = false;
	return l->end;
}

/* ---------------------------------------------------------------- strings */

/* Where the string continues, after white space with a line break and comments; 0 if it does not. */
static uint32_t
continuation(const sql_lexer *l, uint32_t i)
{
	bool		line = false;

	for (;;)
	{
		char		c = at(l, i);

		if (i < l->end && is_blank(c))
		{
			line = line || c == '\n' || c == '\r';
			i++;
		}
		else if (c == '-' && at(l, i + 1) == '-')
			i = line_comment_end(l, i);
		else
			return line && c == '\'' ? i : 0;
	}
}

/* `i` is after the opening quote. Quotes inside are doubled. */
static uint32_t
quoted_end(const sql_lexer *l, uint32_t i, char quote, bool escapes, sql_token *token)
{
	while (i < l->end)
	{
		char		c = l->text[i];

		if (c == '\\' && quote == '\'')
		{
			if (escapes)
				i++;
			else if (at(l, i + 1) == '\'')
				token->unclear = true;
		}
		else if (c == quote)
		{
			if (at(l, i + 1) != quote)
				return i + 1;
			i++;
		}
		i++;
	}
	token->ended = false;
	return l->end;
}

/* `i` is at the opening quote, after a prefix if there is one. */
static uint32_t
string_end(const sql_lexer *l, uint32_t i, bool plain, bool escapes, sql_token *token)
{
	uint32_t	next = i;

	do
	{
		i = quoted_end(l, next + 1, '\'', escapes || (plain && l->backslashes), token);
		next = token->ended ? continuation(l, i) : 0;
	} while (next != 0);
	/* a string whose end is unclear without escapes is unclear with them, too */
	if (plain && l->backslashes && !token->unclear)
		token->unclear = memmem(l->text + token->at, i - token->at, "\\'", 2) != NULL;
	token->unclear = token->unclear && plain;
	return i;
}

/* Length of a dollar quote's tag in bytes, including both dollars; 0 if there is none. */
static uint32_t
tag_length(const sql_lexer *l, uint32_t i)
{
	uint32_t	end = i + 1;

	if (begins_word(at(l, end)))
		while (continues_word(at(l, end)) && at(l, end) != '$')
			end++;
	return at(l, end) == '$' ? end + 1 - i : 0;
}

static uint32_t
dollar_end(const sql_lexer *l, sql_token *token)
{
	uint32_t	from = token->at + token->tag;
	const char *found = memmem(l->text + from, l->end - from, l->text + token->at, token->tag);

	if (found != NULL)
		return (uint32_t) (found - l->text) + token->tag;
	token->ended = false;
	return l->end;
}

/* ---------------------------------------------------------------- numbers, operators */

static uint32_t
number_end(const sql_lexer *l, uint32_t i)
{
	char		base = at(l, i) == '0' ? at(l, i + 1) : '\0';

	if (base != '\0' && strchr("xXoObB", base) != NULL)
	{
		for (i += 2; begins_word(at(l, i)) || is_digit(at(l, i));)
			i++;
		return i;
	}
	while (is_digit(at(l, i)) || at(l, i) == '_')
		i++;
	/* 1..2 is a range in PL/pgSQL */
	if (at(l, i) == '.' && at(l, i + 1) != '.')
		for (i++; is_digit(at(l, i)) || at(l, i) == '_';)
			i++;
	if (at(l, i) == 'e' || at(l, i) == 'E')
	{
		uint32_t	exponent = i + 1 + (at(l, i + 1) == '+' || at(l, i + 1) == '-');

		if (is_digit(at(l, exponent)))
			for (i = exponent; is_digit(at(l, i)) || at(l, i) == '_';)
				i++;
	}
	return i;
}

/* An operator ends before a comment. It may end with a sign only if it contains a character that SQL's own operators lack. */
static uint32_t
operator_end(const sql_lexer *l, uint32_t from)
{
	uint32_t	i = from;
	bool		own = false;

	while (i < l->end && strchr(OPERATORS, l->text[i]) != NULL && !begins_comment(l, i))
	{
		own = own || strchr("~!@#^&|`?%", l->text[i]) != NULL;
		i++;
	}
	while (!own && i > from + 1 && (l->text[i - 1] == '+' || l->text[i - 1] == '-'))
		i--;
	return i;
}

/* ---------------------------------------------------------------- */

static uint32_t
word_or_prefix_end(const sql_lexer *l, uint32_t i, sql_token *token)
{
	char		c = at(l, i);

	if (at(l, i + 1) == '\'' && strchr(PREFIXES, c) != NULL)
	{
		token->kind = SQL_STRING;
		return string_end(l, i + 1, c == 'n' || c == 'N', c == 'e' || c == 'E', token);
	}
	if ((c == 'u' || c == 'U') && at(l, i + 1) == '&' && (at(l, i + 2) == '\'' || at(l, i + 2) == '"'))
	{
		if (at(l, i + 2) == '\'')
		{
			token->kind = SQL_STRING;
			return string_end(l, i + 2, false, false, token);
		}
		token->kind = SQL_NAME;
		return quoted_end(l, i + 3, '"', false, token);
	}
	token->kind = SQL_WORD;
	while (continues_word(at(l, i)) && i < l->end)
		i++;
	return i;
}

static uint32_t
find_end(const sql_lexer *l, sql_token *token)
{
	uint32_t	i = l->at;
	char		c = l->text[i];

	if (is_blank(c))
	{
		token->kind = SQL_BLANK;
		while (i < l->end && is_blank(l->text[i]))
			i++;
		return i;
	}
	if (begins_comment(l, i))
	{
		token->kind = SQL_COMMENT;
		return c == '-' ? line_comment_end(l, i) : block_comment_end(l, i, &token->ended);
	}
	if (begins_word(c))
		return word_or_prefix_end(l, i, token);
	if (is_digit(c) || (c == '.' && is_digit(at(l, i + 1))))
	{
		token->kind = SQL_NUMBER;
		return number_end(l, i);
	}
	if (c == '\'')
	{
		token->kind = SQL_STRING;
		return string_end(l, i, true, false, token);
	}
	if (c == '"')
	{
		token->kind = SQL_NAME;
		return quoted_end(l, i + 1, '"', false, token);
	}
	if (c == '$' && is_digit(at(l, i + 1)))
	{
		token->kind = SQL_PARAMETER;
		for (i++; is_digit(at(l, i));)
			i++;
		return i;
	}
	if (c == '$' && (token->tag = tag_length(l, i)) != 0)
	{
		token->kind = SQL_DOLLAR;
		return dollar_end(l, token);
	}
	if (c != '\0' && strchr(OPERATORS, c) != NULL)
	{
		token->kind = SQL_OPERATOR;
		return operator_end(l, i);
	}
	token->kind = SQL_OTHER;
	return i + 1;
}

sql_token
sql_lexer_next(sql_lexer *lexer)
{
	sql_token	token = {.kind = SQL_END,.at = lexer->at,.ended = true};

	if (lexer->at >= lexer->end)
		return token;
	lexer->at = find_end(lexer, &token);
	token.length = lexer->at - token.at;
	return token;
}

bool
sql_token_is(const sql_lexer *lexer, const sql_token *token, const char *word)
{
	if (token->kind != SQL_WORD || strlen(word) != token->length)
		return false;
	for (uint32_t i = 0; i < token->length; i++)
	{
		char		c = lexer->text[token->at + i];

		if ((c >= 'A' && c <= 'Z' ? c + ('a' - 'A') : c) != word[i])
			return false;
	}
	return true;
}
