-- SPDX-License-Identifier: PostgreSQL
WITH summed AS (
    SELECT cluster, host, name, sum(events) AS n, sum(total) AS ns
    FROM statistics
    WHERE {{window}} AND kind = 'account'
    GROUP BY cluster, host, name
), named AS (
    SELECT cluster, host, {{activity name}} AS activity, n, ns
    FROM summed
    WHERE NOT {{idle name}}
), parts AS (
    SELECT cluster, host, activity, sum(n) AS ended, sum(ns) AS busy
    FROM named
    GROUP BY cluster, host, activity
), covered AS (
    SELECT cluster AS of_cluster, host AS of_host, sum(interval_ns) AS covered_ns, {{is_sampled}} AS is_sampled
    FROM intervals
    WHERE {{window}}
    GROUP BY cluster, host
)
SELECT cluster, host, activity, {{class activity}} AS class,
       busy / 1e9 AS seconds,
       busy / nullif(covered_ns, 0) AS sessions,
       busy / nullif(sum(busy) OVER (PARTITION BY cluster, host), 0) AS share,
       CASE WHEN is_sampled = 1 THEN NULL ELSE ended / nullif(covered_ns / 1e9, 0) END AS per_second,
       {{source}} AS source
FROM parts JOIN covered ON of_cluster = cluster AND of_host = host
ORDER BY sessions DESC, cluster, host, activity
LIMIT {{limit}}
