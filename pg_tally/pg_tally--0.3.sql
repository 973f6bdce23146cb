/* SPDX-License-Identifier: PostgreSQL */
/*
 * pg_tally--0.3.sql: functions and views of the extension. Columns whose names end in seconds are in seconds,
 * with nine decimals; those ending in time are in milliseconds, with six decimals, as in pg_stat_statements; rates and ratios have three.
 */

\echo Use "CREATE EXTENSION pg_tally" to load this file. \quit

/*
 * The extension creates its own schema here and drops it with itself. A schema of that name that
 * exists already may belong to any role with the right to create schemas, and contain functions of
 * that role: a superuser calling tally.reset() could run one of those. Unqualified names in this
 * file refer to pg_catalog, the schema of the extension (pg_tally.control), which is the whole search path.
 */
DO $$
DECLARE
    owner text;
BEGIN
    SELECT pg_catalog.pg_get_userbyid(nspowner) INTO owner
    FROM pg_catalog.pg_namespace
    WHERE nspname OPERATOR(pg_catalog.=) 'tally';
    IF FOUND THEN
        RAISE EXCEPTION 'schema "tally" already exists and belongs to role "%"', owner
            USING ERRCODE = 'duplicate_schema',
                  DETAIL = 'Extension "pg_tally" must create this schema itself, so that it contains no functions of other roles.',
                  HINT = 'Check what the schema contains, then drop or rename it.';
    END IF;
END $$;
CREATE SCHEMA tally;

/* Arithmetic on rounded seconds produces digits beyond the clock's resolution. */
CREATE FUNCTION tally.rounded(seconds double precision) RETURNS double precision
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
RETURN round(seconds * 1e9::double precision) / 1e9::double precision;
COMMENT ON FUNCTION tally.rounded(double precision) IS 'seconds, rounded to nanoseconds';

CREATE FUNCTION tally.totals(
    by_group boolean,
    OUT kind text, OUT datid oid, OUT datname text, OUT usesysid oid, OUT usename text,
    OUT name text, OUT type text, OUT count bigint, OUT seconds double precision,
    OUT min_seconds double precision, OUT max_seconds double precision,
    OUT p50_seconds double precision, OUT p95_seconds double precision,
    OUT p99_seconds double precision, OUT bytes bigint, OUT sequential bigint, OUT total bigint)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_totals'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 500;
COMMENT ON FUNCTION tally.totals(boolean) IS
    'all statistics, by kind of process, database and role, or of the whole server';

CREATE FUNCTION tally.session_rows(
    OUT pid integer, OUT leader_pid integer, OUT kind text, OUT datid oid, OUT datname text,
    OUT usesysid oid, OUT usename text, OUT application_name text, OUT client_address text, OUT phase text,
    OUT activity text, OUT since_seconds double precision, OUT age_seconds double precision,
    OUT transaction_seconds double precision,
    OUT queryid bigint, OUT query text, OUT statement_seconds double precision,
    OUT statement_cpu_seconds double precision, OUT statement_wait_seconds double precision)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_sessions'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 100;

CREATE FUNCTION tally.status_rows(OUT name text, OUT value text)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_status'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 60;

CREATE FUNCTION tally.probe_rows(
    OUT name text, OUT installed boolean, OUT reason text, OUT calls bigint)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_probes'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 150;

CREATE FUNCTION tally.reset(userid oid DEFAULT 0, dbid oid DEFAULT 0, queryid bigint DEFAULT 0,
    minmax_only boolean DEFAULT false)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'pg_tally_reset_0_3'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tally.reset(oid, oid, bigint, boolean) FROM PUBLIC;
COMMENT ON FUNCTION tally.reset(oid, oid, bigint, boolean) IS
    'reset all totals and statements, or only the statements of a role, database or query id; with minmax_only, only their minima and maxima';

CREATE VIEW tally.ledger AS
SELECT kind, datid, datname, usesysid, usename,
       split_part(name, '::', 1) AS phase,
       regexp_replace(name, '^[^:]*(::wait)?::', '') AS activity,
       count, seconds, min_seconds, max_seconds, p50_seconds, p95_seconds, p99_seconds
FROM tally.totals(true)
WHERE type = 'account';
COMMENT ON VIEW tally.ledger IS
    'all time of all instrumented processes, by phase and activity';

