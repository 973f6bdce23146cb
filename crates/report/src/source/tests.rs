// SPDX-License-Identifier: PostgreSQL
//! A recording is written from the sample's frames and read back: the report on it must equal the report on the
//! frames themselves.

use std::path::Path;
use std::time::Duration;

use recording::{
    About, Batch, EventRow, GapRow, MarkRow, PlanRow, PlanTextRow, RecordedStatementRow,
    RetentionPolicy, RowBuilder, RunRow, ServerRow, SessionHistoryRow, SettingRow,
    StatementAccountRow, TextRow, Writer,
};
use segment::Histogram;

use super::{read, RecordingSelection};
use crate::range::Edge;
use crate::sample::{self, FROM};
use view::document::{Axis, Cell, Derivation, Document, OverTime, Parts, RankingRow, TableParts};

const US: f64 = 1e6;

fn us(second: f64) -> i64 {
    ((FROM + second) * US) as i64
}

/// Everything besides the frames.
fn annotations() -> Batch {
    let gap = GapRow {
        time_us: us(390.0),
        from_us: us(360.0),
        reason: "the server has ended".into(),
        ..GapRow::default()
    };
    let mark = |kind: &str, second| MarkRow {
        time_us: us(second),
        kind: kind.into(),
        text: format!("{kind} in words").into(),
        ..MarkRow::default()
    };
    let run = |what: &str, second, text: &str, exit_code| RunRow {
        time_us: us(second),
        command: "pgbench -T 600".into(),
        what: what.into(),
        text: text.into(),
        exit_code,
        ..RunRow::default()
    };
    let setting = |group: &str, name: &str, value: &str, second| SettingRow {
        time_us: us(second),
        group: group.into(),
        name: name.into(),
        value: value.into(),
        ..SettingRow::default()
    };
    Batch {
        gaps: vec![gap],
        marks: vec![mark("begin", 0.5), mark("server start", 390.0)],
        runs: vec![
            run("begin", 1.0, "", None),
            run("stdout", 599.0, "tps = 571", None),
            run("end", 599.5, "", Some(3)),
        ],
        settings: vec![
            setting("server", "shared_buffers", "256MB", 0.5),
            setting("machine", "processors", "2", 0.5),
        ],
        servers: vec![ServerRow {
            server: 1,
            time_us: us(0.5),
            name: "PostgreSQL 15.20".into(),
            clock: "tsc".into(),
            ..ServerRow::default()
        }],
        events: vec![EventRow {
            time_us: us(100.0),
            number: 1,
            pid: 7,
            kind: "slow".into(),
            text: "sync: 7.020 s: pg_xact/000C".into(),
            ..EventRow::default()
        }],
        ..Batch::default()
    }
}

fn record(directory: &Path, host: &str) {
    record_with(directory, host, |_, _| Batch::default());
}

/// The statements of ten seconds, and the sessions of each second, of an interval with this number.
fn statements_and_sessions(at: usize, frame: u64) -> Batch {
    let time_us = us(at as f64 + 1.0);
    let statement = |queryid, total_ns| StatementAccountRow {
        frame,
        time_us,
        queryid,
        database_id: 5,
        user_id: 10,
        toplevel: true,
        account: "execute::cpu".into(),
        count: 1,
        total_ns,
        ..StatementAccountRow::default()
    };
    let session = |pid, busy_ns| SessionHistoryRow {
        frame,
        time_us,
        interval_ns: 1_000_000_000,
        pid,
        process: "client backend".into(),
        application: "shop".into(),
        state: "active".into(),
        activity: "cpu".into(),
        busy_ns,
        ..SessionHistoryRow::default()
    };
    let late = if at >= 500 { 900_000_000 } else { 0 };
    let accounts = vec![statement(1, 1_000_000 * (at as i64 + 1)), statement(2, late)];
    Batch {
        statement_accounts: if at % 10 == 9 { accounts } else { Vec::new() },
        session_history: vec![session(11, 500_000_000), session(12, 1_000_000 * (at as u64 % 90))],
        ..Batch::default()
    }
}

