// SPDX-License-Identifier: PostgreSQL
//! One record of a ring. The content is not trusted: unknown kinds become [`TraceKind::Other`].

use crate::blocked::LockTag;
use crate::layout::{
    trace_kind, trace_parameter, trace_reason, trace_record as at, trace_step, trace_transaction,
    u32_at, u64_at, NONE,
};

/// A record of an action of a process, or of an event that affected it.
#[derive(Debug, Clone, PartialEq)]
pub struct TraceRecord {
    /// When it happened; if it has a duration, when it began.
    pub tick: u64,
    /// Duration, ticks.
    pub ticks: u64,
    /// The running plan node.
    pub node: Option<u16>,
    /// The kind, with its data.
    pub kind: TraceKind,
}

/// A step of a statement's execution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TraceStep {
    /// Planning.
    Plan,
    /// Executor startup: relations are opened and locked.
    Start,
    /// Executor run.
    Run,
    /// Executor finish: remaining data-modifying parts, and triggers.
    Finish,
    /// Executor end.
    End,
    /// A utility statement.
    Utility,
    /// A step of a later version.
    Other(u8),
}

impl TraceStep {
    fn from_number(number: u8) -> TraceStep {
        match number {
            trace_step::PLAN => TraceStep::Plan,
            trace_step::START => TraceStep::Start,
            trace_step::RUN => TraceStep::Run,
            trace_step::FINISH => TraceStep::Finish,
            trace_step::END => TraceStep::End,
            trace_step::UTILITY => TraceStep::Utility,
            other => TraceStep::Other(other),
        }
    }

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            TraceStep::Plan => "plan",
            TraceStep::Start => "start",
            TraceStep::Run => "run",
            TraceStep::Finish => "finish",
            TraceStep::End => "end",
            TraceStep::Utility => "utility",
            TraceStep::Other(_) => "step",
        }
    }
}

/// Why a process stopped recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceEnd {
    /// The reader has withdrawn the request.
    Withdrawn,
    /// The process has ended.
    Exited,
    /// The level is off.
    LevelOff,
    /// The reader has not renewed the request in time.
    NotRenewed,
}

/// The object of a wait.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum TraceFile {
    /// A part of a relation.
    Relation {
        /// OID of its tablespace.
        tablespace: u32,
        /// OID of its database; 0: shared.
        database: u32,
        /// Its relfilenode.
        file: u32,
        /// 0 main, 1 fsm, 2 vm, 3 init.
        fork: u8,
        /// Block of the relation, if known.
        block: Option<u32>,
    },
    /// A file of this kind: a directory number whose name begins with `trace::`.
    Kind(u32),
}

/// The span of a client's trace that caused a statement (W3C Trace Context).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceParent {
    /// Id of the trace.
    pub trace: [u8; 16],
    /// Id of the span.
    pub span: [u8; 8],
    /// Bit 0: the client samples it.
    pub flags: u8,
}

/// A record's part of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TraceParameter {
    /// The first bytes of a value's text, which has `whole` bytes.
    Value {
        /// These bytes.
        bytes: Vec<u8>,
        /// Length of the whole text, bytes.
        whole: u32,
        /// PostgreSQL's number of its encoding ([`crate::encoding`]); -1: not known.
        encoding: i32,
    },
    /// Further bytes of the same text.
    Rest(Vec<u8>),
    /// NULL.
    Null,
    /// A value whose text only code of others could make.
    Foreign,
    /// A value of so many bytes, which was not converted.
    Large(u32),
}

