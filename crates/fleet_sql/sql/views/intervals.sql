-- SPDX-License-Identifier: PostgreSQL
SELECT * FROM {{rows frames}} it
