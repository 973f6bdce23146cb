-- SPDX-License-Identifier: PostgreSQL
SELECT cluster, host, date, hour, time, time_ms, frame, process, name,
       {{phase name}} AS phase,
       {{activity name}} AS activity,
       {{class activity}} AS class,
       {{idle name}} AS idle,
       events, total AS total_ns
FROM (SELECT *, {{activity name}} AS activity FROM {{rows statistics}} it WHERE kind = 'account') account
