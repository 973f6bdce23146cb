/* SPDX-License-Identifier: PostgreSQL */
/*
 * secrets.h
 *	  Hides the parts of a statement's text that may be or contain a password.
 *
 * Only parts that are certainly harmless are kept: a string may be a connection string, an argument of dblink, a key, or a
 * command with a token. This module knows nothing about the server: its caller says what kind of statement it is, and which
 * settings' values may be shown. docs/security.md has the list for users.
 */
#ifndef PG_TALLY_SECRETS_H
#define PG_TALLY_SECRETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum secrets_kind
{
	SECRETS_NONE,				/* nothing is hidden */
	SECRETS_SETTING,			/* SET and the like: hide values of settings */
	SECRETS_STRINGS,			/* hide strings, values of settings, comments with a quote */
	SECRETS_CODE,				/* the same, but dollar-quoted strings are SQL or PL/pgSQL, in which strings are hidden */
	SECRETS_ALL,				/* hide strings, values of settings, all comments */
	SECRETS_CONSTANTS			/* hide the strings of a query */
} secrets_kind;

/* May the value of this setting be shown? `sure`: it is certainly a setting, not a column of a table. */
typedef bool (*secrets_setting) (const char *name, bool sure);

/* A constant located by the caller. */
typedef struct secrets_place
{
	uint32_t	at;
	uint32_t	length;			/* 0: to the end of the token, or of the token after a minus sign */
	bool		list;			/* stands for a list, whose further items are replaced, too */
} secrets_place;

typedef struct secrets_text
{
	const char *bytes;
	uint32_t	length;
	bool		backslashes;	/* standard_conforming_strings is off */
	bool		numbers;		/* hide numbers, too */
	secrets_kind kind;
	secrets_setting is_shown;
	const secrets_place *places;	/* in ascending order */
	uint32_t	place_count;
} secrets_text;

/* The text with the hidden parts, including comments, replaced. */
typedef struct secrets_masked
{
	char	   *bytes;			/* not terminated; NULL: allocated when something is replaced */
	uint32_t	size;			/* no more bytes than this are written */
	void	   *(*allocate) (size_t size);
	int			number;			/* the last number in use: the next constant becomes $(number + 1) */
	uint64_t	length;			/* of the whole text, or any number above `size` */
} secrets_masked;

/* Replace the parts to be hidden, and the caller's constants. If `bytes` is still NULL, the text can be shown as it is. */
extern void secrets_mask(const secrets_text *text, secrets_masked *masked);

/*
 * Mask a message whose statements have not been analysed yet: in a single query the constants, otherwise everything that is
 * hidden in any statement. Needs neither memory nor the server; the caller provides `bytes`.
 */
extern void secrets_mask_message(const char *bytes, uint32_t length, bool backslashes, secrets_masked *masked);

/*
 * Derive the kind from the text alone: SECRETS_NONE for a single statement that reads or changes rows, SECRETS_STRINGS for
 * another single statement or an expression, SECRETS_ALL for several statements.
 */
extern secrets_kind secrets_kind_of_text(const secrets_text *text);

/* The highest parameter number, or 0. */
extern int	secrets_highest_parameter(const secrets_text *text);

#endif							/* PG_TALLY_SECRETS_H */
