-- SPDX-License-Identifier: PostgreSQL
WITH named AS (
    SELECT cluster, host, name, sum(events) AS n, sum(total) / 1e0 AS ns
    FROM statistics
    WHERE {{window}} AND kind = 'account'
    GROUP BY cluster, host, name
), classed AS (
    SELECT cluster, host, n, ns, {{activity name}} AS activity
    FROM named
    WHERE NOT {{idle name}}
), accounts AS (
    SELECT cluster, host, {{class activity}} AS class, activity, n, ns
    FROM classed
), busy AS (
    SELECT cluster AS of_cluster, host AS of_host, sum(ns) AS busy_ns,
           sum(CASE WHEN class = 'io' THEN ns ELSE 0 END) AS io_ns,
           sum(CASE WHEN class = 'lock' THEN ns ELSE 0 END) AS lock_ns,
           sum(CASE WHEN class = 'lwlock' THEN ns ELSE 0 END) AS lwlock_ns,
           sum(CASE WHEN activity = 'IO:WalSync' THEN ns ELSE 0 END) AS sync_ns,
           sum(CASE WHEN activity = 'IO:WalSync' THEN n ELSE 0 END) AS syncs
    FROM accounts
    GROUP BY cluster, host
), machines AS (
    SELECT cluster, host, sum(interval_ns) / 1e0 AS covered_ns, sum(interval_ns * cores) / 1e0 AS cpu_ns,
           sum(host_user_ns + host_system_ns) / 1e0 AS used_ns, sum({{measured commands}}) AS handled,
           {{is_sampled}} AS is_sampled
    FROM intervals
    WHERE {{window}}
    GROUP BY cluster, host
), numbers AS (
    SELECT 1 AS k UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8
), figures AS (
    SELECT cluster, host, is_sampled,
           CASE k WHEN 1 THEN 'active sessions' WHEN 2 THEN 'CPU use of the machine' WHEN 3 THEN 'commands per second'
                  WHEN 4 THEN 'seconds per command' WHEN 5 THEN 'share of I/O' WHEN 6 THEN 'share of heavyweight locks'
                  WHEN 7 THEN 'share of lightweight locks' ELSE 'seconds per WAL sync' END AS figure,
           CASE k WHEN 1 THEN busy_ns / nullif(covered_ns, 0) WHEN 2 THEN used_ns / nullif(cpu_ns, 0)
                  WHEN 3 THEN handled / nullif(covered_ns / 1e9, 0) WHEN 4 THEN busy_ns / 1e9 / nullif(handled, 0)
                  WHEN 5 THEN io_ns / nullif(busy_ns, 0) WHEN 6 THEN lock_ns / nullif(busy_ns, 0)
                  WHEN 7 THEN lwlock_ns / nullif(busy_ns, 0) ELSE sync_ns / 1e9 / nullif(syncs, 0) END AS amount
    FROM machines JOIN busy ON of_cluster = cluster AND of_host = host CROSS JOIN numbers
), middles AS (
    SELECT cluster, host, is_sampled, figure, amount,
           median(amount) OVER (PARTITION BY cluster, figure) AS middle,
           count(*) OVER (PARTITION BY cluster, figure) AS peers
    FROM figures
    WHERE amount IS NOT NULL
), away AS (
    SELECT cluster, host, is_sampled, figure, amount, middle, peers, abs(amount - middle) AS distance,
           median(abs(amount - middle)) OVER (PARTITION BY cluster, figure) AS spread
    FROM middles
    WHERE peers >= 5
), judged AS (
    SELECT cluster, host, is_sampled, figure, amount, middle, peers,
           distance / (1.4826e0 * greatest(spread, abs(middle) / 20, 1e-9)) AS deviations
    FROM away
)
SELECT cluster, host, figure, amount, middle AS peers_median, amount / nullif(middle, 0) AS factor, deviations, peers,
       {{source}} AS source
FROM judged
WHERE deviations >= 6
ORDER BY deviations DESC, cluster, host, figure
LIMIT {{limit}}
