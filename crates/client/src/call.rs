// SPDX-License-Identifier: PostgreSQL
//! A call of a client, as its driver saw it.

use serde::{Deserialize, Serialize};

/// From a beginning to an end, ns of a machine's CLOCK_MONOTONIC.
pub type Span = (u64, u64);

/// Its times.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// When it began and ended.
    pub span: Span,
    /// In reads and writes of the socket, in order, without overlaps.
    pub waits: Vec<Span>,
    /// For how long garbage was collected meanwhile, ns.
    pub collecting: u64,
}

/// A call, and where it is on its connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCall {
    /// Its times.
    pub call: Call,
    /// Whether rows of a cursor, or of a COPY, are fetched.
    pub fetches: bool,
    /// An error ends it.
    pub failed: bool,
    /// A hash of the statement's text; empty: not known.
    pub id: String,
    /// The statement's text.
    pub text: String,
    /// The server's process.
    pub pid: i32,
    /// Ordinal of its first message, or of the one that would follow; `None`: its connection is older than the agent.
    pub first: Option<u64>,
    /// Messages that it sent.
    pub messages: u64,
    /// Rows received.
    pub rows: u32,
}
