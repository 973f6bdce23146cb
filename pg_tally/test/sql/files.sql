-- SPDX-License-Identifier: PostgreSQL
-- A table's files: each block by which it grows is counted, for the relation and for the database.
LOAD 'pg_tally';
CREATE TABLE grown (a int, b text);
ALTER TABLE grown ALTER b SET STORAGE PLAIN;
INSERT INTO grown SELECT n, repeat('x', 1000) FROM generate_series(1, 100) n;
SELECT fork, extends > 0 AS extended, extend_bytes = pg_relation_size('grown', fork) AS is_its_size, temporary, failed
FROM tally.relations WHERE datname = current_database() AND relation = 'grown'
ORDER BY fork COLLATE "C";
SELECT file, tablespace, failed, sum(bytes) >= pg_relation_size('grown', file) AS has_it
FROM tally.files WHERE datname = current_database() AND operation = 'extend' AND file IN ('main', 'fsm')
GROUP BY file, tablespace, failed ORDER BY file COLLATE "C";
TRUNCATE grown;
DROP TABLE grown;
-- A commit that writes WAL; the session is the only one that it waits for.
SELECT asynchronous AS before FROM tally.commits \gset
SET synchronous_commit = off;
CREATE TABLE made ();
DROP TABLE made;
SELECT asynchronous - :before >= 2 AS both_counted FROM tally.commits;
