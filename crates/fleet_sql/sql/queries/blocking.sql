-- SPDX-License-Identifier: PostgreSQL
WITH waiting AS (
    SELECT cluster, host, time_ms, pid, {{first blockers}} AS blocker, lock_name, lock_wait_ns, interval_ns
    FROM sessions
    WHERE {{window}} AND blocker_count > 0
), roots AS (
    SELECT cluster AS of_cluster, host AS of_host, pid AS of_pid, max(application) AS program,
           max(user_name) AS known_user, {{max_by state | time_ms}} AS last_state
    FROM sessions
    WHERE {{window}}
    GROUP BY cluster, host, pid
), incidents AS (
    SELECT cluster, host, blocker, count(DISTINCT pid) AS blocked_sessions,
           min(time_ms - lock_wait_ns / 1000000) / 1e3 AS began, max(time_ms) / 1e3 AS ended,
           sum(interval_ns) / 1e9 AS waited_seconds, max(lock_wait_ns) / 1e9 AS max_seconds,
           max(lock_name) AS lock_name
    FROM waiting
    GROUP BY cluster, host, blocker
)
SELECT cluster, host, blocker, blocked_sessions, waited_seconds, max_seconds, began, ended, lock_name,
       program AS application, known_user AS user_name, last_state
FROM incidents LEFT JOIN roots ON of_cluster = cluster AND of_host = host AND of_pid = blocker
ORDER BY waited_seconds DESC, cluster, host, blocker
LIMIT {{limit}}
