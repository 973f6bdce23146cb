// SPDX-License-Identifier: PostgreSQL
//! The contents of a recording besides its intervals: events, marks, gaps, settings, runs, devices.

use recording::{Range, Recording, RunRow, SettingRow};

use super::seconds;
use crate::material::{Run, Setting};
use error::Error;
use view::document::{Gap, Mark};
use view::events::Row;
use view::io::Device;
use view::settings::{value_with_unit, SettingChange};

/// Kinds of marks that the charts themselves make obvious.
const SELF_EVIDENT: [&str; 3] = ["begin", "end", "duty"];
/// Number of lines of a command's output that are kept, from its end.
const LINES: usize = 400;

/// The events.
pub fn events(recording: &Recording, range: Range) -> Result<Vec<Row>, Error> {
    Ok(recording.events(range)?.into_iter().map(Row::from).collect())
}

/// Events of the recording itself, or of the server that was recorded.
pub fn marks(recording: &Recording, range: Range) -> Result<Vec<Mark>, Error> {
    let rows = recording.marks(range)?.into_iter();
    let marks = rows.filter(|row| !SELF_EVIDENT.contains(&&*row.kind)).map(|row| Mark {
        time: seconds(row.time_us),
        until: None,
        kind: row.kind.to_string(),
        text: row.text.to_string(),
    });
    Ok(marks.collect())
}

/// Times in which nothing was measured, clipped to the range.
pub fn gaps(recording: &Recording, range: Range) -> Result<Vec<Gap>, Error> {
    let rows = recording.gaps(range)?.into_iter();
    let cut = rows.map(|row| Gap {
        from: seconds(row.from_us.max(range.from_us)),
        to: seconds(row.time_us.min(range.to_us)),
        reason: row.reason.to_string(),
    });
    Ok(cut.filter(|gap| gap.to > gap.from).collect())
}

fn value(row: &SettingRow) -> String {
    // Others than the server's have units of their own.
    match &*row.group {
        "server" => value_with_unit(&row.value, &row.unit),
        _ => format!("{} {}", row.value, row.unit).trim_end().to_string(),
    }
}

/// The settings of server, machine and recorder.
pub fn settings(rows: &[SettingRow], changes: &[SettingChange]) -> Vec<Setting> {
    let changed = |row: &SettingRow| {
        let of_this = |change: &&SettingChange| &*row.group == "server" && change.name == *row.name;
        changes.iter().rev().find(of_this).map(|change| change.time)
    };
    rows.iter()
        .map(|row| Setting {
            group: row.group.to_string(),
            name: row.name.to_string(),
            value: value(row),
            changed: changed(row),
        })
        .collect()
}

/// The changes of the server's settings.
pub fn setting_changes(recording: &Recording, range: Range) -> Result<Vec<SettingChange>, Error> {
    let changes = recording.setting_changes(range)?.into_iter();
    let changes = changes.map(|(before, after)| SettingChange {
        time: seconds(after.time_us),
        name: after.name.to_string(),
        before: value(&before),
        after: value(&after),
    });
    Ok(changes.collect())
}

/// The commands that `tally record` ran.
pub fn runs(recording: &Recording, range: Range) -> Result<Vec<Run>, Error> {
    let mut runs: Vec<Run> = Vec::new();
    for row in recording.runs(range)? {
        note(&mut runs, &row);
    }
    for run in &mut runs {
        let lines: Vec<&str> = run.output.lines().collect();
        if lines.len() > LINES {
            let left = lines.len() - LINES;
            run.output = format!("... {left} earlier lines\n{}", lines[left..].join("\n"));
        }
    }
    Ok(runs)
}

fn note(runs: &mut Vec<Run>, row: &RunRow) {
    let open = runs.iter().rposition(|run| *run.command == *row.command && run.to.is_none());
    let at = match open {
        Some(at) if &*row.what != "begin" => at,
        // The range may start within a run.
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

/// The devices that hold the server's files.
pub fn devices(recording: &Recording, range: Range) -> Result<Vec<Device>, Error> {
    let sums = recording.device_sums(range)?;
    Ok(sums.iter().filter(|sum| sum.direct).map(Device::from_row).collect())
}
