// SPDX-License-Identifier: PostgreSQL
//! The document of a fleet: what an engine has answered about the recordings of many hosts.
//!
//! Each question has the last answer, which stays if the engine fails later.

use fleet_sql::{Chart as OfHosts, Course, Only, CHARTS, OTHERS, QUERIES};
use jiff::tz::TimeZone;
use segment::WaitClass;
use view::document::{
    span, time, Axes, Axis, AxisName, Cell, Chart, ChartKind, Column, Document, Fact, Finding,
    Link, Made, Measured, Section, Series, Table, Tone, Unit, Weight,
};
use view::units::duration;

/// The sections in the order of the page: id, title, charts, tables.
const SECTIONS: [(&str, &str, &[&str], &[&str]); 11] = [
    ("hosts", "Hosts", &[], &["hosts"]),
    ("load", "Load", &["sessions"], &["load"]),
    ("waits", "Waits", &[], &["waits"]),
    ("capacity", "Machines", &["cpu"], &["capacity"]),
    ("statements", "Statements", &[], &["statements"]),
    ("regressions", "Statements that got slower or faster", &[], &["regressions"]),
    ("p99", "Slowest executions", &[], &["p99"]),
    ("outliers", "Hosts that differ", &[], &["outliers"]),
    ("blocking", "Blocking", &[], &["blocking"]),
    ("checkpoints", "Checkpoints", &[], &["checkpoints"]),
    ("questions", "The engine's answers", &[], &["questions"]),
];

/// Max. number of rows of a table; `tally fleet ask` has as many.
pub const ROWS: u32 = 50;
/// Max. number of hosts with a series of their own in a chart.
pub const SERIES: u32 = 12;

/// An answer of the engine.
#[derive(Debug, Clone)]
pub struct FleetQueryResult<T> {
    /// What it says.
    pub value: T,
    /// The time that was asked about, seconds since 1970.
    pub window: (f64, f64),
    /// How long the engine took, seconds.
    pub seconds: f64,
}

/// Why there is no newer answer.
#[derive(Debug, Clone)]
pub struct Failure {
    /// When it failed, seconds since 1970.
    pub time: f64,
    /// What the engine reported.
    pub text: String,
}

/// A question and what is known of it.
#[derive(Debug, Clone)]
pub struct Question<T> {
    /// The name of its query or chart.
    pub name: &'static str,
    /// The last answer.
    pub answer: Option<FleetQueryResult<T>>,
    /// Why the last try gave none.
    pub failure: Option<Failure>,
}

impl<T> Question<T> {
    /// A question that was not asked yet.
    pub fn new(name: &'static str) -> Question<T> {
        Question { name, answer: None, failure: None }
    }

    /// Takes an answer, or why there is none.
    pub fn take(&mut self, result: Result<FleetQueryResult<T>, Failure>) {
        match result {
            Ok(answer) => (self.answer, self.failure) = (Some(answer), None),
            Err(failure) => self.failure = Some(failure),
        }
    }
}

/// Whether a query is asked about this part: a single host has nothing to be compared with.
pub fn is_asked(query: &str, only: &Only) -> bool {
    query != "outliers" || only.host.is_none()
}

/// What is known of a fleet, or of a part.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// Which part.
    pub only: Only,
    /// The engine, and where recordings lie if it reads files.
    pub engine: String,
    /// How often it is asked, seconds.
    pub interval: f64,
    /// Questions with a table.
    pub tables: Vec<Question<Table>>,
    /// Questions about the hosts over time.
    pub courses: Vec<Question<Course>>,
}

impl Fleet {
    /// Nothing was asked yet.
    pub fn new(only: Only, engine: String, interval: f64) -> Fleet {
        let tables = QUERIES.iter().filter(|it| is_asked(it.name, &only));
        Fleet {
            tables: tables.map(|it| Question::new(it.name)).collect(),
            courses: CHARTS.iter().map(|it| Question::new(it.name)).collect(),
            only,
            engine,
            interval,
        }
    }

    fn table(&self, name: &str) -> Option<&FleetQueryResult<Table>> {
        self.tables.iter().find(|table| table.name == name)?.answer.as_ref()
    }

    /// Of each question: name, window of the last answer, what it took, rows or series, failure.
    fn known(&self) -> Vec<QueryStatus<'_>> {
        let table =
            self.tables.iter().map(|it| QueryStatus::from_question(it, |table| table.rows.len()));
        let course = self
            .courses
            .iter()
            .map(|it| QueryStatus::from_question(it, |course| course.series.len()));
        table.chain(course).collect()
    }
}

/// What is known of a question, whatever its answer is.
struct QueryStatus<'q> {
    name: &'static str,
    answer: Option<((f64, f64), f64, usize)>,
    failure: Option<&'q Failure>,
}