CREATE VIEW tally.waits AS
SELECT split_part(w.event, ':', 1) AS wait_event_type,
       substr(w.event, strpos(w.event, ':') + 1) AS wait_event,
       w.phase, w.count, w.seconds, w.min_seconds, w.max_seconds,
       w.p50_seconds, w.p95_seconds, w.p99_seconds
FROM (SELECT t.*, split_part(name, '::', 1) AS phase,
             substr(name, strpos(name, '::wait::') + 8) AS event
      FROM tally.totals(false) t
      WHERE type = 'account' AND name LIKE '%::wait::%') w;
COMMENT ON VIEW tally.waits IS 'waits of the whole server by wait event and phase';

CREATE VIEW tally.commands AS
SELECT split_part(name, '::', 2) AS command,
       split_part(name, '::', 3) AS part,
       count, seconds,
       tally.rounded(seconds / nullif(count, 0)) AS mean_seconds, min_seconds, max_seconds,
       p50_seconds, p95_seconds, p99_seconds
FROM tally.totals(false)
WHERE name LIKE 'command::%';
COMMENT ON VIEW tally.commands IS
    'client messages by kind: part read is the wait for the message, handle the time to process it';

CREATE FUNCTION tally.probeable(
    glob text,
    OUT name text, OUT module text, OUT bytes integer, OUT probeable boolean, OUT reason text)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_probeable'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 100;
REVOKE ALL ON FUNCTION tally.probeable(text) FROM PUBLIC;
COMMENT ON FUNCTION tally.probeable(text) IS
    'functions of the server and its libraries: whether pg_tally.functions can name them, and if not, why';

CREATE VIEW tally.lwlocks AS
WITH part AS (
    SELECT tag[1] AS lock, tag[2] AS part, tag[3] AS phase, tag[4] AS mode, t.*
    FROM tally.totals(false) t,
         regexp_match(name, '^lwlock::(.*)::([^:]+)::([^:]+)::([^:]+)$') AS tag
    WHERE name LIKE 'lwlock::%')
SELECT lock, mode, phase,
       coalesce(sum(count) FILTER (WHERE part = 'held'), 0)::bigint AS held_count,
       tally.rounded(coalesce(sum(seconds) FILTER (WHERE part = 'held'), 0)) AS held_seconds,
       max(max_seconds) FILTER (WHERE part = 'held') AS held_max_seconds,
       max(p99_seconds) FILTER (WHERE part = 'held') AS held_p99_seconds,
       coalesce(sum(count) FILTER (WHERE part = 'acquire'), 0)::bigint AS acquire_count,
       tally.rounded(coalesce(sum(seconds) FILTER (WHERE part = 'acquire'), 0)) AS acquire_seconds,
       max(max_seconds) FILTER (WHERE part = 'acquire') AS acquire_max_seconds,
       coalesce(sum(count) FILTER (WHERE part = 'wait'), 0)::bigint AS wait_count,
       tally.rounded(coalesce(sum(seconds) FILTER (WHERE part = 'wait'), 0)) AS wait_seconds,
       max(max_seconds) FILTER (WHERE part = 'wait') AS wait_max_seconds,
       max(p99_seconds) FILTER (WHERE part = 'wait') AS wait_p99_seconds,
       coalesce(sum(count) FILTER (WHERE part = 'failed'), 0)::bigint AS failed_count
FROM part
GROUP BY lock, mode, phase;
COMMENT ON VIEW tally.lwlocks IS
    'lightweight locks by tranche, mode and phase, counted at level locks: holds, acquisitions, waits';

CREATE VIEW tally.locks AS
SELECT CASE WHEN name LIKE 'lock::deadlock::%' THEN 'deadlock check'
            WHEN name LIKE 'spin::%' THEN 'spinlock'
            ELSE split_part(name, '::', 2) END AS type,
       nullif(split_part(name, '::', 5), '') AS mode,
       CASE WHEN name LIKE 'spin::%' THEN split_part(name, '::', 3)
            ELSE split_part(name, '::', 4) END AS phase,
       count, seconds, min_seconds, max_seconds, p50_seconds, p95_seconds, p99_seconds
