// SPDX-License-Identifier: PostgreSQL
//! The page of one statement: its text, its figures, and its time by duration and by activity.

use segment::statements::WaitClass;

use super::histogram::drawing;
use super::slow_executions;
use super::{ActivityRow, SecondsSource, StatementFigures, StatementsTable};
use crate::measured::Measured;
use crate::rows::{left, right, texts};
use crate::table::{PaneSection, Row, Table, Tone};
use crate::timing::UNKNOWN;
use crate::units::{bytes, count, duration, percent, whole};

/// The page of a statement: for the interval, since the last reset, or both. Sections that appear once cover the
/// interval, except execution times, because an interval has too few of them.
pub fn page(
    statements: &StatementsTable,
    interval: Option<&StatementFigures>,
    whole: Option<&StatementFigures>,
) -> Vec<PaneSection> {
    let Some(known) = interval.or(whole) else { return Vec::new() };
    let in_interval = statements.interval_seconds.map_or_else(
        || "since the last reset".to_string(),
        |seconds| format!("in {}", duration(seconds)),
    );
    let since = "since the last reset".to_string();
    let mut sections = vec![text(known)];
    let spans: Vec<(&str, &StatementFigures)> = match (interval, whole) {
        (Some(now), Some(whole)) => vec![(&in_interval, now), (&since, whole)],
        (Some(only), None) => vec![(&in_interval, only)],
        (None, _) => vec![(&since, known)],
    };
    sections.push(PaneSection {
        title: "Figures".to_string(),
        lines: seen(statements.time, whole.unwrap_or(known)),
        table: Some(figures(&spans, &WORK)),
    });
    if spans.iter().any(|(_, row)| row.execution.count > 0) {
        sections.push(PaneSection {
            title: "Per execution".to_string(),
            lines: Vec::new(),
            table: Some(figures(&spans, &TIMES)),
        });
    }
    let times = whole.unwrap_or(known);
    let when = if whole.is_some() { &since } else { &in_interval };
    if !times.histogram.is_empty() {
        sections.push(PaneSection {
            title: format!("Execution times {when}"),
            lines: Vec::new(),
            table: Some(drawing(&times.histogram, times.seconds_per_tick)),
        });
    }
    let when = if interval.is_some() { &in_interval } else { &since };
    if known.seconds > 0.0 {
        sections.push(PaneSection {
            title: format!("Where its time went {when}"),
            lines: vec![classes(known)],
            table: Some(activities(known)),
        });
    }
    sections.extend(slow_executions::section(
        statements.slow_executions_of(&known.key),
        statements.time,
    ));
    sections.extend(statements.plans_of(&known.key).map(|plan| plan.section(statements.time)));
    let blocks = blocks(known);
    if !blocks.rows.is_empty() {
        sections.push(PaneSection {
            title: format!("Blocks of 8 kB {when}"),
            lines: Vec::new(),
            table: Some(blocks),
        });
    }
    let more = more(known);
    if !more.is_empty() {
        sections.push(PaneSection {
            title: format!("Other figures {when}"),
            lines: more,
            table: None,
        });
    }
    if let Some(example) = known.example() {
        sections.push(PaneSection {
            title: "Its plan, in psql".to_string(),
            lines: example.lines(),
            table: None,
        });
    }
    sections
}

fn text(row: &StatementFigures) -> PaneSection {
    let id = row.queryid.map_or_else(|| "not identified".to_string(), |id| id.to_string());
    let application = row.application.name();
    let application = application.map_or(String::new(), |name| format!(", application {name}"));
    let level = if row.toplevel { "" } else { ", nested in another statement" };
    let mut lines: Vec<String> = row.text().lines().map(|l| l.replace('\t', "    ")).collect();
    if row.query_cut {
        lines.push(format!(
            "... truncated: the whole text has {} bytes (pg_tally.max_statement_text)",
            whole(u64::from(row.query_bytes))
        ));
    }
    if row.queryid.is_none() {
        lines.push(
            "Work that cannot be assigned to a statement: syntax errors, messages without a statement, and \
             everything while compute_query_id is off."
                .to_string(),
        );
    }
    PaneSection {
        title: format!(
            "Statement {id}, database {}, user {}{application}{level}",
            row.database, row.user
        ),
        lines,
        table: None,
    }
}