fn record_with(directory: &Path, host: &str, more: impl Fn(usize, u64) -> Batch) {
    let forever = Duration::from_secs(1 << 40);
    let policy =
        RetentionPolicy { details: forever, tens: forever, sixties: forever, retention: None };
    let about = About {
        host: host.to_string(),
        server: "PostgreSQL 15.20".to_string(),
        interval_ns: 1_000_000_000,
        detail_ns: 10_000_000_000,
        begun_us: us(0.0),
        ..About::default()
    };
    let mut writer = Writer::open(directory, about, policy).unwrap();
    let mut row_builder = RowBuilder::new();
    let mut other = Some(annotations());
    for (at, frame) in sample::frames() {
        let Some(frame) = frame else { continue };
        let number = writer.next_frame();
        let mut batch = row_builder.frame(&frame, number, 1);
        if at % 10 == 9 {
            batch.histograms = row_builder.histograms(number);
        }
        batch.append(more(at, number));
        if let Some(other) = other.take() {
            batch.append(other);
        }
        writer.push(batch).unwrap();
    }
    writer.close().unwrap();
}

fn report(directory: &Path, from: Option<&str>, to: Option<&str>) -> Result<Document, String> {
    let edge = |text: Option<&str>| text.map(|text| Edge::parse(text).unwrap());
    let wanted = RecordingSelection {
        directory,
        name: None,
        host: None,
        from: edge(from),
        to: edge(to),
        client: None,
    };
    let material = read(&wanted, &|_| ()).map_err(|error| error.to_string())?;
    Ok(sample::document(material))
}

#[test]
fn a_recording_says_what_its_frames_say() {
    let place = tempfile::tempdir().unwrap();
    record(place.path(), "db1");
    let read = report(place.path(), None, None).unwrap();
    let own = sample::document(sample::material());
    assert_eq!(read.totals, own.totals);
    for id in ["ledger", "idle", "waits", "commands", "lwlocks", "locks", "files", "commits"] {
        let (read, own) = (read.table(id).unwrap(), own.table(id).unwrap());
        assert_eq!(read.rows.len(), own.rows.len(), "{id}");
        for (read, own) in read.rows.iter().zip(&own.rows) {
            for (a, b) in read.cells.iter().zip(&own.cells) {
                let same = match (a, b) {
                    // The clock has 1e9 ticks a second: nothing is rounded.
                    (Cell::Number(a), Cell::Number(b)) => (a - b).abs() <= 1e-9 * b.abs(),
                    (a, b) => a == b,
                };
                assert!(same, "{id}: {read:?} for {own:?}");
            }
        }
    }
    assert_eq!(read.axes.main.seconds.iter().sum::<f64>(), 570.0);
    for chart in ["activity", "throughput", "read_handle", "commits", "bytes"] {
        let (read, own) = (read.chart(chart).unwrap(), own.chart(chart).unwrap());
        for (a, b) in read.series.iter().zip(&own.series) {
            assert_eq!(a.name, b.name);
            let known =
                |values: &[Option<f64>]| -> Vec<f64> { values.iter().flatten().copied().collect() };
            let (x, y) = (known(&a.values), known(&b.values));
            assert_eq!(x.len(), y.len(), "{chart} {}", a.name);
            assert!(x.iter().zip(&y).all(|(x, y)| (x - y).abs() <= 1e-9 * y.abs()), "{}", a.name);
        }
    }
    let gaps = read.chart("activity").unwrap().series[0].values.iter().filter(|v| v.is_none());
    assert_eq!(gaps.count(), 1, "one point for the gap");
    let map = read.heatmap("latency").unwrap();
    let counted: u64 = map.columns.iter().flatten().flat_map(|c| c.iter().skip(1)).sum();
    assert_eq!(Some(counted), read.totals.commands);
    assert_eq!(map.columns.iter().filter(|c| c.is_none()).count(), 3, "the gap of 30 s");
}

