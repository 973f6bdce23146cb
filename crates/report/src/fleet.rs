// SPDX-License-Identifier: PostgreSQL
//! The document of a fleet: an engine's query results about the recordings of many hosts.
//!
//! Each query has its last result, which stays if a later run fails.

use fleet_sql::{Chart as OfHosts, Course, HostFilter, CHARTS, OTHERS, QUERIES};
use jiff::tz::TimeZone;
use segment::WaitClass;
use view::document::{
    span, time, Axes, Axis, AxisName, Cell, Chart, ChartKind, Column, Document, Fact, Finding,
    Link, MeasuredTime, OverTime, ReportOrigin, Section, Series, Table, Tone, Unit, Verdict,
    Weight,
};
use view::measured::times;
use view::units::{duration, others};

/// The sections in the order of the page: id, title, charts, tables.
const SECTIONS: [(&str, &str, &[&str], &[&str]); 13] = [
    ("doctor", "What is wrong on each host", &[], &[DOCTOR]),
    ("hosts", "Hosts", &[], &["hosts"]),
    ("load", "Load", &["sessions"], &["load"]),
    ("waits", "Waits", &[], &["waits"]),
    ("capacity", "Machines", &["cpu"], &["capacity"]),
    ("statements", "Statements", &[], &["statements"]),
    ("regressions", "Statements that got slower or faster", &[], &["regressions"]),
    ("p99", "Slowest executions", &[], &["p99"]),
    ("outliers", "Hosts that differ from their cluster", &[], &["outliers"]),
    ("blocking", "Blocking", &[], &["blocking"]),
    ("checkpoints", "Checkpoints", &[], &["checkpoints"]),
    ("health", "Health", &[], &["health"]),
    ("questions", "Queries", &[], &["questions"]),
];

/// Instead of a query: diagnoses of the hosts from their recordings, the worst problems first.
pub const DOCTOR: &str = "doctor";
/// Maximum number of rows of a table; the same as in `tally fleet ask`.
pub const ROWS: u32 = 50;
/// What a page shows of the results for a part of the time.
const ALL_OF_IT: OverTime = OverTime::Whole("the queries are about all of it");
/// Maximum number of hosts with a series of their own in a chart.
pub const SERIES: u32 = 12;

/// A result from the engine.
#[derive(Debug, Clone)]
pub struct FleetQueryResult<T> {
    /// The table or the series.
    pub value: T,
    /// The time range of the query, seconds since 1970.
    pub window: (f64, f64),
    /// How long the query took, seconds.
    pub seconds: f64,
}

/// Why there is no newer result.
#[derive(Debug, Clone)]
pub struct Failure {
    /// When it failed, seconds since 1970.
    pub time: f64,
    /// What the engine reported.
    pub text: String,
}

/// A query and its last result.
#[derive(Debug, Clone)]
pub struct Question<T> {
    /// The name of its query or chart.
    pub name: &'static str,
    /// The last result.
    pub answer: Option<FleetQueryResult<T>>,
    /// Why the last run failed, if it did.
    pub failure: Option<Failure>,
}

impl<T> Question<T> {
    /// A query that has not been run yet.
    pub fn new(name: &'static str) -> Question<T> {
        Question { name, answer: None, failure: None }
    }

    /// Stores a result or an error.
    pub fn take(&mut self, result: Result<FleetQueryResult<T>, Failure>) {
        match result {
            Ok(answer) => (self.answer, self.failure) = (Some(answer), None),
            Err(failure) => self.failure = Some(failure),
        }
    }
}

/// Whether a query is run for this selection: a single host has nothing to be compared with.
pub fn is_asked(query: &str, only: &HostFilter) -> bool {
    query != "outliers" || only.host.is_none()
}

/// The known results about a fleet, or about a part of it.
#[derive(Debug, Clone)]
pub struct Fleet {
    /// The selected cluster and host.
    pub only: HostFilter,
    /// The engine and, if it reads files, the location of the recordings.
    pub engine: String,
    /// How often the queries are run, seconds.
    pub interval: f64,
    /// Queries whose result is a table.
    pub tables: Vec<Question<Table>>,
    /// Queries about the hosts over time.
    pub courses: Vec<Question<Course>>,
}