FROM tally.totals(false)
WHERE name LIKE 'lock::%' OR name LIKE 'spin::%'
UNION ALL
SELECT 'buffer pin', NULL, phase, count, seconds, min_seconds, max_seconds, p50_seconds,
       p95_seconds, p99_seconds
FROM tally.waits
WHERE wait_event_type = 'BufferPin' OR wait_event = 'BufferCleanup';
COMMENT ON VIEW tally.locks IS
    'waits for heavyweight locks by type, mode and phase; deadlock checks, spinlocks found taken, buffer pins';

CREATE VIEW tally.functions AS
WITH part AS (
    SELECT split_part(name, '::', 2) AS function, split_part(name, '::', 3) AS part,
           split_part(name, '::', 4) AS phase, t.*
    FROM tally.totals(false) t
    WHERE name LIKE 'function::%')
SELECT function, phase,
       coalesce(sum(count) FILTER (WHERE part = 'inclusive'), 0)::bigint AS calls,
       tally.rounded(sum(seconds) FILTER (WHERE part = 'inclusive')) AS seconds,
       tally.rounded(sum(seconds) FILTER (WHERE part = 'exclusive')) AS self_seconds,
       tally.rounded(sum(seconds) FILTER (WHERE part = 'inclusive')
           / nullif(sum(count) FILTER (WHERE part = 'inclusive'), 0)) AS mean_seconds,
       max(min_seconds) FILTER (WHERE part = 'inclusive') AS min_seconds,
       max(max_seconds) FILTER (WHERE part = 'inclusive') AS max_seconds,
       max(p50_seconds) FILTER (WHERE part = 'inclusive') AS p50_seconds,
       max(p95_seconds) FILTER (WHERE part = 'inclusive') AS p95_seconds,
       max(p99_seconds) FILTER (WHERE part = 'inclusive') AS p99_seconds,
       coalesce(sum(count) FILTER (WHERE part = 'counted'), 0)::bigint AS counted_only
FROM part
GROUP BY function, phase;
COMMENT ON VIEW tally.functions IS
    'functions named in pg_tally.functions: calls, and time with and without the timed functions that they call';

CREATE VIEW tally.function_calls AS
SELECT split_part(name, '::', 2) AS caller, split_part(name, '::', 3) AS callee,
       count AS calls, seconds, tally.rounded(seconds / nullif(count, 0)) AS mean_seconds, max_seconds
FROM tally.totals(false)
WHERE name LIKE 'edge::%';
COMMENT ON VIEW tally.function_calls IS
    'calls from one timed function to another, with pg_tally.function_edges = on';

/*
 * First the columns of pg_stat_statements in PostgreSQL 15, with the same names and in the same order; then ours, and those added
 * to pg_stat_statements since. Times are in milliseconds, as there.
 */
CREATE FUNCTION tally.statement_rows(
    showtext boolean,
    -- generated: statement columns
    OUT userid oid, OUT dbid oid, OUT toplevel boolean, OUT queryid bigint, OUT query text,
    OUT plans bigint, OUT total_plan_time double precision, OUT min_plan_time double precision,
    OUT max_plan_time double precision, OUT mean_plan_time double precision,
    OUT stddev_plan_time double precision, OUT calls bigint, OUT total_exec_time double precision,
    OUT min_exec_time double precision, OUT max_exec_time double precision,
    OUT mean_exec_time double precision, OUT stddev_exec_time double precision, OUT rows bigint,
    OUT shared_blks_hit bigint, OUT shared_blks_read bigint, OUT shared_blks_dirtied bigint,
    OUT shared_blks_written bigint, OUT local_blks_hit bigint, OUT local_blks_read bigint,
    OUT local_blks_dirtied bigint, OUT local_blks_written bigint, OUT temp_blks_read bigint,
    OUT temp_blks_written bigint, OUT blk_read_time double precision,
    OUT blk_write_time double precision, OUT temp_blk_read_time double precision,
    OUT temp_blk_write_time double precision, OUT wal_records bigint, OUT wal_fpi bigint,
    OUT wal_bytes numeric, OUT jit_functions bigint, OUT jit_generation_time double precision,
    OUT jit_inlining_count bigint, OUT jit_inlining_time double precision,
    OUT jit_optimization_count bigint, OUT jit_optimization_time double precision,
    OUT jit_emission_count bigint, OUT jit_emission_time double precision,
    OUT p50_exec_time double precision, OUT p90_exec_time double precision,
    OUT p95_exec_time double precision, OUT p99_exec_time double precision,
    OUT p999_exec_time double precision, OUT rows_per_call double precision, OUT errors bigint,
    OUT cancels bigint, OUT first_seen timestamptz, OUT last_seen timestamptz,
    OUT temp_files bigint, OUT temp_bytes bigint, OUT workers bigint,
    OUT worker_time double precision, OUT cpu_time double precision,
    OUT client_time double precision, OUT io_time double precision,
    OUT lwlock_time double precision, OUT lock_time double precision, OUT ipc_time double precision,
    OUT other_time double precision, OUT ledger_time double precision, OUT query_bytes integer,
    OUT shared_blk_read_time double precision, OUT shared_blk_write_time double precision,
    OUT local_blk_read_time double precision, OUT local_blk_write_time double precision,
    OUT wal_buffers_full bigint, OUT jit_deform_count bigint, OUT jit_deform_time double precision,
    OUT parallel_workers_to_launch bigint, OUT parallel_workers_launched bigint,
    OUT generic_plan_calls bigint, OUT custom_plan_calls bigint, OUT stats_since timestamptz,
    OUT minmax_stats_since timestamptz, OUT errors_by_class jsonb, OUT user_time double precision,
    OUT system_time double precision, OUT application text, OUT deadlocks bigint)
    -- end
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_statements'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 5000;
COMMENT ON FUNCTION tally.statement_rows(boolean) IS
    'rows of tally.statements; showtext = false leaves out the query texts';

