// SPDX-License-Identifier: PostgreSQL
//! A trace as text: each message with its steps, waits and commits, then totals.

use std::collections::HashMap;
use std::io::Write;

use error::Error;
use segment::{TraceFile, TraceStep, Traced};

use super::names;
use super::names::commit_name;
use super::sink::{ms, time_of_day};
use super::story::{FileWait, LockWait, NodeId, Story, TraceItem, Unit};
use super::summary::TraceSummary;
use super::{Context, Sink};

/// How to print.
#[derive(Debug, Clone, Copy)]
pub struct TextOptions {
    /// Whether to use colours.
    pub color: bool,
    /// Whether to print every wait instead of merging repeated ones.
    pub all: bool,
}

/// The sink.
pub struct Text {
    out: Box<dyn Write>,
    options: TextOptions,
    summary: TraceSummary,
    /// The state of each process.
    states: HashMap<i32, TextState>,
}

/// The state of a process, since a unit may be only a part of its work.
#[derive(Default)]
struct TextState {
    /// Number of open steps.
    depth: usize,
    /// Nodes of the open plans, by depth of their statement.
    nodes: HashMap<(usize, NodeId), NodeName>,
}

/// Successive waits of one kind.
struct Waits<'i> {
    start: u64,
    ticks: u64,
    count: u64,
    longest: u64,
    account: Option<u32>,
    node: Option<NodeId>,
    file: Option<&'i FileWait>,
    /// The lowest and the highest block, if known.
    blocks: Option<(u32, u32)>,
    lock: Option<&'i LockWait>,
    depth: usize,
}

impl Waits<'_> {
    /// Whether it is the same event on the same object, apart from the block.
    fn is_like(&self, other: &Waits) -> bool {
        let object = |file: Option<&FileWait>| {
            file.map(|wait| {
                let file = match &wait.file {
                    Some(TraceFile::Relation { tablespace, database, file, fork, .. }) => {
                        Some((*tablespace, *database, *file, *fork))
                    }
                    Some(TraceFile::Kind(stat)) => Some((u32::MAX, *stat, 0, 0)),
                    None => None,
                };
                (wait.operation, wait.error, file)
            })
        };
        self.account == other.account
            && self.node == other.node
            && self.depth == other.depth
            && object(self.file) == object(other.file)
            && self.lock == other.lock
    }
}

/// The known part of a plan node.
#[derive(Default)]
struct NodeName {
    name: String,
    parent: Option<NodeId>,
}

impl Text {
    /// A sink that writes to `out`.
    pub fn new(out: Box<dyn Write>, options: TextOptions) -> Text {
        Text { out, options, summary: TraceSummary::default(), states: HashMap::new() }
    }

    fn bold(&self, text: &str) -> String {
        if self.options.color {
            format!("\x1b[1m{text}\x1b[0m")
        } else {
            text.to_string()
        }
    }

    /// Writes a line within a message: time since its start and length, in ms, and text.
    fn line(
        &mut self,
        context: &Context,
        unit: &Unit,
        start: u64,
        ticks: Option<u64>,
        depth: usize,
        what: &str,
    ) -> Result<(), Error> {
        let offset = (context.ns(start) - context.ns(unit.start)) as f64 * 1e-6;
        let length = ticks.map_or(String::new(), |ticks| ms(context, ticks));
        let what = view::escape::visible(what);
        let what = format!("{:1$}{what}", "", 2 * depth);
        Ok(writeln!(self.out, "{offset:>14.3} {length:>12}  {what}")?)
    }

    fn waits(&mut self, context: &Context, unit: &Unit, waits: &Waits) -> Result<(), Error> {
        let account = context.names.account(&context.segment, waits.account);
        let mut what = account.activity;
        if let Some(wait) = waits.file {
            what += &format!(" {}", names::operation(wait.operation));
        }
        let object = names::object(&context.names, &context.segment, waits.file, waits.lock);
        if !object.is_empty() {
            what += &format!(" {object}");
        }
        match waits.blocks {
            Some((low, high)) if low == high => what += &format!(" block {low}"),
            Some((low, high)) => what += &format!(" blocks {low} to {high}"),
            None => {}
        }
        if waits.count > 1 {
            what += &format!(", {} times, longest {} ms", waits.count, ms(context, waits.longest));
        }
        if let Some(node) = waits.node {
            what += &format!(" [node {node}]");
        }
        if let Some(wait) = waits.file.filter(|wait| wait.error != 0) {
            what += &format!(" failed: {}", std::io::Error::from_raw_os_error(wait.error.into()));
        }
        self.line(context, unit, waits.start, Some(waits.ticks), waits.depth, &what)
    }

