-- SPDX-License-Identifier: PostgreSQL
SELECT fromUnixTimestamp64Milli(intDiv(time_ms, ${__interval_ms}) * ${__interval_ms}, 'UTC') AS time, concat(cluster, ' ', host) AS series, sum(host_user_ns + host_system_ns) / nullif(sum(interval_ns * cores), 0) AS cpu
FROM intervals
WHERE {{window}} AND (cluster, host) IN (
    SELECT cluster, host FROM intervals WHERE {{window}}
    GROUP BY cluster, host ORDER BY sum(host_user_ns + host_system_ns) / nullif(sum(interval_ns * cores), 0) DESC, cluster, host LIMIT {{limit}})
GROUP BY time, series
ORDER BY time, series