impl Fleet {
    /// A fleet without results.
    pub fn new(only: HostFilter, engine: String, interval: f64) -> Fleet {
        let tables = QUERIES.iter().filter(|query| is_asked(query.name, &only));
        Fleet {
            tables: tables.map(|query| Question::new(query.name)).collect(),
            courses: CHARTS.iter().map(|chart| Question::new(chart.name)).collect(),
            only,
            engine,
            interval,
        }
    }

    /// Hosts are also diagnosed from their recordings.
    pub fn with_doctor(mut self) -> Fleet {
        self.tables.push(Question::new(DOCTOR));
        self
    }

    /// Whether hosts are diagnosed from their recordings.
    fn has_doctor(&self) -> bool {
        self.tables.iter().any(|table| table.name == DOCTOR)
    }

    fn table(&self, name: &str) -> Option<&FleetQueryResult<Table>> {
        self.tables.iter().find(|table| table.name == name)?.answer.as_ref()
    }

    /// For each query: name, window of the last result, run time, rows or series, failure.
    fn known(&self) -> Vec<QueryStatus<'_>> {
        let table = self
            .tables
            .iter()
            .map(|question| QueryStatus::from_question(question, |table| table.rows.len()));
        let course = self
            .courses
            .iter()
            .map(|question| QueryStatus::from_question(question, |course| course.series.len()));
        table.chain(course).collect()
    }
}

/// The status of a query, whatever the type of its result is.
struct QueryStatus<'q> {
    name: &'static str,
    answer: Option<((f64, f64), f64, usize)>,
    failure: Option<&'q Failure>,
}

impl<'q> QueryStatus<'q> {
    fn from_question<T>(question: &'q Question<T>, rows: impl Fn(&T) -> usize) -> QueryStatus<'q> {
        let answer = question.answer.as_ref();
        QueryStatus {
            name: question.name,
            answer: answer.map(|result| (result.window, result.seconds, rows(&result.value))),
            failure: question.failure.as_ref(),
        }
    }
}

/// The document, with times in this zone; `None` if there is no result yet.
pub fn document(fleet: &Fleet, zone: &TimeZone) -> Option<Document> {
    let known = fleet.known();
    let windows = known.iter().filter_map(|status| status.answer.map(|(window, ..)| window));
    let (from, to) = windows.max_by(|a, b| a.1.total_cmp(&b.1))?;
    let answered = fleet.tables.iter().filter_map(|table| table.answer.as_ref());
    let mut tables: Vec<Table> = answered.map(table).collect();
    tables.push(questions(&known));
    tables.iter_mut().for_each(|table| table.over_time = ALL_OF_IT);
    let charts: Vec<(Chart, Axis)> = CHARTS
        .iter()
        .zip(&fleet.courses)
        .filter_map(|(chart, course)| Some(drawn(chart, &course.answer.as_ref()?.value)))
        .collect();
    let axis =
        |name| charts.iter().find(|(chart, _)| chart.axis == name).map(|drawn| drawn.1.clone());
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
    sections.retain(|section| !(section.charts.is_empty() && section.tables.is_empty()));
    let title = format!("{}, {}", subject(&fleet.only), span(from, to, zone));
    Some(Document {
        made: ReportOrigin {
            time: segment::clock::realtime_ns() as f64 * 1e-9,
            by: format!("pgtally {}", env!("CARGO_PKG_VERSION")),
        },
        elsewhere: elsewhere(fleet),
        measured: MeasuredTime {
            recording: fleet.engine.clone(),
            host: fleet.only.host.clone().unwrap_or_default(),
            from,
            to,
            interval_seconds: fleet.interval,
            exact: true,
            facts: facts(fleet, (from, to), zone),
            ..MeasuredTime::default()
        },
        verdict: Some(verdict(fleet, &known)),
        findings: findings(fleet, &known, zone),
        lead: Some("load"),
        axes,
        charts: charts.into_iter().map(|(chart, _)| chart).collect(),
        tables,
        sections,
        ..Document::new(title)
    })
}

/// "Host db-1 of cluster shop", for the start of a title.
pub fn subject(only: &HostFilter) -> String {
    match (&only.host, &only.cluster) {
        (Some(host), Some(cluster)) => format!("Host {host} of cluster {cluster}"),
        (Some(host), None) => format!("Host {host}"),
        (None, Some(cluster)) => format!("Cluster {cluster}"),
        (None, None) => "All hosts".to_string(),
    }
}

/// The distinct values of a column.
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

/// Links to all hosts and, if there are several, to the clusters.
fn elsewhere(fleet: &Fleet) -> Vec<Link> {
    let mut links = Vec::new();
    if fleet.only.host.is_some() || fleet.only.cluster.is_some() {
        links.push(Link { title: "All hosts".into(), url: ".".into() });
    }
    let clusters =
        fleet.table("hosts").map(|hosts| values(&hosts.value, "cluster")).unwrap_or_default();
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
        text: format!("{before} (statements that got slower or faster)"),
    });
    facts.push(Fact { name: "Engine", text: fleet.engine.clone() });
    let often = duration(fleet.interval);
    facts.push(Fact {
        name: "Live",
        text: format!("each {often}, while somebody has this page open"),
    });
    facts
}

