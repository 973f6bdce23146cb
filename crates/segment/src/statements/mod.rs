// SPDX-License-Identifier: PostgreSQL
//! Statements: calls, times and counts of each statement, and where its time went.
//!
//! Every session counts its latest statements in a cache, which is flushed into one table. A reading adds
//! up table and caches (`settle`), and has the current statement of each session.

mod account_ticks;
mod caches;
mod counted;
#[rustfmt::skip]
mod counters;
mod delta;
mod figures;
mod key;
mod last;
mod progress;
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
pub use counted::{Counter, Failure, Unit};
pub use counters::{counter, Blocks, Io, Jit, StatementCounters, Wal, COUNTER, COUNTERS};
pub use delta::StatementsDelta;
pub use figures::{Bucket, InFlight, Moments, Statement};
pub(crate) use key::FileKey;
pub use key::StatementKey;
pub use last::{MessageText, SessionStatement};
pub use progress::{in_progress, Holder, Progress};
pub use reading::StatementsReading;
pub use record::{AccountRecord, StatementRecord};
pub use split::{AccountTime, Split};
pub use sums::{Sums, Times};
