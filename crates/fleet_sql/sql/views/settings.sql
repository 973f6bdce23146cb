-- SPDX-License-Identifier: PostgreSQL
SELECT * FROM {{rows settings}} it
