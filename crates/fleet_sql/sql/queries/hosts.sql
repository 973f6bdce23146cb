-- SPDX-License-Identifier: PostgreSQL
SELECT cluster, host,
       min(time_ms - interval_ns / 1000000) / 1e3 AS began,
       max(time_ms) / 1e3 AS ended,
       sum(interval_ns) / 1e9 AS covered_seconds,
       sum(interval_ns) / 1e9 / {{seconds}} AS covered_share,
       sum(CASE WHEN exact THEN interval_ns ELSE 0 END) / nullif(sum(interval_ns), 0) AS exact_share,
       max(cores) AS cpus,
       sum({{measured commands}}) AS handled
FROM intervals
WHERE {{window}}
GROUP BY cluster, host
ORDER BY cluster, host
LIMIT {{limit}}
