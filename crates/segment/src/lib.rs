// SPDX-License-Identifier: PostgreSQL
//! The reader of segments: attach, take consistent snapshots, and compute the interval between two
//! of them.
//!
//! The way of the data is one line: [`Segment`] → [`Snapshot`] → [`Delta`] → [`Frame`] →
//! [`Interval`]. Frames add up to a frame, and are what recordings keep. Every view of the
//! command is made from an [`Interval`]; none computes its own. Statements,
//! of which there may be thousands, take a way of their own: [`Segment`] → [`Statements`] →
//! [`StatementsDelta`].
//!
//! A reader never writes and never maps the file: it reads with `pread`, so that a file which
//! is cut short, replaced or hostile gives an [`Error`] and nothing worse. Setting the level
//! does both, with one page ([`LevelSwitch`]). The layout is written once here, in [`layout`], and once in C, in
//! `libtally/include/tally.h`; `format/golden/` holds the two to each other.

pub mod book;
mod book_counters;
pub mod clients;
pub mod clock;
pub mod commits;
pub mod delta;
pub mod directory;
mod error;
mod events;
pub mod files;
pub mod frame;
mod frame_totals;
pub mod functions;
mod header;
pub mod histogram;
mod histogram_store;
pub mod interval;
pub mod kernel;
pub mod layout;
mod leaders;
mod level;
mod level_switch;
pub mod locks;
mod names;
mod overflows;
mod owners;
mod probes;
pub mod relations;
mod rows;
mod running;
mod segment;
pub mod segment_path;
mod sessions;
pub mod snapshot;
mod statement_text;
pub mod statements;
mod this_host;
mod timing;
mod total;
mod tranches;
mod wait_class;
pub mod wal;

pub use book::Book;
pub use book_counters::{BookCounters, Claim};
pub use clock::{Clock, ClockKind};
pub use delta::Delta;
pub use error::Error;
pub use events::{Event, EventKind};
pub use frame::{Frame, FrameStat};
pub use header::Header;
pub use histogram::Histogram;
pub use interval::Interval;
pub use level::{Level, LevelEnd, LevelSetting};
pub use level_switch::{set_level, LevelSwitch};
pub use overflows::Overflows;
pub use owners::{owner_at, Owner};
pub use probes::{Probe, ProbeState};
pub use relations::{RelationRow, Relations};
pub use segment::Segment;
pub use segment_path::{SegmentPath, ToSegmentPath};
pub use sessions::Population;
pub use snapshot::Snapshot;
pub use statements::{InFlight, Statement, StatementKey, Statements, StatementsDelta};
pub use this_host::user_name;
pub use tranches::Tranches;
pub use wait_class::WaitClass;
