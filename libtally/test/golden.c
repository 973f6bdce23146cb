/* SPDX-License-Identifier: PostgreSQL */
/*
 * golden.c
 *	  Writes the golden segment: the same bytes on every machine.
 *
 *	  golden FILE
 *
 * The library writes the segment; then everything that it took from clocks and the
 * machine is replaced by fixed values. Ticks are nanoseconds. Contents:
 *
 *	  slot 0	a client backend, reset at tick 3 s, executing, with a pending wait
 *	  slot 1	a parallel worker that has not followed the reset
 *	  slot 2	free; two WAL writers were there, both merged into group 4
 *	  slot 3	free, never claimed
 *	  entry 5	the overflow group, empty
 *
 * Statements: 1 with a text of 300 bytes, flushed by slot 1 and cached again by slot 0; 2 in
 * the table without counts, but with counts in the cache of slot 0, which is executing it
 * now; 3 cached by slot 0, but dropped by a reset of that statement.
 *
 * Files: one with two unsynced writes, one synced since; a relation flushed by slot 2 and in
 * a local entry of slot 0, one in a local entry only, and an unlinked one.
 *
 * Events: two texts, and each kind of payload.
 */
#include "tally_cache.h"
#include "tally_files.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)

static tally_segment segment;

static void *
at(const tally_region *region, uint32_t index)
{
	return (char *) segment.header + region->offset + (uint64_t) index * region->stride;
}

static void
claim(tally_slot *slot, const tally_identity *identity, uint64_t tick)
{
	if (tally_claim(&segment, identity, slot) != 0)
		_exit(1);
	tally_begin(slot, TALLY_NONE);
	slot->entry->claimed_tick = slot->book->born = slot->book->run_start = tick;
	slot->entry->claimed_boot_ns = tick + 5 * SECOND;
}

static void
fixed_machine(void)
{
	tally_header *header = segment.header;

	header->clock_tick0 = header->clock_ns0 = 1 * SECOND;
	header->created_realtime_ns = 1700000000 * SECOND;
	header->statements_since_ns = 1690000000 * SECOND;
	header->pid_namespace = 4026531836;
	memset(header->boot_id, 0, sizeof(header->boot_id));
	strcpy(header->boot_id, "01234567-89ab-cdef-0123-456789abcdef");
	header->level_until = 9 * SECOND;
	header->level_then = TALLY_LEVEL_WAITS;
	header->locks_ticks = 2 * SECOND;
	header->locks_since = 4 * SECOND;
	header->overflow_slots = 1;
	header->overflow_stats = 2;
	header->overflow_directory = 3;
	header->overflow_groups = 4;
	header->overflow_memory = 5;
	header->lost_merges = 6;
	header->pause = TALLY_PAUSE_STATEMENTS;
	header->statements_evicted = 7;
	header->statements_dropped = 8;
	header->statements_lost = 9;
	header->texts_cut = 10;
	header->overflow_files = 11;
	header->overflow_relations = 12;
	header->relations_lost = 13;
	for (uint32_t i = 0; i < header->statements.count; i++)
		if (((tally_set *) at(&header->sets, i / TALLY_WAYS))->reserved != 0)
		{
			tally_statement *statement = at(&header->statements, i);

			statement->born = statement->state == 1 ? 2 * SECOND + 800000000 : 0;
			statement->since_us = statement->state == 1 ? 1700000000 * (SECOND / 1000) - 1 : 0;
		}
	for (uint32_t i = 0; i < header->event_count; i++)
	{
		tally_event *event = at(&header->events, i);

		event->tick = (4 + i) * SECOND;
		event->pid = 4242;
	}
	for (uint32_t i = 0; i < 2; i++)
		((tally_slot_entry *) at(&header->entries, 4 + i))->claimed_tick = (1 + 2 * i) * SECOND;
}