/// A column of figures: title, priority for dropping it, and its value for a row, which is empty if there is
/// none.
type Figure = (&'static str, u8, fn(&StatementFigures) -> String);

const WORK: [Figure; 12] = [
    ("TIME", 0, time),
    ("%TIME", 0, |row| format!("{}{}", sign(row.seconds_source), percent(row.share))),
    ("CALLS", 0, |row| row.known_calls().map(whole).unwrap_or_default()),
    ("RUNNING", 7, |row| some(row.running)),
    ("ROWS", 5, |row| row.known_calls().map(|_| whole(row.rows)).unwrap_or_default()),
    ("ROWS/CALL", 6, |row| row.rows_per_call().map(count).unwrap_or_default()),
    ("ERRORS", 1, |row| some(row.errors)),
    ("CANCELLED", 1, |row| some(row.cancels)),
    ("PLANNED", 4, |row| some(row.planning.count)),
    ("PLAN MEAN", 3, |row| maybe(row.planning.mean_seconds)),
    ("WORKERS", 2, |row| some(row.workers)),
    ("WORKER TIME", 2, |row| maybe((row.workers > 0).then_some(row.worker_seconds))),
];

const TIMES: [Figure; 9] = [
    ("MEAN", 0, |row| maybe(row.execution.mean_seconds)),
    ("STDDEV", 6, |row| maybe(row.execution.stddev_seconds)),
    ("MIN", 5, |row| maybe(row.execution.min_seconds)),
    ("P50", 1, |row| maybe(row.quantiles.p50_seconds)),
    ("P90", 8, |row| maybe(row.quantiles.p90_seconds)),
    ("P95", 4, |row| maybe(row.quantiles.p95_seconds)),
    ("P99", 2, |row| maybe(row.quantiles.p99_seconds)),
    ("P99.9", 7, |row| maybe(row.quantiles.p999_seconds)),
    ("MAX", 3, |row| maybe(row.execution.max_seconds)),
];

fn time(row: &StatementFigures) -> String {
    estimate(row.seconds, row.half_width_seconds)
}

/// A time; of samples, with its half-width.
fn estimate(seconds: f64, half_width: Option<f64>) -> String {
    match half_width {
        Some(half) => format!("~{}", Measured::new(seconds, half).duration()),
        None => duration(seconds),
    }
}

/// The sign of an estimate: before each part of a time that samples have divided.
fn sign(source: Option<SecondsSource>) -> &'static str {
    source.map_or("", |_| "~")
}

fn maybe(seconds: Option<f64>) -> String {
    seconds.map(duration).unwrap_or_default()
}

fn some(n: u64) -> String {
    if n > 0 {
        whole(n)
    } else {
        String::new()
    }
}

/// One row for each time span. Columns without values are left out.
fn figures(spans: &[(&str, &StatementFigures)], all: &[Figure]) -> Table {
    let any = |figure: &&Figure| spans.iter().any(|(_, row)| !figure.2(row).is_empty());
    let shown: Vec<&Figure> = all.iter().filter(any).collect();
    let mut columns = vec![left("", 0)];
    columns.extend(shown.iter().map(|(head, expendable, _)| right(head, *expendable)));
    let line = |(span, row): &(&str, &StatementFigures)| {
        let mut cells = vec![span.to_string()];
        cells.extend(shown.iter().map(|(.., figure)| match figure(row) {
            cell if cell.is_empty() => "-".to_string(),
            cell => cell,
        }));
        plain(cells)
    };
    Table::from_rows(columns, spans.iter().map(line).collect())
}

fn seen(now: f64, row: &StatementFigures) -> Vec<String> {
    let ago = |then: f64| format!("{} ago", duration((now - then).max(0.0)));
    match (row.first_seen, row.last_seen) {
        // A sampler knows only when it first saw it.
        (Some(first), Some(last)) if row.seconds_source.is_none() => {
            vec![format!("first seen {}, last seen {}", ago(first), ago(last))]
        }
        _ => Vec::new(),
    }
}