    fn items(&mut self, context: &mut Context, pid: i32, unit: &Unit) -> Result<(), Error> {
        let mut state = self.states.remove(&pid).unwrap_or_default();
        if unit.message.is_some() && !unit.continued {
            state = TextState::default();
        }
        let done = self.items_of(context, &mut state, unit);
        self.states.insert(pid, state);
        done
    }

    fn items_of(
        &mut self,
        context: &mut Context,
        state: &mut TextState,
        unit: &Unit,
    ) -> Result<(), Error> {
        let TextState { depth, nodes } = state;
        let mut waiting: Option<Waits> = None;
        for (i, item) in unit.items.iter().enumerate() {
            if let TraceItem::Wait { start, ticks, account, node, file, lock } = item {
                let new = Waits {
                    start: *start,
                    ticks: *ticks,
                    count: 1,
                    longest: *ticks,
                    account: *account,
                    node: *node,
                    file: file.as_ref(),
                    blocks: block_of(file.as_ref()).map(|block| (block, block)),
                    lock: lock.as_ref(),
                    depth: *depth,
                };
                match &mut waiting {
                    Some(before) if !self.options.all && before.is_like(&new) => {
                        before.ticks += ticks;
                        before.count += 1;
                        before.longest = before.longest.max(*ticks);
                        before.blocks = match (before.blocks, new.blocks) {
                            (Some(a), Some(b)) => Some((a.0.min(b.0), a.1.max(b.1))),
                            _ => None,
                        };
                    }
                    _ => {
                        if let Some(before) = waiting.replace(new) {
                            self.waits(context, unit, &before)?;
                        }
                    }
                }
                continue;
            }
            if matches!(item, TraceItem::Cpu { .. }) {
                continue;
            }
            if let Some(before) = waiting.take() {
                self.waits(context, unit, &before)?;
            }
            match item {
                TraceItem::Begin { start, step, depth: at, .. } => {
                    let end = end_of(&unit.items[i..], *step, *at);
                    let (ticks, what) = match end {
                        Some((end, rows, failed)) => {
                            let rows = match step {
                                TraceStep::Run | TraceStep::Utility if rows > 0 => {
                                    format!(" {rows} rows")
                                }
                                _ => String::new(),
                            };
                            let failed = if failed { " failed" } else { "" };
                            (Some(end.saturating_sub(*start)), format!("{rows}{failed}"))
                        }
                        None => (None, " continues".to_string()),
                    };
                    *depth = usize::from(*at);
                    let what = format!("{}{what}", step.name());
                    self.line(context, unit, *start, ticks, *depth, &what)?;
                    *depth += 1;
                }
                TraceItem::End { depth: at, .. } => *depth = usize::from(*at),
                TraceItem::Statement { start, id, depth: at } => {
                    let text = context.names.statement(&mut context.segment, *id)?;
                    let text = text.unwrap_or("(text not kept)").to_string();
                    let what = format!("statement {text} (query ID {})", *id as i64);
                    self.line(context, unit, *start, None, usize::from(*at), &what)?;
                }
                TraceItem::Commit { start, ticks, kind } => {
                    let what = format!("commit ({})", commit_name(*kind));
                    self.line(context, unit, *start, Some(*ticks), *depth, &what)?;
                }
                TraceItem::Node { node, parent, name, .. } => {
                    let known = nodes.entry((*depth, *node)).or_default();
                    *known = NodeName { name: name.clone(), parent: *parent };
                }
                TraceItem::NodeEnd { start, node, rows, calls, took, .. } => {
                    let level = level_of(nodes, *depth, *node);
                    let known = nodes.entry((*depth, *node)).or_default();
                    let waited = if took.waits > 0 {
                        format!(", {} waits {} ms", took.waits, ms(context, took.wait_ticks))
                    } else {
                        String::new()
                    };
                    let cpu = took.cpu().map_or(String::new(), |(ticks, half)| {
                        format!(", cpu {} ms ± {}", ms(context, ticks), ms(context, half))
                    });
                    let what = format!(
                        "[node {node}] {}: {rows} rows, {calls} calls{waited}{cpu}",
                        known.name
                    );
                    self.line(context, unit, *start, None, *depth + level, &what)?;
                }
                TraceItem::Lost { start, records } => {
                    let what = format!(
                        "-- {records} records lost: the session wrote faster than tally read --"
                    );
                    self.line(context, unit, *start, None, 0, &what)?;
                }
                TraceItem::Reset { start } => {
                    self.line(context, unit, *start, None, 0, "-- all totals were reset --")?;
                }
                TraceItem::Context { start, parent } => {
                    let what = format!("traceparent {}", names::traceparent(parent));
                    self.line(context, unit, *start, None, *depth, &what)?;
                }
                TraceItem::Parameters { start, parameters, .. } => {
                    self.line(context, unit, *start, None, *depth, &parameters.to_string())?;
                }
                TraceItem::Cpu { .. } | TraceItem::Wait { .. } => {}
            }
        }
        if let Some(before) = waiting.take() {
            self.waits(context, unit, &before)?;
        }
        Ok(())
    }
}

