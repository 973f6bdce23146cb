/* SPDX-License-Identifier: PostgreSQL */
/*
 * visibility.c
 *	  See visibility.h.
 */
#include "compat.h"

#include "catalog/pg_authid.h"
#include "miscadmin.h"
#include "utils/acl.h"

#include "own_session.h"
#include "visibility.h"

viewer
viewer_now(void)
{
	Oid			role = GetUserId();

	/* what asks for the segment may be tally */
	own_session_ask();
	return (viewer) {
		.role = role,
		.sees_all = has_privs_of_role(role, ROLE_PG_READ_ALL_STATS),
		.sees_settings = has_privs_of_role(role, ROLE_PG_READ_ALL_SETTINGS),
	};
}

bool
viewer_sees_session(const viewer *v, Oid user, tally_read_result copy)
{
	return v->sees_all ||
		(copy == TALLY_READ_CONSISTENT && OidIsValid(user) && has_privs_of_role(v->role, user));
}

bool
viewer_sees_statement(const viewer *v, Oid user, tally_read_result copy)
{
	return v->sees_all || (copy == TALLY_READ_CONSISTENT && user == v->role);
}
