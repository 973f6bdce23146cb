// SPDX-License-Identifier: PostgreSQL
//! An interval in words and numbers: what every view shows of it, whatever it is drawn with.

pub mod functions;
pub mod headline;
pub mod io;
pub mod locks;
pub mod panes;
pub mod population;
#[cfg(test)]
pub mod sample;
pub mod statements;
pub mod table;
pub mod units;
