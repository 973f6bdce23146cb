-- SPDX-License-Identifier: PostgreSQL
WITH summed AS (
    SELECT fingerprint, cluster, host, max(statement) AS known_text,
           sum(calls) AS n, sum(exec_ns) AS ns, max(exec_max_ns) AS max_ns, sum(rows) AS returned,
           sum(shared_hit) AS hit, sum(shared_read) AS missed, sum(wal_bytes) AS wal, sum(errors) AS failed
    FROM statements
    WHERE {{window}} AND toplevel
    GROUP BY fingerprint, cluster, host
), covered AS (
    SELECT cluster AS of_cluster, host AS of_host, sum(interval_ns) AS covered_ns
    FROM intervals
    WHERE {{window}}
    GROUP BY cluster, host
), fleet AS (
    SELECT fingerprint, max(known_text) AS statement, count(*) AS hosts, sum(n) AS calls, sum(ns) AS exec_ns,
           sum(n / nullif(covered_ns / 1e9, 0)) AS per_second,
           max(max_ns) AS longest, sum(returned) AS returned_rows, sum(hit) AS hits, sum(missed) AS misses,
           sum(wal) AS wal_bytes, sum(failed) AS errors, {{max_by concat(cluster, '/', host) | ns}} AS top_host
    FROM summed JOIN covered ON of_cluster = cluster AND of_host = host
    WHERE known_text NOT LIKE '/* tally */%'
    GROUP BY fingerprint
)
SELECT statement, fingerprint, hosts, calls,
       per_second,
       exec_ns / 1e9 AS seconds,
       exec_ns / nullif(sum(exec_ns) OVER (), 0) AS share,
       exec_ns / 1e9 / nullif(calls, 0) AS mean_seconds,
       longest / 1e9 AS max_seconds,
       returned_rows / nullif(calls, 0) AS rows_per_call,
       hits / nullif(hits + misses, 0) AS hit_share,
       wal_bytes, errors, top_host
FROM fleet
ORDER BY exec_ns DESC, fingerprint
LIMIT {{limit}}
