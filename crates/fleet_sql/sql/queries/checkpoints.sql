-- SPDX-License-Identifier: PostgreSQL
WITH parts AS (
    SELECT cluster, host,
           sum(CASE WHEN name = 'checkpoint::total' THEN events ELSE 0 END) AS n,
           sum(CASE WHEN name = 'checkpoint::total' THEN total ELSE 0 END) AS ns,
           sum(CASE WHEN name = 'checkpoint::write' THEN total ELSE 0 END) AS write_ns,
           sum(CASE WHEN name = 'checkpoint::sync' THEN total ELSE 0 END) AS sync_ns
    FROM statistics
    WHERE {{window}} AND kind = 'timer' AND name LIKE 'checkpoint::%'
    GROUP BY cluster, host
), covered AS (
    SELECT cluster AS of_cluster, host AS of_host, sum(interval_ns) AS covered_ns
    FROM intervals
    WHERE {{window}}
    GROUP BY cluster, host
)
SELECT cluster, host, n AS checkpoints,
       covered_ns / 1e9 / nullif(n, 0) AS every_seconds,
       ns / 1e9 / nullif(n, 0) AS mean_seconds,
       ns / nullif(covered_ns, 0) AS share,
       write_ns / 1e9 / nullif(n, 0) AS write_seconds,
       sync_ns / 1e9 / nullif(n, 0) AS sync_seconds
FROM parts JOIN covered ON of_cluster = cluster AND of_host = host
WHERE n > 0
ORDER BY sync_ns DESC, cluster, host
LIMIT {{limit}}
