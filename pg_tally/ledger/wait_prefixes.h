/* SPDX-License-Identifier: PostgreSQL */
/*
 * wait_prefixes.h
 *	  The class of a wait by the beginning of its name.
 *
 * Generated from format/classes.toml by `make generate`; do not edit.
 */
#ifndef PG_TALLY_WAIT_PREFIXES_H
#define PG_TALLY_WAIT_PREFIXES_H

#include "tally.h"

static const struct
{
	const char *prefix;
	tally_account_class class;
}			wait_prefixes[] = {
	{"Call:commit_delay", TALLY_CLASS_OTHER},
	{"Call:epoll_wait", TALLY_CLASS_OTHER},
	{"Call:getaddrinfo", TALLY_CLASS_OTHER},
	{"Call:getnameinfo", TALLY_CLASS_OTHER},
	{"Call:ldap_", TALLY_CLASS_OTHER},
	{"Call:nanosleep", TALLY_CLASS_OTHER},
	{"Call:pam_", TALLY_CLASS_OTHER},
	{"Call:pclose", TALLY_CLASS_OTHER},
	{"Call:popen", TALLY_CLASS_OTHER},
	{"Call:select", TALLY_CLASS_OTHER},
	{"Call:sem_wait", TALLY_CLASS_OTHER},
	{"Call:system", TALLY_CLASS_OTHER},
	{"Call:", TALLY_CLASS_IO},
	{"Buffer:BufferCleanup", TALLY_CLASS_BUFFER_PIN},
	{"Buffer:", TALLY_CLASS_LWLOCK},
	{"IO:", TALLY_CLASS_IO},
	{"Lock:", TALLY_CLASS_LOCK},
	{"LWLock:", TALLY_CLASS_LWLOCK},
	{"Client:", TALLY_CLASS_CLIENT},
	{"IPC:", TALLY_CLASS_IPC},
	{"Timeout:", TALLY_CLASS_TIMEOUT},
	{"Activity:", TALLY_CLASS_ACTIVITY},
	{"BufferPin:", TALLY_CLASS_BUFFER_PIN},
	{"Extension:", TALLY_CLASS_EXTENSION},
};

#endif							/* PG_TALLY_WAIT_PREFIXES_H */
