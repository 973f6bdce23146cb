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
