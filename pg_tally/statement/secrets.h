/* SPDX-License-Identifier: PostgreSQL */
/*
 * secrets.h
 *	  Which parts of a statement's text may be a password, or contain one, and so are not kept.
 *
 * What is certain to be harmless is kept, and all else is hidden: a string may be a connection string, an argument of dblink,
 * a key, a command with a token. Knows nothing of the server: its caller says what kind of statement it is, and which settings' values
 * may be shown. docs/security.md has the list for users.
 */
#ifndef PG_TALLY_SECRETS_H
#define PG_TALLY_SECRETS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum secrets_kind
{
	SECRETS_NONE,				/* nothing is hidden */
	SECRETS_SETTING,			/* SET and the like: values of settings */
	SECRETS_STRINGS,			/* strings, values of settings, comments with a quote */
	SECRETS_CODE,				/* the same, but a string in dollar quotes is SQL or PL/pgSQL, in which strings are hidden */
	SECRETS_ALL,				/* strings, values of settings, all comments */
	SECRETS_CONSTANTS			/* strings, of a query */
} secrets_kind;

/* May the value of this setting be shown? `sure`: it is a setting, and no column of a table. */
typedef bool (*secrets_setting) (const char *name, bool sure);

/* A constant that the caller knows. */
typedef struct secrets_place
{
	uint32_t	at;
	uint32_t	length;			/* 0: to the end of the token, or of the one after a minus sign */
	bool		list;			/* it is that of a list, of which more items are replaced */
} secrets_place;

typedef struct secrets_text
{
	const char *bytes;
	uint32_t	length;
	bool		backslashes;	/* standard_conforming_strings is off */
	bool		numbers;		/* are hidden, too */
	secrets_kind kind;
	secrets_setting is_shown;
	const secrets_place *places;	/* in ascending order */
	uint32_t	place_count;
} secrets_text;

/* A text in which what is hidden is replaced, comments too. */
typedef struct secrets_masked
{
	char	   *bytes;			/* without a terminator; NULL: is allocated when something is replaced */
	uint32_t	size;			/* of which no more is written */
	void	   *(*allocate) (size_t size);
	int			number;			/* the last that is in use: the next constant becomes $(number + 1) */
	uint64_t	length;			/* of the whole, or more than `size` */
} secrets_masked;

/* What is hidden, and the caller's places, are replaced. `bytes` is still NULL: the text is shown as it is. */
extern void secrets_mask(const secrets_text *text, secrets_masked *masked);

/*
 * A message whose statements have not been analysed yet: of one query constants are hidden, of all else what is hidden in any
 * statement. It needs neither memory nor the server: `bytes` is the caller's.
 */
extern void secrets_mask_message(const char *bytes, uint32_t length, bool backslashes, secrets_masked *masked);

/*
 * What the text alone says of the kind: SECRETS_NONE of one statement that reads or changes rows, SECRETS_STRINGS of another one
 * or an expression, SECRETS_ALL of several statements.
 */
extern secrets_kind secrets_kind_of_text(const secrets_text *text);

/* The highest number of a parameter; 0: there is none. */
extern int	secrets_highest_parameter(const secrets_text *text);

#endif							/* PG_TALLY_SECRETS_H */
