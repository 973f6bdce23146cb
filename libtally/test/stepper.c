/* SPDX-License-Identifier: PostgreSQL */
/*
 * stepper.c
 *	  Runs writers that halt at each of the library's stops (TALLY_STOP), so that a test can read, or kill them, in between.
 *
 *	  stepper --list				lists the scenarios, one per line
 *	  stepper						reads lines "SCENARIO SEGMENT" and runs each in a separate process
 *
 * A run creates the segment, or attaches to it if the scenario joins another, and prints "ready PID" when it has reached the
 * stop "begin". At each stop it prints "stop NUMBER BEGUN DONE NAME" and reads a line "N": it continues for N stops, or with
 * 0 until the stop "end". BEGUN and DONE count what the scenario records. When the process has exited or was killed, the
 * stepper prints "over STATUS"; STATUS is 256 + the signal's number if a signal ended it.
 *
 * The clock is virtual: it advances by TICKS at each stop, so that all times of a run are the same whatever the reader does.
 * It does not advance during a scenario that joins another's segment.
 */
#include "internal.h"
#include "tally_cache.h"
#include "tally_files.h"
#include "tally_plans.h"
#include "tally_trace.h"

#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define TICKS 1000

static tally_segment segment;
static uint64_t ticks_a_stop;
static uint64_t number;				/* of the current stop */
static uint64_t to_go;				/* stops left to pass; 0: all */
static uint64_t begun;
static uint64_t done;

static void
fail(const char *what)
{
	fprintf(stderr, "stepper: %s\n", what);
	_exit(3);
}

/* ---------------------------------------------------------------- stops */

/* Reads byte by byte, because the input that follows is for another process. */
static bool
read_line(char *line, size_t size)
{
	size_t		length = 0;
	char		byte;

	while (read(STDIN_FILENO, &byte, 1) == 1)
	{
		if (byte == '\n')
		{
			line[length] = '\0';
			return true;
		}
		if (length + 1 < size)
			line[length++] = byte;
	}
	return false;
}

static void
say(const char *text, int length)
{
	if (write(STDOUT_FILENO, text, (size_t) length) != length)
		_exit(3);
}

static void
wait_at(const char *where)
{
	char		line[256];

	say(line, snprintf(line, sizeof(line), "stop %" PRIu64 " %" PRIu64 " %" PRIu64 " %s\n", number, begun, done, where));
	if (!read_line(line, sizeof(line)))
		_exit(0);
	to_go = strtoull(line, NULL, 10);
}

static void
stop(const char *where)
{
	number++;
	__atomic_fetch_add(&segment.header->virtual_tick, ticks_a_stop, __ATOMIC_SEQ_CST);
	if (to_go != 0 && --to_go == 0)
		wait_at(where);
}

/* ---------------------------------------------------------------- what writers do */

static const tally_identity client = {
	.database_id = 5,.user_id = 10,
	.kind = "client backend",.database = "alpha",.user = "ann",.application = "first application",.client = "local",
};

static tally_slot slot;
static tally_cache cache;
static uint32_t startup,
			execute,
			io,
			idle,
			command;

static uint32_t
account(const char *name)
{
	return tally_touch(&slot, tally_register(&segment, name, TALLY_ACCOUNT, "ticks"));
}

static uint64_t
now(void)
{
	return tally_now(segment.clock);
}

static void
begin_session(void)
{
	if (tally_claim(&segment, &client, &slot) != 0)
		fail("no slot");
	startup = account("startup::cpu");
	execute = account("simple::cpu");
	tally_begin(&slot, startup);
}

static void
work(void)
{
	begun++;
	tally_follow(&slot, execute, now());
	tally_switch(&slot, execute, now());
	io = account("simple::wait::IO:DataFileRead");
	command = tally_touch(&slot, tally_register(&segment, "command::SimpleQuery::handle", TALLY_TIMER, "ticks"));
	tally_switch_plain(&slot, io, now());
	tally_switch_later(&slot, execute, now());
	tally_record(&slot, command, 700);
	done++;
	slot.book->calls[4]++;
	idle = account("idle::wait::Client:ClientRead");
	tally_switch(&slot, idle, now());
}

