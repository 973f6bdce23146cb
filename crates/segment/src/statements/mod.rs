// SPDX-License-Identifier: PostgreSQL
//! Statements: what each was run for, how long, and where its time went.
//!
//! Every session counts the statements that it lately ran in a cache of its own; what leaves
//! the caches is added to one table. A reading is table and caches together (`settle`), with
//! what each session works for now.

mod account_ticks;
mod caches;
mod delta;
mod figures;
mod key;
mod reading;
mod record;
pub(crate) mod seqlock;
mod settle;
mod split;
mod sums;
mod table;
mod texts;

pub use crate::statement_text::Text;
pub use crate::wait_class::WaitClass;
pub use account_ticks::AccountTicks;
pub use delta::StatementsDelta;
pub use figures::{Blocks, Bucket, InFlight, IoTimes, Jit, Moments, Statement, Wal};
pub use key::StatementKey;
pub use reading::Statements;
pub use record::{AccountRecord, StatementRecord};
pub use split::{AccountTime, Split};
pub use sums::{Sums, Times, Unit, COUNTERS};