#[test]
fn marks_gaps_settings_and_runs_are_read() {
    let place = tempfile::tempdir().unwrap();
    record(place.path(), "db1");
    let read = report(place.path(), None, None).unwrap();
    assert_eq!(read.measured.gap_seconds, 30.0);
    assert_eq!(read.gaps[0].reason, "the server has ended");
    let kinds: Vec<&str> = read.marks.iter().map(|mark| &*mark.kind).collect();
    assert_eq!(kinds, ["slow", "server start"]);
    let fact = |name: &str| {
        let fact = read.measured.facts.iter().find(|fact| fact.name == name);
        fact.map_or("", |fact| &*fact.text).to_string()
    };
    assert_eq!(fact("Machine"), "processors 2");
    assert_eq!(fact("Level"), "locks for 9.50 min");
    assert_eq!(fact("Command"), "pgbench -T 600 (exit status 3)");
    assert_eq!(read.text("run-1").unwrap().text, "tps = 571\n");
    let settings = &read.table("settings").unwrap().rows;
    assert!(settings
        .iter()
        .any(|row| row.cells[1] == "shared_buffers".into() && row.cells[2] == "256MB".into()));
    assert!(read.findings.iter().any(|f| f.text.contains("pg_xact/000C")));
}

#[test]
fn changed_settings_are_listed_and_marked() {
    let place = tempfile::tempdir().unwrap();
    // Read at the beginning, again after a restart, and after two changes.
    record_with(place.path(), "db1", |at, frame| {
        let row = |name: &str, value: &str| SettingRow {
            frame,
            time_us: us(at as f64 + 1.0),
            group: "server".into(),
            name: name.into(),
            value: value.into(),
            unit: "kB".into(),
            source: "sql: configuration file".into(),
        };
        let settings = match at {
            0 | 100 => vec![row("work_mem", "4096"), row("temp_buffers", "8")],
            419 => vec![row("work_mem", "65536"), row("temp_buffers", "16")],
            // From the file, in other units: no change.
            500 => vec![SettingRow { source: "postgresql.conf".into(), ..row("work_mem", "64MB") }],
            _ => Vec::new(),
        };
        Batch { settings, ..Batch::default() }
    });
    let read = report(place.path(), None, None).unwrap();
    let rows = &read.table("setting_changes").unwrap().rows;
    let texts: Vec<String> = rows
        .iter()
        .map(|row| row.cells[1..].iter().map(Cell::exact).collect::<Vec<_>>().join(" | "))
        .collect();
    let expected = ["temp_buffers | 8kB | 16kB", "work_mem | 4MB | 64MB"];
    assert_eq!(texts, expected);
    let mark = read.marks.iter().find(|mark| mark.kind == "setting").unwrap();
    assert_eq!(mark.time, FROM + 420.0);
    let text = "temp_buffers = 16kB (was 8kB), work_mem = 64MB (was 4MB)";
    assert_eq!(mark.text, text);
    let settings = &read.table("settings").unwrap().rows;
    let of = |name: &str| settings.iter().find(|row| row.cells[1] == name.into()).unwrap();
    assert_eq!(of("temp_buffers").cells[3], Cell::Number(FROM + 420.0));
    assert_eq!(of("shared_buffers").cells[3], Cell::Empty);
    // A range that begins later has no change.
    let later = report(place.path(), Some("-100"), None).unwrap();
    assert!(later.table("setting_changes").is_none());
}

#[test]
fn a_range_of_the_recording_can_be_read_alone() {
    let place = tempfile::tempdir().unwrap();
    record(place.path(), "db1");
    let all = report(place.path(), None, None).unwrap();
    let last = report(place.path(), Some("-100"), None).unwrap();
    assert_eq!(last.measured.intervals, 100);
    let first = report(place.path(), None, Some("-100")).unwrap();
    let commands = |document: &Document| document.totals.commands.unwrap();
    assert_eq!(commands(&first) + commands(&last), commands(&all));
    let busy = first.totals.busy_seconds + last.totals.busy_seconds;
    assert!((busy - all.totals.busy_seconds).abs() < 1e-6);
    assert!(last.gaps.is_empty() && first.gaps.len() == 1);
}