CREATE VIEW tally.statements AS
SELECT s.*, u.rolname AS usename, d.datname
FROM tally.statement_rows(true) s
     LEFT JOIN pg_authid u ON u.oid = s.userid
     LEFT JOIN pg_database d ON d.oid = s.dbid;
COMMENT ON VIEW tally.statements IS
    'statement statistics: the columns of pg_stat_statements, plus quantiles, errors, and where the time went';

CREATE FUNCTION tally.plan_rows(
    OUT userid oid, OUT dbid oid, OUT toplevel boolean, OUT queryid bigint, OUT planid bigint, OUT noted bigint,
    OUT total_exec_time double precision, OUT mean_exec_time double precision, OUT max_exec_time double precision,
    OUT rows bigint, OUT cost double precision, OUT first_noted timestamptz, OUT last_noted timestamptz, OUT plan text,
    OUT application text)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_plans'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 400;

CREATE VIEW tally.plans AS
SELECT p.*, u.rolname AS usename, d.datname
FROM tally.plan_rows() p
     LEFT JOIN pg_authid u ON u.oid = p.userid
     LEFT JOIN pg_database d ON d.oid = p.dbid;
COMMENT ON VIEW tally.plans IS
    'plans of statements by their shape: figures of the executions that were noted, and the nodes with relations and indexes';

CREATE FUNCTION tally.statement_activity_rows(
    OUT userid oid, OUT dbid oid, OUT toplevel boolean, OUT queryid bigint, OUT name text,
    OUT count bigint, OUT seconds double precision, OUT application text)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_statement_activities'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 20000;

CREATE VIEW tally.statement_activities AS
SELECT userid, dbid, toplevel, queryid,
       split_part(name, '::', 1) AS phase,
       regexp_replace(name, '^[^:]*(::wait)?::', '') AS activity,
       count, seconds, application
FROM tally.statement_activity_rows();
COMMENT ON VIEW tally.statement_activities IS
    'time by statement, phase and activity; queryid 0: time attributed to no statement';

CREATE FUNCTION tally.event_rows(
    OUT number bigint, OUT at timestamptz, OUT pid integer, OUT kind text, OUT text text)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_events'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 256;
REVOKE ALL ON FUNCTION tally.event_rows() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tally.event_rows() TO pg_read_all_stats;

CREATE VIEW tally.events AS SELECT * FROM tally.event_rows();
COMMENT ON VIEW tally.events IS
    'notable events still in the event ring: slow waits, blocked sessions, checkpoints, omitted probes';