static void
a_session(void)
{
	static const tally_identity renamed = {
		.database_id = 5,.user_id = 10,.application = "another one",
	};

	begin_session();
	work();
	tally_identify(&slot, &renamed);
	work();
	tally_retire(&slot);
}

/* Another session of the same kind has already ended. */
static void
one_before(void)
{
	begin_session();
	work();
	tally_retire(&slot);
}

/* ---------------------------------------------------------------- statements */

static tally_statement_key
key_of(uint64_t id)
{
	return (tally_statement_key) {.id = id,.database_id = 5,.user_id = 10,.toplevel = 1};
}

/* The text of a statement: its number, repeated to fill three blocks. */
static uint32_t
text_of(uint64_t id, char *text, size_t size)
{
	int			length = snprintf(text, size, "%" PRIu64 ":", id);

	while (length < 600)
		length += snprintf(text + length, size - (size_t) length, "%" PRIu64 ",", id);
	return (uint32_t) length;
}

static tally_local_statement *
local_of(uint64_t id)
{
	char		text[700];
	tally_statement_key key = key_of(id);
	tally_local_statement *local = tally_cache_find(&cache, &key);

	if (local == NULL)
	{
		uint32_t	known = tally_statement_known(&segment, &key);
		uint32_t	length = text_of(id, text, sizeof(text));
		const tally_statement_text stored = {.bytes = text,.length = length,.whole = length,.encoding = 6};

		local = tally_cache_enter(&cache, &key, known == TALLY_NONE ? &stored : NULL, known);
	}
	if (local == NULL)
		fail("no statement");
	return local;
}

/* An execution of statement n takes 100 * n ticks; BEGUN and DONE count these ticks. */
static void
run(uint64_t id)
{
	uint64_t	ticks = 100 * id;
	tally_local_statement *local;

	begun += ticks;
	local = local_of(id);
	tally_seq_begin(&local->seq);
	tally_local_statement_count(local, ticks, 1);
	tally_parts_add(local->parts, 1, 1, ticks);
	tally_seq_end(&local->seq);
	done += ticks;
	tally_cache_settle(&cache);
}

static void
open_cache(void)
{
	begin_session();
	if (tally_cache_open(&slot, &cache) != 0)
		fail("no cache");
}

/* Each executed often enough to stay in the cache. */
static void
some_statements(void)
{
	open_cache();
	for (uint64_t id = 1; id <= 3; id++)
		for (int i = 0; i < 3; i++)
			run(id);
}

static void
statements(void)
{
	run(1);
	run(4);
	tally_cache_flush_passing(&cache);
	run(1);
	tally_cache_flush(&cache);
	run(1);
	run(4);
	tally_retire(&slot);
}

static void
full_table(void)
{
	some_statements();
	for (uint64_t id = 10; id < 400; id++)
		run(id);
	tally_cache_flush(&cache);
}

static void
eviction(void)
{
	for (uint64_t id = 1000; id < 1004; id++)
		run(id);
	run(1000);
	tally_retire(&slot);
}

/* Sets the locks of the statement's two sets, as if another process were stopped while holding them, or continued. */
static void
hold_sets_of(uint64_t id, uint32_t holder)
{
	const tally_statement_key key = key_of(id);
	uint32_t	sets[2];

	tally_sets_for(&segment, tally_statement_hash(&key), sets);
	for (int i = 0; i < 2; i++)
		__atomic_store_n(&tally_set_at(&segment, sets[i])->lock, holder, __ATOMIC_RELEASE);
}

/* The stepper's parent holds locks: nothing is lost, whether it continues before or after the end of the session. */
static void
locked(void)
{
	uint32_t	others = (uint32_t) getppid();

	hold_sets_of(1, others);
	hold_sets_of(4, others);
	run(1);
	run(4);
	run(4);
	tally_cache_flush_passing(&cache);
	run(5);
	hold_sets_of(1, 0);
	hold_sets_of(4, 0);
	run(4);
	run(6);
	hold_sets_of(2, others);
	hold_sets_of(6, others);
	tally_retire(&slot);
	hold_sets_of(2, 0);
	hold_sets_of(6, 0);
	begin_session();
	if (tally_cache_open(&slot, &cache) != 0)
		fail("no cache");
	run(6);
	tally_retire(&slot);
}

