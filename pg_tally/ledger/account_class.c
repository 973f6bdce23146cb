/* SPDX-License-Identifier: PostgreSQL */
/*
 * account_class.c
 *	  The class of an account (ledger.h). Wait event types are those of pg_stat_activity.wait_event_type, and our own
 *	  type "Call", for calls that may block although the server announces no wait event.
 */
#include "base/compat.h"

#include <string.h>

#include "ledger/ledger.h"
#include "tally_read.h"

#define LENGTH(a) (sizeof(a) / sizeof((a)[0]))

static const struct
{
	const char *type;
	tally_account_class class;
}			types[] = {
	{"IO:", TALLY_CLASS_IO},
	{"Lock:", TALLY_CLASS_LOCK},
	{"LWLock:", TALLY_CLASS_LWLOCK},
	{"Client:", TALLY_CLASS_CLIENT},
	{"IPC:", TALLY_CLASS_IPC},
	{"Timeout:", TALLY_CLASS_TIMEOUT},
	{"Activity:", TALLY_CLASS_ACTIVITY},
	{"BufferPin:", TALLY_CLASS_BUFFER_PIN},
	/* since 19: buffer pins of others, and content locks, which were lightweight locks before */
	{"Buffer:BufferCleanup", TALLY_CLASS_BUFFER_PIN},
	{"Buffer:", TALLY_CLASS_LWLOCK},
	{"Extension:", TALLY_CLASS_EXTENSION},
};

/* Calls that are not file operations. */
static const char *const other_calls[] = {
	"commit_delay", "epoll_wait", "getaddrinfo", "getnameinfo", "ldap_", "nanosleep", "pam_", "pclose",
	"popen", "select", "sem_wait", "system",
};

static int
begins_with(const char *text, const char *prefix)
{
	return text[0] == prefix[0] && strncmp(text, prefix, strlen(prefix)) == 0;
}

static tally_account_class
class_of_call(const char *call)
{
	for (size_t i = 0; i < LENGTH(other_calls); i++)
		if (begins_with(call, other_calls[i]))
			return TALLY_CLASS_OTHER;
	return TALLY_CLASS_IO;
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
	if (begins_with(activity, "Call:"))
		return class_of_call(activity + strlen("Call:"));
	for (size_t i = 0; i < LENGTH(types); i++)
		if (begins_with(activity, types[i].type))
			return types[i].class;
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
