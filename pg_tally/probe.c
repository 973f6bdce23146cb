/* SPDX-License-Identifier: PostgreSQL */
/*
 * probe.c
 *	  The slot of this process: claim, identity, phases, levels, retirement.
 *
 * See probe.h for the rules of the hot path; here is what happens rarely.
 */
#include "compat.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "access/parallel.h"
#include "access/xact.h"
#include "libpq/libpq-be.h"
#include "postmaster/bgworker_internals.h"
#include "postmaster/postmaster.h"
#include "replication/walsender.h"
#include "storage/proc.h"
#include "tcop/tcopprot.h"
#include "utils/guc.h"

#include "account_class.h"
#include "blocking.h"
#include "imports.h"
#include "locks.h"
#include "checkpoints.h"
#include "custom_waits.h"
#include "failed_names.h"
#include "interrupted_wait.h"
#include "message_end.h"
#include "modules.h"
#include "pending_wait.h"
#include "own_segment.h"
#include "own_session.h"
#include "probe.h"
#include "statements.h"
#include "trace.h"
#include "walsender_stream.h"
#include "wal_usage.h"

static const uint32 no_level = 0;

probe_state tally HOT_DATA __attribute__((aligned(4096))) = {.level_word = &no_level};

static const char *const phase_names[PHASE_COUNT] = {
	[PHASE_STARTUP] = "startup",
	[PHASE_IDLE] = "idle",
	[PHASE_IDLE_IN_TRANSACTION] = "idle in transaction",
	[PHASE_SIMPLE_QUERY] = "simple query",
	[PHASE_PARSE] = "parse",
	[PHASE_BIND] = "bind",
	[PHASE_DESCRIBE] = "describe",
	[PHASE_EXECUTE] = "execute",
	[PHASE_CLOSE] = "close",
	[PHASE_SYNC] = "sync",
	[PHASE_FLUSH] = "flush",
	[PHASE_FUNCTION_CALL] = "function call",
	[PHASE_COPY] = "copy",
	[PHASE_TERMINATE] = "terminate",
	[PHASE_BACKGROUND] = "background",
	[PHASE_REPLICATION] = "replication",
};

const char *
probe_phase_name(tally_phase phase)
{
	return phase < PHASE_COUNT ? phase_names[phase] : "unknown";
}

/* Forget the slot without touching it: it is another process's, or has ended. */
void
probe_forget(void)
{
	memset(&tally, 0, sizeof(tally));
	tally.level_word = &no_level;
	MODULES_CALL(begin);
}

/*
 * Take a slot. Without one (all taken, or the file system is full) this process runs
 * uninstrumented, and tries again when a slot is given back: until then its level word is the
 * segment's free_slot_signal. The segment counts the refusals. 0, or tally_claim's error.
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
	tally.off_index = probe_touch("off::uninstrumented", TALLY_ACCOUNT);
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

/* At the beginning of a process, or when it loads the module. The server's log says once that slots are short. */
void
probe_claim(tally_segment *segment, tally_phase phase)
{
	int			error = claim(segment, phase);
	uint32		logged = 0;

	if (error != 0 &&
		__atomic_compare_exchange_n(&segment->header->refusal_logged, &logged, 1, false,
									__ATOMIC_RELAXED, __ATOMIC_RELAXED))
		ereport(LOG,
				(errmsg("pg_tally does not see process %d, and perhaps others: %s", (int) getpid(),
						error == ENOSPC ? "all slots are taken" : "there is no memory for a slot"),
				 error == ENOSPC
				 ? errhint("Raise pg_tally.max_slots (now %u); processes that are not seen take a slot when one is given back.",
						   segment->cold.slots)
				 : errhint("Free space in the file system of \"%s\".", own.path)));
}

/* A slot was given back since this process was refused one. At a wait or a message, so nothing is raised. */
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

	/* record a commit that ended before a reset, as elsewhere */
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
			/* its statement has its time; the rest is the end of the process */
			probe_set_phase(PHASE_TERMINATE);
			tally_switch_plain(&tally.slot, tally.cpu, now);
		}
	}
	/* what else there is to forget goes with the process */
	slot = tally.slot;
	memset(&tally.slot, 0, sizeof(tally.slot));
	tally.on = false;
	tally.claimed = false;
	tally.reads_messages = false;
	tally.level_word = &no_level;
	tally.word_seen = no_level;
	if (claimed)
		tally_retire(&slot);
}

/* First touch of a statistic: its index in the book, or none where it could not be registered. Keeps errno. */
uint32
probe_touch_unit(const char *name, tally_stat_kind kind, const char *unit)
{
	uint32		nowhere = kind == TALLY_ACCOUNT ? 0 : TALLY_NONE;
	int			saved_errno = errno;
	uint32		index;

	if (failed_names_has(name, kind))
		return nowhere;
	index = tally_touch(&tally.slot, kind == TALLY_ACCOUNT ? account_register(tally.slot.segment, name)
						: tally_register(tally.slot.segment, name, kind, unit));
	if (unlikely(index == nowhere))
		failed_names_add(name, kind);
	errno = saved_errno;
	return index;
}