/* Another process that needs the sets whose locks a dead process may hold. */
static void
takeover(void)
{
	open_cache();
	run(1);
	run(4);
	tally_retire(&slot);
}

static void
forgetting(void)
{
	const tally_statement_filter one = {.id = 2};

	tally_statements_reset(&segment, &one);
	run(2);
	run(5);
	tally_retire(&slot);
}

/* ---------------------------------------------------------------- the rest */

static void
put_plan(uint64_t id, uint64_t shape)
{
	char		text[700];
	const tally_statement_key key = key_of(id);
	const tally_plan_use use = {.now = now(),.ticks = 100 * shape,.rows = shape};
	const tally_plan_text stored = {.bytes = text,.size = text_of(shape, text, sizeof(text)),.cost = 1};
	uint64_t	before;

	begun++;
	if (!tally_plan_add(&segment, &key, shape, &use) && !tally_plan_put(&segment, &key, shape, &stored, &use, &before))
		fail("no plan");
	done++;
}

static void
one_plan(void)
{
	begin_session();
	put_plan(1, 1);
}

/* The set has space for 8. */
static void
plans(void)
{
	put_plan(1, 1);
	for (uint64_t shape = 2; shape <= 10; shape++)
		put_plan(1, shape);
	put_plan(1, 10);
}

static tally_relations locals;

static void
use_relation(uint32_t relation)
{
	const tally_relation_key key = {.tablespace = 1663,.database = 5,.relation = relation};
	uint64_t	tag = tally_relation_hash(&key);

	begun++;
	tally_relation_add(tally_local_relation_for(&locals, tag, tally_relation_find(&segment, &key)), TALLY_RELATION_READ,
					   1000 + relation, 8192, false);
	done++;
}

static void
full_locals(void)
{
	begin_session();
	if (tally_relations_open(&slot, &locals) != 0)
		fail("no relations");
	for (uint32_t i = 1; i <= TALLY_LOCAL_RELATIONS; i++)
		use_relation(i);
}

static void
relations(void)
{
	use_relation(1);
	use_relation(100);
	use_relation(101);
	tally_retire(&slot);
}

static void
session(void)
{
	begin_session();
	work();
}

static void
reset(void)
{
	work();
	tally_reset(&segment);
	work();
	tally_retire(&slot);
}

/* A wait interrupted by a signal three times, with another call in between; one not resumed; one of a session that ends. */
static void
interrupted(void)
{
	uint32_t	lock = account("simple::wait::Lock:tuple");
	uint32_t	call = account("simple::wait::Call:write");

	tally_switch(&slot, execute, now());
	tally_switch_plain(&slot, lock, now());
	for (int i = 0; i < 3; i++)
	{
		tally_switch_interrupted(&slot, execute, now());
		if (i == 1)
		{
			tally_switch_plain(&slot, call, now());
			tally_switch(&slot, execute, now());
		}
		tally_switch_back(&slot, now());
	}
	tally_switch_later(&slot, execute, now());
	work();
	tally_switch_plain(&slot, lock, now());
	tally_switch_interrupted(&slot, execute, now());
	tally_pend_close(&slot);
	tally_switch_plain(&slot, lock, now());
	tally_switch_interrupted(&slot, execute, now());
	tally_retire(&slot);
}

static void
event(void)
{
	char		text[200];

	begun++;
	snprintf(text, sizeof(text), "event %" PRIu64 " and as much again, event %" PRIu64, begun, begun);
	tally_event_add(&segment, TALLY_EVENT_NOTE, text);
	done++;
}

static void
fourteen_events(void)
{
	for (int i = 0; i < 14; i++)
		event();
}

