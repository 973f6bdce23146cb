-- SPDX-License-Identifier: PostgreSQL
-- The accounts of a session add up to the time that passes.
\set admin :USER
CREATE ROLE regress_tally_ledger SUPERUSER LOGIN;
\c - regress_tally_ledger
LOAD 'pg_tally';
-- The session's age before and after its accounts are read, twice; one sleep lies between.
SELECT age_seconds AS before_first FROM tally.sessions WHERE pid = pg_backend_pid() \gset
SELECT sum(seconds) AS first FROM tally.ledger WHERE usename = 'regress_tally_ledger' \gset
SELECT age_seconds AS after_first FROM tally.sessions WHERE pid = pg_backend_pid() \gset
SELECT FROM pg_sleep(0.1);
SELECT age_seconds AS before_second FROM tally.sessions WHERE pid = pg_backend_pid() \gset
SELECT sum(seconds) AS second FROM tally.ledger WHERE usename = 'regress_tally_ledger' \gset
SELECT age_seconds AS after_second FROM tally.sessions WHERE pid = pg_backend_pid() \gset
SELECT :second - :first >= :before_second - :after_first AS not_less,
       :second - :first <= :after_second - :before_first AS not_more;
-- The sleep is one wait, and lies in the phase that executed it.
SELECT phase, activity, count, seconds >= 0.1 AS is_whole, min_seconds = max_seconds AS is_one
FROM tally.ledger WHERE usename = 'regress_tally_ledger' AND activity = 'Timeout:PgSleep';
SELECT DISTINCT kind, datname FROM tally.ledger WHERE usename = 'regress_tally_ledger';
\c - :admin
DROP ROLE regress_tally_ledger;
