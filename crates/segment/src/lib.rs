// SPDX-License-Identifier: PostgreSQL
//! The reader of segments: attaches, takes consistent snapshots, and computes the interval between two
//! of them.
//!
//! Data flows from [`Segment`] to [`Snapshot`], [`Delta`], [`Frame`] and [`Interval`]. Frames can be
//! added up; recordings store them. Every view is built from an [`Interval`]. Statements, perhaps
//! thousands, flow from [`Segment`] to [`StatementsReading`] and [`StatementsDelta`].
//!
//! A reader never writes the file. It uses `pread`, and from its second snapshot on copies books from a mapping whose
//! pages may go missing (`mapping`), so a truncated, replaced or hostile file causes an [`Error`] and nothing worse. An
//! [`Origin`] may supply the bytes from elsewhere. Only [`LevelSwitch`] and [`TraceSwitch`] write pages. [`layout`] and
//! `libtally/include/tally_layout.h` define the layout; golden files in `format/golden/` keep them equal.

/// Methods that return a field, one per line.
macro_rules! getters {
    ($type:ty: $($field:ident: $of:ty, $doc:literal;)*) => {
        impl $type {
            $(#[doc = $doc] pub fn $field(&self) -> $of { self.$field })*
        }
    };
}

mod application;
mod blocked;
pub mod book;
mod book_counters;
pub mod calls;
mod client_waits;
pub mod clients;
pub mod clock;
pub mod commits;
pub mod delta;
pub mod directory;
mod edge_names;
pub mod encoding;
mod error;
mod event_kind;
pub mod event_payload;
mod events;
pub mod files;
pub mod frame;
mod frame_totals;
pub mod functions;
mod header;
pub mod histogram;
mod histogram_store;
pub mod hooks;
mod instant;
pub mod interval;
pub mod kernel;
pub mod layout;
mod leaders;
mod level;
mod level_switch;
pub mod locks;
mod mapping;
mod memory;
mod moment;
mod names;
mod origin;
mod overflows;
pub mod own;
mod owners;
mod plans;
mod probes;
mod producer;
pub mod relations;
mod remote;
mod rising;
mod rows;
mod running;
pub mod sampling;
mod segment;
pub mod segment_path;
mod sessions;
mod shared_page;
pub mod snapshot;
mod statement_text;
#[rustfmt::skip]
pub mod stat_names;
pub mod statements;
mod this_host;
mod timing;
mod total;
mod traces;
mod tranches;
mod wait_class;
pub mod wait_names;
mod wait_prefixes;
pub mod wal;

pub use self::error::Error;
pub use application::Application;
pub use blocked::{Blocked, LockTag};
pub use book::Book;
pub use book_counters::{BookCounters, Claim};
pub use client_waits::ClientWaits;
pub use clock::{Clock, ClockKind};
pub use delta::Delta;
pub use event_kind::EventKind;
pub use event_payload::Payload;
pub use events::Event;
pub use frame::{Frame, FrameStat};
pub use header::Header;
pub use histogram::Histogram;
pub use instant::{AccountNumber, Doing, Occupant};
pub use interval::Interval;
pub use level::{Level, LevelEnd, LevelSetting};
pub use level_switch::{set_level, LevelSwitch};
pub use memory::SegmentMemory;
pub use moment::{Moment, UNKNOWN_PROCESSORS};
pub use origin::{Origin, Parts};
pub use overflows::Overflows;
pub use owners::{owner_at, Owner};
pub use plans::Plan;
pub use probes::{Probe, ProbeState};
pub use producer::{Producer, ProducerLimit};
pub use relations::{RelationRow, Relations};
pub use rising::Rising;
pub use sampling::Sampling;
pub use segment::Segment;
pub use segment_path::{SegmentPath, ToSegmentPath};
pub use sessions::Population;
pub use snapshot::Snapshot;
pub use statements::{
    InFlight, SessionStatement, Statement, StatementKey, StatementsDelta, StatementsReading,
};
pub use this_host::{has_ended, passwd_name};
pub use traces::{
    ExecutionParameters, Ledger, ParameterJson, SlotTexts, SlowExecution, SlowExecutions, TraceEnd,
    TraceFile, TraceKind, TraceNode, TraceParameter, TraceParent, TraceReader, TraceRecord,
    TraceRequest, TraceState, TraceStep, TraceSwitch, Traced,
};
pub use tranches::Tranches;
pub use wait_class::WaitClass;
