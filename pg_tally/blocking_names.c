/* SPDX-License-Identifier: PostgreSQL */
/*
 * blocking_names.c
 *	  The names of what a blocked process waits for (blocking_names.h).
 */
#include "blocking_names.h"

#include <stdio.h>

#include "storage/lmgr.h"
#include "storage/lock.h"

void
blocking_object(const tally_blocked *blocked, char *text, size_t size)
{
	const uint32 *field = blocked->field;

	switch (blocked->type)
	{
		case LOCKTAG_TRANSACTION:
			snprintf(text, size, "%u", field[0]);
			break;
		case LOCKTAG_VIRTUALTRANSACTION:
			snprintf(text, size, "%u/%u", field[0], field[1]);
			break;
		case LOCKTAG_ADVISORY:
			/* field4 is 1 for one key of 64 bits, 2 for two of 32 */
			if (blocked->field4 == 1)
				snprintf(text, size, INT64_FORMAT, (int64) ((uint64) field[1] << 32 | field[2]));
			else
				snprintf(text, size, "%d, %d", (int32) field[1], (int32) field[2]);
			break;
		case LOCKTAG_OBJECT:
			snprintf(text, size, "%u of class %u", field[2], field[1]);
			break;
		default:
			snprintf(text, size, "%u %u %u %u", field[0], field[1], field[2], blocked->field4);
	}
}

void
blocking_lock(const tally_blocked *blocked, char *text, size_t size)
{
	const uint32 *field = blocked->field;
	char		object[64];

	switch (blocked->type)
	{
		case LOCKTAG_RELATION:
			snprintf(text, size, "relation %u", field[1]);
			break;
		case LOCKTAG_RELATION_EXTEND:
			snprintf(text, size, "extension of relation %u", field[1]);
			break;
		case LOCKTAG_PAGE:
			snprintf(text, size, "page %u of relation %u", field[2], field[1]);
			break;
		case LOCKTAG_TUPLE:
			snprintf(text, size, "row (%u,%u) of relation %u", field[2], blocked->field4, field[1]);
			break;
		case LOCKTAG_TRANSACTION:
			snprintf(text, size, "transaction %u", field[0]);
			break;
		default:
			blocking_object(blocked, object, sizeof(object));
			snprintf(text, size, "%s lock %s",
					 blocked->type <= LOCKTAG_LAST_TYPE ? GetLockNameFromTagType(blocked->type) : "unknown", object);
	}
}

/* What the segment holds need not be what the server knows. */
const char *
blocking_mode(const tally_blocked *blocked)
{
	if (blocked->mode > MaxLockMode)
		return NULL;
	return GetLockmodeName(blocked->method == USER_LOCKMETHOD ? USER_LOCKMETHOD : DEFAULT_LOCKMETHOD,
						   blocked->mode);
}