/* The ring holds 16. */
static void
events(void)
{
	for (int i = 0; i < 4; i++)
		event();
}

static void
level(void)
{
	tally_set_level(&segment, TALLY_LEVEL_LOCKS);
	work();
	tally_set_level_until(&segment, TALLY_LEVEL_LOCKS, now() + 20 * TICKS, TALLY_LEVEL_OFF);
	work();
	tally_end_level(&segment, now());
	tally_follow(&slot, account("off::uninstrumented"), now());
	tally_set_level(&segment, TALLY_LEVEL_WAITS);
	tally_follow(&slot, execute, now());
	tally_retire(&slot);
}

static void
names(void)
{
	for (int i = 0; i < 3; i++)
	{
		char		name[40];

		begun++;
		snprintf(name, sizeof(name), "execute::wait::Extension:Number%d", i);
		(void) account(name);
		done++;
	}
}

static void
blocked(void)
{
	for (int32_t i = 1; i <= 2; i++)
	{
		tally_blocked by = {
			.since = now(),.field = {(uint32_t) i, (uint32_t) i, (uint32_t) i},.type = 5,.method = 1,
			.pids = {100 + i, 200 + i},.count = 2,.mode = 5,
		};

		begun++;
		tally_block(&slot, &by);
		done++;
	}
	tally_unblock(&slot);
}

static tally_tracer tracer;

static void
record(void)
{
	tally_trace_record record = {.tick = now(),.kind = TALLY_TRACE_NODE_END,.stat = 1};

	begun++;
	for (int i = 0; i < 6; i++)
		record.word[i] = (uint32_t) begun;
	tally_trace_put(&tracer, &record);
	done++;
}

static void
session_to_trace(void)
{
	session();
	begun = done = 0;
}

/* The reader has armed a ring that any session may take. */
static void
trace(void)
{
	const tally_traced me = {.pid = getpid(),.session = true,.application = "first application",.user = "ann",.database = "alpha"};

	if (!tally_trace_take(&slot, &me, &tracer))
		fail("no trace");
	record();
	record();
	record();
	tally_trace_leave(&tracer);
}

/* The reader has armed a ring for slow executions. Each has its own record and two of parameters. */
static void
slow(void)
{
	for (uint32_t i = 1; i <= 3; i++)
	{
		uint64_t	tick = now();
		tally_trace_record records[] = {
			{.kind = TALLY_TRACE_EXECUTION,.tick = tick,.ticks = i,.stat = 2,.next = i,.word = {i, i, 5, 10, 0, 2}},
			{.kind = TALLY_TRACE_PARAMETER,.tick = tick,.op = TALLY_PARAMETER_NULL,.node = 1,.stat = 2},
			{.kind = TALLY_TRACE_PARAMETER,.tick = tick,.op = TALLY_PARAMETER_LARGE,.node = 2,.stat = 2,.next = i},
		};
		uint32_t	next = 0;

		begun++;
		if (!tally_trace_wants_slow(&segment, tick) || !tally_trace_borrow(&slot, getpid(), &next, &tracer))
			fail("no ring");
		for (int j = 0; j < 3; j++)
			tally_trace_put(&tracer, &records[j]);
		tally_trace_return(&tracer);
		done++;
	}
}

static void
nothing(void)
{
}

static void
sweep(void)
{
	tally_sweep(&segment);
}

/* Like the start of a server. */
static void
repair(void)
{
	tally_sweep(&segment);
	(void) tally_statements_repair(&segment);
}

static void
claim(void)
{
	begin_session();
	work();
}

typedef struct scenario
{
	const char *name;
	void		(*prepare) (void);
	void		(*work) (void);
	bool		joins;				/* attaches to another's segment */
	bool		statements;
	bool		plans;
	bool		relations;
} scenario;