uint32
probe_touch(const char *name, tally_stat_kind kind)
{
	return probe_touch_unit(name, kind, "ticks");
}

/* Register a name that explains a number to readers. Keeps errno. */
void
probe_name(const char *name)
{
	int			saved_errno = errno;

	if (!failed_names_has(name, TALLY_NAME) &&
		tally_register(tally.slot.segment, name, TALLY_NAME, "") == TALLY_NONE)
		failed_names_add(name, TALLY_NAME);
	errno = saved_errno;
}

/* Names that could not be registered are tried again at their next use. */
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

/* Is anything counted at the level of that word? */
static inline bool
counts(uint32 word)
{
	return TALLY_LEVEL_OF(word) != TALLY_LEVEL_OFF;
}

/*
 * The level word has changed: follow it at `now`. After a reset the book begins where its running
 * account does, or at the reset if that is later, and has nothing pending.
 */
static void
follow(uint64 now)
{
	uint32		before = tally.word_seen;
	bool		on = counts(*(const volatile uint32 *) tally.level_word);

	tally_follow(&tally.slot, on ? tally.cpu : tally.off_index, now);
	/* it may have changed once more since it was read */
	if (unlikely(counts(tally.slot.word) != on))
		tally_switch_plain(&tally.slot, on ? tally.off_index : tally.cpu, now);
	tally.word_seen = tally.slot.word;
	MODULES_CALL(follow, before, tally.word_seen, tally.slot.book->born);
	MODULES_CALL(apply_level);
	tally.special = true;
	retry();
}

/*
 * What is in progress counts when it ends, over a reset too, but not if the level was off in between: then
 * it was not seen whole.
 */
static void
carry_over(uint32 before)
{
	bool		whole = counts(before) && counts(tally.word_seen);

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
	if (tally.on != counts(before))
		return;
	tally.on = false;
	interrupted_give_up();
	wait = tally.slot.book->pend;
	ticks = tally.slot.book->pend_ticks;
	if (counts(before))
		wal_check();
	else
		wal_skip();
	follow(probe_now());
	/* Recorded just now, or dropped by a reset: either way it is checked first. */
	if (tally.slot.book->pend == TALLY_NONE)
	{
		if (wait < tally.slot.limit)
			pending_note(wait, ticks);
		if (tally.commit_pends)
			commits_record();
	}
	carry_over(before);
	tally.on = counts(tally.word_seen);
}

/*
 * A wait ends, and the level word has changed during it. It counts as any other, though at once and
 * not later; the accounts have the part since a reset, all else the whole.
 */
void
probe_end_wait_changed(uint64 now)
{
	const tally_book *book = tally.slot.book;
	uint32		before = tally.word_seen;
	uint32		wait = book->run;
	uint32		resets = book->resets;
	uint64		begun = book->run_start;
	uint64		counted;

	follow(now);
	counted = book->resets != resets ? book->born : begun;
	if (counts(tally.word_seen))
		tally_switch(&tally.slot, tally.cpu, now);
	if (wait < tally.slot.limit)
	{
		statement_time_note(wait, now > counted ? now - counted : 0);
		pending_note(wait, now > begun ? now - begun : 0);
	}
	carry_over(before);
	tally.on = counts(tally.word_seen);
	if (unlikely(tally.guessing))
		messages_guess_end();
}

/* The name of a statistic from its parts, the last one NULL; snprintf would take five times as long. */
void
probe_compose(char *name, ...)
{
	char	   *end = name + TALLY_NAME_MAX - 1;
	const char *part;
	va_list		parts;

	va_start(parts, name);
	while ((part = va_arg(parts, const char *)) != NULL)
		while (*part != '\0' && name < end)
			*name++ = *part++;
	va_end(parts);
	*name = '\0';
}

/* First touch of (phase, cpu). */
uint32
probe_cpu_account(tally_phase phase)
{
	char		name[TALLY_NAME_MAX];

	probe_compose(name, phase_names[phase], "::cpu", NULL);
	tally.cpu_index[phase] = probe_touch(name, TALLY_ACCOUNT);
	return tally.cpu_index[phase];
}

/* An event that an extension has named, by that name, or by its number where that name is unknown. */
static void
name_custom(char *name, size_t size, tally_phase phase, uint32 event)
{
	const char *type = pgstat_get_wait_event_type(event);
	const char *wait = custom_waits_name(event);

	if (wait != NULL)
		snprintf(name, size, "%s::wait::%s:%s", phase_names[phase], type, wait);
	else
		snprintf(name, size, "%s::wait::%s:#%u", phase_names[phase], type, event & 0xFFFF);
}

/*
 * First touch of (phase, wait event), or its return to the cache. The names of the server's own wait
 * events are read without locks or allocation (wait_event.c, lwlock.c).
 */
