/* SPDX-License-Identifier: PostgreSQL */
/*
 * pg_tally--0.2--0.3.sql: tally.statements has what pg_stat_statements got since PostgreSQL 17, and applications.
 */

\echo Use "ALTER EXTENSION pg_tally UPDATE" to load this file. \quit

DROP FUNCTION tally.reset(oid, oid, bigint);

CREATE FUNCTION tally.reset(userid oid DEFAULT 0, dbid oid DEFAULT 0, queryid bigint DEFAULT 0,
    minmax_only boolean DEFAULT false)
RETURNS timestamptz
AS 'MODULE_PATHNAME', 'pg_tally_reset_0_3'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tally.reset(oid, oid, bigint, boolean) FROM PUBLIC;
COMMENT ON FUNCTION tally.reset(oid, oid, bigint, boolean) IS
    'reset all totals and statements, or only the statements of a role, database or query id; with minmax_only, only their minima and maxima';

DROP VIEW tally.statements, tally.plans, tally.statement_activities;
DROP FUNCTION tally.statement_rows(boolean);
DROP FUNCTION tally.plan_rows();
DROP FUNCTION tally.statement_activity_rows();

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

GRANT SELECT ON tally.statements, tally.plans, tally.statement_activities TO PUBLIC;

COMMENT ON FUNCTION tally.relation_rows() IS
    'operations on the files of each relation''s forks, by number; the row without numbers is the sum of forks that have no entry';
COMMENT ON FUNCTION tally.rounded(double precision) IS 'seconds, rounded to nanoseconds';
COMMENT ON FUNCTION tally.totals(boolean) IS
    'all statistics, by kind of process, database and role, or of the whole server';
COMMENT ON VIEW tally.ledger IS
    'all time of all instrumented processes, by phase and activity';
COMMENT ON VIEW tally.lwlocks IS
    'lightweight locks by tranche, mode and phase, counted at level locks: holds, acquisitions, waits';
COMMENT ON VIEW tally.wal IS
    'WAL inserted, written and synced, by kind of process; insertions are timed at level locks';
COMMENT ON VIEW tally.blocking IS
    'sessions that wait for a heavyweight lock: the lock, their blockers, and the session at the root';
COMMENT ON FUNCTION tally.segment_changes(bigint, integer) IS
    'for the command tally on another machine: changes of the segment since the last call in this session';
COMMENT ON VIEW tally.functions IS
    'functions named in pg_tally.functions: calls, and time with and without the timed functions that they call';
COMMENT ON VIEW tally.function_calls IS
    'calls from one timed function to another, with pg_tally.function_edges = on';