CREATE VIEW tally.files AS
SELECT kind AS process, datname, usename,
       split_part(file, '@', 1) AS file,
       CASE WHEN file LIKE '%@pg_global' THEN 'pg_global'
            WHEN file LIKE '%@%' THEN
                coalesce((SELECT spcname::text FROM pg_tablespace
                          WHERE pg_tablespace.oid::text = split_part(file, '@', 2)),
                         split_part(file, '@', 2))
            WHEN file IN ('main', 'fsm', 'vm', 'init', 'temporary', 'temporary relation') THEN 'pg_default'
       END AS tablespace,
       regexp_replace(operation, ' failed$', '') AS operation,
       operation LIKE '% failed' AS failed,
       phase, count, bytes, sequential, seconds, min_seconds, max_seconds, p50_seconds, p95_seconds,
       p99_seconds
FROM (SELECT t.*, split_part(name, '::', 2) AS file, split_part(name, '::', 3) AS operation,
             split_part(name, '::', 4) AS phase
      FROM tally.totals(true) t
      WHERE name LIKE 'file::%') f;
COMMENT ON VIEW tally.files IS
    'operations on files by kind of process, database, role, kind of file, tablespace and phase';

CREATE FUNCTION tally.relation_rows(
    OUT reltablespace oid, OUT datid oid, OUT relfilenode oid, OUT fork text, OUT backend integer,
    OUT failed bigint,
    OUT reads bigint, OUT read_bytes bigint, OUT read_seconds double precision,
    OUT max_read_seconds double precision,
    OUT writes bigint, OUT write_bytes bigint, OUT write_seconds double precision,
    OUT max_write_seconds double precision,
    OUT extends bigint, OUT extend_bytes bigint, OUT extend_seconds double precision,
    OUT max_extend_seconds double precision,
    OUT syncs bigint, OUT sync_bytes bigint, OUT sync_seconds double precision,
    OUT max_sync_seconds double precision,
    OUT truncates bigint, OUT truncate_bytes bigint, OUT truncate_seconds double precision,
    OUT max_truncate_seconds double precision)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_relations'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 2000;
COMMENT ON FUNCTION tally.relation_rows() IS
    'operations on the files of each relation''s forks, by number; the row without numbers is the sum of forks that have no entry';

/* Only names of relations in this database, and of shared relations, can be looked up here. */
CREATE VIEW tally.relations AS
SELECT d.datname,
       CASE WHEN r.relfilenode IS NULL THEN '(others)'
            WHEN r.backend IS NULL AND (r.datid IS NULL OR d.datname = current_database())
            THEN pg_filenode_relation(r.reltablespace, r.relfilenode)::text END AS relation,
       r.fork, t.spcname AS tablespace, r.backend IS NOT NULL AS temporary,
       r.reads, r.read_bytes, r.read_seconds, r.max_read_seconds,
       r.writes, r.write_bytes, r.write_seconds, r.max_write_seconds,
       r.extends, r.extend_bytes, r.extend_seconds, r.max_extend_seconds,
       r.syncs, r.sync_seconds, r.max_sync_seconds,
       r.truncates, r.truncate_seconds, r.max_truncate_seconds, r.failed,
       tally.rounded(r.read_seconds + r.write_seconds + r.extend_seconds + r.sync_seconds + r.truncate_seconds) AS seconds,
       r.datid, r.reltablespace, r.relfilenode
FROM tally.relation_rows() r
     LEFT JOIN pg_database d ON d.oid = r.datid
     LEFT JOIN pg_tablespace t ON t.oid = r.reltablespace;
COMMENT ON VIEW tally.relations IS
    'operations on the files of each relation, fork by fork; (others): relations without an entry and dropped relations';

CREATE VIEW tally.commits AS
WITH part AS (
    SELECT split_part(name, '::', 2) AS part, t.*
    FROM tally.totals(false) t
    WHERE name LIKE 'commit::%'),
flush AS (
    SELECT sum(count) AS flushes FROM tally.totals(false) WHERE name LIKE 'file::wal::sync::%')
