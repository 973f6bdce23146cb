// SPDX-License-Identifier: PostgreSQL
//! A report on a made-up recording: its parts agree with each other, and with golden/, the files that tell web/
//! what it will receive.

use jiff::tz::TimeZone;

use view::blocking::{Blocker, Forest, Party};
use view::document::{AxisName, Document, Table};
use view::{html, page, text};

use super::material::{Active, Material, Open, SessionHistory};
use super::sample;

fn document() -> Document {
    sample::document(sample::material())
}

fn sum(table: &Table, key: &str) -> f64 {
    let at = table.columns.iter().position(|column| column.key == key).unwrap();
    let value = |row: &view::document::Row| match &row.cells[at] {
        view::document::Cell::Number(n) => *n,
        view::document::Cell::Whole(n) => *n as f64,
        _ => 0.0,
    };
    table.rows.iter().map(value).sum()
}

fn close(a: f64, b: f64) -> bool {
    (a - b).abs() <= 1e-9 * a.abs().max(b.abs())
}

#[test]
fn the_stack_the_ledger_and_the_totals_are_the_same_time() {
    let document = document();
    let chart = document.chart("activity").unwrap();
    let seconds = &document.axis(chart.axis).seconds;
    let area = |values: &[Option<f64>]| -> f64 {
        values.iter().zip(seconds).filter_map(|(v, s)| Some((*v)? * s)).sum()
    };
    let stack: f64 = chart.series.iter().map(|series| area(&series.values)).sum();
    let ledger = document.table("ledger").unwrap();
    let busy = document.totals.busy_seconds;
    assert!(close(stack, busy), "stack {stack}, busy {busy}");
    assert!(close(sum(ledger, "seconds"), busy));
    assert!((sum(ledger, "share") - 1.0).abs() < 1e-9);
    assert!(close(
        sum(ledger, "per_command_seconds") * document.totals.commands.unwrap() as f64,
        busy
    ));
    let idle = sum(document.table("idle").unwrap(), "seconds");
    assert!(close(busy + idle, document.totals.wall_seconds));
    for series in chart.series.iter().filter(|s| !s.name.ends_with(" others")) {
        let rows = ledger.rows.iter().filter(|row| row.cells[0] == series.name.as_str().into());
        let rows = Table { rows: rows.cloned().collect(), ..ledger.clone() };
        assert!(close(area(&series.values), sum(&rows, "seconds")), "{}", series.name);
    }
}

#[test]
fn an_activity_that_is_high_for_a_moment_has_an_area_and_one_that_is_never_seen_has_none() {
    let mut material = sample::material();
    let measured = material.points.iter_mut().filter(|point| point.seconds > 0.0);
    for (at, point) in measured.enumerate() {
        let blocked = if at == 1 { point.seconds } else { 0.0 };
        let figures = point.figures.as_mut().unwrap();
        figures.activities =
            [("cpu", point.seconds), ("Lock:tuple", blocked), ("IO:WALSync", 0.004)]
                .map(|(name, seconds)| (name.into(), seconds))
                .into();
    }
    let document = sample::document(material);
    let series = &document.chart("activity").unwrap().series;
    let names: Vec<&str> = series.iter().map(|series| &*series.name).collect();
    assert_eq!(names, ["cpu", "Lock:tuple", "1 other"]);
}

/// A recorder reads them less often than the rest.
#[test]
fn statements_are_divided_by_the_time_that_they_are_of() {
    let mut material = sample::material();
    let all = material.whole.interval_seconds;
    let mut rate = |seconds: f64| {
        material.statements.as_mut().unwrap().interval_seconds = Some(seconds);
        let document = sample::document(material.clone());
        sum(document.table("statements").unwrap(), "per_second")
    };
    let (whole, half) = (rate(all), rate(all / 2.0));
    assert!(whole > 0.0 && close(half, 2.0 * whole), "{whole} {half}");
}

#[test]
fn commands_are_the_same_number_over_time_and_in_all() {
    let document = document();
    let chart = document.chart("throughput").unwrap();
    assert_eq!(chart.axis, AxisName::Fine);
    let seconds = &document.axes.fine.seconds;
    let values = chart.series[0].values.iter().zip(seconds);
    let all: f64 = values.filter_map(|(v, s)| Some((*v)? * s)).sum();
    assert_eq!(Some(all.round() as u64), document.totals.commands);
    assert_eq!(sum(document.table("commands").unwrap(), "handle_count"), all.round());
}

