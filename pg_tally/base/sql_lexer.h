/* SPDX-License-Identifier: PostgreSQL */
/*
 * sql_lexer.h
 *	  Finds the tokens of an SQL text, as the server's scanner (scan.l) does.
 *
 * Unlike the server's scanner, it raises no errors, allocates nothing, and accepts any text, complete or not: an unterminated
 * token extends to the end of the text. Each byte belongs to exactly one token. PL/pgSQL has the same tokens.
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
	SQL_STRING,					/* of any kind, including its continuations */
	SQL_DOLLAR,					/* dollar-quoted string */
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
	uint32_t	tag;			/* SQL_DOLLAR: length of the opening tag, and of the closing one if it is terminated */
	bool		ended;			/* false: unterminated, the text ends within it */
	bool		unclear;		/* SQL_STRING: its end depends on standard_conforming_strings */
} sql_token;

typedef struct sql_lexer
{
	const char *text;
	uint32_t	end;
	uint32_t	at;				/* position of the next token */
	bool		backslashes;	/* standard_conforming_strings is off */
} sql_lexer;

extern sql_token sql_lexer_next(sql_lexer *lexer);

/* Is the token this word (given in lower case), ignoring case? */
extern bool sql_token_is(const sql_lexer *lexer, const sql_token *token, const char *word);

#endif							/* PG_TALLY_SQL_LEXER_H */
