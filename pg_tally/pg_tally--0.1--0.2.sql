/* SPDX-License-Identifier: PostgreSQL */
/*
 * pg_tally--0.1--0.2.sql: the command tally reads a server from another machine; what walks over all functions of the server is for
 * superusers.
 */

\echo Use "ALTER EXTENSION pg_tally UPDATE" to load this file. \quit

/* Some builds called 0.1 have it already. */
CREATE OR REPLACE FUNCTION tally.segment_changes(mark bigint DEFAULT 0, parts integer DEFAULT 7,
    OUT next_mark bigint, OUT tick bigint, OUT monotonic_ns bigint, OUT realtime_ns bigint, OUT sees_all boolean,
    OUT processors integer, OUT slot_ticks bytea, OUT raw_size integer, OUT changes bytea)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_segment_changes'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED ROWS 1;
COMMENT ON FUNCTION tally.segment_changes(bigint, integer) IS
    'for the command tally on another machine: what of the segment has changed since its last call in this session';

REVOKE ALL ON FUNCTION tally.probeable(text) FROM PUBLIC;

/* How many rows the planner expects: with 1,000 for each, a join of three was worth compiling. */
ALTER FUNCTION tally.totals(boolean) ROWS 500;
ALTER FUNCTION tally.session_rows() ROWS 100;
ALTER FUNCTION tally.status_rows() ROWS 60;
ALTER FUNCTION tally.probe_rows() ROWS 150;
ALTER FUNCTION tally.probeable(text) ROWS 100;
ALTER FUNCTION tally.plan_rows() ROWS 400;
ALTER FUNCTION tally.event_rows() ROWS 256;
ALTER FUNCTION tally.relation_rows() ROWS 2000;
ALTER FUNCTION tally.checkpoint_rows() ROWS 20;
ALTER FUNCTION tally.blocked_rows() ROWS 10;
ALTER FUNCTION tally.last_statement(integer) ROWS 1;

COMMENT ON FUNCTION tally.last_statement(integer) IS
    'the statement that a session executes, or else the last one that it executed; without an id, the text of a message whose statement is not known yet';

CREATE OR REPLACE VIEW tally.blocking AS
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

/* From 19 on a wait for a buffer pin has another name. */
CREATE OR REPLACE VIEW tally.locks AS
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