/// What the page starts with: a query that failed, and which host has a problem. Diagnoses come first; without one, blocking harms the
/// most, then a host that differs from its cluster, then a statement that got slower.
fn verdict(fleet: &Fleet, known: &[QueryStatus<'_>]) -> Verdict {
    let first = |name: &str| {
        let table = &fleet.table(name)?.value;
        Some(NamedCells { table, row: table.rows.first()? })
    };
    let host = |row: &NamedCells<'_>| {
        format!("Host {} of cluster {}", row.text("host"), row.text("cluster"))
    };
    let blocking = first("blocking").map(|row| {
        format!(
            "{}: session {} ({}, user {}) blocked {} on {}, {} of their time.",
            host(&row),
            row.text("blocker"),
            row.text("application"),
            row.text("user_name"),
            others(row.number("blocked_sessions").unwrap_or(0.0) as usize),
            row.text("lock_name"),
            row.duration("waited_seconds"),
        )
    });
    let outlier = || {
        let row = first("outliers")?;
        let factor = row.number("factor").map_or_else(String::new, |factor| {
            format!(" is {} the median of its cluster's hosts", times(factor))
        });
        Some(format!("{} differs from its cluster: {}{factor}.", host(&row), row.text("figure")))
    };
    let slower = || {
        let row = first("regressions")?;
        (row.number("factor")? > 1.0).then(|| {
            format!(
                "A statement takes {} as long as before, {} instead of {} a call, on {}: {}",
                row.number("factor").map_or_else(String::new, times),
                row.duration("mean_seconds"),
                row.duration("before_seconds"),
                row.text("slower_hosts"),
                view::statements::beginning(&row.text("statement"), LETTERS),
            )
        })
    };
    let problem = sick(fleet).or(blocking).or_else(outlier).or_else(slower);
    let failed = known.iter().find_map(|status| Some((status.name, status.failure?)));
    let problem = match (failed, problem) {
        (Some((name, failure)), problem) => Some(format!(
            "Query {name} failed: {}{}",
            failure.text,
            problem.map_or_else(String::new, |problem| format!(". {problem}"))
        )),
        (None, problem) => problem,
    };
    let missing = known.iter().filter(|status| status.answer.is_none()).count();
    let (weight, text) = match (problem, missing) {
        (Some(text), _) => (Weight::Warning, text),
        (None, 0) => (Weight::Note, format!("{}{COMPARED}", healthy(fleet))),
        (None, n) => (
            Weight::Note,
            format!(
                "No problem is known so far; {n} {} no result yet.",
                if n == 1 { "query has" } else { "queries have" }
            ),
        ),
    };
    Verdict { weight, text }
}

/// What the queries say if they find nothing.
const COMPARED: &str =
    "No session blocked others, no host differs from its cluster, and no statement got slower.";

/// The worst problem of the hosts, and how many have one.
fn sick(fleet: &Fleet) -> Option<String> {
    let table = &fleet.table(DOCTOR)?.value;
    let of = |tone: Tone| table.rows.iter().filter(move |row| row.tone == tone);
    let worst = NamedCells { table, row: of(Tone::Bad).next()? };
    let more = match of(Tone::Bad).count() - 1 {
        0 => String::new(),
        1 => " 1 more host has problems.".to_owned(),
        more => format!(" {more} more hosts have problems."),
    };
    Some(format!(
        "Host {} of cluster {}: {}{more}",
        worst.text("host"),
        worst.text("cluster"),
        worst.text("finding")
    ))
}