/// The relation block that a wait was for.
fn block_of(file: Option<&FileWait>) -> Option<u32> {
    match file?.file {
        Some(TraceFile::Relation { block, .. }) => block,
        _ => None,
    }
}

/// Depth of a node in its plan.
fn level_of(nodes: &HashMap<(usize, NodeId), NodeName>, depth: usize, node: NodeId) -> usize {
    let parents = std::iter::successors(Some(node), |node| nodes.get(&(depth, *node))?.parent);
    parents.take(50).count().saturating_sub(1)
}

/// The end of the step that begins these items, its rows, and whether it failed.
fn end_of(items: &[TraceItem], step: TraceStep, depth: u8) -> Option<(u64, u64, bool)> {
    items.iter().find_map(|item| match item {
        TraceItem::End { end, step: ended, depth: at, rows, failed, .. }
            if *ended == step && *at == depth =>
        {
            Some((*end, *rows, *failed))
        }
        _ => None,
    })
}

fn clock_time(context: &Context, tick: u64) -> String {
    time_of_day(context.realtime_ns(tick))
}

impl Sink for Text {
    fn session(&mut self, context: &mut Context, who: &Traced) -> Result<(), Error> {
        let leader = who.leader_pid.map_or(String::new(), |pid| format!(", worker of {pid}"));
        let line =
            format!("{} process {}{leader}: trace begins", clock_time(context, who.begun), who.pid);
        writeln!(self.out, "{}", self.bold(&line))?;
        Ok(())
    }

    fn unit(&mut self, context: &mut Context, who: &Traced, unit: &Unit) -> Result<(), Error> {
        self.summary.add(context, who.pid, unit);
        let time = clock_time(context, unit.start);
        let Some(kind) = unit.message else {
            // Between messages, a session only waits for its client.
            let idles = |item: &TraceItem| match item {
                TraceItem::Wait { account, .. } => {
                    context.names.account(&context.segment, *account).idle
                }
                TraceItem::Cpu { .. } => true,
                _ => false,
            };
            if unit.items.iter().all(idles) {
                return Ok(());
            }
            writeln!(self.out, "{}", self.bold(&format!("{time} process {}", who.pid)))?;
            return self.items(context, who.pid, unit);
        };
        let ticks = unit.end.map(|end| end.saturating_sub(unit.start));
        let length = match ticks {
            Some(ticks) => format!("{} ms", ms(context, ticks)),
            None => "continues".to_string(),
        };
        let cpu: u64 = unit
            .items
            .iter()
            .filter_map(|item| match item {
                TraceItem::Cpu { ticks, .. } => Some(*ticks),
                _ => None,
            })
            .sum();
        let continued = if unit.continued { " (continued)" } else { "" };
        let head = format!(
            "{time} process {} {}{continued} {length}, cpu {} ms",
            who.pid,
            names::message(kind),
            ms(context, cpu)
        );
        writeln!(self.out, "{}", self.bold(&head))?;
        self.items(context, who.pid, unit)
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(self.out.flush()?)
    }

    fn finish(&mut self, context: &mut Context, stories: &[Story]) -> Result<(), Error> {
        self.summary.end();
        self.summary.print(&mut self.out, context, stories)
    }
}
