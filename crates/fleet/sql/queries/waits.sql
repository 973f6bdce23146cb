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
    SELECT cluster, host, date, hour, name, highest, buckets, counts
    FROM histograms
    WHERE {{window}} AND kind = 'account' AND name LIKE '%::wait::%'
), longest AS (
    SELECT cluster AS l_cluster, host AS l_host, {{activity name}} AS l_activity, max(highest) / 1e0 AS max_ns
    FROM distributions
    WHERE NOT {{idle name}}
    GROUP BY cluster, host, {{activity name}}
), buckets_of AS (
    {{buckets cluster, host, date, hour, name | distributions}}
), cells AS (
    SELECT cluster, host, {{activity name}} AS activity, rate, bucket, sum(n) AS ended
    FROM buckets_of JOIN rates ON of_cluster = cluster AND of_host = host AND of_date = date AND of_hour = hour
    WHERE NOT {{idle name}}
    GROUP BY cluster, host, {{activity name}}, rate, bucket
), bounded AS (
    SELECT cluster, host, activity, ended, ({{low bucket}} + {{low bucket + 1}}) / 2 * 1e4 / rate AS middle_ns
    FROM cells
), ranked AS (
    SELECT cluster, host, activity, middle_ns,
           sum(ended) OVER (PARTITION BY cluster, host, activity ORDER BY middle_ns
                            ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS upto,
           sum(ended) OVER (PARTITION BY cluster, host, activity) AS whole
    FROM bounded
), quantiles AS (
    SELECT cluster AS q_cluster, host AS q_host, activity AS q_activity,
           min(CASE WHEN upto >= 0.5e0 * whole THEN middle_ns END) AS p50_ns,
           min(CASE WHEN upto >= 0.95e0 * whole THEN middle_ns END) AS p95_ns,
           min(CASE WHEN upto >= 0.99e0 * whole THEN middle_ns END) AS p99_ns
    FROM ranked
    GROUP BY cluster, host, activity
)
SELECT cluster, host, activity, {{class activity}} AS class,
       waited_ns / 1e9 AS seconds,
       ended AS waits,
       least(p50_ns, coalesce(max_ns, p50_ns)) / 1e9 AS p50_seconds,
       least(p95_ns, coalesce(max_ns, p95_ns)) / 1e9 AS p95_seconds,
       least(p99_ns, coalesce(max_ns, p99_ns)) / 1e9 AS p99_seconds,
       max_ns / 1e9 AS max_seconds
FROM parts
LEFT JOIN quantiles ON q_cluster = cluster AND q_host = host AND q_activity = activity
LEFT JOIN longest ON l_cluster = cluster AND l_host = host AND l_activity = activity
ORDER BY seconds DESC, cluster, host, activity
LIMIT {{limit}}