/// The kind of a record, with its data. Accounts are directory numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum TraceKind {
    /// The trace begins; this account is running.
    Begin {
        /// The account.
        account: Option<u32>,
    },
    /// The trace ends.
    End(Option<TraceEnd>),
    /// A wait.
    Wait {
        /// Its account.
        account: Option<u32>,
        /// The account that ran after it.
        next: Option<u32>,
        /// For an operation on a file: number of the operation, errno value or 0, bytes moved, and the file if known.
        file: Option<(u8, u8, u64, Option<TraceFile>)>,
    },
    /// A message of the client arrived.
    Message {
        /// Number of its kind.
        kind: u8,
        /// The account.
        account: Option<u32>,
        /// Whether earlier messages left a transaction open, if known.
        in_transaction: Option<bool>,
        /// Its ordinal in the session, not counting COPY data, if all messages were counted.
        ordinal: Option<u64>,
    },
    /// Another account runs.
    Switch {
        /// The account.
        account: Option<u32>,
    },
    /// The server has analyzed a statement.
    Statement {
        /// Its id.
        id: u64,
        /// Number of enclosing steps.
        depth: u8,
    },
    /// A step begins.
    StepBegin {
        /// The step.
        step: TraceStep,
        /// The statement's id.
        id: u64,
        /// Number of enclosing steps.
        depth: u8,
    },
    /// A step ends.
    StepEnd {
        /// The step.
        step: TraceStep,
        /// The statement's id.
        id: u64,
        /// Number of enclosing steps.
        depth: u8,
        /// Rows so far.
        rows: u64,
        /// Whether it ended with an error.
        failed: bool,
    },
    /// The wait in progress is for this lock.
    Lock {
        /// The lock.
        lock: LockTag,
        /// Mode: a LOCKMODE.
        mode: u16,
        /// PIDs of the first blockers.
        blockers: Vec<i32>,
        /// Number of blockers.
        count: u8,
    },
    /// A commit: 1 leader, 2 group-committed, 3 asynchronous.
    Commit(u8),
    /// A part of the name of a node.
    Node {
        /// The parent node.
        parent: Option<u16>,
        /// Number of the part of its name.
        part: u8,
        /// The part.
        name: Vec<u8>,
        /// PostgreSQL's number of its encoding ([`crate::encoding`]); -1: not known.
        encoding: i32,
    },
    /// The totals of a node.
    NodeEnd {
        /// Rows.
        rows: u64,
        /// Number of times that it was called for a row.
        calls: u64,
    },
    /// All totals were reset to zero.
    Reset,
    /// The client's trace context of the statement analyzed just before, or of the one that starts next.
    Context(TraceParent),
    /// A client's call; the records of its waits come before it.
    Call {
        /// Whether it fetches rows of a cursor or of a COPY.
        fetches: bool,
        /// Whether it ended with an error.
        failed: bool,
        /// Directory number of a statistic whose name ends with the statement's id.
        statistic: Option<u32>,
        /// PID of the server process.
        pid: i32,
        /// Ordinal of its first message, or of the next message if it sent none, not counting COPY data.
        first: Option<u64>,
        /// Number of messages, not counting COPY data.
        messages: u32,
        /// Rows received.
        rows: u32,
        /// Ticks of garbage collection during the call.
        collecting: u64,
    },
    /// A wait for the server, of the next call on this connection.
    CallWait {
        /// PID of the server process.
        pid: i32,
    },
    /// A parameter of the execution that starts.
    Parameter {
        /// Its number, from 1.
        number: u16,
        /// Number of parameters of the execution.
        count: u32,
        /// Its value, or a part of it.
        part: TraceParameter,
    },
    /// An execution that has ended, in a ring for slow executions.
    Execution {
        /// The statement's id.
        id: u64,
        /// OID of the database.
        database_id: u32,
        /// OID of the user.
        user_id: u32,
        /// 1 + directory number of the application; 0: none.
        application: u16,
        /// PID of the session.
        pid: i32,
        /// Number of records that follow, with its parameters.
        records: u32,
    },
    /// A record of a later version.
    Other(u8),
}