/* One event of each kind that has a payload; one of each form of slow operation. */
static void
write_events(void)
{
	static const tally_client_activity before = {.ns = 30012345678,.commands = 51234,.handle_ns = 40123456789};
	static const tally_client_activity during = {.ns = 26951000000,.commands = 0,.handle_ns = 0};
	static const tally_client_totals totals = {.known = 1,.resets = 2,.tick = 4 * SECOND,
		.commands = 60000,.ticks = 50 * SECOND,.off_stretches = 3};
	const tally_event events[] = {
		{.kind = TALLY_EVENT_SLOW_OPERATION,.slow = {.ns = 1500499999,.operation = "Lock:transactionid"}},
		{.kind = TALLY_EVENT_SLOW_OPERATION,.slow = {.ns = 7020000000,.bytes = 8192,.writes = 1,
			.operation = "sync",.path = "pg_xact/000C"}},
		{.kind = TALLY_EVENT_SLOW_OPERATION,.slow = {.ns = 1003 * SECOND / 1000,.bytes = 16384,
			.operation = "write",.path = "base/5/16384: 2"}},
		{.kind = TALLY_EVENT_SLOW_OPERATION,.slow = {.ns = 2 * SECOND,.error = 28,.bytes = 8192,
			.operation = "extend",.path = "base/5/16385"}},
		{.kind = TALLY_EVENT_CHECKPOINT_STARTED,.started = {.reason = TALLY_CHECKPOINT_WAL,
			.before = before,.clients = totals}},
		{.kind = TALLY_EVENT_CHECKPOINT_COMPLETED,.completed = {.reason = TALLY_CHECKPOINT_WAL,
			.ns = 26951234567,.slru_ns = 2000000,.write_ns = 26810 * SECOND / 1000,
			.sync_ns = 120 * SECOND / 1000,.longest_sync_ns = 80 * SECOND / 1000,.buffers = 1234,
			.files_synced = 32,.wal_added = 1,.wal_removed = 2,.wal_recycled = 3,
			.longest_sync_file = "base/5/a b=c"}},
		{.kind = TALLY_EVENT_CHECKPOINT_WRITES,.writes = {.spaces = 5,.interval_ns = 30001 * SECOND / 1000,
			.spread_ppm = 893667,.target_ppm = 900000,.space = {{TALLY_SPACE_SLRU, 4},
			{TALLY_SPACE_DEFAULT, 1000}, {TALLY_SPACE_GLOBAL, 200}, {16385, 28}, {TALLY_SPACE_OTHERS, 6}}}},
		{.kind = TALLY_EVENT_CHECKPOINT_CLIENTS,.clients = {.before = before,.during = during,
			.clients = totals}},
		{.kind = TALLY_EVENT_CHECKPOINT_FAILED,.failed = {.reason = TALLY_CHECKPOINT_SHUTDOWN,
			.ns = 1234 * SECOND / 1000}},
	};

	tally_event_add(&segment, TALLY_EVENT_NOTE, "segment made");
	tally_event_add(&segment, TALLY_EVENT_WARNING, "probe left out: entry pq_getbyte");
	for (size_t i = 0; i < sizeof(events) / sizeof(events[0]); i++)
		tally_event_put(&segment, &events[i]);
}

static void
write_backend(tally_slot *slot, uint32_t cpu, uint32_t read, uint32_t idle, uint32_t handle,
			  uint32_t bytes)
{
	static const uint64_t values[] = {0, 7, 8, 1000, 123456789, UINT64_C(1) << 43, UINT64_C(1) << 50};
	uint32_t	a = tally_touch(slot, cpu);
	uint32_t	b = tally_touch(slot, read);
	uint32_t	c = tally_touch(slot, idle);
	uint32_t	d = tally_touch(slot, handle);
	uint32_t	e = tally_touch(slot, bytes);

	tally_switch(slot, c, 3 * SECOND);
	tally_switch(slot, a, 3 * SECOND + 250000000);
	tally_switch(slot, b, 3 * SECOND + 250000100);
	tally_switch(slot, a, 3 * SECOND + 260000100);
	tally_record(slot, d, 10000200);
	for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++)
	{
		tally_seq_begin(&slot->book->seq);
		tally_add_amount(slot, e, values[i], 8192 * (i + 1), i % 3 == 2);
		tally_seq_end(&slot->book->seq);
	}
	slot->book->transaction = 3 * SECOND + 250000000;
	slot->book->calls[0] = 41;
	slot->book->calls[3] = 1;
	slot->book->holding = 1;
	slot->book->holds[0] = (tally_hold) {.lock = 0x7f0000001080,.since = 3 * SECOND + 260000400,
		.tranche = 4,.mode = 1};
	slot->book->freed_next = 1;
	slot->book->freed[0] = (tally_freed) {.lock = 0x7f0000002100,.since = 3 * SECOND,
		.until = 3 * SECOND + 250000000,.account = 1 + cpu,.mode = 0};
	tally_switch(slot, b, 3 * SECOND + 260000300);
	tally_switch_later(slot, a, 3 * SECOND + 270000300);
}