/// The seconds of a row in the points whose middle is in a part of the time, as the page adds them up.
fn within(axis: &Axis, values: impl Iterator<Item = f64>, (from, to): (f64, f64), end: f64) -> f64 {
    let next = axis.time.iter().skip(1).copied().chain([end]);
    let middle = axis.time.iter().zip(next).map(|(begin, end)| (begin + end) / 2.0);
    middle.zip(values).filter(|(at, _)| from <= *at && *at < to).map(|(_, value)| value).sum()
}

#[test]
fn the_lists_of_a_part_have_the_figures_of_a_report_of_that_part() {
    let place = tempfile::tempdir().unwrap();
    record_with(place.path(), "db1", statements_and_sessions);
    let all = report(place.path(), None, None).unwrap();
    // It contains the gap.
    let (from, to) = (FROM + 300.0, FROM + 520.0);
    let part = report(place.path(), Some("-300"), Some("-80")).unwrap();
    assert_eq!((part.measured.from, part.measured.to), (from, to));
    let end = all.measured.to;
    let cell = |row: &view::document::Row, at: usize| match &row.cells[at] {
        Cell::Number(value) => *value,
        _ => 0.0,
    };
    let sum = |table: &str, key: &str, wanted: &dyn Fn(&view::document::Row) -> bool| -> f64 {
        let table = part.table(table).unwrap();
        let at = table.columns.iter().position(|column| column.key == key).unwrap();
        table.rows.iter().filter(|row| wanted(row)).map(|row| cell(row, at)).sum()
    };
    let close = |a: f64, b: f64| assert!(a > 0.0 && (a - b).abs() < 1e-6 * b, "{a} {b}");
    let chart = all.chart("activity").unwrap();
    for series in chart.series.iter().filter(|series| series.name.contains(':')) {
        let values = series.values.iter().zip(&all.axes.main.seconds);
        let values = values.map(|(value, seconds)| value.unwrap_or(0.0) * seconds);
        let is_it = |row: &view::document::Row| row.cells[0] == series.name.as_str().into();
        close(within(&all.axes.main, values, (from, to), end), sum("waits", "seconds", &is_it));
    }
    let ranking = |id: &str| all.rankings.iter().find(|ranking| ranking.id == id).unwrap();
    let total = |id: &str| {
        let ranking = ranking(id);
        let of =
            |row: &RankingRow| within(&ranking.axis, row.seconds.iter().copied(), (from, to), end);
        ranking.rows.iter().map(of).sum::<f64>()
    };
    close(total("statements"), sum("statements", "seconds", &|_| true));
    close(total("sessions"), sum("active_sessions", "busy_seconds", &|_| true));
    assert_eq!(ranking("sessions").rows[0].name, "shop (11)");
}

/// The cell of a column of a row in a part of the time, as the page computes it; `None`: it is unknown.
fn cell_within(
    parts: &Parts,
    table: &TableParts,
    (row, column): (usize, usize),
    part: (f64, f64),
    end: f64,
) -> Option<f64> {
    let axis = table.axis.as_ref().unwrap_or(&parts.axis);
    let add = |values: &[f64]| within(axis, values.iter().copied(), part, end);
    let sum = |name: &str| -> f64 {
        if let Some(at) = table.sums.iter().position(|sum| *sum == name) {
            return add(&table.rows[row][at].0);
        }
        let total = table.totals.get(name).or_else(|| parts.totals.get(name));
        total.map_or_else(|| add(&axis.seconds), |total| add(&total.0))
    };
    match table.columns[column] {
        Derivation::Sum(of) => Some(sum(of)),
        Derivation::Quotient(of, by) => Some(sum(of) / sum(by)).filter(|value| value.is_finite()),
        Derivation::Same | Derivation::Unknown => None,
    }
}

