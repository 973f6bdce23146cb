-- SPDX-License-Identifier: PostgreSQL
-- The library in a superuser's session: whether the server preloads it or not, LOAD instruments the session.
LOAD 'pg_tally';
SELECT installed_version = default_version AS is_current FROM pg_available_extensions WHERE name = 'pg_tally';
SELECT name, value FROM tally.status
WHERE name IN ('active', 'this session', 'statistics overflow', 'names overflow', 'processes without a slot', 'slots found damaged')
ORDER BY name COLLATE "C";
-- No call and no function is left out but those that this server does not use.
SELECT name, reason FROM tally.probes
WHERE NOT installed AND reason <> 'this server does not import it'
ORDER BY name COLLATE "C";
SELECT pid = pg_backend_pid() AS is_this, kind, datname, usename = current_user AS is_mine, phase, activity, leader_pid, query
FROM tally.sessions WHERE pid = pg_backend_pid();
-- Every view can be read.
SELECT format('SELECT FROM tally.%I LIMIT 0', relname) FROM pg_class
WHERE relnamespace = 'tally'::regnamespace AND relkind = 'v' ORDER BY relname COLLATE "C" \gexec