/// How many hosts are healthy, or why that is not known.
fn healthy(fleet: &Fleet) -> String {
    if !fleet.has_doctor() {
        return "The hosts were not diagnosed, because this needs --root. ".to_owned();
    }
    let Some(known) = fleet.table(DOCTOR) else { return String::new() };
    let all = known.value.rows.len();
    let healthy = known.value.rows.iter().filter(|row| row.tone == Tone::Good).count();
    match all - healthy {
        0 if all == 1 => "The host is healthy. ".to_owned(),
        0 => format!("All {all} hosts are healthy. "),
        unknown => {
            format!("{healthy} of {all} hosts are healthy; {unknown} could not be diagnosed. ")
        }
    }
}

/// Maximum number of characters of a statement in the first sentence.
const LETTERS: usize = 70;

/// A row whose cells are found by the keys of their columns.
struct NamedCells<'t> {
    table: &'t Table,
    row: &'t view::document::Row,
}

impl NamedCells<'_> {
    fn cell(&self, key: &str) -> &Cell {
        let at = self.table.columns.iter().position(|column| column.key == key);
        at.and_then(|at| self.row.cells.get(at)).unwrap_or(&Cell::Empty)
    }

    fn text(&self, key: &str) -> String {
        match self.cell(key).exact() {
            text if text.is_empty() => "unknown".to_owned(),
            text => text,
        }
    }

    fn number(&self, key: &str) -> Option<f64> {
        match self.cell(key) {
            Cell::Number(number) => Some(*number),
            Cell::Whole(number) => Some(*number as f64),
            Cell::Rounded { exact, .. } => *exact,
            _ => None,
        }
    }

    fn duration(&self, key: &str) -> String {
        self.number(key).map_or_else(|| "an unknown time".to_owned(), duration)
    }
}

