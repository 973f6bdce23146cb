/* SPDX-License-Identifier: PostgreSQL */
/*
 * account_class.c
 *	  The class of an account (ledger.h), from its name. Wait event types are those of pg_stat_activity.wait_event_type, and
 *	  our own type "Call", for calls that may block although the server announces no wait event.
 */
#include "base/compat.h"

#include <string.h>

#include "ledger/ledger.h"
#include "ledger/wait_prefixes.h"
#include "tally_read.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static int
begins_with(const char *text, const char *prefix)
{
	return text[0] == prefix[0] && strncmp(text, prefix, strlen(prefix)) == 0;
}

tally_account_class
account_class_of(const char *name)
{
	const char *activity = strstr(name, "::");

	if (activity == NULL)
		return TALLY_CLASS_OTHER;
	if (strcmp(activity, "::cpu") == 0)
		return TALLY_CLASS_CPU;
	if (!begins_with(activity, "::wait::"))
		return TALLY_CLASS_OTHER;
	activity += strlen("::wait::");
	for (size_t i = 0; i < LENGTH(wait_prefixes); i++)
		if (begins_with(activity, wait_prefixes[i].prefix))
			return wait_prefixes[i].class;
	return TALLY_CLASS_OTHER;
}

uint32_t
account_register(tally_segment *segment, const char *name)
{
	return tally_register_account(segment, name, account_class_of(name));
}

tally_account_class
account_class(const tally_segment *segment, uint32_t stat)
{
	tally_dir_entry entry;

	if (stat == 0 || tally_read_name(segment, stat - 1, &entry) == TALLY_READ_ABSENT)
		return TALLY_CLASS_OTHER;
	/* registered by an earlier version, and not used by any process since */
	if (entry.account_class == TALLY_CLASS_UNKNOWN)
		return account_class_of(entry.name);
	return (tally_account_class) entry.account_class;
}
