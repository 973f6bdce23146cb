-- SPDX-License-Identifier: PostgreSQL
SELECT * FROM {{rows conditions}} it