/* One execution; every count is a different number, computed from `seed`. */
static void
execute(tally_local_statement *local, uint64_t ticks, uint64_t seed, uint32_t cpu, uint32_t read)
{
	tally_counts *counts = &local->counts;

	tally_seq_begin(&local->seq);
	tally_local_statement_count(local, ticks, 1700000000000000 + (int64_t) (seed + ticks));
	local->more = TALLY_MORE_COMMON | TALLY_MORE_RARE;
	tally_moments_add(&counts->plan, ticks / 8);
	counts->rows += seed + 1;
	for (uint32_t i = 0; i < 10; i++)
		counts->blocks[i] += seed + 10 + i;
	for (uint32_t i = 0; i < 3; i++)
		counts->wal[i] += seed + 20 + i;
	for (uint32_t i = 0; i < 4; i++)
		counts->io_ticks[i] += seed + 30 + i;
	counts->wal_buffers_full += seed + 34;
	for (uint32_t i = 0; i < 6; i++)
		counts->io_ns[i] += seed + 40 + i;
	counts->temp_files += seed + 50;
	counts->temp_bytes += seed + 51;
	counts->errors += seed + 52;
	counts->cancels += seed + 53;
	counts->workers += seed + 54;
	counts->worker_ticks += seed + 55;
	for (uint32_t i = 0; i < 10; i++)
		counts->jit[i] += seed + 60 + i;
	counts->workers_planned += seed + 70;
	counts->workers_launched += seed + 71;
	counts->generic_plans += seed + 72;
	counts->custom_plans += seed + 73;
	counts->user_ns += seed + 74;
	counts->system_ns += seed + 75;
	for (uint32_t i = 0; i < TALLY_FAILED; i++)
		counts->failed[i] += seed + 80 + i;
	tally_parts_add(local->parts, 1 + cpu, 2, ticks / 4);
	tally_parts_add(local->parts, 1 + read, 1, ticks - ticks / 4);
	tally_seq_end(&local->seq);
}

/* A local entry that keeps its statement, as if it had been seen recently. */
static tally_local_statement *
stay(tally_cache *cache, const tally_statement_key *key, const tally_statement_text *text)
{
	uint64_t	tag = tally_statement_hash(key);

	cache->seen[tag >> 16 & (TALLY_SEEN - 1)] = (uint16_t) (tag >> 48);
	return tally_cache_enter(cache, key, text, TALLY_NONE);
}

static void
write_statements(tally_slot *a, tally_slot *b, uint32_t cpu, uint32_t read)
{
	static const tally_statement_key first = {.id = UINT64_C(0xF123456789ABCDEF),
		.database_id = 16384,.user_id = 10,.toplevel = 1};
	static const tally_statement_key second = {.id = 2,.database_id = 16384,.user_id = 10};
	static const tally_statement_key third = {.id = 3,.database_id = 16384,.user_id = 11,.toplevel = 1};
	char		long_text[300];
	const tally_statement_text texts[] = {
		{.bytes = long_text,.length = sizeof(long_text),.whole = 1234,.encoding = 6},
		{.bytes = "commit",.length = 6,.whole = 6,.encoding = 6},
	};
	tally_statement_filter filter = {.user_id = 11};
	tally_cache cache,
				other;
	tally_local_statement *local;
	tally_current *current;

	for (size_t i = 0; i < sizeof(long_text); i++)
		long_text[i] = (char) ('a' + i % 26);
	memcpy(long_text, "select $1", 9);
	if (tally_cache_open(a, &cache) != 0 || tally_cache_open(b, &other) != 0)
		_exit(1);
	local = stay(&other, &first, &texts[0]);
	execute(local, 1000, 100, cpu, read);
	execute(local, 1000000, 200, cpu, read);
	tally_cache_flush(&other);
	execute(stay(&cache, &first, NULL), 500, 300, cpu, read);
	execute(stay(&cache, &second, &texts[1]), 7, 400, cpu, read);
	execute(stay(&cache, &third, &texts[1]), 8, 500, cpu, read);
	if (tally_statements_reset(&segment, &filter) != 1)
		_exit(1);

	current = cache.current;
	tally_seq_begin(&current->seq);
	current->key = second;
	current->begun = 3 * SECOND + 250000000;
	current->since = 3 * SECOND + 270000300;
	current->waits = 100;
	tally_parts_add(current->parts, 1 + cpu, 3, 10000300);
	tally_parts_add(current->parts, 1 + read, 2, 10000000);
	current->used = 2;
	tally_seq_end(&current->seq);
}

/* One operation of each kind, with increasing ticks and bytes. */
static void
work_on(tally_relations *relations, const tally_relation_key *key, uint64_t seed)
{
	uint32_t	entry = tally_relation_find(&segment, key);
	tally_local_relation *local = tally_local_relation_for(relations, tally_relation_hash(key), entry);

	for (uint32_t i = 0; i < TALLY_RELATION_OPERATIONS; i++)
		tally_relation_add(local, (tally_relation_operation) i, seed + i, 8192 * (seed + i), i == 3);
}

static const tally_relation_key table = {.tablespace = 1663,.database = 16384,.relation = 16400};

/* Recorded by a slot that ends afterwards. */
static void
flush_relations(tally_slot *slot)
{
	static const tally_relation_key unlinked = {.tablespace = 1663,.database = 16384,.relation = 16500,.backend = 4};
	tally_relations relations;

	if (tally_relations_open(slot, &relations) != 0)
		_exit(1);
	work_on(&relations, &table, 100);
	work_on(&relations, &unlinked, 200);
	tally_relation_unlinked(&segment, &unlinked);
}

