// SPDX-License-Identifier: PostgreSQL
//! The reader of segments: attach, take consistent snapshots, and say what one interval
//! between two of them holds.
//!
//! The way of the data is one line: [`Segment`] → [`Snapshot`] → [`Delta`] → [`Frame`] →
//! [`Interval`]. Frames add up to a frame, and are what recordings keep. Every view of the
//! command is made from an [`Interval`]; none computes its own. Statements,
//! of which there may be thousands, go beside it: [`Segment`] → [`Statements`] →
//! [`StatementsDelta`].
//!
//! A reader never writes and never maps the file: it reads with `pread`, so that a file which
//! is cut short, replaced or hostile gives an [`Error`] and nothing worse. Who sets the level
//! does both, with one page ([`LevelSwitch`]). The layout is written once here, in [`layout`], and once in C, in
//! `libtally/include/tally.h`; `format/golden/` holds the two to each other.

pub mod book;
pub mod clients;
pub mod clock;
pub mod commits;
pub mod delta;
pub mod directory;
mod error;
pub mod files;
pub mod frame;
pub mod functions;
mod groups;
pub mod histogram;
pub mod interval;
pub mod kernel;
pub mod layout;
mod leaders;
mod level;
pub mod locks;
mod owners;

mod process;
mod pulse;
pub mod relations;
mod segment;
pub mod segment_path;
mod shelf;
pub mod snapshot;
pub mod statements;
mod tranches;
pub mod wal;

pub use book::Book;
pub use clock::{Clock, ClockKind};
pub use delta::Delta;
pub use error::Error;
pub use frame::{Frame, FrameStat, Population};
pub use histogram::Histogram;
pub use interval::Interval;
pub use level::{set_level, Level, LevelEnd, LevelSetting, LevelSwitch};
pub use owners::{owner_at, Owner};
pub use pulse::{BookCounters, Claim};
pub use relations::{RelationRow, Relations};
pub use segment::{Event, EventKind, Header, Overflows, Probe, ProbeState, Segment};
pub use segment_path::{SegmentPath, ToSegmentPath};
pub use snapshot::Snapshot;
pub use statements::{InFlight, Statement, StatementKey, Statements, StatementsDelta};
pub use tranches::Tranches;