#[test]
fn a_gap_is_a_gap_in_every_chart() {
    let document = document();
    let gap = &document.gaps[0];
    for chart in &document.charts {
        let axis = document.axis(chart.axis);
        for series in &chart.series {
            assert_eq!(series.values.len(), axis.time.len(), "{}", chart.id);
            for (time, value) in axis.time.iter().zip(&series.values) {
                let within = gap.from <= *time && *time < gap.to;
                assert_eq!(value.is_none(), within, "{} {} at {time}", chart.id, series.name);
            }
        }
    }
}

#[test]
fn without_gaps_their_time_is_zero_and_not_minus_zero() {
    let mut material = sample::material();
    material.gaps.clear();
    assert!(sample::document(material).measured.gap_seconds.is_sign_positive());
}

#[test]
fn everything_that_is_named_is_there_and_stands_once() {
    let document = document();
    let mut shown: Vec<String> = Vec::new();
    for section in &document.sections {
        section.charts.iter().for_each(|id| assert!(document.chart(id).is_some(), "{id}"));
        section.heatmaps.iter().for_each(|id| assert!(document.heatmap(id).is_some(), "{id}"));
        section.tables.iter().for_each(|id| assert!(document.table(id).is_some(), "{id}"));
        section.texts.iter().for_each(|id| assert!(document.text(id).is_some(), "{id}"));
        shown.extend(section.charts.iter().map(|id| format!("chart {id}")));
        shown.extend(section.tables.iter().map(|id| format!("table {id}")));
        shown.extend(section.texts.iter().map(|id| format!("text {id}")));
    }
    let all = document.charts.len() + document.tables.len() + document.texts.len();
    assert_eq!(shown.len(), all, "{shown:?}");
    for finding in &document.findings {
        assert!(document.sections.iter().any(|s| s.id == finding.section), "{finding:?}");
    }
    for table in &document.tables {
        let columns = table.columns.len();
        assert!(table.rows.iter().all(|row| row.cells.len() == columns), "{}", table.id);
        // Either all rows have a class or details, or none has.
        let same = |n: usize| n == 0 || n == table.rows.len();
        let has_class = |row: &&view::document::Row| row.tone != view::document::Tone::Plain;
        assert!(same(table.rows.iter().filter(has_class).count()), "{}", table.id);
        assert!(
            same(table.rows.iter().filter(|row| row.details.is_some()).count()),
            "{}",
            table.id
        );
        let sort = table.sort.is_none_or(|key| table.columns.iter().any(|c| c.key == key));
        assert!(sort, "{}", table.id);
    }
}

