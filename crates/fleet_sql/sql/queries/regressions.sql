-- SPDX-License-Identifier: PostgreSQL
WITH rates AS (
    {{rates either}}
), executed AS (
    SELECT fingerprint, statement, cluster, host, calls, exec_ns, exec_squares, rate, buckets, counts,
           exec_min_ns AS shortest, exec_max_ns AS longest,
           CASE WHEN {{in_window}} THEN 1 ELSE 0 END AS side
    FROM statements JOIN rates ON of_cluster = cluster AND of_host = host AND of_date = date AND of_hour = hour
    WHERE {{either}} AND ({{in_window}} OR {{in_against}}) AND is_sampled = 0 AND toplevel
      AND statement NOT LIKE '/* tally */%'
), sums AS (
    {{quantiles fingerprint, cluster, host, side
      | max statement text_there, sum calls n, sum exec_ns ns, sum exec_squares squares
      | 0.5e0 median_ns | executed}}
), sides AS (
    SELECT fingerprint, cluster, host, max(text_there) AS known_text,
           sum(CASE WHEN side = 0 THEN n END) AS a_n, sum(CASE WHEN side = 1 THEN n END) AS b_n,
           sum(CASE WHEN side = 0 THEN ns END) / 1e0 AS a_ns, sum(CASE WHEN side = 1 THEN ns END) / 1e0 AS b_ns,
           sum(CASE WHEN side = 0 THEN squares END) AS a_squares,
           sum(CASE WHEN side = 1 THEN squares END) AS b_squares,
           max(CASE WHEN side = 0 THEN median_ns END) AS a_median,
           max(CASE WHEN side = 1 THEN median_ns END) AS b_median
    FROM sums
    GROUP BY fingerprint, cluster, host
), compared AS (
    SELECT fingerprint, cluster, host, known_text, a_n, b_n, a_ns, b_ns,
           (b_ns / b_n) / (a_ns / a_n) AS mean_factor, b_median / a_median AS median_factor,
           greatest(a_squares / a_n - (a_ns / a_n) * (a_ns / a_n), 0e0) / ((a_ns / a_n) * (a_ns / a_n)) / a_n
             + greatest(b_squares / b_n - (b_ns / b_n) * (b_ns / b_n), 0e0) / ((b_ns / b_n) * (b_ns / b_n)) / b_n
             AS variance
    FROM sides
    WHERE a_n >= {{fewest_calls}} AND b_n >= {{fewest_calls}} AND a_ns > 0 AND b_ns > 0 AND a_median > 0
), numbered AS (
    SELECT fingerprint, cluster, host, known_text, a_n, b_n, a_ns, b_ns, mean_factor, median_factor, variance,
           count(*) OVER (PARTITION BY cluster, host) AS statements_there,
           median(mean_factor) OVER (PARTITION BY cluster, host) AS middle,
           count(*) OVER () AS tests
    FROM compared
), judged AS (
    SELECT fingerprint, cluster, host, known_text, a_n, b_n, a_ns, b_ns, mean_factor, median_factor,
           CASE WHEN statements_there < {{common}} THEN 1e0 ELSE middle END AS machine,
           abs(ln(mean_factor)) / ({{likeness}} * sqrt(greatest(variance, 1e-18)))
             >= sqrt(2 * ln(tests / {{false_alarms}})) AS certain
    FROM numbered
), covered AS (
    SELECT cluster AS of_cluster, host AS of_host, sum(interval_ns) AS covered_ns
    FROM intervals
    WHERE {{window}}
    GROUP BY cluster, host
), verdicts AS (
    SELECT fingerprint, cluster, host, known_text, a_n, b_n, a_ns, b_ns, mean_factor, covered_ns,
           certain AND least(mean_factor, median_factor) / greatest(machine, 1e0) >= {{factor}} AS slower,
           certain AND greatest(mean_factor, median_factor) / least(machine, 1e0) <= 1 / {{factor}} AS faster
    FROM judged JOIN covered ON of_cluster = cluster AND of_host = host
), fleet AS (
    SELECT fingerprint, max(known_text) AS statement, count(*) AS hosts,
           sum(CASE WHEN slower THEN 1 ELSE 0 END) AS hosts_slower,
           sum(CASE WHEN faster THEN 1 ELSE 0 END) AS hosts_faster,
           exp(avg(CASE WHEN slower OR faster THEN ln(mean_factor) END)) AS factor,
           sum(CASE WHEN slower OR faster THEN a_ns END) / nullif(sum(CASE WHEN slower OR faster THEN a_n END), 0)
             / 1e9 AS before_seconds,
           sum(CASE WHEN slower OR faster THEN b_ns END) / nullif(sum(CASE WHEN slower OR faster THEN b_n END), 0)
             / 1e9 AS mean_seconds,
           sum(CASE WHEN slower OR faster THEN (b_ns - a_ns / a_n * b_n) / covered_ns ELSE 0 END) AS sessions,
           {{names CASE WHEN slower THEN concat(cluster, '/', host) END}} AS slower_hosts
    FROM verdicts
    GROUP BY fingerprint
)
SELECT statement, fingerprint, hosts_slower, hosts_faster, hosts, factor, before_seconds, mean_seconds, sessions,
       slower_hosts
FROM fleet
WHERE hosts_slower + hosts_faster > 0
ORDER BY abs(sessions) DESC, fingerprint
LIMIT {{limit}}
