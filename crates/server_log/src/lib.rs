// SPDX-License-Identifier: PostgreSQL
//! Follows the log of a PostgreSQL server: no message lost and none twice, over rotation and over restarts of the reader.
//!
//! [`LogFollower`] reads complete messages from the end of the last reading on, and returns its [`Position`],
//! so that a caller can store that with the messages. Formats: `csvlog`, `jsonlog` (since PostgreSQL 15), and
//! `stderr`, for which the server's `log_line_prefix` must be known. The formats are those of
//! src/backend/utils/error (`csvlog.c`, `jsonlog.c`, `elog.c`).

mod entry;
mod follower;
mod formats;
mod prefix;

pub use entry::{Kind, LogEntry};
pub use follower::{LogFollower, LogPlace, LogReading, Position};
pub use formats::LogFormat;
