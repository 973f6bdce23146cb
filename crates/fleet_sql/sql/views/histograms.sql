-- SPDX-License-Identifier: PostgreSQL
SELECT * FROM {{rows histograms}} it
