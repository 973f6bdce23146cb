// SPDX-License-Identifier: PostgreSQL
//! Makes the document of a report from its material.

use jiff::tz::TimeZone;

use super::findings::findings;
use super::material::Material;
use super::{
    charts, client, cost, facts, histories, latency, load, marks, parts, tables, text_tables,
};
use error::Error;
use view::document::{
    span, Axes, Document, Fact, MeasuredTime, Plain, ReportOrigin, Section, Totals,
};

/// The sections, in the order of the page: id, title, tables. Charts and heat maps name their section themselves.
const SECTIONS: [(&str, &str, &[&str]); 18] = [
    ("statements", "Statements", &["statements"]),
    ("activity", "Active sessions over time", &[]),
    ("client", "The client", &[]),
    ("processors", "Processors", &[]),
    ("ledger", "Ledger", &["ledger", "idle"]),
    ("waits", "Waits", &["waits"]),
    ("locks", "Locks", &["lwlocks", "locks"]),
    ("sessions", "Sessions", &["active_sessions", "blockers", "idle_in_transaction"]),
    ("files", "Files", &["files", "file_processes", "relations", "devices"]),
    ("commits", "Commits", &["commits", "wal"]),
    ("checkpoints", "Checkpoints and slow operations", &["checkpoints", "slow"]),
    ("health", "Health", &view::health::TABLES),
    ("log", "The server's log", &["log_errors", "log_messages"]),
    ("functions", "Functions", &["functions", "edges", "statistics"]),
    ("latency", "Latency", &[]),
    ("throughput", "Throughput", &["commands"]),
    ("text-tables", "Locks, commands and functions as text", &[]),
    ("recording", "The recording", &["gaps", "events", "setting_changes", "settings"]),
];

/// The document, with times in this zone.
pub fn document(material: Material, zone: &TimeZone) -> Result<Document, Error> {
    let interval = &material.whole;
    let mut texts = text_tables::texts(interval);
    let own_texts = texts.len();
    texts.extend(material.runs.iter().enumerate().map(|(at, run)| Plain {
        id: format!("run-{}", at + 1),
        title: run.command.clone(),
        note: Some("output of the command".to_string()),
        text: run.output.clone(),
    }));
    let mut charts = charts::charts(&material);
    charts.extend(client::charts(&material));
    let heatmaps: Vec<_> = latency::heatmap(&material).into_iter().collect();
    let mut sections: Vec<Section> = SECTIONS
        .iter()
        .map(|&(id, title, tables)| Section {
            id,
            title,
            charts: charts.iter().filter(|c| c.section == id).map(|c| c.id).collect(),
            heatmaps: heatmaps.iter().filter(|h| h.section == id).map(|h| h.id).collect(),
            tables: tables.to_vec(),
            ..Section::default()
        })
        .collect();
    for section in &mut sections {
        let own = match section.id {
            "text-tables" => &texts[..own_texts],
            "recording" => &texts[own_texts..],
            _ => &[],
        };
        section.texts = own.iter().map(|text| text.id.clone()).collect();
    }
    let facts: Vec<Fact> = facts::facts(&material, zone);
    // The facts have the rest of the version: where its package came from.
    let server = interval
        .server
        .name
        .split_once(" (")
        .map_or(&*interval.server.name, |(version, _)| version);
    let title = format!(
        "{server} on {}, {}",
        material.measured.host,
        span(material.measured.from, material.measured.to, zone)
    );
    let statements = material.statements.as_ref();
    let histories =
        material.histories.clone().map(|histories| histories::with_plans(histories, statements));
    let mut tables = tables::tables(&material);
    tables.retain(|table| !table.rows.is_empty());
    let parts = parts::parts(&material, &mut tables);
    let (verdict, findings) = findings(&material, zone);
    let mut document = Document {
        made: ReportOrigin {
            time: segment::clock::realtime_ns() as f64 * 1e-9,
            by: format!("pgtally {}", env!("CARGO_PKG_VERSION")),
        },
        measured: MeasuredTime {
            covered_seconds: interval.interval_seconds,
            // The sum of no numbers would be -0.0.
            gap_seconds: material.gaps.iter().fold(0.0, |sum, gap| sum + (gap.to - gap.from)),
            exact: interval.exact,
            sampled: interval.sampling.is_some(),
            cost: cost::cost(&material),
            facts,
            ..material.measured.clone()
        },
        totals: Totals {
            wall_seconds: interval.wall_seconds,
            busy_seconds: interval.busy_seconds,
            cpu_seconds: interval.tells_cpu_apart().then(|| {
                let cpu = interval.activities_where(|account| &*account.activity == "cpu");
                cpu.iter().map(|row| row.timing.seconds).sum()
            }),
            uninstrumented_seconds: interval.uninstrumented_seconds,
            commands: interval.sampling.is_none().then_some(interval.commands_handled),
            commits: interval.sampling.is_none().then_some(interval.commits.count),
            cores: interval.cores,
        },
        load: load::load(&material),
        verdict: Some(verdict),
        findings,
        lead: Some("activity"),
        axes: Axes {
            main: charts::main_axis(&material.points),
            fine: charts::fine_axis(&material.moments),
        },
        charts,
        heatmaps,
        marks: marks::marks(&material),
        tables,
        parts,
        sections,
        texts,
        gaps: material.gaps,
        rankings: material.rankings,
        histories,
        ..Document::new(title)
    };
    document.tidy();
    Ok(document)
}
