/* SPDX-License-Identifier: PostgreSQL */
/* pg_tally--0.1.sql: the views of the ledger. Times are in seconds. */

\echo Use "CREATE EXTENSION pg_tally" to load this file. \quit

CREATE FUNCTION tally.totals(
    by_group boolean,
    OUT kind text, OUT datid oid, OUT datname text, OUT usesysid oid, OUT usename text,
    OUT name text, OUT type text, OUT count bigint, OUT seconds double precision,
    OUT min_seconds double precision, OUT max_seconds double precision,
    OUT p50_seconds double precision, OUT p95_seconds double precision,
    OUT p99_seconds double precision)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_totals'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;
COMMENT ON FUNCTION tally.totals(boolean) IS
    'every statistic by (kind of process, database, role), or of the whole server';

CREATE FUNCTION tally.session_rows(
    OUT pid integer, OUT leader_pid integer, OUT kind text, OUT datid oid, OUT datname text,
    OUT usesysid oid, OUT usename text, OUT application_name text, OUT phase text,
    OUT activity text, OUT since_seconds double precision, OUT age_seconds double precision)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_sessions'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE FUNCTION tally.status_rows(OUT name text, OUT value text)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_status'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE FUNCTION tally.probe_rows(
    OUT name text, OUT installed boolean, OUT reason text, OUT calls bigint)
RETURNS SETOF record AS 'MODULE_PATHNAME', 'pg_tally_probes'
LANGUAGE C VOLATILE STRICT PARALLEL RESTRICTED;

CREATE FUNCTION tally.reset() RETURNS void
AS 'MODULE_PATHNAME', 'pg_tally_reset'
LANGUAGE C VOLATILE STRICT PARALLEL UNSAFE;
REVOKE ALL ON FUNCTION tally.reset() FROM PUBLIC;
COMMENT ON FUNCTION tally.reset() IS 'all totals of all processes begin again at zero';

CREATE VIEW tally.ledger AS
SELECT kind, datid, datname, usesysid, usename,
       split_part(name, '::', 1) AS phase,
       regexp_replace(name, '^[^:]*(::wait)?::', '') AS activity,
       count, seconds, min_seconds, max_seconds, p50_seconds, p95_seconds, p99_seconds
FROM tally.totals(true)
WHERE type = 'account';
COMMENT ON VIEW tally.ledger IS
    'the closed ledger: all time of all instrumented processes, by (phase, activity)';

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
       seconds / nullif(count, 0) AS mean_seconds, min_seconds, max_seconds,
       p50_seconds, p95_seconds, p99_seconds
FROM tally.totals(false)
WHERE name LIKE 'command::%';
COMMENT ON VIEW tally.commands IS
    'messages by kind: part read is the wait for the message, handle the time to its end';

CREATE VIEW tally.sessions AS SELECT * FROM tally.session_rows();
COMMENT ON VIEW tally.sessions IS 'instrumented processes and what they are doing now';

CREATE VIEW tally.status AS SELECT * FROM tally.status_rows();
COMMENT ON VIEW tally.status IS 'state of the instrument: settings in force, capacities, overflows';

CREATE VIEW tally.probes AS SELECT * FROM tally.probe_rows();
COMMENT ON VIEW tally.probes IS 'probes: installed, or left out and why; calls by live processes';

GRANT USAGE ON SCHEMA tally TO PUBLIC;
GRANT SELECT ON tally.ledger, tally.waits, tally.commands, tally.sessions, tally.status,
    tally.probes TO PUBLIC;
