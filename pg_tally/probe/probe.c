/* SPDX-License-Identifier: PostgreSQL */
/*
 * probe.c
 *	  The life of this process's slot: claiming it, identity, phases, levels, retirement.
 *
 * This file has the rare events; ledger.h has the rules of the hot path.
 */
#include "base/compat.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "access/parallel.h"
#include "libpq/libpq-be.h"
#include "postmaster/postmaster.h"
#include "replication/walsender.h"
#include "tcop/tcopprot.h"
#include "utils/pidfile.h"

#include "base/own_segment.h"
#include "base/settings.h"
#include "ledger/ledger.h"
#include "ledger/names.h"
#include "probe/modules.h"
#include "probe/probe.h"
#include "trace/trace.h"
#include "wait/commit_parts.h"
#include "wait/interrupted_wait.h"
#include "wait/pending_wait.h"
#include "wait/statement_time.h"
#include "wal/wal_usage.h"

/* Forget the slot without touching it, because it belongs to another process or has ended. */
void
probe_forget(void)
{
	memset(&tally, 0, sizeof(tally));
	tally.level_word = &ledger_no_level;
	MODULES_CALL(begin);
}

/*
 * Claim a slot. Without one (all are in use, or the file system is full) this process runs
 * uninstrumented, and tries again when a slot becomes free: until then its level word is the
 * segment's free_slot_signal. The segment counts the refusals. Returns 0, or tally_claim's error.
 */
static int
claim(tally_segment *segment, tally_phase phase)
{
	tally_identity identity = {.kind = "starting"};
	uint32		signal = *(const volatile uint32 *) &segment->header->free_slot_signal;
	int			error;

	probe_forget();
	error = tally_claim(segment, &identity, &tally.slot);
	if (error != 0)
	{
		memset(&tally.slot, 0, sizeof(tally.slot));
		tally.word_seen = signal;
		tally.level_word = &segment->header->free_slot_signal;
		MODULES_CALL(apply_level);
		return error;
	}
	tally.claimed = true;
	tally.guessing = !own.messages_installed || !messages_seen();
	tally.special = true;
	tally.clock = segment->clock;
	tally.kind_seen = UINT32_MAX;
	memset(tally.cpu_index, 0xff, sizeof(tally.cpu_index));
	memset(tally.accounts, 0xff, sizeof(tally.accounts));
	MODULES_CALL(claimed);
	tally.off_index = probe_touch(TALLY_STAT_OFF, TALLY_ACCOUNT);
	tally.level_word = &segment->header->level_word;
	tally.word_seen = tally.slot.word;
	probe_set_phase(phase);
	if (TALLY_LEVEL_OF(tally.word_seen) != TALLY_LEVEL_OFF)
	{
		tally_begin(&tally.slot, tally.cpu);
		tally.on = true;
	}
	else
		tally_begin(&tally.slot, tally.off_index);
	MODULES_CALL(apply_level);
	return 0;
}

