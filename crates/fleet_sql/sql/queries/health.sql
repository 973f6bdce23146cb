-- SPDX-License-Identifier: PostgreSQL
WITH asked AS (
    SELECT cluster AS of_cluster, host AS of_host, max(time_ms) AS server_ms,
           max(CASE WHEN name <> 'server' THEN time_ms END) AS databases_ms,
           max(CASE WHEN name = 'objects' THEN time_ms END) AS objects_ms
    FROM conditions
    WHERE {{window}} AND kind = 'asked'
    GROUP BY cluster, host
), found AS (
    SELECT cluster, host, kind, state, events AS n, bytes, age_ns
    FROM conditions JOIN asked ON of_cluster = cluster AND of_host = host
    WHERE {{window}}
      AND (kind IN ('age', 'slot', 'archiver', 'replica', 'receiver', 'disk') AND time_ms = server_ms
           OR kind = 'prepared' AND time_ms = databases_ms
           OR kind = 'bloat' AND time_ms = objects_ms)
), problems AS (
    SELECT cluster, host, 'wraparound' AS problem FROM found
    WHERE kind = 'age' AND greatest(n, bytes) >= {{health old-transactions}}
    UNION ALL
    SELECT cluster, host, 'replication-slot' AS problem FROM found
    WHERE kind = 'slot'
      AND (state LIKE '%{{health lost}}'
           OR bytes >= CASE WHEN state LIKE '%{{health inactive}}' THEN {{health inactive-slot}} ELSE {{health active-slot}} END)
    UNION ALL
    SELECT cluster, host, 'archiver' AS problem FROM found
    WHERE kind = 'archiver'
      AND (state LIKE '{{health fails}}%' OR state = '{{health not-configured}}' OR bytes >= {{health waiting-wal}})
    UNION ALL
    SELECT cluster, host, 'full-disk' AS problem FROM found
    WHERE kind = 'disk' AND n < {{health little-space}} AND n < {{health little-part}} * bytes
    UNION ALL
    SELECT cluster, host, 'prepared-transaction' AS problem FROM found
    WHERE kind = 'prepared' AND age_ns >= {{health old-prepared}} * 1e9
), named AS (
    SELECT cluster AS p_cluster, host AS p_host, count(DISTINCT problem) AS n_problems, {{names problem}} AS problem_names
    FROM problems
    GROUP BY cluster, host
), figures AS (
    SELECT cluster, host,
           max(CASE WHEN kind = 'age' THEN greatest(n, bytes) END) AS oldest,
           max(CASE WHEN kind = 'slot' THEN bytes END) AS slot_bytes,
           max(CASE WHEN kind = 'archiver' THEN state END) AS archiver,
           max(CASE WHEN kind = 'archiver' THEN bytes END) AS waiting_bytes,
           max(CASE WHEN kind IN ('replica', 'receiver') THEN bytes END) AS behind_bytes,
           max(CASE WHEN kind IN ('replica', 'receiver') THEN age_ns END) AS behind_ns,
           sum(CASE WHEN kind = 'bloat' THEN bytes END) AS bloat_bytes
    FROM found
    GROUP BY cluster, host
), set_rows AS (
    SELECT cluster, host, name, value,
           max(CASE WHEN name = 'version' THEN 1 ELSE 0 END) OVER (PARTITION BY cluster, host, time_ms) AS is_start
    FROM settings
    WHERE {{window}} AND group_name = 'server' AND source LIKE 'sql%'
), changed AS (
    SELECT cluster, host, name
    FROM set_rows
    GROUP BY cluster, host, name
    HAVING count(DISTINCT value) > 1 OR max(is_start) = 0
), changes AS (
    SELECT cluster AS c_cluster, host AS c_host, {{names name}} AS setting_names
    FROM changed
    GROUP BY cluster, host
)
SELECT cluster, host, coalesce(problem_names, '') AS problems, oldest / {{health wraparound}} AS used_share, slot_bytes,
       archiver, waiting_bytes, behind_bytes, behind_ns / 1e9 AS behind_seconds, bloat_bytes,
       coalesce(setting_names, '') AS changed_settings
FROM figures LEFT JOIN named ON p_cluster = cluster AND p_host = host
LEFT JOIN changes ON c_cluster = cluster AND c_host = host
ORDER BY coalesce(n_problems, 0) DESC, used_share DESC, cluster, host
LIMIT {{limit}}
