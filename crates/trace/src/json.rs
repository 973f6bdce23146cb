// SPDX-License-Identifier: PostgreSQL
//! A trace as JSON lines: one object per event, in order of their ends.

use std::io::Write;

use error::Error;
use segment::{ParameterJson, Traced};
use serde::Serialize;
use view::json_id::id_or_null;

use super::names;
use super::names::commit_name;
use super::story::{Story, TraceItem, Unit};
use super::{Context, Sink};

/// A line. Times are nanoseconds from the beginning of the trace.
#[derive(Debug, Default, Serialize)]
struct TraceEventJson<'a> {
    pid: i32,
    what: &'a str,
    ns: i64,
    length_ns: Option<i64>,
    ticks: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    phase: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    activity: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none", serialize_with = "id_or_null")]
    queryid: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    query: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    block: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    errno: Option<u8>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lock: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mode: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    blockers: Option<Vec<i32>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    node: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parent: Option<u16>,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    calls: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cpu_half_width_ns: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    records: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    leader_pid: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Vec<ParameterJson>>,
}

/// The last line of a process.
#[derive(Debug, Serialize)]
struct AccountSums<'a> {
    pid: i32,
    what: &'a str,
    records_lost: u64,
    compared_ns: i64,
    compared_waits: u64,
    equals_ledger: Option<bool>,
    accounts: Vec<AccountSumJson>,
}

#[derive(Debug, Serialize)]
struct AccountSumJson {
    phase: String,
    activity: String,
    ticks: u64,
    ns: i64,
    waits: u64,
}

/// The sink.
pub struct Json<W> {
    /// The output.
    pub(super) out: W,
}

impl<W: Write> Json<W> {
    /// A sink that writes to `out`.
    pub fn new(out: W) -> Json<W> {
        Json { out }
    }

    fn line(&mut self, line: &impl Serialize) -> Result<(), Error> {
        serde_json::to_writer(&mut self.out, line)?;
        Ok(self.out.write_all(b"\n")?)
    }
}

fn line_of<'a>(
    context: &mut Context,
    pid: i32,
    item: &TraceItem,
) -> Result<TraceEventJson<'a>, Error> {
    let base = |what: &'a str, start: u64, ticks: Option<u64>, context: &Context| TraceEventJson {
        pid,
        what,
        ns: context.ns(start),
        length_ns: ticks.map(|ticks| context.length_ns(ticks)),
        ticks,
        ..TraceEventJson::default()
    };
    Ok(match item {
        TraceItem::Cpu { start, ticks, account } => {
            let account = context.names.account(&context.segment, *account);
            TraceEventJson {
                phase: Some(account.phase),
                ..base("cpu", *start, Some(*ticks), context)
            }
        }
        TraceItem::Wait { start, ticks, account, node, file, lock } => {
            let account = context.names.account(&context.segment, *account);
            let mut line = base("wait", *start, Some(*ticks), context);
            (line.phase, line.activity) = (Some(account.phase), Some(account.activity));
            line.node = *node;
            if let Some(wait) = file {
                line.operation = Some(names::operation(wait.operation));
                line.bytes = Some(wait.bytes);
                line.errno = (wait.error != 0).then_some(wait.error);
                line.file = context.names.file(&context.segment, wait);
                if let Some(segment::TraceFile::Relation { block, .. }) = &wait.file {
                    line.block = *block;
                }
            }
            if let Some(wait) = lock {
                line.lock = Some(names::lock(&wait.lock));
                line.mode = Some(names::mode(wait.mode));
                line.blockers = Some(wait.blockers.clone());
            }
            line
        }
        TraceItem::Statement { start, id, depth } => TraceEventJson {
            queryid: Some(*id as i64),
            query: context.names.statement(&mut context.segment, *id)?.map(str::to_string),
            depth: Some(*depth),
            ..base("statement", *start, None, context)
        },
        TraceItem::Begin { start, step, id, depth } => TraceEventJson {
            name: Some(step.name().to_string()),
            queryid: Some(*id as i64),
            depth: Some(*depth),
            ..base("begin", *start, None, context)
        },
        TraceItem::End { start, end, step, id, depth, rows, failed } => TraceEventJson {
            name: Some(step.name().to_string()),
            queryid: Some(*id as i64),
            depth: Some(*depth),
            rows: Some(*rows),
            failed: Some(*failed),
            ..base("step", *start, Some(end.saturating_sub(*start)), context)
        },
        TraceItem::Commit { start, ticks, kind } => TraceEventJson {
            name: Some(commit_name(*kind).to_string()),
            ..base("commit", *start, Some(*ticks), context)
        },
        TraceItem::Node { start, node, parent, name, id } => TraceEventJson {
            queryid: Some(*id as i64),
            node: Some(*node),
            parent: *parent,
            name: Some(name.clone()),
            ..base("node", *start, None, context)
        },
        TraceItem::NodeEnd { start, node, rows, calls, id, took } => {
            let cpu = took.cpu();
            TraceEventJson {
                node: Some(*node),
                queryid: Some(*id as i64),
                rows: Some(*rows),
                calls: Some(*calls),
                cpu_ns: cpu.map(|(ticks, _)| context.length_ns(ticks)),
                cpu_half_width_ns: cpu.map(|(_, half)| context.length_ns(half)),
                ..base("node end", *start, None, context)
            }
        }
        TraceItem::Lost { start, records } => {
            TraceEventJson { records: Some(*records), ..base("lost", *start, None, context) }
        }
        TraceItem::Reset { start } => base("reset", *start, None, context),
        TraceItem::Context { start, parent } => TraceEventJson {
            traceparent: Some(names::traceparent(parent)),
            ..base("context", *start, None, context)
        },
        TraceItem::Parameters { start, id, depth, parameters } => TraceEventJson {
            queryid: Some(*id as i64),
            depth: Some(*depth),
            parameters: Some(parameters.json()),
            ..base("parameters", *start, None, context)
        },
    })
}