SELECT coalesce(sum(count) FILTER (WHERE part IN ('leader', 'group_committed', 'asynchronous')), 0)::bigint AS commits,
       coalesce(sum(count) FILTER (WHERE part = 'leader'), 0)::bigint AS leader,
       coalesce(sum(count) FILTER (WHERE part = 'group_committed'), 0)::bigint AS group_committed,
       coalesce(sum(count) FILTER (WHERE part = 'asynchronous'), 0)::bigint AS asynchronous,
       coalesce(max(flushes), 0)::bigint AS flushes,
       round(sum(count) FILTER (WHERE part IN ('leader', 'group_committed'))
           / nullif(sum(count) FILTER (WHERE part = 'leader'), 0), 3)::double precision AS commits_per_flush,
       tally.rounded(coalesce(sum(seconds) FILTER (WHERE part IN ('leader', 'group_committed', 'asynchronous')), 0)) AS seconds,
       max(max_seconds) FILTER (WHERE part IN ('leader', 'group_committed', 'asynchronous')) AS max_seconds,
       tally.rounded(sum(seconds) FILTER (WHERE part = 'leader')
           / nullif(sum(count) FILTER (WHERE part = 'leader'), 0)) AS mean_leader_seconds,
       tally.rounded(sum(seconds) FILTER (WHERE part = 'group_committed')
           / nullif(sum(count) FILTER (WHERE part = 'group_committed'), 0)) AS mean_group_committed_seconds,
       sum(count) FILTER (WHERE part = 'insertion')::bigint AS insertions,
       tally.rounded(sum(seconds) FILTER (WHERE part = 'insertion')) AS insertion_seconds,
       tally.rounded(coalesce(sum(seconds) FILTER (WHERE part = 'insert'), 0)) AS insert_wait_seconds,
       tally.rounded(coalesce(sum(seconds) FILTER (WHERE part = 'queue'), 0)) AS queue_seconds,
       coalesce(sum(count) FILTER (WHERE part = 'delay'), 0)::bigint AS delays,
       tally.rounded(coalesce(sum(seconds) FILTER (WHERE part = 'delay'), 0)) AS delay_seconds,
       tally.rounded(coalesce(sum(seconds) FILTER (WHERE part = 'write'), 0)) AS write_seconds,
       tally.rounded(coalesce(sum(seconds) FILTER (WHERE part = 'sync'), 0)) AS sync_seconds,
       max(p95_seconds) FILTER (WHERE part = 'sync') AS p95_sync_seconds,
       max(max_seconds) FILTER (WHERE part = 'sync') AS max_sync_seconds,
       tally.rounded(coalesce(sum(seconds) FILTER (WHERE part = 'replication'), 0)) AS replication_seconds
FROM part, flush;
COMMENT ON VIEW tally.commits IS
    'commits that wrote WAL: flush leaders and group-committed ones, and where their time went';

CREATE FUNCTION tally.checkpoint_rows(
    OUT number bigint, OUT started timestamptz, OUT ended timestamptz, OUT reason text,
    OUT seconds double precision, OUT slru_seconds double precision, OUT write_seconds double precision,
    OUT sync_seconds double precision, OUT buffers bigint, OUT bytes bigint, OUT buffers_by_tablespace jsonb,
    OUT interval_seconds double precision, OUT spread double precision, OUT target double precision,
    OUT files_synced integer, OUT longest_sync_seconds double precision, OUT longest_sync_file text,
    OUT wal_added integer, OUT wal_removed integer, OUT wal_recycled integer,
    OUT before_seconds double precision, OUT before_commands bigint, OUT before_commands_per_second double precision,
    OUT before_mean_handle_seconds double precision,
    OUT during_seconds double precision, OUT during_commands bigint, OUT during_commands_per_second double precision,
    OUT during_mean_handle_seconds double precision,
    OUT after_seconds double precision, OUT after_commands bigint, OUT after_commands_per_second double precision,
    OUT after_mean_handle_seconds double precision)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_checkpoints'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 20;
REVOKE ALL ON FUNCTION tally.checkpoint_rows() FROM PUBLIC;
GRANT EXECUTE ON FUNCTION tally.checkpoint_rows() TO pg_read_all_stats;

CREATE VIEW tally.checkpoints AS SELECT * FROM tally.checkpoint_rows();
COMMENT ON VIEW tally.checkpoints IS
    'checkpoints and restartpoints still in the event ring: phases, buffers, and the clients before, during and after';

