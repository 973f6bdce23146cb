-- SPDX-License-Identifier: PostgreSQL
SELECT cluster, host, date, hour, time, time_ms, frame, process, name,
       regexp_extract(name, '^file::([^:]*)::([^:]*)::(.*)$', 1) AS file,
       regexp_extract(name, '^file::([^:]*)::([^:]*)::(.*)$', 2) AS operation,
       regexp_extract(name, '^file::([^:]*)::([^:]*)::(.*)$', 3) AS phase,
       events, total AS total_ns, bytes, follows
FROM {{rows statistics}} it
WHERE name LIKE 'file::%'
