// SPDX-License-Identifier: PostgreSQL
//! Reads a recording into the material of a report.
//!
//! Figures over time also go through [`segment::Interval`], so that no figure is computed in two ways: intervals with one
//! statistic each show what it contributes to a point, and the points are added up from the recording's grid. The recording
//! is read in passes that hold only sums, so a day takes no more memory than its columns.

mod annotations;
mod client;
mod columns;
mod contributions;
pub mod course;
pub mod health;
mod latency;
mod sessions;
mod statements;
#[cfg(test)]
mod tests;
mod time;
mod words;

use std::path::Path;

use recording::{Detail, FrameRow, Range, Recording};
use segment::Interval;

use super::material::{Material, RelationTimes, SessionHistory};
use super::range::Edge;
use crate::rankings::SessionTimes;
use crate::sums::StatementParts;
use columns::{Columns, StatisticsOfRange};
use contributions::Purpose;
use error::Error;
use time::{begin, seconds};
use view::document::{Histories, MeasuredTime, Ranking};
use view::io::RelationNames;
use view::statements::{PlanRow, SlowExecutionFigures, StatementsTable};

/// What to read.
#[derive(Debug, Clone)]
pub struct RecordingSelection<'w> {
    /// Directory of the recording.
    pub directory: &'w Path,
    /// The name to show, if it differs from the directory.
    pub name: Option<&'w str>,
    /// With a recording of several machines: the machine.
    pub host: Option<&'w str>,
    /// Start of the time range.
    pub from: Option<Edge>,
    /// End of the time range.
    pub to: Option<Edge>,
    /// Directory of the recording of a Java client of this server.
    pub client: Option<&'w Path>,
}

/// Reads a recording; `say` is called with the current step.
pub fn read(
    wanted: &RecordingSelection<'_>,
    say: &dyn Fn(&'static str),
) -> Result<Material, Error> {
    say("reading the recording");
    let recording = Recording::open(wanted.directory, wanted.host)?;
    let range = range(wanted, &recording)?;
    let heads = recording.frame_rows(range)?;
    let main = Columns::fitting(&heads, range, columns::MAIN);
    // Nearly all of the time is spent on decompressing and decoding different tables, so they are read in
    // parallel.
    let details = || details(&recording, range, &heads, &main);
    let (whole, points, latency, details) = std::thread::scope(|scope| -> Result<_, Error> {
        let details = scope.spawn(details);
        say("computing sums and time series");
        let StatisticsOfRange { sum, latency, points } =
            columns::statistics(&recording, range, (&main, Purpose::ChartsAndTables), &heads)?;
        say("reading statements and sessions");
        let details = details.join().unwrap_or_else(|e| std::panic::resume_unwind(e))?;
        Ok((Interval::with_others(&sum), points, latency, details))
    })?;
    let Details { statements, statement_parts, histories, mut rankings, relations, sessions } =
        details;
    let (sessions, times) = sessions.unzip();
    let axis = crate::charts::main_axis(&points);
    rankings
        .extend(times.map(|times| times.ranking(axis)).filter(|ranking| !ranking.rows.is_empty()));
    let client = wanted.client.map(|directory| client::client(directory, range)).transpose()?;
    let moments = columns::moments(&heads, range, &main, &points);
    let about = recording.about();
    let rows = recording.settings(range)?;
    let setting_changes = annotations::setting_changes(&recording, range)?;
    let settings = annotations::settings(&rows, &setting_changes);
    let shortest = heads.iter().map(|head| head.interval_ns).min();
    let detail = latency.iter().map(|latency| latency.seconds).fold(f64::INFINITY, f64::min);
    Ok(Material {
        blocking: None,
        blocker: None,
        client,
        vacuum: health::health(&recording, range)?,
        measured: MeasuredTime {
            recording: wanted
                .name
                .map_or_else(|| wanted.directory.display().to_string(), str::to_string),
            host: recording.host().to_string(),
            from: seconds(range.from_us),
            to: seconds(range.to_us),
            interval_seconds: about.interval_ns.max(shortest.unwrap_or(0)) as f64 * 1e-9,
            detail_seconds: detail.is_finite().then_some(detail),
            intervals: heads.len() as u64,
            facts: words::facts(&heads, &rows),
            ..MeasuredTime::default()
        },
        statements,
        sessions,
        histories,
        rankings,
        statement_parts,
        points,
        moments,
        latency,
        events: annotations::events(&recording, range)?,
        log: recording.log(range)?,
        marks: annotations::marks(&recording, range)?,
        gaps: annotations::gaps(&recording, range)?,
        cost: None,
        settings,
        setting_changes,
        runs: annotations::runs(&recording, range)?,
        relations,
        devices: annotations::devices(&recording, range)?,
        problems: recording.problems(),
        whole,
    })
}

/// What is read separately from the statistics.
struct Details {
    statements: Option<StatementsTable>,
    relations: RelationTimes,
    sessions: Option<(SessionHistory, SessionTimes)>,
    rankings: Vec<Ranking>,
    statement_parts: Option<StatementParts>,
    histories: Option<Histories>,
}

fn details(
    recording: &Recording,
    range: Range,
    heads: &[FrameRow],
    columns: &Columns,
) -> Result<Details, Error> {
    let sessions = sessions::sessions(recording, range, heads, columns)?;
    let mut all = Details {
        statements: None,
        relations: RelationTimes::default(),
        sessions,
        rankings: Vec::new(),
        statement_parts: None,
        histories: None,
    };
    let details = recording.details(range)?;
    let Some(range) = Detail::range(&details) else { return Ok(all) };
    let seconds = Detail::seconds(&details);
    if let Some(found) = statements::read(recording, range, &details)? {
        let mut statements = found.table;
        statements.interval_seconds = Some(seconds);
        statements.plans = PlanRow::recorded(recording.plans(range)?);
        statements.slow_executions =
            SlowExecutionFigures::recorded(recording.slow_executions(range)?);
        if let Some((history, _)) = &mut all.sessions {
            statements.current = std::mem::take(&mut history.running);
        }
        all.statements = Some(statements);
        all.rankings.push(found.ranking);
        all.statement_parts = Some(found.parts);
        all.histories = Some(found.histories);
    }
    let relations = recording.relations(range)?.unwrap_or_default();
    all.relations =
        RelationTimes { rows: relations.rows, names: RelationNames(relations.names), seconds };
    Ok(all)
}

fn range(wanted: &RecordingSelection<'_>, recording: &Recording) -> Result<Range, Error> {
    let all = recording.range();
    let end = seconds(all.to_us);
    let edge = |edge: Option<Edge>| edge.map(|edge| (edge.resolve(end) * 1e6).round() as i64);
    Ok(recording.clip(edge(wanted.from), edge(wanted.to))?)
}
