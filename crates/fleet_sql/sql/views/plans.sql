-- SPDX-License-Identifier: PostgreSQL
SELECT p.*, coalesce(t.known_text, '') AS plan
FROM {{rows plans}} p
LEFT JOIN (
    SELECT cluster AS text_cluster, host AS text_host, queryid AS text_queryid,
           database_id AS text_database_id, user_id AS text_user_id, toplevel AS text_toplevel,
           planid AS text_planid, max(text) AS known_text
    FROM {{rows plan_texts}} it
    GROUP BY cluster, host, queryid, database_id, user_id, toplevel, planid
) t ON t.text_cluster = p.cluster AND t.text_host = p.host AND t.text_queryid = p.queryid
   AND t.text_database_id = p.database_id AND t.text_user_id = p.user_id AND t.text_toplevel = p.toplevel
   AND t.text_planid = p.planid
