// SPDX-License-Identifier: PostgreSQL
//! What README, docs and helps say, against the command line and the tree.

#[cfg(feature = "full")]
mod documented;
mod links;
mod map;
