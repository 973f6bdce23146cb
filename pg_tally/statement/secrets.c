/* SPDX-License-Identifier: PostgreSQL */
/*
 * secrets.c
 *	  See secrets.h.
 *
 * The tokens are read in one pass. Everything after SET name = or SET name TO is the value of a setting, because it need not be
 * a string: SET app.password = hunter2. Text that cannot be tokenised with certainty is hidden to its end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/sql_lexer.h"
#include "statement/secrets.h"

#define NAME_SIZE 160			/* of a setting: two names of 63 bytes, quotes, white space */
#define HIDDEN_COMMENT "/* ... */"
#define MORE " /*, ... */"			/* stands for a list's items after the first */
#define MARK_SIZE (12 + sizeof(MORE))	/* "$", a number of 32 bits, MORE */

/* The state of parsing a SET. */
typedef enum set_state
{
	SET_NONE,
	SET_NAME,					/* after SET: in the name */
	SET_VALUE,					/* a value follows, which is hidden */
	SET_MORE					/* after a hidden value */
} set_state;

typedef struct walk
{
	const secrets_text *text;
	secrets_masked *to;
	uint32_t	copied;
	uint32_t	place;				/* the next of the caller's constants */
	bool		hidden;				/* a part of this statement has been hidden */
	bool		done;
	bool		within;				/* inside code in dollar quotes */
	set_state	set;
	char		name[NAME_SIZE];
	uint32_t	name_length;		/* may exceed the buffer's size */
} walk;

static void
append(secrets_masked *to, const char *from, uint32_t count)
{
	uint32_t	left = to->length < to->size ? to->size - (uint32_t) to->length : 0;

	memcpy(to->bytes + to->size - left, from, count < left ? count : left);
	to->length += count;
}

/* Copy the text up to this part, and replace the part by the mark. */
static void
hide(walk *w, uint32_t at, uint32_t length, const char *mark)
{
	secrets_masked *to = w->to;

	if (length == 0 || w->done)
		return;
	if (to->bytes == NULL)
		to->bytes = to->allocate(to->size);
	append(to, w->text->bytes + w->copied, at - w->copied);
	append(to, mark, (uint32_t) strlen(mark));
	w->copied = at + length;
	/* nothing beyond the size is needed */
	w->done = to->length > to->size;
}

static void
hide_constant(walk *w, uint32_t at, uint32_t length, bool list)
{
	char		mark[MARK_SIZE];

	if (length == 0)
		return;
	snprintf(mark, sizeof(mark), "$%d%s", ++w->to->number, list ? MORE : "");
	w->hidden = true;
	hide(w, at, length, mark);
}

/* ---------------------------------------------------------------- SET name = value */

static void
name_add(walk *w, const char *bytes, uint32_t length)
{
	for (uint32_t i = 0; i < length; i++)
	{
		if (bytes[i] == '"')
			continue;
		if (w->name_length < NAME_SIZE - 1)
			w->name[w->name_length] = bytes[i];
		w->name_length++;
	}
}

static bool
name_is_shown(walk *w)
{
	if (w->name_length == 0 || w->name_length >= NAME_SIZE)
		return false;
	w->name[w->name_length] = '\0';
	return w->text->is_shown(w->name, w->text->kind == SECRETS_SETTING);
}