/* Called when a process starts or loads the library. A lack of slots is logged once. */
void
probe_claim(tally_segment *segment, tally_phase phase)
{
	int			error = claim(segment, phase);
	uint32		logged = 0;

	if (error != 0 &&
		__atomic_compare_exchange_n(&segment->header->refusal_logged, &logged, 1, false,
									__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		ereport(LOG,
				(errmsg("pg_tally could not instrument process %d, and possibly others: %s", (int) getpid(),
						error == ENOSPC ? "all slots are in use" : "no memory for a slot"),
				 error == ENOSPC
				 ? errhint("Increase pg_tally.max_slots (currently %u). Processes without a slot take one as soon as it becomes free.",
						   segment->cold.slots)
				 : errhint("Free space in the file system that contains \"%s\".", own.path)));
}

/* A slot has become free since this process was refused one. Called at a wait or a message, so it must not raise errors. */
static pg_noinline void
claim_again(void)
{
	static bool trying = false;
	tally_segment *segment = pg_tally_segment();
	int			saved_errno = errno;

	if (trying || segment == NULL)
		return;
	trying = true;
	(void) claim(segment, debug_query_string != NULL ? PHASE_SIMPLE_QUERY :
				 MyBackendType == B_BACKEND || MyBackendType == B_WAL_SENDER ? PHASE_IDLE : PHASE_BACKGROUND);
	trying = false;
	errno = saved_errno;
}

/* The process ends: merge the slot. */
void
probe_retire(void)
{
	bool		claimed = tally.claimed;
	tally_slot	slot;

	/* record a commit that ended before a reset */
	if (claimed && *(const volatile uint32 *) tally.level_word != tally.word_seen)
		probe_follow();
	MODULES_CALL(process_exit, probe_now());
	if (tally.on)
	{
		uint64		now = probe_now();

		tally.on = false;
		pending_settle();
		wal_check();
		statement_time_end_process(now);
		if (IsParallelWorker())
		{
			/* its time so far went to its statement; the rest is process exit */
			probe_set_phase(PHASE_TERMINATE);
			tally_switch_plain(&tally.slot, tally.cpu, now);
		}
	}
	/* all other state ends with the process */
	slot = tally.slot;
	memset(&tally.slot, 0, sizeof(tally.slot));
	tally.on = false;
	tally.claimed = false;
	tally.reads_messages = false;
	tally.level_word = &ledger_no_level;
	tally.word_seen = ledger_no_level;
	if (claimed)
		tally_retire(&slot);
}

/* Try again, at their next use, to register the names that could not be registered. */
static void
retry(void)
{
	if (likely(failed_names_count == 0))
		return;
	memset(tally.cache, 0, sizeof(tally.cache));
	memset(tally.accounts, 0xff, sizeof(tally.accounts));
	for (int i = 0; i < PHASE_COUNT; i++)
		if (tally.cpu_index[i] == 0)
			tally.cpu_index[i] = TALLY_NONE;
	MODULES_CALL(retry_names);
}

/*
 * The level word has changed: follow it at `now`. After a reset, the book starts with its running
 * account, or at the reset if that is later, and has no pending wait.
 */
void
probe_follow_at(uint64 now)
{
	uint32		before = tally.word_seen;
	bool		on = probe_counts(*(const volatile uint32 *) tally.level_word);

	tally_follow(&tally.slot, on ? tally.cpu : tally.off_index, now);
	/* it may have changed again since it was read */
	if (unlikely(probe_counts(tally.slot.word) != on))
		tally_switch_plain(&tally.slot, on ? tally.off_index : tally.cpu, now);
	tally.word_seen = tally.slot.word;
	MODULES_CALL(follow, before, tally.word_seen, tally.slot.book->born);
	MODULES_CALL(apply_level);
	tally.special = true;
	retry();
}

/*
 * Work in progress counts when it ends, even across a reset, but not if the level was off in between, because then
 * it was not measured completely.
 */
void
probe_carry_over(uint32 before)
{
	bool		whole = probe_counts(before) && probe_counts(tally.word_seen);

	commits_follow(whole);
	if (!whole)
	{
		tally.handle_start = 0;
		tally.slot.book->between = 0;
	}
}

/* The level word has changed: follow it, unless this process is inside a probe. */
void
probe_follow(void)
{
	uint32		before = tally.word_seen;
	uint32		wait;
	uint64		ticks;

	if (!tally.claimed)
	{
		claim_again();
		return;
	}
	if (tally.on != probe_counts(before))
		return;
	tally.on = false;
	interrupted_give_up();
	wait = tally.slot.book->pend;
	ticks = tally.slot.book->pend_ticks;
	if (probe_counts(before))
		wal_check();
	else
		wal_skip();
	probe_follow_at(probe_now());
	/* Check the wait that was just recorded, or dropped by a reset. */
	if (tally.slot.book->pend == TALLY_NONE)
	{
		if (wait < tally.slot.limit)
			pending_note(wait, ticks);
		if (tally.commit_pends)
			commits_record();
	}
	probe_carry_over(before);
	tally.on = probe_counts(tally.word_seen);
}

/*
 * The client's address, as %h in log_line_prefix: a host name if log_hostname is on; "local" for a Unix socket,
 * independently of the language of the server's messages.
 */
static const char *
client_address(void)
{
	if (MyProcPort->raddr.addr.ss_family == AF_UNIX)
		return "local";
	return MyProcPort->remote_host;
}

/* The kind of process of tally's own sessions. */
#define OWN_SESSION "client backend (tally)"

/* Update the slot's description of this process; values not known yet stay unchanged. */
void
probe_identify(void)
{
	int			saved_errno = errno;
	tally_identity identity = {0};
	bool		complete;

	/* Since 17, a new process closes the postmaster's sockets before it sets its own identity. */
	if (IsPostmasterEnvironment && (!IsUnderPostmaster || MyBackendType == B_INVALID))
		return;

	identity.pid = MyProcPid;
	identity.application = application_name;
	if (IsParallelWorker())
	{
		identity.kind = "parallel worker";
		if (MyProc != NULL && MyProc->lockGroupLeader != NULL)
			identity.leader_pid = MyProc->lockGroupLeader->pid;
	}
	else if (!IsPostmasterEnvironment)
		identity.kind = "standalone backend";
	else if (MyBackendType == B_BG_WORKER && MyBgworkerEntry != NULL)
		identity.kind = MyBgworkerEntry->bgw_type;
	else if (own_session())
		identity.kind = OWN_SESSION;
	else
		identity.kind = compat_process_kind(MyBackendType);

	identity.database_id = MyDatabaseId;
	if (MyProc != NULL && MyProc->roleId != InvalidOid)
		identity.user_id = MyProc->roleId;
	if (MyProcPort != NULL)
	{
		identity.database = am_walsender ? NULL : MyProcPort->database_name;
		identity.user = MyProcPort->user_name;
		identity.client = client_address();
	}
	tally_identify(&tally.slot, &identity);

	tally.checkpointer = MyBackendType == B_CHECKPOINTER;
	tally.checks_state = tally.checkpointer || MyBackendType == B_WAL_SENDER;
	/* Without a client, the kind of process determines the phase. */
	if (tally.kind_seen != (uint32) MyBackendType)
	{
		tally.kind_seen = MyBackendType;
		if (IsParallelWorker())
		{
			probe_set_phase(PHASE_EXECUTE);
			statement_time.begins = true;
		}
		else if (MyBackendType != B_BACKEND && MyBackendType != B_WAL_SENDER && IsPostmasterEnvironment)
			probe_set_phase(PHASE_BACKGROUND);
	}

	switch (MyBackendType)
	{
		case B_BACKEND:
		case B_WAL_SENDER:
			complete = !ClientAuthInProgress && identity.user_id != InvalidOid &&
				(am_walsender || identity.database_id != InvalidOid);
			break;
		case B_AUTOVAC_WORKER:
			complete = identity.database_id != InvalidOid;
			break;
		case B_BG_WORKER:
			complete = identity.database_id != InvalidOid &&
				(!IsParallelWorker() || identity.leader_pid != 0);
			break;
		default:
			complete = true;
	}
	tally.application = application_name;
	tally.identified = complete;
	if (complete)
		trace_identified();
	errno = saved_errno;
}

/* ---------------------------------------------------------------- how a process begins and ends */

/* First thing in a child process: the probes' state is the parent's. */
void
lifecycle_forked(void)
{
	int			error;

	probe_forget();
	if (!own.shared || own.opener == 0 || helper_is_one())
		return;
	error = tally_map(&own.segment);
	if (error == 0)
		error = tally_guard(&own.segment);
	if (error == 0)
		probe_claim(&own.segment, PHASE_STARTUP);
	else
		snprintf(own.failure, sizeof(own.failure), "%s: %s", own.path,
				 error == EINVAL ? "the file was truncated" : strerror(error));
}

/* Remove the segment's file if it is still ours, after writing the end of this run for readers. The postmaster maps nothing. */
static void
unlink_segment(void)
{
	struct stat st;
	uint64		now = tally_now(own.segment.clock);
	ssize_t		written;

	if (own.path[0] == '\0' || stat(own.path, &st) != 0 ||
		(uint64) st.st_dev != own.segment.device || (uint64) st.st_ino != own.segment.inode)
		return;
	/* if this fails, a reader takes the time of its next look as the end of the run */
	written = pwrite(own.segment.fd, &now, sizeof(now), offsetof(tally_header, ended_tick));
	(void) written;
	unlink(own.path);
}

/* Is the server stopping? The postmaster says so in its lock file, in the working directory of all its processes. */
static bool
server_stops(void)
{
	char		text[BLCKSZ];
	const char *line = text;
	int			file = open("postmaster.pid", O_RDONLY | O_CLOEXEC);
	ssize_t		length = file >= 0 ? read(file, text, sizeof(text) - 1) : 0;

	if (file >= 0)
		close(file);
	text[Max(length, 0)] = '\0';
	for (int i = 1; i < LOCK_FILE_LINE_PM_STATUS && line != NULL; i++)
	{
		line = strchr(line, '\n');
		line = line != NULL ? line + 1 : NULL;
	}
	return line != NULL && strncmp(line, PM_STATUS_STOPPING, strlen(PM_STATUS_STOPPING)) == 0;
}

/*
 * Called from exit(3), the last action of a server process. If sessions load the library themselves, the last of them removes
 * the segment at a clean shutdown, or if no later session will load the library.
 */
void
lifecycle_exit(void)
{
	if (own.opener == 0 || helper_is_one())
		return;
	probe_retire();
	if (own.shared)
	{
		if (own.opener == getpid())
			unlink_segment();
	}
	else if (own.segment.header != NULL && tally_claimed_slots(&own.segment) == 0 &&
			 (!settings_names_library(session_preload_libraries_string) || server_stops()))
		unlink_segment();
}
