-- SPDX-License-Identifier: PostgreSQL
WITH rates AS (
    {{rates window}}
), executed AS (
    SELECT fingerprint, statement, cluster, host, date, hour, exec_max_ns, buckets, counts
    FROM statements
    WHERE {{window}} AND toplevel AND statement NOT LIKE '/* tally */%'
), longest AS (
    SELECT fingerprint AS of_fingerprint, max(statement) AS known_text, max(exec_max_ns) / 1e0 AS max_ns
    FROM executed
    GROUP BY fingerprint
), buckets_of AS (
    {{buckets fingerprint, cluster, host, date, hour | executed}}
), cells AS (
    SELECT fingerprint, cluster, host, rate, bucket, sum(n) AS executions
    FROM buckets_of JOIN rates ON of_cluster = cluster AND of_host = host AND of_date = date AND of_hour = hour
    GROUP BY fingerprint, cluster, host, rate, bucket
), bounded AS (
    SELECT fingerprint, cluster, host, executions,
           ({{low bucket}} + {{low bucket + 1}}) / 2 * 1e4 / rate AS middle_ns
    FROM cells
), ranked AS (
    SELECT fingerprint, cluster, host, executions, middle_ns,
           sum(executions) OVER (PARTITION BY fingerprint ORDER BY middle_ns, cluster, host
                                 ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS upto,
           sum(executions) OVER (PARTITION BY fingerprint) AS whole,
           sum(executions) OVER (PARTITION BY fingerprint, cluster, host ORDER BY middle_ns
                                 ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS host_upto,
           sum(executions) OVER (PARTITION BY fingerprint, cluster, host) AS host_whole
    FROM bounded
), of_hosts AS (
    SELECT fingerprint, cluster, host, sum(executions) AS calls,
           min(CASE WHEN host_upto >= 0.99e0 * host_whole THEN middle_ns END) AS host_p99,
           min(CASE WHEN upto >= 0.5e0 * whole THEN middle_ns END) AS p50,
           min(CASE WHEN upto >= 0.95e0 * whole THEN middle_ns END) AS p95,
           min(CASE WHEN upto >= 0.99e0 * whole THEN middle_ns END) AS p99
    FROM ranked
    GROUP BY fingerprint, cluster, host
), fleet AS (
    SELECT fingerprint, count(*) AS hosts, sum(calls) AS executions, min(p50) AS p50_ns, min(p95) AS p95_ns,
           min(p99) AS p99_ns, max(host_p99) AS worst_ns, {{max_by host | host_p99}} AS worst_host
    FROM of_hosts
    GROUP BY fingerprint
)
SELECT known_text AS statement, fingerprint, hosts, executions AS calls,
       least(p50_ns, max_ns) / 1e9 AS p50_seconds,
       least(p95_ns, max_ns) / 1e9 AS p95_seconds,
       least(p99_ns, max_ns) / 1e9 AS p99_seconds,
       max_ns / 1e9 AS max_seconds,
       least(worst_ns, max_ns) / 1e9 AS worst_host_p99_seconds,
       worst_host
FROM fleet JOIN longest ON of_fingerprint = fingerprint
ORDER BY p99_seconds DESC, fingerprint
LIMIT {{limit}}