/* Process a token that is neither white space nor comment. True if it is, or belongs to, a hidden value. */
static bool
follow_set(walk *w, const sql_lexer *l, const sql_token *token)
{
	const char *bytes = l->text + token->at;
	bool		comma = token->kind == SQL_OTHER && *bytes == ',';

	switch (w->set)
	{
		case SET_VALUE:
			if (token->kind == SQL_OPERATOR)
				return false;	/* the sign of a number */
			w->set = SET_MORE;
			return !sql_token_is(l, token, "default");
		case SET_MORE:
			if (comma)
			{
				w->set = SET_VALUE;
				return false;
			}
			/* in a statement of settings, nothing follows the value */
			if (w->text->kind == SECRETS_SETTING && !w->within)
				return token->kind != SQL_OTHER || *bytes != ';';
			w->set = SET_NONE;
			break;
		case SET_NAME:
			if ((token->kind == SQL_OPERATOR && token->length == 1 && *bytes == '=') || sql_token_is(l, token, "to"))
			{
				w->set = w->name_length == 0 || name_is_shown(w) ? SET_NONE : SET_VALUE;
				return false;
			}
			if (w->name_length == 0 && (sql_token_is(l, token, "local") || sql_token_is(l, token, "session")))
				return false;
			if (token->kind == SQL_WORD || token->kind == SQL_NAME || (token->kind == SQL_OTHER && *bytes == '.'))
			{
				name_add(w, bytes, token->length);
				return false;
			}
			w->set = SET_NONE;
			break;
		case SET_NONE:
			break;
	}
	if (sql_token_is(l, token, "set"))
	{
		w->set = SET_NAME;
		w->name_length = 0;
	}
	return false;
}

/* ---------------------------------------------------------------- tokens */

/* The caller's constant that begins here, or NULL. */
static const secrets_place *
place_at(walk *w, const sql_token *token)
{
	const secrets_text *text = w->text;

	while (w->place < text->place_count && text->places[w->place].at < token->at)
		w->place++;
	return w->place < text->place_count && text->places[w->place].at == token->at ? &text->places[w->place] : NULL;
}

static uint32_t
place_end(const secrets_place *place, const sql_lexer *l, const sql_token *token)
{
	sql_lexer	after = *l;

	if (place->length != 0)
		return place->at + place->length;
	/* the location of a negative number is its sign */
	if (token->kind == SQL_OPERATOR && l->text[token->at] == '-')
	{
		sql_token	number;

		do
			number = sql_lexer_next(&after);
		while (number.kind == SQL_BLANK || number.kind == SQL_COMMENT);
		return number.at + number.length;
	}
	return token->at + token->length;
}

static bool
is_hidden_comment(const walk *w, const sql_lexer *l, const sql_token *token)
{
	switch (w->text->kind)
	{
		case SECRETS_NONE:
		case SECRETS_CONSTANTS:
			return false;
		case SECRETS_ALL:
			return true;
		case SECRETS_SETTING:
		case SECRETS_STRINGS:
		case SECRETS_CODE:
			return (w->text->kind == SECRETS_SETTING && w->hidden) || !token->ended || memchr(l->text + token->at, '\'', token->length) != NULL;
	}
	return true;
}

static bool
is_hidden(const walk *w, const sql_token *token)
{
	bool		string = token->kind == SQL_STRING || token->kind == SQL_DOLLAR;

	switch (w->text->kind)
	{
		case SECRETS_NONE:
		case SECRETS_SETTING:
			return false;
		case SECRETS_CONSTANTS:
		case SECRETS_STRINGS:
		case SECRETS_CODE:
		case SECRETS_ALL:
			return string || !token->ended || (w->text->numbers && token->kind == SQL_NUMBER);
	}
	return true;
}

static void walk_tokens(walk *w, uint32_t from, uint32_t end);

/* Code in dollar quotes: show the quotes and the harmless parts between them. */
static void
walk_code(walk *w, const sql_token *token)
{
	w->within = true;
	w->set = SET_NONE;
	walk_tokens(w, token->at + token->tag, token->at + token->length - token->tag);
	w->within = false;
	w->set = SET_NONE;
}