CREATE VIEW tally.writers AS
SELECT process,
       coalesce(sum(count) FILTER (WHERE relation AND operation = 'write'), 0)::bigint AS blocks_written,
       coalesce(sum(count) FILTER (WHERE relation AND operation = 'extend'), 0)::bigint AS extensions,
       coalesce(sum(bytes) FILTER (WHERE relation), 0)::bigint AS bytes,
       tally.rounded(coalesce(sum(seconds) FILTER (WHERE relation AND operation IN ('write', 'extend')), 0)) AS write_seconds,
       coalesce(sum(count) FILTER (WHERE relation AND operation = 'sync'), 0)::bigint AS syncs,
       tally.rounded(coalesce(sum(seconds) FILTER (WHERE relation AND operation = 'sync'), 0)) AS sync_seconds,
       coalesce(sum(count) FILTER (WHERE file LIKE 'slru %' AND operation = 'write'), 0)::bigint AS slru_pages_written
FROM (SELECT *, file IN ('main', 'fsm', 'vm', 'init') AS relation FROM tally.files) f
WHERE operation IN ('write', 'extend', 'sync') AND NOT failed AND (relation OR file LIKE 'slru %')
GROUP BY process;
COMMENT ON VIEW tally.writers IS
    'writes to relations and SLRUs, by kind of process: checkpointer, background writer, sessions themselves';

CREATE VIEW tally.wal AS
SELECT kind AS process,
       coalesce(sum(total) FILTER (WHERE name = 'wal::records'), 0)::bigint AS records,
       coalesce(sum(total) FILTER (WHERE name = 'wal::full_page_images'), 0)::bigint AS fpi,
       coalesce(sum(total) FILTER (WHERE name = 'wal::bytes'), 0)::numeric AS bytes,
       coalesce(sum(total) FILTER (WHERE name = 'wal::buffers_full'), 0)::bigint AS buffers_full,
       sum(count) FILTER (WHERE name LIKE 'lwlock::%')::bigint AS insertions,
       tally.rounded(sum(seconds) FILTER (WHERE name LIKE 'lwlock::%')) AS insertion_seconds,
       coalesce(sum(count) FILTER (WHERE name LIKE 'file::wal::write::%'), 0)::bigint AS writes,
       coalesce(sum(bytes) FILTER (WHERE name LIKE 'file::wal::write::%'), 0)::bigint AS written_bytes,
       tally.rounded(coalesce(sum(seconds) FILTER (WHERE name LIKE 'file::wal::write::%'), 0)) AS write_seconds,
       coalesce(sum(count) FILTER (WHERE name LIKE 'file::wal::sync::%'), 0)::bigint AS syncs,
       tally.rounded(coalesce(sum(seconds) FILTER (WHERE name LIKE 'file::wal::sync::%'), 0)) AS sync_seconds
FROM tally.totals(true)
WHERE name LIKE 'wal::%' OR name LIKE 'file::wal::write::%' OR name LIKE 'file::wal::sync::%'
      OR name LIKE 'lwlock::WALInsert::held::%::exclusive'
GROUP BY kind;
COMMENT ON VIEW tally.wal IS
    'WAL inserted, written and synced, by kind of process; insertions are timed at level locks';

CREATE VIEW tally.sessions AS SELECT * FROM tally.session_rows();
COMMENT ON VIEW tally.sessions IS 'instrumented processes and what they are doing now';

CREATE FUNCTION tally.blocked_rows(
    OUT pid integer, OUT leader_pid integer, OUT datname text, OUT usename text, OUT application_name text,
    OUT wait_seconds double precision, OUT locktype text, OUT mode text, OUT lock_datid oid,
    OUT relation oid, OUT page bigint, OUT tuple integer, OUT object text, OUT blockers integer[],
    OUT blocker_count integer)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_blocked'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 10;

CREATE FUNCTION tally.last_statement(pid integer, OUT queryid bigint, OUT query text)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_last_statement'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 1;
COMMENT ON FUNCTION tally.last_statement(integer) IS
    'the statement that a session executes, or else the last one that it executed; without an id, the text of a message whose statement is not known yet';

CREATE VIEW tally.blocking AS
WITH RECURSIVE blocked AS MATERIALIZED (
    SELECT * FROM tally.blocked_rows()),
session AS MATERIALIZED (
    SELECT * FROM tally.session_rows()),
edge AS (
    SELECT DISTINCT coalesce(leader_pid, pid) AS pid, blocker
    FROM blocked, unnest(blockers) AS blocker),