fn plain(cells: Vec<String>) -> Row {
    Row::new(cells.first().cloned().unwrap_or_default(), texts(cells))
}

/// "cpu 61.2 %, io 30.1 %".
fn classes(row: &StatementFigures) -> String {
    let mut parts: Vec<_> = WaitClass::ALL
        .iter()
        .map(|class| (class.name(), row.split.class(*class)))
        .filter(|(_, seconds)| *seconds > 0.0)
        .collect();
    parts.sort_by(|a, b| b.1.total_cmp(&a.1));
    let sign = sign(row.seconds_source);
    let part = |(name, s): &(&str, f64)| format!("{name} {sign}{} %", percent(s / row.seconds));
    parts.iter().map(part).collect::<Vec<_>>().join(", ")
}

/// A figure, unless samples cannot tell it apart.
fn told(activity: &ActivityRow, figure: String) -> String {
    match activity.is_unknown() {
        true => UNKNOWN.to_string(),
        false => figure,
    }
}

fn activities(row: &StatementFigures) -> Table {
    let sign = sign(row.seconds_source);
    let most = row.activities.first().map_or(0.0, |a| a.seconds).max(f64::MIN_POSITIVE);
    let rows = row
        .activities
        .iter()
        .map(|a| Row {
            bar: (!a.is_unknown()).then_some(a.seconds / most),
            tone: Tone::from_class(a.class),
            ..plain(vec![
                a.phase.to_string(),
                a.activity.to_string(),
                told(a, format!("{sign}{}", percent(a.seconds / row.seconds))),
                told(a, estimate(a.seconds, row.part_half_width(a.seconds))),
                match row.calls {
                    0 => "-".to_string(),
                    calls => told(a, format!("{sign}{}", duration(a.seconds / calls as f64))),
                },
                match row.seconds_source {
                    None => count(a.count as f64),
                    // Samples do not count them.
                    Some(_) => "-".to_string(),
                },
            ])
        })
        .collect();
    Table {
        columns: vec![
            left("PHASE", 0),
            left("ACTIVITY", 0),
            right("%TIME", 0),
            right("TIME", 0),
            right("A CALL", 1),
            right("COUNT", 2),
        ],
        rows,
        bars_after: Some(2),
        ..Table::default()
    }
}

fn blocks(row: &StatementFigures) -> Table {
    let b = &row.blocks;
    let share = |hit: u64, read: u64| match hit.saturating_add(read) {
        0 => "-".to_string(),
        all => percent(hit as f64 / all as f64),
    };
    let io = &row.io;
    let time = |seconds: f64| if seconds > 0.0 { duration(seconds) } else { "-".to_string() };
    let mut rows = Vec::new();
    for (name, [hit, read, dirtied, written]) in [
        ("shared", [b.shared_hit, b.shared_read, b.shared_dirtied, b.shared_written]),
        ("local", [b.local_hit, b.local_read, b.local_dirtied, b.local_written]),
    ] {
        if hit | read | dirtied | written == 0 {
            continue;
        }
        rows.push(plain(vec![
            name.to_string(),
            whole(hit),
            share(hit, read),
            whole(read),
            whole(dirtied),
            whole(written),
        ]));
    }
    if b.temp_read | b.temp_written != 0 {
        let dash = || "-".to_string();
        let name = "temporary".to_string();
        rows.push(plain(vec![
            name,
            dash(),
            dash(),
            whole(b.temp_read),
            dash(),
            whole(b.temp_written),
        ]));
    }
    // Here, PostgreSQL does not distinguish shared from local blocks.
    for (name, read, write) in [
        ("time, shared and local", io.read_seconds, io.write_seconds),
        ("time, temporary", io.temp_read_seconds, io.temp_write_seconds),
    ] {
        if read > 0.0 || write > 0.0 {
            let dash = || "-".to_string();
            rows.push(plain(vec![
                name.to_string(),
                dash(),
                dash(),
                time(read),
                dash(),
                time(write),
            ]));
        }
    }
    Table {
        columns: vec![
            left("BLOCKS", 0),
            right("HIT", 0),
            right("%HIT", 0),
            right("READ", 0),
            right("DIRTIED", 0),
            right("WRITTEN", 0),
        ],
        rows,
        ..Table::default()
    }
}