#[test]
fn findings_name_what_stands_out() {
    let findings: Vec<String> =
        document().findings.into_iter().map(|finding| finding.text).collect();
    let text = findings.join("\n");
    for part in [
        "There is a gap of 30 s: the server was down.",
        "Most time went to IO:WALSync in phase commit: 24.",
        "Lock:transactionid changed the most over time: 0.31 sessions on average until",
        "3 slow operations",
        "sync: 0.810 s: base/16384/16397",
        "45.2 % ± 4.2 fewer commands than just before them",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

#[test]
fn a_steady_server_has_changed_nothing() {
    let mut material = sample::material();
    for (at, point) in material.points.iter_mut().enumerate() {
        let Some(figures) = &mut point.figures else { continue };
        figures.activities.retain(|a| &*a.0 == "IO:DataFileRead");
        figures.commands = 4_000 + (at as u64 * 7_919) % 400;
    }
    let document = sample::document(material);
    let changed = |text: &str| text.contains("changed");
    assert!(!document.findings.iter().any(|f| changed(&f.text)), "{:?}", document.findings);
}

#[test]
fn the_text() {
    let style =
        text::Style { width: 132, tables: 132, ascii: false, color: false, zone: TimeZone::UTC };
    let mut out = Vec::new();
    text::write(&document(), &style, &mut out).unwrap();
    insta::assert_snapshot!(String::from_utf8(out).unwrap());
}

#[test]
fn the_text_of_the_sessions() {
    let root = Party {
        pid: 4711,
        application: Some("forgetful".into()),
        user: Some("joe".into()),
        database: Some("shop".into()),
        state: Some("idle in transaction"),
        since_seconds: Some(41.0),
        query: Some("update orders set v = $1".into()),
        waiters: 3,
        ..Party::default()
    };
    let forest = Forest { blocked: 3, roots: vec![root.clone()], deadlocks: Vec::new() };
    let from = sample::material().measured.from;
    let history = SessionHistory {
        sessions: Vec::new(),
        running: Vec::new(),
        active: vec![Active {
            process: "client backend".into(),
            application: "shop".into(),
            user: Some("joe".into()),
            database: Some("shop".into()),
            sessions: 8,
            busy_seconds: 1140.0,
            cpu_seconds: Some(200.0),
            blocked_seconds: 30.0,
            idle_in_transaction_seconds: 41.0,
            times: Vec::new(),
        }],
        blockers: vec![Blocker {
            root,
            forest,
            time: from + 40.0,
            waiters: 3,
            seconds: 12.0,
            waiting_seconds: 30.0,
            waited_seconds: 30.0,
            kept_seconds: 30.0,
            stretches: vec![(from + 30.0, from + 42.0)],
        }],
        open: vec![Open {
            pid: 4711,
            application: "forgetful".into(),
            user: Some("joe".into()),
            database: None,
            seconds: 41.0,
            until: from + 42.0,
            query: None,
        }],
    };
    let material = Material { sessions: Some(history), ..sample::material() };
    let document = sample::document(material);
    let style =
        text::Style { width: 132, tables: 132, ascii: false, color: false, zone: TimeZone::UTC };
    let mut out = Vec::new();
    text::write(&document, &style, &mut out).unwrap();
    let text = String::from_utf8(out).unwrap();
    let begin = text.find("Active sessions\n").unwrap();
    let end = text[begin..].find("Files").unwrap();
    insta::assert_snapshot!(&text[begin..begin + end]);
}

#[test]
fn no_width_is_too_narrow_for_the_text() {
    let document = document();
    for width in [0, 1, 20, 80] {
        let style =
            text::Style { width, tables: width, ascii: true, color: true, zone: TimeZone::UTC };
        let mut out = Vec::new();
        text::write(&document, &style, &mut out).unwrap();
    }
}

/// web/ draws the files in golden/. After an intended change, PGTALLY_GOLDEN=write in the environment writes them
/// anew.
#[test]
fn web_knows_what_it_will_be_given() {
    let document = document();
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/golden");
    let json = serde_json::to_string(&document).unwrap() + "\n";
    for (name, now) in [("report.json", json), ("body.html", html::body(&document).into_string())] {
        let path = folder.join(name);
        if std::env::var("PGTALLY_GOLDEN").as_deref() == Ok("write") {
            std::fs::write(&path, &now).unwrap();
        }
        let golden = std::fs::read_to_string(&path).unwrap();
        assert!(
            golden == now,
            "{} is another: run this test with PGTALLY_GOLDEN=write",
            path.display()
        );
    }
}

#[test]
fn nothing_of_a_statement_becomes_a_tag() {
    let mut material = sample::material();
    let statements = material.statements.as_mut().unwrap();
    let hostile = "select '</script><script>alert(1)</script><!--pgtally:data--><b>'";
    statements.rows[0].query = Some(hostile.into());
    let document = sample::document(material);
    let page = page::page(&document).unwrap();
    assert!(!page.contains("<script>alert"), "a statement became a script");
    assert!(page.contains("&lt;/script&gt;&lt;script&gt;alert(1)"), "it is not shown");
    assert!(page.contains("\\u003c/script>\\u003cscript>alert(1)"), "it is not in the data");
    let start = page.find("application/json").unwrap();
    let start = start + page[start..].find('>').unwrap() + 1;
    let end = start + page[start..].find("</script>").unwrap();
    let read: serde_json::Value = serde_json::from_str(&page[start..end]).unwrap();
    let table = read["tables"].as_array().unwrap().iter();
    let table = table.clone().find(|table| table["id"] == "statements").unwrap();
    assert_eq!(table["rows"][0][0], hostile);
    assert_eq!(table["details"][0]["text"], hostile);
}

#[test]
fn the_page_allows_nothing_but_its_own_script_and_style() {
    let page = page::page(&sample::document(sample::material())).unwrap();
    assert!(page.contains("http-equiv=\"Content-Security-Policy\""));
    assert!(page.contains("default-src 'none'"));
    assert!(!page.contains(" style=\"") && !page.contains(" onclick="));
}
