-- SPDX-License-Identifier: PostgreSQL
SELECT * FROM {{rows session_history}} it