impl TraceRecord {
    /// Decodes a record of [`at::SIZE`] bytes.
    pub fn decode(bytes: &[u8]) -> TraceRecord {
        let byte = |at: usize| bytes.get(at).copied().unwrap_or(0);
        let word = |i: usize| u32_at(bytes, at::WORD + 4 * i);
        let long = |i: usize| u64::from(word(i)) | u64::from(word(i + 1)) << 32;
        let (op, more, failed) = (byte(at::OP), byte(at::MORE), byte(at::FAILED));
        let node = u16::from_ne_bytes([byte(at::NODE), byte(at::NODE + 1)]);
        let (stat, next) = (u32_at(bytes, at::STAT), u32_at(bytes, at::NEXT));
        let account = stat.checked_sub(1);
        let kind = match byte(at::KIND) {
            trace_kind::BEGIN => TraceKind::Begin { account },
            trace_kind::END => TraceKind::End(match op {
                trace_reason::WITHDRAWN => Some(TraceEnd::Withdrawn),
                trace_reason::EXITED => Some(TraceEnd::Exited),
                trace_reason::LEVEL_OFF => Some(TraceEnd::LevelOff),
                trace_reason::NOT_RENEWED => Some(TraceEnd::NotRenewed),
                _ => None,
            }),
            trace_kind::WAIT => TraceKind::Wait {
                account,
                next: next.checked_sub(1),
                file: op.checked_sub(1).map(|op| {
                    let file = match more.checked_sub(1) {
                        Some(fork) => Some(TraceFile::Relation {
                            tablespace: word(0),
                            database: word(1),
                            file: word(2),
                            fork,
                            block: Some(word(3)).filter(|&block| block != NONE),
                        }),
                        None => word(0).checked_sub(1).map(TraceFile::Kind),
                    };
                    (op, failed, long(4), file)
                }),
            },
            trace_kind::MESSAGE => TraceKind::Message {
                kind: op,
                account,
                in_transaction: match more {
                    trace_transaction::NONE => Some(false),
                    trace_transaction::OPEN => Some(true),
                    _ => None,
                },
                ordinal: Some(long(0)).filter(|&ordinal| ordinal != 0),
            },
            trace_kind::SWITCH => TraceKind::Switch { account },
            trace_kind::STATEMENT => TraceKind::Statement { id: long(0), depth: more },
            trace_kind::STEP_BEGIN => {
                TraceKind::StepBegin { step: TraceStep::from_number(op), id: long(0), depth: more }
            }
            trace_kind::STEP_END => TraceKind::StepEnd {
                step: TraceStep::from_number(op),
                id: long(0),
                depth: more,
                rows: long(2),
                failed: failed != 0,
            },
            trace_kind::LOCK => {
                let pids = [stat, next, word(4), word(5)].map(|pid| pid as i32);
                TraceKind::Lock {
                    lock: LockTag {
                        fields: [word(0), word(1), word(2)],
                        field4: node,
                        kind: op,
                        method: more,
                    },
                    mode: word(3) as u16,
                    blockers: pids[..usize::from(failed).min(pids.len())].to_vec(),
                    count: failed,
                }
            }
            trace_kind::COMMIT => TraceKind::Commit(op),
            trace_kind::NODE => TraceKind::Node {
                parent: stat.checked_sub(1).map(|parent| parent as u16),
                part: op,
                name: bytes
                    .get(at::WORD..at::WORD + usize::from(more).min(24))
                    .unwrap_or_default()
                    .to_vec(),
                encoding: i32::from(failed) - 1,
            },
            trace_kind::NODE_END => TraceKind::NodeEnd { rows: long(0), calls: long(2) },
            trace_kind::RESET => TraceKind::Reset,
            trace_kind::CONTEXT => TraceKind::Context(TraceParent {
                trace: std::array::from_fn(|i| byte(at::WORD + i)),
                span: std::array::from_fn(|i| byte(at::WORD + 16 + i)),
                flags: op,
            }),
            trace_kind::CALL => TraceKind::Call {
                fetches: op == 2,
                failed: failed != 0,
                statistic: account,
                pid: next as i32,
                first: Some(long(0)).filter(|&first| first != 0),
                messages: word(2),
                rows: word(3),
                collecting: long(4),
            },
            trace_kind::CALL_WAIT => TraceKind::CallWait { pid: next as i32 },
            trace_kind::PARAMETER => {
                let bytes = || {
                    let text = bytes.get(at::WORD..at::WORD + usize::from(more).min(24));
                    text.unwrap_or_default().to_vec()
                };
                let encoding = i32::from(failed) - 1;
                let part = match op {
                    trace_parameter::VALUE => {
                        TraceParameter::Value { bytes: bytes(), whole: next, encoding }
                    }
                    trace_parameter::REST => TraceParameter::Rest(bytes()),
                    trace_parameter::NULL => TraceParameter::Null,
                    trace_parameter::LARGE => TraceParameter::Large(next),
                    _ => TraceParameter::Foreign,
                };
                TraceKind::Parameter { number: node, count: stat, part }
            }
            trace_kind::EXECUTION => TraceKind::Execution {
                id: long(0),
                database_id: word(2),
                user_id: word(3),
                application: word(4) as u16,
                pid: next as i32,
                records: stat,
            },
            other => TraceKind::Other(other),
        };
        let node = match kind {
            TraceKind::Lock { .. } | TraceKind::Parameter { .. } => 0,
            _ => node,
        };
        TraceRecord {
            tick: u64_at(bytes, at::TICK),
            ticks: u64_at(bytes, at::TICKS),
            node: node.checked_sub(1),
            kind,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_content_of_a_record_panics() {
        for kind in 0..=255u8 {
            for fill in [0u8, 1, 24, 25, 255] {
                let mut bytes = [fill; at::SIZE];
                bytes[at::KIND] = kind;
                let record = TraceRecord::decode(&bytes);
                if let TraceKind::Node { name, .. } = &record.kind {
                    assert!(name.len() <= 24);
                }
                if let TraceKind::Lock { blockers, .. } = &record.kind {
                    assert!(blockers.len() <= 4);
                }
                if let TraceKind::Parameter { part: TraceParameter::Rest(bytes), .. } = &record.kind
                {
                    assert!(bytes.len() <= 24);
                }
            }
        }
        assert_eq!(TraceRecord::decode(&[]).kind, TraceKind::Other(0));
    }
}