/// Figures that most statements do not have.
fn more(row: &StatementFigures) -> Vec<String> {
    let mut lines = Vec::new();
    let wal = &row.wal;
    if wal.records > 0 {
        lines.push(format!(
            "write-ahead log: {} records, {} full-page images, {}",
            whole(wal.records),
            whole(wal.fpi),
            bytes(wal.bytes as f64)
        ));
    }
    if let (Some(user), Some(system)) = (row.user_seconds, row.system_seconds) {
        lines.push(format!("CPU time: {} user, {} system", duration(user), duration(system)));
    }
    if row.wal_buffers_full > 0 {
        lines.push(format!("found the WAL buffers full {} times", whole(row.wal_buffers_full)));
    }
    if row.workers_planned > 0 {
        lines.push(format!(
            "parallel workers: {} planned, {} launched",
            whole(row.workers_planned),
            whole(row.workers_launched)
        ));
    }
    if row.generic_plans + row.custom_plans > 0 {
        lines.push(format!(
            "executions of cached plans: {} generic, {} custom",
            whole(row.generic_plans),
            whole(row.custom_plans)
        ));
    }
    if !row.failed.is_empty() {
        let classes = row.failed.iter().map(|(class, count)| format!("{class}: {}", whole(*count)));
        lines.push(format!("errors by SQLSTATE class: {}", classes.collect::<Vec<_>>().join(", ")));
    }
    if row.temp_files > 0 {
        lines.push(format!(
            "temporary files: {}, {}",
            whole(row.temp_files),
            bytes(row.temp_bytes as f64)
        ));
    }
    let jit = &row.jit;
    if jit.functions > 0 {
        lines.push(format!(
            "machine code (JIT): {} functions generated in {}; inlined {} times in {}, optimized \
             {} times in {}, emitted {} times in {}",
            whole(jit.functions),
            duration(jit.generation_seconds),
            whole(jit.inlinings),
            duration(jit.inlining_seconds),
            whole(jit.optimizations),
            duration(jit.optimization_seconds),
            whole(jit.emissions),
            duration(jit.emission_seconds)
        ));
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn drawn(sections: &[PaneSection]) -> String {
        let mut text = String::new();
        for section in sections {
            text.push_str(&format!("== {}\n", section.title));
            section.lines.iter().for_each(|line| text.push_str(&format!("{line}\n")));
            text.extend(section.table.iter().map(|table| table.drawn(100, false)));
        }
        text
    }

    #[test]
    fn the_page_of_a_statement() {
        let statements = sample::statements();
        let row = &statements.rows[0];
        let mut whole = row.clone();
        (whole.calls, whole.counters.rows, whole.seconds) = (120_000, 119_998, 34.5);
        insta::assert_snapshot!(drawn(&page(&statements, Some(row), Some(&whole))));
    }

    #[test]
    fn absent_figures_are_not_shown() {
        let statements = sample::statements();
        let of = |at: usize| drawn(&page(&statements, Some(&statements.rows[at]), None));
        let nested = of(2);
        assert!(nested.contains("nested in another"), "{nested}");
        for word in ["Blocks", "write-ahead", "JIT", "ERRORS", "since", "temporary"] {
            assert!(!nested.contains(word), "{word}: {nested}");
        }
        let unknown = of(3);
        assert!(unknown.contains("compute_query_id") && !unknown.contains("Execution times"));
        assert!(page(&statements, None, None).is_empty());
        let mut row = statements.rows[1].clone();
        (row.query_cut, row.query_bytes) = (true, 123_456);
        row.counters.jit.functions = 7;
        row.counters.blocks.temp_written = 512;
        let cut = drawn(&page(&statements, None, Some(&row)));
        for word in ["123,456 bytes", "7 functions", "since the last reset", "temporary"] {
            assert!(cut.contains(word), "{word}: {cut}");
        }
        assert!(!cut.contains("in 1 s"), "{cut}");
        assert!(
            blocks(&row).rows.iter().any(|row| row.key == "temporary"),
            "written and none read"
        );
    }
}