#[test]
fn the_tables_of_a_part_have_the_figures_of_a_report_of_that_part() {
    let place = tempfile::tempdir().unwrap();
    record_with(place.path(), "db1", |at, frame| {
        let mut batch = statements_and_sessions(at, frame);
        batch.append(statement_with_plans(at, frame));
        batch
    });
    let all = report(place.path(), None, None).unwrap();
    let span = (FROM + 300.0, FROM + 520.0);
    let part = report(place.path(), Some("-300"), Some("-80")).unwrap();
    let parts = all.parts.as_ref().unwrap();
    let mut compared = std::collections::BTreeMap::<&str, usize>::new();
    for (id, of) in &parts.tables {
        let (whole, expected) = (all.table(id).unwrap(), part.table(id).unwrap());
        let names = |row: &view::document::Row| -> Vec<Cell> {
            row.cells.iter().filter(|cell| matches!(cell, Cell::Text(_))).cloned().collect()
        };
        assert_eq!(of.rows.len(), whole.rows.len(), "{id}");
        for wanted in &expected.rows {
            let row = whole.rows.iter().position(|row| names(row) == names(wanted));
            let row = row.unwrap_or_else(|| panic!("{id}: {wanted:?}"));
            for (column, cell) in wanted.cells.iter().enumerate() {
                let key = whole.columns[column].key;
                let Some(value) = cell_within(parts, of, (row, column), span, all.measured.to)
                else {
                    continue;
                };
                let expected = match cell {
                    Cell::Whole(n) => *n as f64,
                    Cell::Number(n) => *n,
                    other => panic!("{id}.{key}: {value} for {other:?}"),
                };
                let differs = (value - expected).abs() > 1e-6 * expected.abs().max(1e-9);
                assert!(!differs, "{id}.{key}: {value} instead of {expected}");
                *compared.entry(*id).or_default() += 1;
            }
        }
    }
    let tables: Vec<&str> = compared.keys().copied().collect();
    let expected = [
        "active_sessions",
        "commands",
        "commits",
        "files",
        "functions",
        "idle",
        "ledger",
        "locks",
        "lwlocks",
        "statements",
        "waits",
    ];
    assert_eq!(tables, expected, "{compared:?}");
    // No table is left without a word.
    for table in &all.tables {
        let is_split = parts.tables.contains_key(table.id);
        assert_ne!(is_split, table.over_time != OverTime::Sums, "{}", table.id);
    }
}

/// Ten calls of a statement in ten seconds; they take four times as long with the plan of the second half.
fn statement_with_plans(at: usize, frame: u64) -> Batch {
    if at % 10 != 9 {
        return Batch::default();
    }
    let time_us = us(at as f64 + 1.0);
    let (planid, each_ns) = if at < 300 { (1, 1_000_000) } else { (2, 4_000_000) };
    let mut histogram = Histogram::new();
    histogram.add(each_ns, 10);
    let (buckets, counts) = histogram.buckets().map(|(bucket, n)| (bucket as u64, n)).unzip();
    let statement = RecordedStatementRow {
        frame,
        time_us,
        interval_ns: 10_000_000_000,
        queryid: 1,
        database_id: 5,
        user_id: 10,
        toplevel: true,
        calls: 10,
        exec_ns: 10 * each_ns,
        buckets,
        counts,
        ..RecordedStatementRow::default()
    };
    let account = |account: &str, total_ns| StatementAccountRow {
        frame,
        time_us,
        queryid: 1,
        database_id: 5,
        user_id: 10,
        toplevel: true,
        account: account.into(),
        count: 10,
        total_ns,
        ..StatementAccountRow::default()
    };
    let plan = PlanRow {
        frame,
        time_us,
        queryid: 1,
        database_id: 5,
        user_id: 10,
        toplevel: true,
        planid,
        noted: 2,
        exec_ns: 2 * each_ns,
        last_us: time_us,
        ..PlanRow::default()
    };
    let text = PlanTextRow {
        frame,
        time_us,
        queryid: 1,
        database_id: 5,
        user_id: 10,
        toplevel: true,
        planid,
        text: if at < 300 { "Index Scan on t using i" } else { "Seq Scan on t [filter]" }.into(),
        first_us: time_us,
        ..PlanTextRow::default()
    };
    let query = TextRow {
        frame,
        time_us,
        queryid: 1,
        database_id: 5,
        user_id: 10,
        toplevel: true,
        text: "SELECT v FROM t WHERE w = $1".into(),
        ..TextRow::default()
    };
    let first = at == 9 || at == 309;
    Batch {
        statements: vec![statement],
        statement_accounts: vec![
            account("execute::cpu", 10 * each_ns as i64),
            account("commit::wait::IO:WALSync", 5_000_000),
        ],
        statement_texts: if at == 9 { vec![query] } else { Vec::new() },
        plans: vec![plan],
        plan_texts: if first { vec![text] } else { Vec::new() },
        ..Batch::default()
    }
}

