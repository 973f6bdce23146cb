-- SPDX-License-Identifier: PostgreSQL
WITH rates AS (
    {{rates window}}
), summed AS (
    SELECT cluster, host, name, sum(events) AS n, sum(total) AS ns
    FROM statistics
    WHERE {{window}} AND kind = 'account' AND name LIKE '%::wait::%'
    GROUP BY cluster, host, name
), named AS (
    SELECT cluster, host, {{activity name}} AS activity, n, ns
    FROM summed
    WHERE NOT {{idle name}}
), parts AS (
    SELECT cluster, host, activity, sum(n) AS ended, sum(ns) AS waited_ns
    FROM named
    GROUP BY cluster, host, activity
), distributions AS (
    SELECT cluster AS h_cluster, host AS h_host, {{activity name}} AS h_activity,
           lowest AS shortest, highest AS longest, rate, buckets, counts
    FROM histograms JOIN rates ON of_cluster = cluster AND of_host = host AND of_date = date AND of_hour = hour
    WHERE {{window}} AND kind = 'account' AND name LIKE '%::wait::%' AND NOT {{idle name}}
), quantiles AS (
    {{quantiles h_cluster, h_host, h_activity | | 0.5e0 p50_ns, 0.95e0 p95_ns, 0.99e0 p99_ns | distributions}}
), covered AS (
    SELECT cluster AS of_cluster, host AS of_host, {{is_sampled}} AS is_sampled
    FROM intervals
    WHERE {{window}}
    GROUP BY cluster, host
)
SELECT cluster, host, activity, {{class activity}} AS class,
       waited_ns / 1e9 AS seconds,
       CASE WHEN is_sampled = 1 THEN NULL ELSE ended END AS waits,
       p50_ns / 1e9 AS p50_seconds,
       p95_ns / 1e9 AS p95_seconds,
       p99_ns / 1e9 AS p99_seconds,
       longest_ns / 1e9 AS max_seconds,
       {{source}} AS source
FROM parts JOIN covered ON of_cluster = cluster AND of_host = host
LEFT JOIN quantiles ON h_cluster = cluster AND h_host = host AND h_activity = activity
ORDER BY seconds DESC, cluster, host, activity
LIMIT {{limit}}