static void
walk_tokens(walk *w, uint32_t from, uint32_t end)
{
	secrets_kind kind = w->text->kind;
	sql_lexer	l = {.text = w->text->bytes,.end = end,.at = from,.backslashes = w->text->backslashes};

	while (!w->done)
	{
		sql_token	token = sql_lexer_next(&l);
		const secrets_place *place;

		if (token.kind == SQL_END)
			return;
		if (token.kind == SQL_BLANK)
			continue;
		if (token.kind == SQL_COMMENT)
		{
			if (is_hidden_comment(w, &l, &token))
				hide(w, token.at, token.length, HIDDEN_COMMENT);
			continue;
		}
		place = place_at(w, &token);
		if (place != NULL)
		{
			uint32_t	until = place_end(place, &l, &token);

			l.at = until > end ? end : until;
			(void) follow_set(w, &l, &token);
			hide_constant(w, token.at, l.at - token.at, place->list);
		}
		else if (kind != SECRETS_NONE && token.unclear)
		{
			hide_constant(w, token.at, end - token.at, false);
			return;
		}
		else if (kind == SECRETS_NONE || kind == SECRETS_CONSTANTS)
		{
			if (is_hidden(w, &token))
				hide_constant(w, token.at, token.length, false);
		}
		else if (follow_set(w, &l, &token))
			hide_constant(w, token.at, token.length, false);
		else if (kind == SECRETS_CODE && token.kind == SQL_DOLLAR && token.ended && !w->within)
			walk_code(w, &token);
		else if (is_hidden(w, &token))
			hide_constant(w, token.at, token.length, false);
	}
}

void
secrets_mask(const secrets_text *text, secrets_masked *masked)
{
	walk		w = {.text = text,.to = masked};

	masked->length = 0;
	walk_tokens(&w, 0, text->length);
	if (masked->bytes != NULL)
		append(masked, text->bytes + w.copied, text->length - w.copied);
}

/* ---------------------------------------------------------------- without a parse tree */

secrets_kind
secrets_kind_of_text(const secrets_text *text)
{
	static const char *const beginnings[] = {"select", "insert", "update", "delete", "merge", "with", "values", "table"};
	const char *bytes = text->bytes;
	sql_lexer	l = {.text = bytes,.end = text->length,.backslashes = text->backslashes};
	secrets_kind kind = SECRETS_STRINGS;
	bool		begun = false;
	bool		ended = false;

	for (;;)
	{
		sql_token	token = sql_lexer_next(&l);

		if (token.kind == SQL_END)
			return kind;
		/* (SELECT ...) UNION ... */
		if (token.kind == SQL_BLANK || token.kind == SQL_COMMENT ||
			(!begun && token.kind == SQL_OTHER && bytes[token.at] == '('))
			continue;
		if (ended)
			return SECRETS_ALL;
		for (size_t i = 0; !begun && i < sizeof(beginnings) / sizeof(beginnings[0]); i++)
			if (sql_token_is(&l, &token, beginnings[i]))
				kind = SECRETS_NONE;
		if (!begun && memchr(bytes, ';', text->length) == NULL)
			return kind;
		/* the text after it may belong to it, or be another statement */
		if (token.unclear)
			return SECRETS_ALL;
		begun = true;
		ended = token.kind == SQL_OTHER && bytes[token.at] == ';';
	}
}

/* Used where the server's settings cannot be queried. */
static bool
none_is_shown(const char *name, bool sure)
{
	return false;
}

void
secrets_mask_message(const char *bytes, uint32_t length, bool backslashes, secrets_masked *masked)
{
	secrets_text text = {
		.bytes = bytes,
		.length = length,
		.backslashes = backslashes,
		.numbers = true,
		.is_shown = none_is_shown,
	};

	text.kind = secrets_kind_of_text(&text) == SECRETS_NONE ? SECRETS_CONSTANTS : SECRETS_ALL;
	masked->number = secrets_highest_parameter(&text);
	secrets_mask(&text, masked);
}

int
secrets_highest_parameter(const secrets_text *text)
{
	sql_lexer	l = {.text = text->bytes,.end = text->length,.backslashes = text->backslashes};
	int			highest = 0;

	for (;;)
	{
		sql_token	token = sql_lexer_next(&l);
		long		number;

		if (token.kind == SQL_END)
			return highest;
		if (token.kind != SQL_PARAMETER || token.length > 10)
			continue;
		number = strtol(text->bytes + token.at + 1, NULL, 10);
		if (number > highest && number < INT32_MAX)
			highest = (int) number;
	}
}
