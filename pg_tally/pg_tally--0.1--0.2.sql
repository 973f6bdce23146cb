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
