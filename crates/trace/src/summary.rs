// SPDX-License-Identifier: PostgreSQL
//! The summary after a trace: totals per statement, activity and object, and whether the trace matches the ledger.

use std::collections::HashMap;
use std::io::Write;

use error::Error;
use segment::{ExecutionParameters, TraceFile, TraceStep};

use super::names;
use super::node_time::NodeUse;
use super::sink::ms;
use super::story::{NodeId, Story, TraceItem, Unit};
use super::Context;

/// Lines of each list.
const LINES: usize = 12;
/// Number of executions of a statement whose parameters are listed, the slowest.
const SLOWEST: usize = 3;

#[derive(Default)]
struct TraceSum {
    count: u64,
    ticks: u64,
    longest: u64,
}

impl TraceSum {
    fn add(&mut self, ticks: u64) {
        self.count += 1;
        self.ticks += ticks;
        self.longest = self.longest.max(ticks);
    }
}

/// Totals of the printed units.
#[derive(Default)]
pub struct TraceSummary {
    statements: HashMap<u64, TraceSum>,
    activities: HashMap<(String, String), TraceSum>,
    objects: HashMap<(String, String), TraceSum>,
    nodes: HashMap<Node, NodeSum>,
    /// Names of the nodes of the last executed plans, by statement.
    names: HashMap<(u64, NodeId), String>,
    /// Executions with parameters that have not ended, by process and depth.
    executions: HashMap<(i32, u8), Execution>,
    /// The slowest executions with parameters, by statement.
    slowest: HashMap<u64, Vec<Execution>>,
}

/// An execution with recorded parameters.
struct Execution {
    id: u64,
    /// Time of its steps.
    ticks: u64,
    parameters: ExecutionParameters,
}

/// A node of a plan: its statement, name and number.
type Node = (u64, String, NodeId);

#[derive(Default)]
struct NodeSum {
    rows: u64,
    calls: u64,
    took: NodeUse,
}

impl NodeSum {
    /// Its waits and its estimated CPU time, ticks.
    fn ticks(&self) -> u64 {
        self.took.wait_ticks + self.took.cpu().map_or(0, |(ticks, _)| ticks)
    }
}

impl TraceSummary {
    /// Follows executions, whose steps may be in several units.
    fn follow(&mut self, pid: i32, item: &TraceItem) {
        match item {
            TraceItem::Parameters { id, depth, parameters, .. } => {
                self.close((pid, *depth));
                let execution = Execution { id: *id, ticks: 0, parameters: parameters.clone() };
                self.executions.insert((pid, *depth), execution);
            }
            TraceItem::End { start, end, step, id, depth, failed, .. } => {
                let place = (pid, *depth);
                let Some(execution) = self.executions.get_mut(&place) else { return };
                if execution.id != *id || *step == TraceStep::Plan {
                    return;
                }
                execution.ticks += end.saturating_sub(*start);
                if *failed || matches!(step, TraceStep::End | TraceStep::Utility) {
                    self.close(place);
                }
            }
            _ => {}
        }
    }

    fn close(&mut self, place: (i32, u8)) {
        if let Some(execution) = self.executions.remove(&place) {
            let slowest = self.slowest.entry(execution.id).or_default();
            slowest.push(execution);
            slowest.sort_by_key(|execution| std::cmp::Reverse(execution.ticks));
            slowest.truncate(SLOWEST);
        }
    }

    /// The trace is over: adds the executions that have not ended.
    pub fn end(&mut self) {
        let places: Vec<(i32, u8)> = self.executions.keys().copied().collect();
        places.into_iter().for_each(|place| self.close(place));
    }

