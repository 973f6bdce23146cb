/* SPDX-License-Identifier: PostgreSQL */
/*
 * start.c
 *	  Opens or creates the segment's file, and installs probes and hooks.
 */
#include "base/compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/file_perm.h"
#include "postmaster/postmaster.h"

#include "base/own_segment.h"
#include "base/settings.h"
#include "ledger/names.h"
#include "lock/lock_detours.h"
#include "probe/messages.h"
#include "probe/probe.h"
#include "statement/statement.h"
#include "statement/statement_usage.h"
#include "wal/wal.h"
#include "start.h"

static const char *
remedy_for(int error)
{
	switch (error)
	{
		case ENOSPC:
		case ENOMEM:
			return "The segment uses at most a quarter of the file system and leaves another quarter, at most 256 MB, free. Free space there, set pg_tally.directory to another directory, or lower pg_tally.max_slots.";
		case EMEDIUMTYPE:
			return "The directory is not on tmpfs, so the segment would be written to disk. Set pg_tally.directory to a directory on tmpfs, such as /dev/shm, or set pg_tally.directory_on_disk = on.";
		case EPERM:
			return "The file belongs to another user. Find out who owns it, and have it removed.";
		default:
			return NULL;
	}
}

void
segment_failed(int level, const char *what, int error)
{
	snprintf(own.failure, sizeof(own.failure), "%s: %s", what, strerror(error));
	own.remedy = remedy_for(error);
	ereport(level,
			(errmsg("pg_tally is not active: %s", own.failure),
			 errhint("%s", own.remedy != NULL ? own.remedy : "See tally.status.")));
}

bool
segment_name(int elevel)
{
	int			error = pg_tally_path_in(settings->directory, own.path, sizeof(own.path));

	if (error != 0)
		segment_failed(elevel, DataDir, error);
	return error == 0;
}

int
segment_open(tally_segment *opened)
{
	tally_options options;
	char		socket_dir[MAXPGPATH] = "";

	tally_options_init(&options);
	options.slots = settings_slots();
	options.groups = (uint32) settings->groups;
	options.stats_per_book = (uint32) settings->statistics;
	options.directory = (uint32) settings->names;
	options.events = (uint32) settings->events;
	options.statements = settings->statements == 0 ? 0 : (uint32) Max(settings->statements, 100);
	options.plans = options.statements == 0 ? 0 : (uint32) settings->plans;
	options.files = (uint32) settings->files;
	options.relations = (uint32) settings->relations;
	options.traces = (uint32) settings->traces;
	options.mode = (uint32) pg_file_create_mode;
	options.level = (tally_level) settings->level;
	options.host = DataDir;
	options.producer = "pg_tally " PG_TALLY_VERSION;
	options.server = "PostgreSQL " PG_VERSION;
	options.server_pid = (uint32) PostmasterPid;
	options.server_port = (uint32) PostPortNumber;
	options.system_id = GetSystemIdentifier();
	options.flags = own.shared ? TALLY_SEGMENT_SERVER : 0;
	/* a session accepts an existing segment as it is, because others use it */
	options.any_capacities = !own.shared;
	options.any_file_system = settings->directory_on_disk;
	if (own.shared && settings->statements > 0 && IsPostmasterEnvironment)
		options.prepare = statement_file_load;
	if (Unix_socket_directories != NULL)
	{
		/* The first directory in the list, as it stands there. */
		strlcpy(socket_dir, Unix_socket_directories, sizeof(socket_dir));
		socket_dir[strcspn(socket_dir, ",")] = '\0';
	}
	options.socket_dir = socket_dir;
	return tally_open(own.path, &options, opened);
}

void
install_probes(void)
{
	char		reason[120];

	imports_install();
	custom_waits_install();
	if (settings->statements > 0)
		temp_files_install();
	/* Stubs made before the first fork are shared by all processes. */
	if (own.shared || settings->level >= TALLY_LEVEL_LOCKS)
		locks_prepare();
	own.messages_installed = messages_install(reason, sizeof(reason));
	if (!own.messages_installed && (own.shared || own.segment.created))
		ereport(LOG,
				(errmsg("pg_tally cannot distinguish the phases of sessions: %s", reason)));
}

void
install_hooks(bool with_statements)
{
	if (with_statements)
		statements_install();
	commits_install();
}