static const scenario scenarios[] = {
	{.name = "session",.prepare = nothing,.work = a_session},
	{.name = "session-again",.prepare = one_before,.work = a_session},
	{.name = "statements",.prepare = some_statements,.work = statements,.statements = true},
	{.name = "eviction",.prepare = full_table,.work = eviction,.statements = true},
	{.name = "locked",.prepare = some_statements,.work = locked,.statements = true},
	{.name = "forgetting",.prepare = some_statements,.work = forgetting,.statements = true},
	{.name = "plans",.prepare = one_plan,.work = plans,.statements = true,.plans = true},
	{.name = "relations",.prepare = full_locals,.work = relations,.relations = true},
	{.name = "reset",.prepare = session,.work = reset},
	{.name = "interrupted",.prepare = session,.work = interrupted},
	{.name = "events",.prepare = fourteen_events,.work = events},
	{.name = "level",.prepare = session,.work = level},
	{.name = "names",.prepare = session,.work = names},
	{.name = "blocked",.prepare = session,.work = blocked},
	{.name = "trace",.prepare = session_to_trace,.work = trace},
	{.name = "slow",.prepare = session_to_trace,.work = slow},
	{.name = "slow-after",.prepare = session_to_trace,.work = slow,.joins = true},
	/* the table of another process, which created the segment */
	{.name = "sweep",.prepare = nothing,.work = sweep,.joins = true},
	{.name = "takeover",.prepare = nothing,.work = takeover,.joins = true},
	{.name = "repair",.prepare = nothing,.work = repair,.joins = true},
	{.name = "claim",.prepare = nothing,.work = claim,.joins = true},
};
#define SCENARIOS (sizeof(scenarios) / sizeof(scenarios[0]))

/* As small as possible. */
static void
open_segment(const scenario *played, const char *path)
{
	tally_options options;

	tally_options_init(&options);
	options.any_file_system = true;
	options.clock = TALLY_CLOCK_VIRTUAL;
	options.slots = 2;
	options.groups = 2;
	options.stats_per_book = 16;
	options.directory = 64;
	options.events = 16;
	options.statements = played->statements ? 100 : 0;
	options.plans = played->plans ? 8 : 0;
	options.relations = played->relations ? 200 : 0;
	options.traces = 1;
	options.server = "stepper";
	options.server_pid = (uint32_t) getppid();
	if ((played->joins ? tally_attach(path, &segment) : tally_open(path, &options, &segment)) != 0)
		fail("no segment");
}

/* Runs it in a separate process. */
static void
play(const scenario *played, const char *path)
{
	open_segment(played, path);
	ticks_a_stop = played->joins ? 0 : TICKS;
	played->prepare();
	{
		char		line[40];

		say(line, snprintf(line, sizeof(line), "ready %d\n", getpid()));
	}
	wait_at("begin");
	tally_test_hook = stop;
	played->work();
	tally_test_hook = NULL;
	number++;
	wait_at("end");
}

static const scenario *
scenario_of(const char *name)
{
	for (size_t i = 0; i < SCENARIOS; i++)
		if (strcmp(scenarios[i].name, name) == 0)
			return &scenarios[i];
	return NULL;
}

int
main(int argc, char **argv)
{
	char		line[4096];

	if (argc == 2 && strcmp(argv[1], "--list") == 0)
	{
		for (size_t i = 0; i < SCENARIOS; i++)
			puts(scenarios[i].name);
		return 0;
	}
	while (argc == 1 && read_line(line, sizeof(line)))
	{
		char	   *path = strchr(line, ' ');
		const scenario *played;
		pid_t		parent = getpid();
		pid_t		pid;
		int			status;

		if (path == NULL)
			return 2;
		*path++ = '\0';
		played = scenario_of(line);
		if (played == NULL)
			return 2;
		pid = fork();
		if (pid == 0)
		{
			prctl(PR_SET_PDEATHSIG, SIGKILL);
			if (getppid() == parent)
				play(played, path);
			_exit(0);
		}
		if (pid < 0 || waitpid(pid, &status, 0) != pid)
			return 1;
		say(line, snprintf(line, sizeof(line), "over %d\n", WIFSIGNALED(status) ? 256 + WTERMSIG(status) : WEXITSTATUS(status)));
	}
	return argc == 1 ? 0 : 2;
}
