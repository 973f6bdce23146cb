-- SPDX-License-Identifier: PostgreSQL
-- The accounts of a session add up to the time that passes. It is the only one of its database.
\set home :DBNAME
CREATE DATABASE regression_tally_ledger TEMPLATE template0;
\c regression_tally_ledger
CREATE EXTENSION pg_tally;
LOAD 'pg_tally';
-- The session's age before and after its accounts are read, twice; one sleep lies between.
SELECT age_seconds AS before_first FROM tally.sessions WHERE pid = pg_backend_pid() \gset
SELECT sum(seconds) AS first FROM tally.ledger WHERE datname = current_database() AND kind = 'client backend' \gset
SELECT age_seconds AS after_first FROM tally.sessions WHERE pid = pg_backend_pid() \gset
SELECT FROM pg_sleep(0.1);
SELECT age_seconds AS before_second FROM tally.sessions WHERE pid = pg_backend_pid() \gset
SELECT sum(seconds) AS second FROM tally.ledger WHERE datname = current_database() AND kind = 'client backend' \gset
SELECT age_seconds AS after_second FROM tally.sessions WHERE pid = pg_backend_pid() \gset
SELECT :second - :first >= :before_second - :after_first AS not_less,
       :second - :first <= :after_second - :before_first AS not_more;
-- The sleep is one wait, and lies in the phase that executed it.
SELECT phase, activity, count, seconds >= 0.1 AS is_whole, min_seconds = max_seconds AS is_one
FROM tally.ledger WHERE datname = current_database() AND activity = 'Timeout:PgSleep';
SELECT DISTINCT datname, usename = current_user AS is_mine FROM tally.ledger
WHERE datname = current_database() AND kind = 'client backend';
\c :home
DROP DATABASE regression_tally_ledger;
