-- SPDX-License-Identifier: PostgreSQL
WITH shares AS (
    SELECT cluster, host, interval_ns, cores, busy_ns, {{measured commands}} AS handled, host_steal_ns, host_iowait_ns,
           host_user_ns + host_system_ns AS used_ns,
           (host_user_ns + host_system_ns) / nullif(interval_ns * cores, 0) AS used_share
    FROM intervals
    WHERE {{window}}
)
SELECT cluster, host, max(cores) AS cpus,
       sum(used_ns) / nullif(sum(interval_ns * cores), 0) AS cpu_share,
       max(used_share) AS cpu_max_share,
       sum(CASE WHEN used_share >= 0.8e0 THEN interval_ns ELSE 0 END) / nullif(sum(interval_ns), 0) AS busy_share,
       sum(host_steal_ns) / nullif(sum(interval_ns * cores), 0) AS steal_share,
       sum(host_iowait_ns) / nullif(sum(interval_ns * cores), 0) AS iowait_share,
       sum(busy_ns) / nullif(sum(interval_ns), 0) AS sessions,
       max(busy_ns / nullif(interval_ns, 0)) AS max_sessions,
       sum(handled) / nullif(sum(interval_ns) / 1e9, 0) AS commands_per_second
FROM shares
GROUP BY cluster, host
ORDER BY cpu_share DESC, cluster, host
LIMIT {{limit}}