impl<W: Write> Sink for Json<W> {
    fn session(&mut self, context: &mut Context, who: &Traced) -> Result<(), Error> {
        self.line(&TraceEventJson {
            pid: who.pid,
            what: "trace",
            ns: context.ns(who.begun),
            time: Some(context.realtime_ns(who.begun) as f64 * 1e-9),
            leader_pid: who.leader_pid,
            ..TraceEventJson::default()
        })
    }

    fn unit(&mut self, context: &mut Context, who: &Traced, unit: &Unit) -> Result<(), Error> {
        for item in &unit.items {
            let line = line_of(context, who.pid, item)?;
            self.line(&line)?;
        }
        if let (Some(kind), Some(end)) = (unit.message, unit.end) {
            let ticks = end.saturating_sub(unit.start);
            self.line(&TraceEventJson {
                pid: who.pid,
                what: "message",
                ns: context.ns(unit.start),
                length_ns: Some(context.length_ns(ticks)),
                ticks: Some(ticks),
                message: Some(names::message(kind)),
                ..TraceEventJson::default()
            })?;
        }
        Ok(())
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(self.out.flush()?)
    }

    fn finish(&mut self, context: &mut Context, stories: &[Story]) -> Result<(), Error> {
        for story in stories {
            let kept = &story.conservation;
            let accounts = story.ticks.iter().map(|(&stat, &ticks)| {
                let account = context.names.account(&context.segment, Some(stat));
                let waits = story.waits.get(&stat).copied().unwrap_or(0);
                let ns = context.length_ns(ticks);
                AccountSumJson {
                    phase: account.phase,
                    activity: account.activity,
                    ticks,
                    ns,
                    waits,
                }
            });
            let sums = AccountSums {
                pid: story.who.pid,
                what: "sums",
                records_lost: story.lost,
                compared_ns: context.length_ns(kept.ticks),
                compared_waits: kept.waits,
                equals_ledger: (kept.times > 0).then_some(kept.difference.is_none()),
                accounts: accounts.collect(),
            };
            self.line(&sums)?;
        }
        Ok(())
    }
}
