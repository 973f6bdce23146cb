-- SPDX-License-Identifier: PostgreSQL
-- What is executed in a database, in the columns of pg_stat_statements.
\set home :DBNAME
CREATE DATABASE regression_tally_statements TEMPLATE template0;
\c regression_tally_statements
CREATE EXTENSION pg_tally;
LOAD 'pg_tally';
SELECT oid AS tally_database FROM pg_database WHERE datname = current_database() \gset
CREATE VIEW mine AS
    SELECT query, toplevel, calls, rows, plans, errors, errors_by_class FROM tally.statements
    WHERE datname = current_database() AND query !~ 'tally|mine';
CREATE TABLE counted (a int PRIMARY KEY, b text);
INSERT INTO counted SELECT n, 'x' FROM generate_series(1, 20) n;
INSERT INTO counted SELECT n, 'y' FROM generate_series(21, 25) n;
UPDATE counted SET b = 'z' WHERE a > 15;
DELETE FROM counted WHERE a = 1;
-- Two of one shape are one statement; an execution that fails is an error, not a call.
SELECT b FROM counted WHERE a = 2;
SELECT b FROM counted WHERE a = 3;
SELECT 1 / (a - 4) FROM counted WHERE a = 4;
INSERT INTO counted VALUES (5, 'double');
BEGIN;
COMMIT;
SELECT * FROM mine ORDER BY query COLLATE "C", toplevel;
-- The times of a statement lie between those of its executions, and their classes add up.
SELECT bool_and(total_exec_time BETWEEN calls * min_exec_time - 1e-3 AND calls * max_exec_time + 1e-3) AS lie_between,
       bool_and(abs(ledger_time - cpu_time - client_time - io_time - lwlock_time - lock_time - ipc_time - other_time) < 1e-3) AS add_up
FROM tally.statements WHERE datname = current_database() AND calls > 0;
-- Statements of a database are forgotten, and count again.
SELECT FROM tally.reset(dbid => :tally_database);
SELECT b FROM counted WHERE a = 6;
SELECT query, calls, rows FROM mine WHERE query LIKE '%counted%' ORDER BY query COLLATE "C";
-- Nested ones count where all are wanted, and none where none are.
CREATE FUNCTION number() RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
    found bigint;
BEGIN
    EXECUTE 'SELECT count(*) FROM counted' INTO found;
    RETURN found;
END $$;
SELECT number();
SELECT query, toplevel, calls, rows FROM mine WHERE query ~ '^SELECT (number|count)' ORDER BY query COLLATE "C", toplevel;
ALTER DATABASE regression_tally_statements SET pg_tally.statements = 'all';
\c
LOAD 'pg_tally';
SELECT FROM tally.reset(dbid => :tally_database);
SELECT number();
SELECT query, toplevel, calls, rows FROM mine WHERE query ~ '^SELECT (number|count)' ORDER BY query COLLATE "C", toplevel;
ALTER DATABASE regression_tally_statements SET pg_tally.statements = 'none';
\c
LOAD 'pg_tally';
SELECT FROM tally.reset(dbid => :tally_database);
SELECT number();
SELECT query, toplevel, calls, rows FROM mine WHERE query ~ '^SELECT (number|count)' ORDER BY query COLLATE "C", toplevel;
DROP FUNCTION number();
DROP TABLE counted;
DROP VIEW mine;
\c :home
DROP DATABASE regression_tally_statements;
