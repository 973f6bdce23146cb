// SPDX-License-Identifier: PostgreSQL
//! What follows a trace: sums per statement, per activity and per object, and whether it equals the ledger.

use std::collections::HashMap;
use std::io::Write;

use error::Error;
use segment::TraceFile;

use super::names;
use super::story::{Item, Story, Unit};
use super::text::ms;
use super::Context;

/// Lines of each list.
const LINES: usize = 12;

#[derive(Default)]
struct Sum {
    count: u64,
    ticks: u64,
    longest: u64,
}

impl Sum {
    fn add(&mut self, ticks: u64) {
        self.count += 1;
        self.ticks += ticks;
        self.longest = self.longest.max(ticks);
    }
}

/// Sums of what was printed.
#[derive(Default)]
pub struct Summary {
    statements: HashMap<u64, Sum>,
    activities: HashMap<(String, String), Sum>,
    objects: HashMap<(String, String), Sum>,
}

impl Summary {
    /// Add a unit.
    pub fn add(&mut self, context: &Context, unit: &Unit) {
        for item in &unit.items {
            match item {
                Item::Cpu { ticks, account, .. } => {
                    let account = context.names.account(&context.segment, *account);
                    self.activities
                        .entry((account.phase, account.activity))
                        .or_default()
                        .add(*ticks);
                }
                Item::Wait { ticks, account, file, lock, .. } => {
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
                // Of nested statements the outer one has the time too, as everywhere.
                Item::End { start, end, id, .. } => {
                    let sum = self.statements.entry(*id).or_default();
                    sum.ticks += end.saturating_sub(*start);
                    sum.longest = sum.longest.max(end.saturating_sub(*start));
                }
                Item::Statement { id, .. } => self.statements.entry(*id).or_default().count += 1,
                _ => {}
            }
        }
    }

    /// Print the lists.
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
        let line = |sum: &Sum, context: &Context| {
            format!(
                "{:>14} {:>9} {:>12}",
                ms(context, sum.ticks),
                sum.count,
                ms(context, sum.longest)
            )
        };
        let heading = |out: &mut dyn Write, what: &str| {
            writeln!(out, "\n{:>14} {:>9} {:>12}  {what}", "TOTAL ms", "COUNT", "LONGEST ms")
        };
        heading(out, "ACTIVITY")?;
        for ((phase, activity), sum) in sorted(&self.activities) {
            writeln!(out, "{}  {phase}: {activity}", line(sum, context))?;
        }
        if !self.objects.is_empty() {
            heading(out, "OBJECT")?;
            for ((activity, object), sum) in sorted(&self.objects) {
                writeln!(out, "{}  {activity} {object}", line(sum, context))?;
            }
        }
        if !self.statements.is_empty() {
            heading(out, "STATEMENT (analysed so often; time of its steps)")?;
            for (id, sum) in sorted(&self.statements) {
                let text =
                    context.names.statement(&mut context.segment, *id)?.unwrap_or("").to_string();
                writeln!(
                    out,
                    "{}  {} {}",
                    line(sum, context),
                    *id as i64,
                    view::escape::visible(&text)
                )?;
            }
        }
        writeln!(out)?;
        for story in stories {
            writeln!(out, "{}", equality(context, story))?;
        }
        Ok(())
    }
}

fn sorted<K: Ord>(sums: &HashMap<K, Sum>) -> Vec<(&K, &Sum)> {
    let mut all: Vec<_> = sums.iter().collect();
    all.sort_by(|a, b| b.1.ticks.cmp(&a.1.ticks).then(a.0.cmp(b.0)));
    all.truncate(LINES);
    all
}

/// Whether a trace equals the ledger, in a sentence.
fn equality(context: &Context, story: &Story) -> String {
    let kept = &story.conservation;
    let pid = story.who.pid;
    let lost = match story.lost {
        0 => String::new(),
        lost => format!("; {lost} records were lost"),
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
            "process {pid}: the trace equals the process's ledger to the tick, account by account, over {} ms and {} waits{lost}",
            ms(context, kept.ticks),
            kept.waits
        ),
        None => format!("process {pid}: too short to be compared with the ledger{lost}"),
    }
}