static void
write_files(tally_slot *slot)
{
	static const tally_relation_key map = {.tablespace = 16390,.database = 16384,.relation = 16403,.fork = 1};
	tally_relations relations;
	uint64_t	writes,
				bytes;

	tally_unsynced_add(&segment, tally_file_hash("base/16384/16400"), TALLY_NONE, 2, 16384);
	tally_unsynced_add(&segment, tally_file_hash("pg_xact/0000"), TALLY_NONE, 1, 8192);
	tally_unsynced_take(&segment, tally_file_hash("pg_xact/0000"), &writes, &bytes);
	if (tally_relations_open(slot, &relations) != 0)
		_exit(1);
	work_on(&relations, &table, 300);
	work_on(&relations, &map, 400);
	work_on(&relations, &map, 410);
}

int
main(int argc, char **argv)
{
	tally_identity backend = {.pid = 4242,.database_id = 16384,.user_id = 10,
		.kind = "client backend",.database = "app",.user = "alice",.application = "psql",.client = "10.0.0.5"};
	tally_identity worker = {.pid = 4243,.leader_pid = 4242,.database_id = 16384,.user_id = 10,
		.kind = "parallel worker",.database = "app",.user = "alice",.application = ""};
	tally_identity walwriter = {.pid = 4244,.kind = "walwriter"};
	tally_options options;
	tally_slot	a,
				b,
				c;
	uint32_t	cpu,
				read,
				idle,
				sync,
				handle,
				bytes;

	if (argc != 2)
	{
		fprintf(stderr, "golden: give the name of the file to write\n");
		return 2;
	}
	tally_options_init(&options);
	options.any_file_system = true;
	options.slots = 4;
	options.groups = 2;
	options.stats_per_book = 16;
	options.directory = 64;
	options.events = 16;
	options.statements = 100;
	options.files = 32;
	options.relations = 20;
	options.clock = TALLY_CLOCK_MONOTONIC;
	options.host = "/var/lib/postgresql/15/main";
	options.producer = "golden 1";
	options.server = "PostgreSQL 15.20";
	options.socket_dir = "/var/run/postgresql";
	options.server_pid = 4200;
	options.server_port = 5432;
	if (tally_open(argv[1], &options, &segment) != 0 || !segment.created)
	{
		fprintf(stderr, "golden: cannot make \"%s\"; remove the file that is there\n", argv[1]);
		return 1;
	}

	cpu = tally_register(&segment, "execute::cpu", TALLY_ACCOUNT, "ticks");
	read = tally_register(&segment, "execute::wait::IO:DataFileRead", TALLY_ACCOUNT, "ticks");
	idle = tally_register(&segment, "idle::wait::Client:ClientRead", TALLY_ACCOUNT, "ticks");
	sync = tally_register(&segment, "background::wait::IO:WALSync", TALLY_ACCOUNT, "ticks");
	handle = tally_register(&segment, "command::Query::handle", TALLY_TIMER, "ticks");
	bytes = tally_register(&segment, "file::wal::write", TALLY_VALUE, "bytes");
	tally_register(&segment, "tranche::4::ProcArray", TALLY_NAME, "");
	tally_probe_set(&segment, 0, "import pread", TALLY_PROBE_INSTALLED, "");
	tally_probe_set(&segment, 3, "entry pq_getbyte", TALLY_PROBE_LEFT_OUT,
					"a jump in its first bytes");

	claim(&a, &backend, 2 * SECOND);
	tally_switch(&a, tally_touch(&a, idle), a.book->run_start);
	claim(&b, &worker, 2 * SECOND + 500000000);
	tally_switch(&b, tally_touch(&b, cpu), b.book->run_start);
	tally_switch(&b, tally_touch(&b, read), 2 * SECOND + 600000000);
	if (tally_reset(&segment) != 0)
		return 1;
	segment.header->reset_tick = 3 * SECOND;
	tally_follow(&a, TALLY_NONE, 0);

	for (uint32_t i = 0; i < 2; i++)
	{
		claim(&c, &walwriter, 3 * SECOND + i * 200000000);
		tally_switch(&c, tally_touch(&c, sync), c.book->run_start);
		tally_switch(&c, TALLY_NONE, 3 * SECOND + 100000000 + i * 250000000);
		c.book->calls[0] = 10 + i;
		if (i == 0)
			flush_relations(&c);
		tally_retire(&c);
	}
	write_backend(&a, cpu, read, idle, handle, bytes);
	write_statements(&a, &b, cpu, read);
	write_files(&a);
	write_events();
	fixed_machine();
	tally_close(&segment);
	return 0;
}
