-- SPDX-License-Identifier: PostgreSQL
WITH summed AS (
    SELECT fingerprint, cluster, host, max(statement) AS known_text,
           sum(calls) AS n,
           sum(exec_ns) + CASE WHEN sum(calls) > 0 THEN 0 ELSE coalesce(sum(sampled_ns), 0) END AS ns,
           max(exec_max_ns) AS max_ns, sum(rows) AS returned,
           sum(shared_hit) AS hit, sum(shared_read) AS missed, sum(wal_bytes) AS wal, sum(errors) AS failed
    FROM statements
    WHERE {{window}} AND toplevel
    GROUP BY fingerprint, cluster, host
), covered AS (
    SELECT cluster AS of_cluster, host AS of_host, sum(interval_ns) AS covered_ns, {{is_sampled}} AS is_sampled
    FROM intervals
    WHERE {{window}}
    GROUP BY cluster, host
), fleet AS (
    SELECT fingerprint, max(known_text) AS statement, count(*) AS hosts, sum(n) AS all_calls, sum(ns) AS exec_ns,
           sum(n / nullif(covered_ns / 1e9, 0)) AS all_per_second,
           max(max_ns) AS longest, sum(returned) AS returned_rows, sum(hit) AS hits, sum(missed) AS misses,
           sum(wal) AS all_wal, sum(failed) AS all_errors, sum(1 - is_sampled) AS measured_hosts,
           sum(CASE WHEN is_sampled = 1 AND n = 0 THEN 0 ELSE 1 END) AS counted_hosts,
           {{max_by concat(cluster, '/', host) | ns}} AS first_host
    FROM summed JOIN covered ON of_cluster = cluster AND of_host = host
    WHERE known_text NOT LIKE '/* tally */%'
    GROUP BY fingerprint
)
SELECT statement, fingerprint, hosts, CASE WHEN counted_hosts > 0 THEN all_calls END AS calls,
       CASE WHEN counted_hosts > 0 THEN all_per_second END AS per_second,
       exec_ns / 1e9 AS seconds,
       exec_ns / nullif(sum(exec_ns) OVER (), 0) AS share,
       exec_ns / 1e9 / nullif(all_calls, 0) AS mean_seconds,
       CASE WHEN counted_hosts > 0 THEN longest / 1e9 END AS max_seconds,
       returned_rows / nullif(all_calls, 0) AS rows_per_call,
       hits / nullif(hits + misses, 0) AS hit_share,
       CASE WHEN counted_hosts > 0 THEN all_wal END AS wal_bytes,
       CASE WHEN measured_hosts > 0 THEN all_errors END AS errors,
       first_host AS top_host,
       CASE WHEN measured_hosts = hosts THEN 'exact' WHEN measured_hosts > 0 THEN 'both' ELSE 'sampled' END AS source
FROM fleet
ORDER BY exec_ns DESC, fingerprint
LIMIT {{limit}}