/// Failed queries first, then what the results say.
fn findings(fleet: &Fleet, known: &[QueryStatus<'_>], zone: &TimeZone) -> Vec<Finding> {
    let section = |name: &str| {
        let has = |section: &&(&'static str, _, &[&str], &[&str])| {
            section.2.contains(&name) || section.3.contains(&name)
        };
        SECTIONS.iter().find(has).map_or("questions", |section| section.0)
    };
    let mut findings = Vec::new();
    for (status, failure) in known.iter().filter_map(|status| Some((status, status.failure?))) {
        let kept = match status.answer {
            Some(((_, to), ..)) => format!("The page shows the result of {}.", time(to, zone)),
            None => "There is no earlier result.".to_string(),
        };
        findings.push(Finding {
            section: section(status.name),
            weight: Weight::Warning,
            text: format!(
                "query {} failed at {}: {}",
                status.name,
                time(failure.time, zone),
                failure.text
            ),
            remedy: None,
            details: vec![kept],
            statement: None,
            times: Vec::new(),
        });
    }
    let note = |section, text| Finding {
        section,
        weight: Weight::Note,
        text,
        remedy: None,
        details: Vec::new(),
        statement: None,
        times: Vec::new(),
    };
    let answered = known.iter().filter(|status| status.answer.is_some()).count();
    findings.push(note(
        "questions",
        match known.len() - answered {
            0 => format!("All {answered} queries have results."),
            _ => format!("{answered} of {} queries have results.", known.len()),
        },
    ));
    let count = |name| fleet.table(name).map_or(0, |result| result.value.rows.len());
    let mut found = |name, one: &str, more: &str| match count(name) {
        0 => {}
        1 => findings.push(note(section(name), format!("1 {one}."))),
        n if n < ROWS as usize => findings.push(note(section(name), format!("{n} {more}."))),
        n => findings.push(note(section(name), format!("{n} or more {more}."))),
    };
    found("regressions", "statement got slower or faster", "statements got slower or faster");
    found(
        "outliers",
        "figure of a host differs from its cluster",
        "figures of hosts differ from their clusters",
    );
    found("blocking", "session blocked others on a lock", "sessions blocked others on locks");
    findings
}

/// How long each query took, and which time its result covers.
fn questions(known: &[QueryStatus<'_>]) -> Table {
    let columns = vec![
        Column::new("question", "QUESTION", Unit::Id),
        Column::new("answered", "RESULT OF", Unit::Time),
        Column::new("seconds", "TOOK", Unit::Seconds),
        Column::new("rows", "ROWS", Unit::Count).help("Rows of a table, series of a chart"),
        Column::new("failed", "FAILED", Unit::Time),
        Column::new("failure", "WHY", Unit::Text),
    ];
    let mut table = Table::new(
        "questions",
        "Run time of each query, and the time that its result covers",
        columns,
    );
    for status in known {
        let answer = status.answer;
        table.push(
            Tone::Plain,
            vec![
                status.name.into(),
                answer.map(|((_, to), ..)| to).into(),
                answer.map(|(_, seconds, _)| seconds).into(),
                answer.map(|(.., rows)| rows as u64).into(),
                status.failure.map(|failure| failure.time).into(),
                status.failure.map(|failure| failure.text.clone()).into(),
            ],
        );
    }
    table
}

/// The table of a result, whose hosts link to their pages.
fn table(answer: &FleetQueryResult<Table>) -> Table {
    let mut table = answer.value.clone();
    let title = table.title.split_at(table.title.chars().next().map_or(0, char::len_utf8));
    table.title = format!("{}{}", title.0.to_uppercase(), title.1).into();
    // The other tables have a row for each host or statement.
    if matches!(table.id, "regressions" | "outliers" | "blocking" | "checkpoints") {
        table.note = Some("An empty table means that there were none in this time.".to_string());
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

/// A chart of hosts. Results may cover different times, so each chart has an axis of its own.
fn drawn(of: &'static OfHosts, course: &Course) -> (Chart, Axis) {
    let (kind, axis, unit, note) = match of.is_share {
        false => (
            ChartKind::Stack,
            AxisName::Main,
            Unit::Sessions,
            "Average number of busy sessions on each host. \"others\" is the sum of all other hosts.",
        ),
        true => (
            ChartKind::Lines,
            AxisName::Fine,
            Unit::Share,
            "Busy share of the machine's CPUs. \"others\" is the share of all other machines together.",
        ),
    };
    let series = course.series.iter().map(|(name, values)| Series {
        name: name.clone(),
        class: (name == OTHERS).then_some(WaitClass::Other.name()),
        shade: 0,
        side: None,
        values: values.clone(),
    });
    let section = SECTIONS
        .iter()
        .find(|(_, _, charts, _)| charts.contains(&of.name))
        .map_or("", |(id, ..)| id);
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
        let mut fleet = Fleet::new(HostFilter::default(), "duckdb".into(), 60.0);
        assert!(document(&fleet, &TimeZone::UTC).is_none());
        fleet.tables[0].take(Ok(answer(hosts(), 100.0)));
        fleet.tables[0].take(Err(Failure { time: 160.0, text: "out of memory".into() }));
        let document = document(&fleet, &TimeZone::UTC).unwrap();
        assert!(document.findings[0].text.contains("query hosts failed"));
        assert_eq!(document.verdict.as_ref().unwrap().text, "Query hosts failed: out of memory");
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
    fn the_first_sentence_says_which_host_has_what() {
        let mut fleet = Fleet::new(HostFilter::default(), "duckdb".into(), 60.0);
        let take = |fleet: &mut Fleet, name: &str, cells: &[(&str, Cell)]| {
            let query = QUERIES.iter().find(|query| query.name == name).unwrap();
            let mut table = Table::new(query.name, query.about, query.columns.to_vec());
            let cell = |column: &Column| {
                let known = cells.iter().find(|(key, _)| *key == column.key);
                known.map_or(Cell::Empty, |(_, cell)| cell.clone())
            };
            if !cells.is_empty() {
                table.push(Tone::Plain, query.columns.iter().map(cell).collect());
            }
            let question = fleet.tables.iter_mut().find(|table| table.name == name).unwrap();
            question.take(Ok(answer(table, 100.0)));
        };
        let said = |fleet: &Fleet| document(fleet, &TimeZone::UTC).unwrap().verdict.unwrap();
        take(&mut fleet, "hosts", &[]);
        let first = said(&fleet);
        assert_eq!(first.weight, Weight::Note);
        let left = QUERIES.len() + CHARTS.len() - 1;
        assert!(
            first.text.ends_with(&format!("{left} queries have no result yet.")),
            "{}",
            first.text
        );
        take(
            &mut fleet,
            "regressions",
            &[
                ("statement", "select * from orders where customer = $1".into()),
                ("factor", 31.0.into()),
                ("before_seconds", 0.00225.into()),
                ("mean_seconds", 0.0625.into()),
                ("slower_hosts", "shop/db-2".into()),
            ],
        );
        let text = said(&fleet).text;
        assert_eq!(
            text,
            "A statement takes 31.0 times as long as before, 62.5 ms instead of 2.25 ms a call, on shop/db-2: select * from \
             orders where customer = $1"
        );
        let host = [("cluster", Cell::from("shop")), ("host", "db-1".into())];
        let outlier = [("figure", "seconds per WAL sync".into()), ("factor", 8.0.into())];
        take(&mut fleet, "outliers", &[&host[..], &outlier].concat());
        let text = said(&fleet).text;
        assert_eq!(
            text,
            "Host db-1 of cluster shop differs from its cluster: seconds per WAL sync is 8.00 times the median of its cluster's \
             hosts."
        );
        let blocking = [
            ("blocker", "4304".into()),
            ("blocked_sessions", Cell::from(1)),
            ("waited_seconds", 41.2.into()),
            ("lock_name", "relation orders".into()),
            ("application", "forgetful".into()),
        ];
        take(&mut fleet, "blocking", &[&host[..], &blocking].concat());
        let verdict = said(&fleet);
        assert_eq!(verdict.weight, Weight::Warning);
        assert_eq!(
            verdict.text,
            "Host db-1 of cluster shop: session 4304 (forgetful, user unknown) blocked 1 other on relation orders, 41.2 s of \
             their time."
        );
    }

    #[test]
    fn no_fleet_is_healthy_before_its_hosts_are_diagnosed() {
        let said = |fleet: &Fleet| document(fleet, &TimeZone::UTC).unwrap().verdict.unwrap();
        let empty = |fleet: &mut Fleet| {
            for question in fleet.tables.iter_mut().filter(|table| table.name != DOCTOR) {
                let query = QUERIES.iter().find(|query| query.name == question.name).unwrap();
                let table = Table::new(query.name, query.about, query.columns.to_vec());
                question.take(Ok(answer(table, 100.0)));
            }
            for course in &mut fleet.courses {
                let none = Course { time: vec![], seconds: vec![], series: vec![] };
                course.take(Ok(answer(none, 100.0)));
            }
        };
        let mut without = Fleet::new(HostFilter::default(), "clickhouse".into(), 60.0);
        empty(&mut without);
        let text = said(&without).text;
        assert!(text.starts_with("The hosts were not diagnosed"), "{text}");
        let mut fleet = Fleet::new(HostFilter::default(), "duckdb".into(), 60.0).with_doctor();
        empty(&mut fleet);
        assert_eq!(said(&fleet).text, "No problem is known so far; 1 query has no result yet.");
        let columns =
            ["cluster", "host", "finding"].map(|key| Column::new(key, key, Unit::Text)).to_vec();
        let mut hosts = Table::new(DOCTOR, "what is wrong", columns);
        let healthy = "Healthy: nothing is wrong.";
        hosts.push(Tone::Good, vec!["shop".into(), "db-1".into(), healthy.into()]);
        let mut take = |hosts: &Table| {
            let doctor = fleet.tables.iter_mut().find(|table| table.name == DOCTOR).unwrap();
            doctor.take(Ok(answer(hosts.clone(), 100.0)));
            said(&fleet)
        };
        let text = take(&hosts).text;
        assert!(text.starts_with("The host is healthy. No session blocked"), "{text}");
        hosts.push(Tone::Plain, vec!["shop".into(), "db-2".into(), "Not diagnosed: gone".into()]);
        let text = take(&hosts).text;
        assert!(text.starts_with("1 of 2 hosts are healthy; 1 could not be diagnosed."), "{text}");
        let hot = "Sessions wait for each other's row locks 99.5 % of their time.";
        hosts.rows.insert(
            0,
            view::document::Row {
                tone: Tone::Bad,
                ..view::document::Row::new("", vec!["shop".into(), "db-3".into(), hot.into()])
            },
        );
        let verdict = take(&hosts);
        assert_eq!(verdict.weight, Weight::Warning);
        assert_eq!(verdict.text, format!("Host db-3 of cluster shop: {hot}"));
    }

    #[test]
    fn a_host_is_compared_with_nobody_and_leads_back() {
        let only = HostFilter { host: Some("one".into()), cluster: None };
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