above AS (
    SELECT pid, blocker FROM edge
    UNION
    SELECT above.pid, edge.blocker FROM above JOIN edge ON edge.pid = above.blocker),
root AS (
    SELECT pid, blocker AS root_pid FROM above
    WHERE NOT EXISTS (SELECT FROM edge WHERE edge.pid = above.blocker)),
weight AS (
    SELECT root_pid, count(*) AS waiters FROM root GROUP BY root_pid),
chosen AS (
    SELECT DISTINCT ON (pid) pid, root_pid, waiters
    FROM root JOIN weight USING (root_pid)
    ORDER BY pid, waiters DESC, root_pid)
SELECT b.pid, b.leader_pid, b.datname, b.usename, b.application_name, o.client_address, o.transaction_seconds,
       b.wait_seconds,
       CASE WHEN b.locktype = 'tuple' THEN format('row (%s,%s) of %s', b.page, b.tuple, n.name)
            WHEN b.locktype = 'page' THEN format('page %s of %s', b.page, n.name)
            WHEN b.locktype = 'extend' THEN format('extension of %s', n.name)
            WHEN b.locktype = 'relation' THEN n.name
            WHEN b.locktype = 'transactionid' THEN format('transaction %s', b.object)
            WHEN b.locktype = 'virtualxid' THEN format('virtual transaction %s', b.object)
            ELSE concat_ws(' ', b.locktype, b.object) END AS lock,
       b.mode, b.blockers, b.blocker_count, w.queryid, w.query,
       c.root_pid, c.waiters AS root_waiters, s.datname AS root_datname, s.usename AS root_usename,
       s.application_name AS root_application_name, s.client_address AS root_client_address,
       s.phase AS root_phase, s.activity AS root_activity, s.since_seconds AS root_since_seconds,
       s.transaction_seconds AS root_transaction_seconds,
       l.queryid AS root_queryid, l.query AS root_query, s.statement_seconds AS root_statement_seconds
FROM blocked b
     LEFT JOIN chosen c ON c.pid = coalesce(b.leader_pid, b.pid)
     LEFT JOIN session s ON s.pid = c.root_pid
     LEFT JOIN session o ON o.pid = b.pid
     LEFT JOIN LATERAL tally.last_statement(b.pid) w ON true
     LEFT JOIN LATERAL tally.last_statement(c.root_pid) l ON true
     CROSS JOIN LATERAL (
         SELECT CASE WHEN b.lock_datid IN (0, (SELECT oid FROM pg_database WHERE datname = current_database()))
                     THEN 'relation ' || b.relation::regclass::text
                     ELSE format('relation %s in database %s', b.relation, b.lock_datid) END) AS n(name);
COMMENT ON VIEW tally.blocking IS
    'sessions that wait for a heavyweight lock: the lock, their blockers, and the session at the root';

CREATE VIEW tally.status AS SELECT * FROM tally.status_rows();
COMMENT ON VIEW tally.status IS 'state of pg_tally: settings in force, capacities, overflows';

CREATE VIEW tally.probes AS SELECT * FROM tally.probe_rows();
COMMENT ON VIEW tally.probes IS 'probes: installed, or left out and why; calls by live processes';

CREATE FUNCTION tally.segment_changes(mark bigint DEFAULT 0, parts integer DEFAULT 7,
    OUT next_mark bigint, OUT tick bigint, OUT monotonic_ns bigint, OUT realtime_ns bigint, OUT sees_all boolean,
    OUT processors integer, OUT slot_ticks bytea, OUT raw_size integer, OUT changes bytea)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_segment_changes'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 1;
COMMENT ON FUNCTION tally.segment_changes(bigint, integer) IS
    'for the command tally on another machine: changes of the segment since the last call in this session';

GRANT USAGE ON SCHEMA tally TO PUBLIC;
GRANT SELECT ON tally.ledger, tally.waits, tally.commands, tally.sessions, tally.blocking, tally.status,
    tally.probes, tally.lwlocks, tally.locks, tally.functions, tally.function_calls, tally.files, tally.relations,
    tally.commits, tally.writers, tally.wal, tally.statements, tally.plans,
    tally.statement_activities TO PUBLIC;
GRANT SELECT ON tally.events, tally.checkpoints TO pg_read_all_stats;