    /// Adds a unit of a process.
    pub fn add(&mut self, context: &Context, pid: i32, unit: &Unit) {
        for item in &unit.items {
            self.follow(pid, item);
            match item {
                TraceItem::Cpu { ticks, account, .. } => {
                    let account = context.names.account(&context.segment, *account);
                    self.activities
                        .entry((account.phase, account.activity))
                        .or_default()
                        .add(*ticks);
                }
                TraceItem::Wait { ticks, account, file, lock, .. } => {
                    let account = context.names.account(&context.segment, *account);
                    if account.idle {
                        continue;
                    }
                    let object = match (lock, file) {
                        (Some(wait), _) => names::lock(&wait.lock),
                        (None, Some(wait))
                            if matches!(wait.file, Some(TraceFile::Relation { .. })) =>
                        {
                            context.names.file(&context.segment, wait).unwrap_or_default()
                        }
                        _ => String::new(),
                    };
                    if !object.is_empty() {
                        self.objects
                            .entry((account.activity.clone(), object))
                            .or_default()
                            .add(*ticks);
                    }
                    self.activities
                        .entry((account.phase, account.activity))
                        .or_default()
                        .add(*ticks);
                }
                // The time of a nested statement also counts for the outer one, as everywhere.
                TraceItem::End { start, end, id, .. } => {
                    let sum = self.statements.entry(*id).or_default();
                    sum.ticks += end.saturating_sub(*start);
                    sum.longest = sum.longest.max(end.saturating_sub(*start));
                }
                TraceItem::Statement { id, .. } => {
                    self.statements.entry(*id).or_default().count += 1
                }
                TraceItem::Node { id, node, name, .. } => {
                    self.names.insert((*id, *node), name.clone());
                }
                TraceItem::NodeEnd { id, node, rows, calls, took, .. } => {
                    let name = self.names.get(&(*id, *node)).cloned().unwrap_or_default();
                    let sum = self.nodes.entry((*id, name, *node)).or_default();
                    (sum.rows, sum.calls) = (sum.rows + rows, sum.calls + calls);
                    sum.took.add(took);
                }
                _ => {}
            }
        }
    }

    /// Prints the lists.
    pub fn print(
        &self,
        out: &mut dyn Write,
        context: &mut Context,
        stories: &[Story],
    ) -> Result<(), Error> {
        if stories.is_empty() {
            writeln!(out, "no process was traced")?;
            return Ok(());
        }
        let line = |sum: &TraceSum, context: &Context| {
            format!(
                "{:>14} {:>9} {:>12}",
                ms(context, sum.ticks),
                sum.count,
                ms(context, sum.longest)
            )
        };
        let heading = |out: &mut dyn Write, what: &str| {
            writeln!(out)?;
            writeln!(out, "{:>14} {:>9} {:>12}  {what}", "TOTAL ms", "COUNT", "LONGEST ms")
        };
        let ticks = |sum: &TraceSum| sum.ticks;
        heading(out, "ACTIVITY")?;
        for ((phase, activity), sum) in sorted(&self.activities, ticks) {
            writeln!(out, "{}  {phase}: {activity}", line(sum, context))?;
        }
        if !self.objects.is_empty() {
            heading(out, "OBJECT")?;
            for ((activity, object), sum) in sorted(&self.objects, ticks) {
                writeln!(out, "{}  {activity} {object}", line(sum, context))?;
            }
        }
        if !self.statements.is_empty() {
            heading(out, "STATEMENT (number of analyses; time of its steps)")?;
            for (id, sum) in sorted(&self.statements, ticks) {
                let text =
                    context.names.statement(&mut context.segment, *id)?.unwrap_or("").to_string();
                writeln!(
                    out,
                    "{}  {} {}",
                    line(sum, context),
                    *id as i64,
                    view::escape::visible(&text)
                )?;
                for execution in self.slowest.get(id).into_iter().flatten() {
                    let took = ms(context, execution.ticks);
                    let parameters = execution.parameters.to_string();
                    let parameters = view::escape::visible(&parameters);
                    writeln!(out, "{:>14} {:>9} {took:>12}    {parameters}", "", "")?;
                }
            }
        }
        self.print_nodes(out, context)?;
        writeln!(out)?;
        for story in stories {
            writeln!(out, "{}", equality(context, story))?;
        }
        Ok(())
    }

