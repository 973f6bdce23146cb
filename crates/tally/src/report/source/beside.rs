// SPDX-License-Identifier: PostgreSQL
//! What a recording holds beside its intervals: events, marks, gaps, settings, runs, devices.

use std::collections::BTreeMap;

use recording::{DeviceRow, Range, Recording, RunRow, SettingRow};

use super::seconds;
use crate::error::Error;
use crate::events::Row;
use crate::report::document::{Gap, Mark};
use crate::report::material::{Device, Run, Setting};

/// Marks that say no more than the charts themselves.
const SELF_EVIDENT: [&str; 3] = ["begin", "end", "duty"];
/// Lines of a command's output that are kept, from its end.
const LINES: usize = 400;

/// The events.
pub fn events(recording: &Recording, range: Range) -> Result<Vec<Row>, Error> {
    Ok(recording.events(range)?.into_iter().map(Row::from).collect())
}

/// What happened to the recording, or to what was recorded.
pub fn marks(recording: &Recording, range: Range) -> Result<Vec<Mark>, Error> {
    let rows = recording.marks(range)?.into_iter();
    let told = rows.filter(|row| !SELF_EVIDENT.contains(&&*row.kind)).map(|row| Mark {
        time: seconds(row.time_us),
        until: None,
        kind: row.kind.to_string(),
        text: row.text.to_string(),
    });
    Ok(told.collect())
}

/// Where nothing was measured; what is beyond the range is cut off.
pub fn gaps(recording: &Recording, range: Range) -> Result<Vec<Gap>, Error> {
    let rows = recording.gaps(range)?.into_iter();
    let cut = rows.map(|row| Gap {
        from: seconds(row.from_us.max(range.from_us)),
        to: seconds(row.time_us.min(range.to_us)),
        reason: row.reason.to_string(),
    });
    Ok(cut.filter(|gap| gap.to > gap.from).collect())
}

/// The server's settings.
pub fn settings(rows: &[SettingRow], range: Range) -> Vec<Setting> {
    let mut seen = BTreeMap::<&str, usize>::new();
    for row in rows {
        *seen.entry(&row.name).or_default() += 1;
    }
    rows.iter()
        .filter(|row| &*row.group == "server")
        .map(|row| Setting {
            name: row.name.to_string(),
            value: match &*row.unit {
                "" => row.value.to_string(),
                unit => format!("{} {unit}", row.value),
            },
            changed: (range.contains(row.time_us) && seen.get(&*row.name).is_some_and(|n| *n > 1))
                .then(|| seconds(row.time_us)),
        })
        .collect()
}

/// The commands that were run beside the recorder.
pub fn runs(recording: &Recording, range: Range) -> Result<Vec<Run>, Error> {
    let mut runs: Vec<Run> = Vec::new();
    for row in recording.runs(range)? {
        note(&mut runs, &row);
    }
    for run in &mut runs {
        let lines: Vec<&str> = run.output.lines().collect();
        if lines.len() > LINES {
            let left = lines.len() - LINES;
            run.output = format!("... {left} lines before these\n{}", lines[left..].join("\n"));
        }
    }
    Ok(runs)
}

fn note(runs: &mut Vec<Run>, row: &RunRow) {
    let open = runs.iter().rposition(|run| *run.command == *row.command && run.to.is_none());
    let at = match open {
        Some(at) if &*row.what != "begin" => at,
        // The range may begin within a run.
        _ => {
            runs.push(Run {
                command: row.command.to_string(),
                from: seconds(row.time_us),
                to: None,
                exit_code: None,
                output: String::new(),
            });
            runs.len() - 1
        }
    };
    let Some(run) = runs.get_mut(at) else {
        return;
    };
    match &*row.what {
        "begin" => {}
        "end" => (run.to, run.exit_code) = (Some(seconds(row.time_us)), row.exit_code),
        _ => {
            run.output.push_str(&row.text);
            run.output.push('\n');
        }
    }
}

/// The devices that the server's files lie on.
pub fn devices(recording: &Recording, range: Range) -> Result<Vec<Device>, Error> {
    let mut sums = BTreeMap::<String, Sum>::new();
    for row in recording.devices(range)?.iter().filter(|row| row.direct) {
        sums.entry(row.device.to_string()).or_default().add(row);
    }
    let seconds = |ns: u64| ns as f64 * 1e-9;
    let devices = sums.into_iter().map(|(name, sum)| {
        let length = seconds(sum.interval_ns).max(1e-9);
        let mean = |ns: u64, of: u64| (of > 0).then(|| seconds(ns) / of as f64);
        Device {
            name,
            reads: sum.reads as f64 / length,
            read_bytes: sum.read_bytes as f64 / length,
            read_seconds: mean(sum.read_ns, sum.reads),
            writes: sum.writes as f64 / length,
            written_bytes: sum.written_bytes as f64 / length,
            write_seconds: mean(sum.write_ns, sum.writes),
            flushes: sum.counts_flushes.then_some(sum.flushes as f64 / length),
            flush_seconds: mean(sum.flush_ns, sum.flushes),
            queue: seconds(sum.queue_ns) / length,
            utilisation: seconds(sum.busy_ns) / length,
        }
    });
    Ok(devices.collect())
}

/// A device's rows added up.
#[derive(Debug, Default)]
struct Sum {
    interval_ns: u64,
    reads: u64,
    read_bytes: u64,
    read_ns: u64,
    writes: u64,
    written_bytes: u64,
    write_ns: u64,
    counts_flushes: bool,
    flushes: u64,
    flush_ns: u64,
    busy_ns: u64,
    queue_ns: u64,
}

impl Sum {
    fn add(&mut self, row: &DeviceRow) {
        let add = |sum: &mut u64, n: u64| *sum = sum.saturating_add(n);
        add(&mut self.interval_ns, row.interval_ns);
        add(&mut self.reads, row.reads);
        add(&mut self.read_bytes, row.read_bytes);
        add(&mut self.read_ns, row.read_ns);
        add(&mut self.writes, row.writes);
        add(&mut self.written_bytes, row.written_bytes);
        add(&mut self.write_ns, row.write_ns);
        add(&mut self.flushes, row.flushes.unwrap_or(0));
        add(&mut self.flush_ns, row.flush_ns.unwrap_or(0));
        add(&mut self.busy_ns, row.busy_ns);
        add(&mut self.queue_ns, row.queue_ns);
        self.counts_flushes |= row.flushes.is_some();
    }
}
