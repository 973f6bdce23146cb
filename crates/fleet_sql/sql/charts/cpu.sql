-- SPDX-License-Identifier: PostgreSQL
WITH steps AS (
    SELECT cluster, host, {{step time_ms}} AS step_ms, sum(host_user_ns + host_system_ns) AS used,
           sum(interval_ns * cores) AS available
    FROM intervals
    WHERE {{window}}
    GROUP BY cluster, host, {{step time_ms}}
), totals AS (
    SELECT cluster, host, sum(used) / nullif(sum(available), 0) AS mean
    FROM steps
    GROUP BY cluster, host
), ranked AS (
    SELECT cluster AS of_cluster, host AS of_host, row_number() OVER (ORDER BY mean DESC, cluster, host) AS place
    FROM totals
), named AS (
    SELECT step_ms, used, available,
           CASE WHEN place <= {{limit}} THEN concat(cluster, ' ', host) ELSE 'others' END AS series
    FROM steps JOIN ranked ON of_cluster = cluster AND of_host = host
)
SELECT {{instant step_ms}} AS time, series, sum(used) / nullif(sum(available), 0) AS cpu
FROM named
GROUP BY step_ms, series
ORDER BY step_ms, series