    fn print_nodes(&self, out: &mut dyn Write, context: &Context) -> Result<(), Error> {
        if self.nodes.is_empty() {
            return Ok(());
        }
        writeln!(out)?;
        writeln!(
            out,
            "{:>14} {:>9} {:>20} {:>12} {:>9}  PLAN NODE of statement (own time, without child nodes)",
            "WAITS ms", "COUNT", "CPU ms", "ROWS", "CALLS"
        )?;
        for ((id, name, node), sum) in sorted(&self.nodes, NodeSum::ticks) {
            let took = &sum.took;
            let cpu = took.cpu().map_or("no samples".to_string(), |(ticks, half_width)| {
                format!("{} ± {}", ms(context, ticks), ms(context, half_width))
            });
            writeln!(
                out,
                "{:>14} {:>9} {cpu:>20} {:>12} {:>9}  [{node}] {} of {}",
                ms(context, took.wait_ticks),
                took.waits,
                sum.rows,
                sum.calls,
                view::escape::visible(name),
                *id as i64
            )?;
        }
        Ok(())
    }
}

/// The largest, in descending order.
fn sorted<K: Ord, S>(sums: &HashMap<K, S>, ticks: impl Fn(&S) -> u64) -> Vec<(&K, &S)> {
    let mut all: Vec<_> = sums.iter().collect();
    all.sort_by(|a, b| ticks(b.1).cmp(&ticks(a.1)).then(a.0.cmp(b.0)));
    all.truncate(LINES);
    all
}

/// A sentence that says whether the trace matches the ledger.
fn equality(context: &Context, story: &Story) -> String {
    let kept = &story.conservation;
    let pid = story.who.pid;
    let lost = match story.lost {
        0 => String::new(),
        lost => format!("; {lost} records lost"),
    };
    match kept.difference {
        Some((stat, traced, ledger)) => {
            let account = context.names.account(&context.segment, Some(stat));
            format!(
                "process {pid}: the trace differs from the ledger: {}: {} has {traced} ticks in the trace, {ledger} in the ledger{lost}",
                account.phase, account.activity
            )
        }
        None if kept.times > 0 => format!(
            "process {pid}: the trace matches the ledger to the tick in every account, over {} ms and {} waits{lost}",
            ms(context, kept.ticks),
            kept.waits
        ),
        None => format!("process {pid}: the trace is too short to compare with the ledger{lost}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use segment::TraceParameter;

    #[test]
    fn the_slowest_executions_are_kept_however_their_steps_arrive() {
        let mut summary = TraceSummary::default();
        let begin = |number: u32| TraceItem::Parameters {
            start: 0,
            id: 7,
            depth: 0,
            parameters: ExecutionParameters::begin(1, number, TraceParameter::Null).unwrap(),
        };
        let end = |step, end, id, failed| TraceItem::End {
            start: 0,
            end,
            step,
            id,
            depth: 0,
            rows: 0,
            failed,
        };
        for (count, ticks) in [(1, 10), (2, 40), (3, 1), (4, 100)] {
            summary.follow(9, &begin(count));
            summary.follow(9, &end(TraceStep::Plan, 1000, 7, false));
            summary.follow(9, &end(TraceStep::Run, ticks, 7, false));
            // Another process, and another statement.
            summary.follow(8, &end(TraceStep::Run, 1000, 7, false));
            summary.follow(9, &end(TraceStep::Run, 1000, 6, false));
            summary.follow(9, &end(TraceStep::Run, 1, 7, count == 2));
            if count != 2 {
                summary.follow(9, &end(TraceStep::End, 1, 7, false));
            }
            summary.follow(9, &end(TraceStep::End, 1000, 7, false));
        }
        // This one does not end.
        summary.follow(9, &begin(5));
        summary.follow(9, &end(TraceStep::Run, 50, 7, false));
        summary.end();
        let slowest = summary.slowest[&7].iter();
        let found: Vec<_> = slowest.map(|one| (one.ticks, one.parameters.to_string())).collect();
        let named = |ticks, more| (ticks, format!("$1 = NULL, and {more} more"));
        assert_eq!(found, [named(102, 3), named(50, 4), named(41, 1)]);
    }
}
