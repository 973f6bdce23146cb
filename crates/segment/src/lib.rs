//! SPDX-License-Identifier: PostgreSQL
