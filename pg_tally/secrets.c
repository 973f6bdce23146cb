/* SPDX-License-Identifier: PostgreSQL */
/*
 * secrets.c
 *	  See secrets.h.
 *
 * The tokens are read once. A value of a setting is whatever stands after SET name = or SET name TO, for it need not be a
 * string: SET app.password = hunter2. What cannot be divided with certainty is hidden to its end.
 */
#include <stdlib.h>
#include <string.h>

#include "secrets.h"
#include "sql_lexer.h"

#define NAME_SIZE 160			/* of a setting: two names of 63 bytes, quotes, blanks */

/* How far a SET has come. */
typedef enum set_state
{
	SET_NONE,
	SET_NAME,					/* after SET: a name, or parts of it */
	SET_VALUE,					/* a value is next, which is hidden */
	SET_MORE					/* after a value that was hidden */
} set_state;

typedef struct walk
{
	const secrets_text *text;
	secrets_found found;
	void	   *to;
	uint32_t	place;				/* next of the caller's */
	bool		hidden;				/* a part of this statement was hidden */
	bool		done;
	bool		within;				/* code in dollar quotes */
	set_state	set;
	char		name[NAME_SIZE];
	uint32_t	name_length;		/* may be more than its size */
} walk;

static void
hide(walk *w, uint32_t at, uint32_t length, bool comment, bool known)
{
	const secrets_part part = {at, length, comment, known};

	if (length == 0 || w->done)
		return;
	w->hidden = w->hidden || !comment;
	w->done = !w->found(&part, w->to);
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

/* Follow a token that is neither blank nor comment. True: it is, or belongs to, a value that is hidden. */
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
			/* no statement of settings has anything after its value */
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

/* The end of the caller's constant that begins here; 0: none does. */
static uint32_t
place_end(walk *w, const sql_lexer *l, const sql_token *token)
{
	const secrets_text *text = w->text;
	const secrets_place *place;
	sql_lexer	after = *l;

	while (w->place < text->place_count && text->places[w->place].at < token->at)
		w->place++;
	if (w->place == text->place_count || text->places[w->place].at != token->at)
		return 0;
	place = &text->places[w->place++];
	if (place->length != 0)
		return place->at + place->length;
	/* a negative number is located at its sign */
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
			if (w->hidden)
				return true;
			/* fall through */
		case SECRETS_STRINGS:
		case SECRETS_CODE:
			return !token->ended || memchr(l->text + token->at, '\'', token->length) != NULL;
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

/* Code in dollar quotes: its quotes are shown, and of what is within only what is not hidden. */
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
		uint32_t	place;

		if (token.kind == SQL_END)
			return;
		if (token.kind == SQL_BLANK)
			continue;
		if (token.kind == SQL_COMMENT)
		{
			if (is_hidden_comment(w, &l, &token))
				hide(w, token.at, token.length, true, false);
			continue;
		}
		place = place_end(w, &l, &token);
		if (place != 0)
		{
			place = place > end ? end : place;
			(void) follow_set(w, &l, &token);
			hide(w, token.at, place - token.at, false, true);
			l.at = place;
		}
		else if (kind != SECRETS_NONE && kind != SECRETS_CONSTANTS && token.unclear)
		{
			hide(w, token.at, end - token.at, false, false);
			return;
		}
		else if (kind == SECRETS_NONE || kind == SECRETS_CONSTANTS)
		{
			if (is_hidden(w, &token))
				hide(w, token.at, token.length, false, false);
		}
		else if (follow_set(w, &l, &token))
			hide(w, token.at, token.length, false, false);
		else if (kind == SECRETS_CODE && token.kind == SQL_DOLLAR && token.ended && !w->within)
			walk_code(w, &token);
		else if (is_hidden(w, &token))
			hide(w, token.at, token.length, false, false);
	}
}

void
secrets_find(const secrets_text *text, secrets_found found, void *to)
{
	walk		w = {.text = text,.found = found,.to = to};

	walk_tokens(&w, 0, text->length);
}

/* ---------------------------------------------------------------- without a tree */

secrets_kind
secrets_kind_of_text(const char *bytes, uint32_t length)
{
	static const char *const beginnings[] = {"select", "insert", "update", "delete", "merge", "with", "values", "table"};
	sql_lexer	l = {.text = bytes,.end = length};
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
		if (!begun && memchr(bytes, ';', length) == NULL)
			return kind;
		begun = true;
		ended = token.kind == SQL_OTHER && bytes[token.at] == ';';
	}
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
