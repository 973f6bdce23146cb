-- SPDX-License-Identifier: PostgreSQL
WITH rates AS (
    {{rates window}}
), executed AS (
    SELECT fingerprint, statement, cluster, host, exec_min_ns AS shortest, exec_max_ns AS longest, rate, buckets, counts
    FROM statements JOIN rates ON of_cluster = cluster AND of_host = host AND of_date = date AND of_hour = hour
    WHERE {{window}} AND is_sampled = 0 AND toplevel AND statement NOT LIKE '/* tally */%'
), quantiles AS (
    {{quantiles fingerprint, cluster, host; fingerprint | max statement known_text | 0.5e0 p50, 0.95e0 p95, 0.99e0 p99 | executed}}
), fleet AS (
    SELECT fingerprint, max(known_text) AS statement, count(host) AS hosts,
           max(longest_ns) / 1e0 AS max_ns,
           max(CASE WHEN host IS NULL THEN counted END) AS calls,
           max(CASE WHEN host IS NULL THEN p50 END) AS p50_ns,
           max(CASE WHEN host IS NULL THEN p95 END) AS p95_ns,
           max(CASE WHEN host IS NULL THEN p99 END) AS p99_ns,
           max(CASE WHEN host IS NOT NULL THEN p99 END) AS worst_ns,
           {{max_by CASE WHEN host IS NOT NULL THEN concat(cluster, '/', host) END | CASE WHEN host IS NULL THEN 0e0 ELSE p99 END}}
             AS worst_host
    FROM quantiles
    GROUP BY fingerprint
)
SELECT statement, fingerprint, hosts, calls,
       p50_ns / 1e9 AS p50_seconds,
       p95_ns / 1e9 AS p95_seconds,
       p99_ns / 1e9 AS p99_seconds,
       max_ns / 1e9 AS max_seconds,
       worst_ns / 1e9 AS worst_host_p99_seconds,
       worst_host
FROM fleet
ORDER BY p99_seconds DESC, fingerprint
LIMIT {{limit}}
