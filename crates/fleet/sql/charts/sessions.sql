-- SPDX-License-Identifier: PostgreSQL
SELECT fromUnixTimestamp64Milli(intDiv(time_ms, ${__interval_ms}) * ${__interval_ms}, 'UTC') AS time, concat(cluster, ' ', host) AS series, sum(busy_ns) / nullif(sum(interval_ns), 0) AS sessions
FROM intervals
WHERE {{window}} AND (cluster, host) IN (
    SELECT cluster, host FROM intervals WHERE {{window}}
    GROUP BY cluster, host ORDER BY sum(busy_ns) / nullif(sum(interval_ns), 0) DESC, cluster, host LIMIT {{limit}})
GROUP BY time, series
ORDER BY time, series