#[test]
fn a_statement_has_its_history_and_a_new_plan_is_marked() {
    let place = tempfile::tempdir().unwrap();
    record_with(place.path(), "db1", statement_with_plans);
    let read = report(place.path(), None, None).unwrap();
    let histories = read.histories.as_ref().unwrap();
    let [history] = &histories.statements[..] else { panic!("{histories:?}") };
    let table = read.table("statements").unwrap();
    let key = table.rows[0].details.as_ref().unwrap().statement.clone();
    assert_eq!((&*history.statement, key.as_deref()), ("1.5.10", Some("1.5.10")));
    assert_eq!(histories.axis.time.len(), 57);
    assert_eq!(history.calls, [10; 57]);
    let close = |a: f64, b: f64| assert!((a - b).abs() < 1e-9, "{a} {b}");
    close(history.exec_seconds.iter().sum(), (300.0 + 270.0 * 4.0) * 1e-3);
    let of = |class: &str| {
        let found = history.classes.iter().find(|one| one.class == class);
        found.map_or(0.0, |one| one.seconds.iter().sum::<f64>())
    };
    close(of("cpu"), (300.0 + 270.0 * 4.0) * 1e-3);
    close(of("io"), 57.0 * 5e-3);
    assert_eq!(history.classes.len(), 2);
    for (at, expected) in [(0, 1e-3), (56, 4e-3)] {
        let p99 = history.p99_seconds[at].unwrap();
        assert!((p99 / expected - 1.0).abs() <= 0.0625, "{p99} {expected}");
    }
    let plans: Vec<(&str, u64)> =
        history.plans.iter().map(|plan| (&*plan.plan, plan.noted.iter().sum())).collect();
    assert_eq!(plans, [("1", 60), ("2", 54)]);
    let mark = read.marks.iter().find(|mark| mark.kind == "plan").unwrap();
    close(mark.time, FROM + 310.0);
    assert_eq!(
        mark.text,
        "new plan of SELECT v FROM t WHERE w = $1: Seq Scan on t [filter], before Index Scan on t using i"
    );
    // Before the change, there is nothing to mark.
    let before = report(place.path(), None, Some("-300")).unwrap();
    assert!(before.marks.iter().all(|mark| mark.kind != "plan"), "{:?}", before.marks);
}

#[test]
fn errors_name_the_remedy() {
    let place = tempfile::tempdir().unwrap();
    let error = report(place.path(), None, None).unwrap_err();
    assert!(error.contains("not a recording") && error.contains("tally record"), "{error}");
    record(place.path(), "db1");
    let error = report(place.path(), Some("-10"), Some("-20")).unwrap_err();
    assert!(error.contains("--since"), "{error}");
    let error = report(place.path(), Some("2001-01-01"), Some("2001-01-02")).unwrap_err();
    assert!(error.contains("nothing was recorded"), "{error}");
}
