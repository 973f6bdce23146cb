/* SPDX-License-Identifier: PostgreSQL */
/*
 * own_session.c
 *	  Recognises sessions of the tally command (ledger.h).
 */
#include "base/compat.h"

#include <string.h>

#include "access/xact.h"
#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "utils/acl.h"
#include "utils/guc.h"

#include "ledger/ledger.h"

#define MARK "/* tally */"

/* A role known to see everything, or InvalidOid. */
static Oid	trusted = InvalidOid;

static bool
has_name(void)
{
	return MyBackendType == B_BACKEND && application_name != NULL && strcmp(application_name, "tally") == 0;
}

/* The server caches the answer in a variable, so this reads no catalog. */
static bool
is_superuser(void)
{
	const char *value = GetConfigOption("is_superuser", true, false);

	return value != NULL && strcmp(value, "on") == 0;
}

bool
own_session(void)
{
	return has_name() && ((OidIsValid(trusted) && trusted == GetOuterUserId()) || is_superuser());
}

void
own_session_ask(void)
{
	Oid			role;

	if (!has_name() || !IsTransactionState())
		return;
	/* not the owner of a SECURITY DEFINER function */
	role = GetOuterUserId();
	if (role == trusted || !has_privs_of_role(role, ROLE_PG_READ_ALL_STATS))
		return;
	trusted = role;
	/* its kind is updated at the next wait */
	tally.identified = false;
}

uint32
own_session_false_mark(const char *text, uint32 length)
{
	const uint32 mark = sizeof(MARK) - 1;
	uint32		at = 0;

	while (length - at >= mark && memcmp(text + at, MARK, mark) == 0)
	{
		if (at == 0 && own_session())
			return 0;
		at += mark;
		while (at < length && strchr(" \t\n\r\f\v", text[at]) != NULL && text[at] != '\0')
			at++;
	}
	return at;
}
