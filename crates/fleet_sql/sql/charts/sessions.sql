-- SPDX-License-Identifier: PostgreSQL
WITH steps AS (
    SELECT cluster, host, {{step time_ms}} AS step_ms, sum(busy_ns) AS busy, sum(interval_ns) AS covered
    FROM intervals
    WHERE {{window}}
    GROUP BY cluster, host, {{step time_ms}}
), totals AS (
    SELECT cluster, host, sum(busy) / nullif(sum(covered), 0) AS mean
    FROM steps
    GROUP BY cluster, host
), ranked AS (
    SELECT cluster AS of_cluster, host AS of_host, row_number() OVER (ORDER BY mean DESC, cluster, host) AS place
    FROM totals
), named AS (
    SELECT step_ms, busy / nullif(covered, 0) AS amount,
           CASE WHEN place <= {{limit}} THEN concat(cluster, ' ', host) ELSE 'others' END AS series
    FROM steps JOIN ranked ON of_cluster = cluster AND of_host = host
)
SELECT {{instant step_ms}} AS time, series, sum(amount) AS sessions
FROM named
GROUP BY step_ms, series
ORDER BY step_ms, series
