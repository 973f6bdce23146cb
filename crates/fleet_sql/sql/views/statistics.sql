-- SPDX-License-Identifier: PostgreSQL
SELECT * FROM {{rows statistics}} it
