-- SPDX-License-Identifier: PostgreSQL
-- Who may call and read what.
LOAD 'pg_tally';
CREATE ROLE regress_tally_one;
CREATE ROLE regress_tally_monitor IN ROLE pg_read_all_stats;
-- Functions and views that not everybody may use, and whether a monitor may.
SELECT p.oid::regprocedure AS function, has_function_privilege('regress_tally_monitor', p.oid, 'EXECUTE') AS monitor
FROM pg_proc p WHERE pronamespace = 'tally'::regnamespace AND NOT has_function_privilege('regress_tally_one', p.oid, 'EXECUTE')
ORDER BY p.oid::regprocedure::text COLLATE "C";
SELECT c.oid::regclass AS view, has_table_privilege('regress_tally_monitor', c.oid, 'SELECT') AS monitor
FROM pg_class c WHERE relnamespace = 'tally'::regnamespace AND relkind = 'v'
    AND NOT has_table_privilege('regress_tally_one', c.oid, 'SELECT')
ORDER BY c.oid::regclass::text COLLATE "C";
-- Nobody but the owner may change anything in the schema.
SELECT has_schema_privilege('regress_tally_one', 'tally', 'USAGE') AS usage, has_schema_privilege('regress_tally_one', 'tally', 'CREATE') AS "create";
SELECT count(*) FROM pg_class c WHERE relnamespace = 'tally'::regnamespace
    AND has_table_privilege('regress_tally_monitor', c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE');
-- What this session does is hidden from a role without rights, and shown to a monitor.
SELECT pg_backend_pid() > 0 AS of_a_superuser;
SET SESSION AUTHORIZATION regress_tally_one;
SELECT phase, activity, queryid, query FROM tally.sessions WHERE pid = pg_backend_pid();
SELECT count(*) FROM tally.statements WHERE query LIKE '%of_a_superuser%';
SELECT FROM tally.reset();
SELECT FROM tally.probeable('*');
SELECT FROM tally.events;
SELECT FROM tally.checkpoints;
LOAD 'pg_tally';
SET pg_tally.level = 'off';
RESET SESSION AUTHORIZATION;
SET SESSION AUTHORIZATION regress_tally_monitor;
SELECT phase, activity, query FROM tally.sessions WHERE pid = pg_backend_pid();
SELECT query, calls FROM tally.statements
WHERE datname = current_database() AND query LIKE 'SELECT pg_backend_pid()%of_a_superuser';
SELECT count(*) >= 0 AS may_read FROM tally.events;
SELECT FROM tally.reset();
RESET SESSION AUTHORIZATION;
DROP ROLE regress_tally_one, regress_tally_monitor;
