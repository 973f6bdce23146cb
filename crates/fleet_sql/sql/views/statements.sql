-- SPDX-License-Identifier: PostgreSQL
SELECT s.*,
       coalesce(nullif(t.known_fingerprint, ''), concat('q:', {{text s.queryid}})) AS fingerprint,
       coalesce(t.known_text, '') AS statement
FROM {{rows statements}} s
LEFT JOIN (
    SELECT cluster AS text_cluster, host AS text_host, queryid AS text_queryid,
           database_id AS text_database_id, user_id AS text_user_id, toplevel AS text_toplevel,
           max({{comparable fingerprint}}) AS known_fingerprint, max(text) AS known_text
    FROM {{rows statement_texts}} it
    GROUP BY cluster, host, queryid, database_id, user_id, toplevel
) t ON t.text_cluster = s.cluster AND t.text_host = s.host AND t.text_queryid = s.queryid
   AND t.text_database_id = s.database_id AND t.text_user_id = s.user_id AND t.text_toplevel = s.toplevel
