// SPDX-License-Identifier: PostgreSQL
//! A call of a client, as measured by its driver.

use serde::{Deserialize, Serialize};

/// Start and end, ns of a machine's CLOCK_MONOTONIC.
pub type Span = (u64, u64);

/// The times of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// Start and end.
    pub span: Span,
    /// Reads and writes of the socket, in order, without overlaps.
    pub waits: Vec<Span>,
    /// Time of garbage collections during the call, ns.
    pub collecting: u64,
}

/// A call, and its place on its connection.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClientCall {
    /// Its times.
    pub call: Call,
    /// Whether it fetches rows of a cursor or of a COPY.
    pub fetches: bool,
    /// Whether it failed.
    pub failed: bool,
    /// A hash of the statement's text; empty if unknown.
    pub id: String,
    /// The statement's text.
    pub text: String,
    /// The server's process.
    pub pid: i32,
    /// Ordinal of its first message, or of the message that would follow; `None` if the connection is older than the
    /// agent.
    pub first: Option<u64>,
    /// Number of messages sent.
    pub messages: u64,
    /// Rows received.
    pub rows: u32,
}
