-- SPDX-License-Identifier: PostgreSQL
SELECT * FROM {{rows events}} it