impl<'q> QueryStatus<'q> {
    fn from_question<T>(it: &'q Question<T>, rows: impl Fn(&T) -> usize) -> QueryStatus<'q> {
        let answer = it.answer.as_ref();
        QueryStatus {
            name: it.name,
            answer: answer.map(|it| (it.window, it.seconds, rows(&it.value))),
            failure: it.failure.as_ref(),
        }
    }
}

/// The document; `None` if there is no answer yet. Times in sentences are in this zone.
pub fn document(fleet: &Fleet, zone: &TimeZone) -> Option<Document> {
    let known = fleet.known();
    let windows = known.iter().filter_map(|it| it.answer.map(|(window, ..)| window));
    let (from, to) = windows.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let answered = fleet.tables.iter().filter_map(|table| table.answer.as_ref());
    let mut tables: Vec<Table> = answered.map(table).collect();
    tables.push(questions(&known));
    let charts: Vec<(Chart, Axis)> = CHARTS
        .iter()
        .zip(&fleet.courses)
        .filter_map(|(chart, course)| Some(drawn(chart, &course.answer.as_ref()?.value)))
        .collect();
    let axis = |name| charts.iter().find(|(chart, _)| chart.axis == name).map(|it| it.1.clone());
    let axes = Axes {
        main: axis(AxisName::Main).unwrap_or_default(),
        fine: axis(AxisName::Fine).unwrap_or_default(),
    };
    let there = |wanted: &[&'static str], has: &dyn Fn(&str) -> bool| -> Vec<&'static str> {
        wanted.iter().copied().filter(|id| has(id)).collect()
    };
    let section = |&(id, title, own, below): &(_, _, &[_], &[_])| Section {
        id,
        title,
        charts: there(own, &|id| charts.iter().any(|(chart, _)| chart.id == id)),
        tables: there(below, &|id| tables.iter().any(|table| table.id == id)),
        ..Section::default()
    };
    let mut sections: Vec<Section> = SECTIONS.iter().map(section).collect();
    sections.retain(|it| !(it.charts.is_empty() && it.tables.is_empty()));
    let title = format!("{}, {}", subject(&fleet.only), span(from, to, zone));
    Some(Document {
        made: Made {
            time: segment::clock::realtime_ns() as f64 * 1e-9,
            by: format!("pgtally {}", env!("CARGO_PKG_VERSION")),
        },
        elsewhere: elsewhere(fleet),
        measured: Measured {
            recording: fleet.engine.clone(),
            host: fleet.only.host.clone().unwrap_or_default(),
            from,
            to,
            interval_seconds: fleet.interval,
            exact: true,
            facts: facts(fleet, (from, to), zone),
            ..Measured::default()
        },
        findings: findings(fleet, &known, zone),
        axes,
        charts: charts.into_iter().map(|(chart, _)| chart).collect(),
        tables,
        sections,
        ..Document::new(title)
    })
}

/// "Host db-1 of cluster shop", as a title begins.
pub fn subject(only: &Only) -> String {
    match (&only.host, &only.cluster) {
        (Some(host), Some(cluster)) => format!("Host {host} of cluster {cluster}"),
        (Some(host), None) => format!("Host {host}"),
        (None, Some(cluster)) => format!("Cluster {cluster}"),
        (None, None) => "All hosts".to_string(),
    }
}

/// The values of a column, each once.
fn values(table: &Table, key: &str) -> Vec<String> {
    let Some(at) = table.columns.iter().position(|column| column.key == key) else {
        return Vec::new();
    };
    let cells = table.rows.iter().filter_map(|row| row.cells.get(at));
    let mut values: Vec<String> = cells.map(Cell::exact).collect();
    values.sort();
    values.dedup();
    values
}

/// All hosts, and the clusters if there are several.
fn elsewhere(fleet: &Fleet) -> Vec<Link> {
    let mut links = Vec::new();
    if fleet.only.host.is_some() || fleet.only.cluster.is_some() {
        links.push(Link { title: "All hosts".into(), url: ".".into() });
    }
    let clusters = fleet.table("hosts").map(|it| values(&it.value, "cluster")).unwrap_or_default();
    if clusters.len() > 1 || fleet.only.host.is_some() {
        links.extend(clusters.iter().map(|name| Link {
            title: format!("Cluster {name}"),
            url: format!("?cluster={}", view::table::encoded(name)),
        }));
    }
    links
}

fn facts(fleet: &Fleet, (from, to): (f64, f64), zone: &TimeZone) -> Vec<Fact> {
    let mut facts = Vec::new();
    if let Some(hosts) = fleet.table("hosts") {
        let clusters = values(&hosts.value, "cluster");
        let of = if clusters.len() == 1 { "cluster" } else { "clusters" };
        let n = hosts.value.rows.len();
        let text = format!("{n} in {} {of}: {}", clusters.len(), clusters.join(", "));
        facts.push(Fact { name: "Hosts", text: if n == 0 { "none".into() } else { text } });
    }
    let before = span(from - (to - from), from, zone);
    facts.push(Fact { name: "Time", text: span(from, to, zone) });
    facts.push(Fact {
        name: "Compared with",
        text: format!("{before} (statements that got slower)"),
    });
    facts.push(Fact { name: "Engine", text: fleet.engine.clone() });
    let often = duration(fleet.interval);
    facts.push(Fact {
        name: "Live",
        text: format!("each {often}, while somebody has this page open"),
    });
    facts
}

/// What the engine could not answer, then what its answers are about.
fn findings(fleet: &Fleet, known: &[QueryStatus<'_>], zone: &TimeZone) -> Vec<Finding> {
    let section = |name: &str| {
        let has = |it: &&(&'static str, _, &[&str], &[&str])| {
            it.2.contains(&name) || it.3.contains(&name)
        };
        SECTIONS.iter().find(has).map_or("questions", |it| it.0)
    };
    let mut findings = Vec::new();
    for (it, failure) in known.iter().filter_map(|it| Some((it, it.failure?))) {
        let kept = match it.answer {
            Some(((_, to), ..)) => format!("The page has the answer of {}.", time(to, zone)),
            None => "There is no earlier answer.".to_string(),
        };
        findings.push(Finding {
            section: section(it.name),
            weight: Weight::Warning,
            text: format!(
                "{} was not answered at {}: {}",
                it.name,
                time(failure.time, zone),
                failure.text
            ),
            details: vec![kept],
        });
    }
    let note = |section, text| Finding { section, weight: Weight::Note, text, details: Vec::new() };
    let answered = known.iter().filter(|it| it.answer.is_some()).count();
    findings.push(note(
        "questions",
        match known.len() - answered {
            0 => format!("All {answered} questions have answers."),
            _ => format!("{answered} of {} questions have answers.", known.len()),
        },
    ));
    let count = |name| fleet.table(name).map_or(0, |it| it.value.rows.len());
    let mut found = |name, one: &str, more: &str| match count(name) {
        0 => {}
        1 => findings.push(note(section(name), format!("1 {one}."))),
        n if n < ROWS as usize => findings.push(note(section(name), format!("{n} {more}."))),
        n => findings.push(note(section(name), format!("{n} or more {more}."))),
    };
    found("regressions", "statement got slower or faster", "statements got slower or faster");
    found(
        "outliers",
        "figure of a host differs",
        "figures of hosts differ from those of their clusters",
    );
    found("blocking", "session made others wait for a lock", "sessions made others wait for locks");
    findings
}

/// How long each question took, and of when its answer is.
fn questions(known: &[QueryStatus<'_>]) -> Table {
    let columns = vec![
        Column::new("question", "QUESTION", Unit::Id),
        Column::new("answered", "ANSWER OF", Unit::Time),
        Column::new("seconds", "TOOK", Unit::Seconds),
        Column::new("rows", "ROWS", Unit::Count).help("Rows of a table, series of a chart"),
        Column::new("failed", "FAILED", Unit::Time),
        Column::new("failure", "WHY", Unit::Text),
    ];
    let mut table =
        Table::new("questions", "How long each question took, and of when its answer is", columns);
    for it in known {
        let answer = it.answer;
        table.push(
            Tone::Plain,
            vec![
                it.name.into(),
                answer.map(|((_, to), ..)| to).into(),
                answer.map(|(_, seconds, _)| seconds).into(),
                answer.map(|(.., rows)| rows as u64).into(),
                it.failure.map(|it| it.time).into(),
                it.failure.map(|it| it.text.clone()).into(),
            ],
        );
    }
    table
}

/// The table of an answer, whose hosts link to their pages.
fn table(answer: &FleetQueryResult<Table>) -> Table {
    let mut table = answer.value.clone();
    let title = table.title.split_at(table.title.chars().next().map_or(0, char::len_utf8));
    table.title = format!("{}{}", title.0.to_uppercase(), title.1).into();
    // The others have a row for each host or statement.
    if matches!(table.id, "regressions" | "outliers" | "blocking" | "checkpoints") {
        table.note = Some("Without a row: none in this time.".to_string());
    }
    let has_cluster = table.columns.iter().any(|column| column.key == "cluster");
    for column in &mut table.columns {
        column.link = match column.key {
            "cluster" => Some("?cluster={cluster}"),
            "host" if has_cluster => Some("?cluster={cluster}&host={host}"),
            "top_host" => Some("?host={top_host}"),
            "worst_host" => Some("?host={worst_host}"),
            _ => None,
        };
    }
    table
}

/// A chart of hosts. The answers may be of different times, so each has an axis of its own.
fn drawn(of: &'static OfHosts, course: &Course) -> (Chart, Axis) {
    let (kind, axis, unit, note) = match of.is_share {
        false => (
            ChartKind::Stack,
            AxisName::Main,
            Unit::Sessions,
            "Average number of busy sessions of each host. \"others\" is the sum of all other hosts.",
        ),
        true => (
            ChartKind::Lines,
            AxisName::Fine,
            Unit::Share,
            "Share of the machine's CPUs that was busy. \"others\" is that of all other machines together.",
        ),
    };
    let series = course.series.iter().map(|(name, values)| Series {
        name: name.clone(),
        class: (name == OTHERS).then_some(WaitClass::Other.name()),
        shade: 0,
        side: None,
        values: values.clone(),
    });
    let section = SECTIONS.iter().find(|it| it.2.contains(&of.name)).map_or("", |it| it.0);
    let chart = Chart {
        id: of.name,
        section,
        title: of.title,
        note: Some(note.to_string()),
        kind,
        axis,
        unit,
        reference: None,
        series: series.collect(),
    };
    (chart, Axis { time: course.time.clone(), seconds: course.seconds.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer<T>(value: T, to: f64) -> FleetQueryResult<T> {
        FleetQueryResult { value, window: (to - 60.0, to), seconds: 1.5 }
    }

    fn hosts() -> Table {
        let columns = vec![
            Column::new("cluster", "CLUSTER", Unit::Id),
            Column::new("host", "HOST", Unit::Id),
        ];
        let mut table = Table::new("hosts", "who is there", columns);
        table.push(Tone::Plain, vec!["a".into(), "one".into()]);
        table.push(Tone::Plain, vec!["b".into(), "two".into()]);
        table
    }

    #[test]
    fn a_failure_keeps_the_last_answer_and_is_a_finding() {
        let mut fleet = Fleet::new(Only::default(), "duckdb".into(), 60.0);
        assert!(document(&fleet, &TimeZone::UTC).is_none());
        fleet.tables[0].take(Ok(answer(hosts(), 100.0)));
        fleet.tables[0].take(Err(Failure { time: 160.0, text: "out of memory".into() }));
        let document = document(&fleet, &TimeZone::UTC).unwrap();
        assert!(document.findings[0].text.contains("hosts was not answered"));
        assert!(document.findings[0].text.ends_with("out of memory"));
        assert!(document.findings[0].details[0].contains("00:01:40"), "{:?}", document.findings);
        assert_eq!(document.table("hosts").unwrap().rows.len(), 2);
        let answered = format!("1 of {}", QUERIES.len() + CHARTS.len());
        assert!(document.findings[1].text.starts_with(&answered));
        let questions = document.table("questions").unwrap();
        assert_eq!(questions.rows[0].cells[1..4], [100.0.into(), 1.5.into(), Cell::from(2)]);
        let sections: Vec<&str> = document.sections.iter().map(|section| section.id).collect();
        assert_eq!(sections, ["hosts", "questions"]);
        assert_eq!(document.elsewhere.len(), 2);
        assert_eq!(document.measured.facts[0].text, "2 in 2 clusters: a, b");
        assert_eq!(document.table("hosts").unwrap().title, "Who is there");
        let host = &document.table("hosts").unwrap().columns[1];
        assert_eq!(host.link, Some("?cluster={cluster}&host={host}"));
    }

    #[test]
    fn a_host_is_compared_with_nobody_and_leads_back() {
        let only = Only { host: Some("one".into()), cluster: None };
        let mut fleet = Fleet::new(only, "duckdb".into(), 60.0);
        assert!(fleet.tables.iter().all(|table| table.name != "outliers"));
        let series = vec![("a one".to_string(), vec![Some(1.0)]), (OTHERS.into(), vec![None])];
        let course = Course { time: vec![40.0], seconds: vec![60.0], series };
        fleet.courses[1].take(Ok(answer(course, 100.0)));
        let document = document(&fleet, &TimeZone::UTC).unwrap();
        assert!(document.title.starts_with("Host one, "), "{}", document.title);
        assert_eq!(document.elsewhere[0].url, ".");
        let chart = document.chart("cpu").unwrap();
        assert_eq!((chart.axis, chart.section), (AxisName::Fine, "capacity"));
        assert_eq!(chart.series[1].class, Some("other"));
        assert_eq!(document.axes.fine.time, [40.0]);
    }
}