static pg_noinline uint32
touch_account(account_set *set, tally_phase phase, uint32 event)
{
	char		name[TALLY_NAME_MAX];
	uint32		index;

	if (event == CALL_COMMIT_DELAY)
		probe_compose(name, phase_names[phase], "::wait::Call:commit_delay", NULL);
	else if (event == CALL_LOG_PIPE)
		probe_compose(name, phase_names[phase], "::wait::Call:log_pipe", NULL);
	else if (event >= CALL_CLASS)
		probe_compose(name, phase_names[phase], "::wait::Call:", import_name(event & 0xFFFF), NULL);
	else if (compat_is_custom_wait(event))
		name_custom(name, sizeof(name), phase, event);
	else
	{
		const char *type = pgstat_get_wait_event_type(event);
		const char *wait = pgstat_get_wait_event(event);

		probe_compose(name, phase_names[phase], "::wait::", type ? type : "Unknown", ":",
					  wait ? wait : "Unknown", NULL);
	}
	index = probe_touch(name, TALLY_ACCOUNT);
	set->way[1] = set->way[0];
	set->way[0] = (cached_account) {.event = event, .phase = phase, .index = index};
	return index;
}

/* The account of a wait in this phase. */
HOT_CODE uint32
probe_account(uint32 event)
{
	uint32		phase = (uint32) tally.phase;
	account_set *set = &tally.cache[((event * 2654435761u) >> 20 ^ phase * 37u) & (ACCOUNT_SETS - 1)];
	uint32		index;

	if (likely(set->way[0].event == event && set->way[0].phase == phase))
		index = set->way[0].index;
	else if (set->way[1].event == event && set->way[1].phase == phase)
		index = set->way[1].index;
	else
		index = touch_account(set, tally.phase, event);
	/* a wait for a heavyweight lock never goes straight through (blocking.c) */
	if (likely(!blocking_is_lock(event)))
		*probe_recent(event) = (recent_account) {.event = event,.index = index};
	return index;
}

/* For processes whose state has no hook: check it at each wait. */
static pg_noinline void
check_state(void)
{
	if (tally.checkpointer)
		checkpoints_check();
	else
		walsender_stream_check();
}

/* What stays to be done at each wait; what is to be done once more has set tally.special already. */
static inline void
choose_special(void)
{
	if (!tally.identified || tally.checks_state || tally.guessing || locks_at_waits || interrupted.event != 0 ||
		tally.phase == PHASE_BACKGROUND || !probe_clock_is_counter())
		tally.special = true;
}

/* probe_begin_wait(), where the level asks for it. */
HOT_CODE bool
probe_begin_wait_on(uint32 unnamed, uint32 call)
{
	uint32		event = server_wait_event();
	uint64		now;

	if (event == 0)
	{
		if (unnamed == 0)
			return false;
		event = unnamed;
	}
	tally.on = false;
	if (unlikely(locks_at_waits))
		locks_before_wait(event);
	tally.slot.book->calls[call]++;
	tally.special = false;
	if (unlikely(!tally.identified))
		probe_identify();
	if (unlikely(tally.checks_state))
		check_state();
	if (unlikely(tally.guessing) && event == WAIT_EVENT_CLIENT_READ)
		messages_guess_begin();
	if (unlikely(interrupted.event != 0) && interrupted_resume(event, unnamed == 0))
	{
		choose_special();
		return true;
	}
	pending_settle();
	if (event == WAIT_EVENT_WAL_WRITE || tally.phase == PHASE_BACKGROUND)
		wal_check();
	now = probe_now();
	if (tally.read_begun)
		message_begin_read_wait(now);
	else
		tally.waits++;
	tally_switch_plain(&tally.slot, probe_account(event), now);
	if (unlikely(statement_time.begins))
		statement_time_begin_worker(now);
	choose_special();
	return true;
}

/* Run another phase from now on, for a part of a command. Returns the phase that ends. */
tally_phase
probe_enter_phase(tally_phase phase)
{
	tally_phase before = tally.phase;

	if (!tally.claimed || before == phase)
		return before;
	if (tally.on)
	{
		uint64		now = probe_now();

		tally.on = false;
		interrupted_give_up();
		pending_settle();
		statement_time_cut(now);
		probe_set_phase(phase);
		tally_switch_plain(&tally.slot, tally.cpu, now);
		if (trace_on)
			trace_switch();
		tally.on = true;
	}
	else
		probe_set_phase(phase);
	return before;
}

/*
 * Where the client connects from: what log_line_prefix has as %h, so a name if log_hostname is on; "local" for a
 * Unix socket, whatever language the server's messages have.
 */
static const char *
client_address(void)
{
	if (MyProcPort->raddr.addr.ss_family == AF_UNIX)
		return "local";
	return MyProcPort->remote_host;
}

/* The kind of tally's own sessions. */
#define OWN_SESSION "client backend (tally)"

/* Texts shown for this process; what is not known yet stays as it is. */
void
probe_identify(void)
{
	int			saved_errno = errno;
	tally_identity identity = {0};
	bool		complete;

	/* From 17 on a new process closes the postmaster's sockets before it says that it is another one. */
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
	/* Without a client the kind of process determines the phase. */
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
