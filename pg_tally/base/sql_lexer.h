/* SPDX-License-Identifier: PostgreSQL */
/*
 * sql_lexer.h
 *	  Where the tokens of an SQL text are, as the server's scanner divides it (scan.l).
 *
 * Unlike that one it raises no error, allocates nothing, and takes any text, of any statement or part of one: what has no end
 * is one token that lasts until the end of the text. Each byte is in one token. PL/pgSQL has the same tokens.
 */
#ifndef PG_TALLY_SQL_LEXER_H
#define PG_TALLY_SQL_LEXER_H

#include <stdbool.h>
#include <stdint.h>

typedef enum sql_token_kind
{
	SQL_END,
	SQL_BLANK,
	SQL_COMMENT,
	SQL_WORD,					/* keyword or name */
	SQL_NAME,					/* in double quotes */
	SQL_STRING,					/* of any kind, with its continuations */
	SQL_DOLLAR,					/* string in dollar quotes */
	SQL_NUMBER,
	SQL_PARAMETER,				/* $1 */
	SQL_OPERATOR,
	SQL_OTHER					/* a single character */
} sql_token_kind;

typedef struct sql_token
{
	sql_token_kind kind;
	uint32_t	at;
	uint32_t	length;
	uint32_t	tag;			/* SQL_DOLLAR: bytes before its content, and after it if it has an end */
	bool		ended;			/* false: the text ends within it */
	bool		unclear;		/* SQL_STRING: where it ends depends on standard_conforming_strings */
} sql_token;

typedef struct sql_lexer
{
	const char *text;
	uint32_t	end;
	uint32_t	at;				/* of the next token */
	bool		backslashes;	/* standard_conforming_strings is off */
} sql_lexer;

extern sql_token sql_lexer_next(sql_lexer *lexer);

/* Is it this word, in lower case, without regard to case? */
extern bool sql_token_is(const sql_lexer *lexer, const sql_token *token, const char *word);

#endif							/* PG_TALLY_SQL_LEXER_H */
