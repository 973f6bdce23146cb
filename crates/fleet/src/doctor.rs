// SPDX-License-Identifier: PostgreSQL
//! `tally fleet doctor`: diagnoses each host from its recording, and groups the hosts by diagnosis.

use std::collections::BTreeMap;
use std::io::Write;

use diagnose::{Diagnoses, Diagnosis};
use error::Error;
use fleet_sql::{HostFilter, Root};
use indicatif::ProgressBar;
use report::source::RecordingSelection;
use report::Edge;
use serde::Serialize;
use ship::layout::Origin;
use ship::Bucket;
use view::table::{wrap, Cell, Column, Row, Table, Tone, Unit};
use view::{escape, output, table as tables};

use super::args::FleetDoctorArgs;
use report::RecordingPlace;

/// Width if the output is not a terminal.
const WIDTH: usize = 100;

/// A host and what its recording shows.
#[derive(Debug, Serialize)]
pub(crate) struct HostDiagnoses {
    pub(crate) cluster: String,
    pub(crate) host: String,
    /// Why it could not be diagnosed.
    pub(crate) failure: Option<String>,
    #[serde(flatten)]
    pub(crate) found: Diagnoses,
}

impl HostDiagnoses {
    /// Clusters may have hosts of the same name.
    fn name(&self) -> String {
        format!("{}/{}", self.cluster, self.host)
    }
}

/// The output of `--json` (docs/reference-json.md).
#[derive(Debug, Serialize)]
struct FleetDiagnosesJson {
    since: f64,
    until: f64,
    hosts: Vec<HostDiagnoses>,
}

/// Diagnoses all hosts, one after the other, and prints the diagnoses.
pub fn run(args: &FleetDoctorArgs, color: bool) -> Result<(), Error> {
    let (since, until) = args.scope.window();
    if since >= until {
        let text = "the time range is empty: its start is not before its end";
        return Err(Error::Usage(text.into()));
    }
    let only = (args.scope.cluster.as_deref(), args.scope.host.as_deref());
    let origins = some_origins(&args.root, only)?;
    let progress = ProgressBar::new(origins.len() as u64);
    let url = args.root.url();
    let examined = origins.into_iter().map(|origin| {
        let host = examine(&url, origin, since, until);
        progress.inc(1);
        host
    });
    let hosts = examined.collect();
    progress.finish_and_clear();
    let answer = FleetDiagnosesJson { since, until, hosts };
    if args.json {
        return output::json(&answer);
    }
    let width = command::terminal_width().map_or(WIDTH, |width| width.min(WIDTH));
    let mut out = escape::coloured_stdout(color);
    out.write_all(text(&answer, width, color).as_bytes())?;
    Ok(out.flush()?)
}

/// The hosts that have recordings.
fn origins(
    root: &Root,
    (cluster, host): (Option<&str>, Option<&str>),
) -> Result<Vec<Origin>, Error> {
    let mut origins = ship::origins(&Bucket::open(&root.url())?)?;
    origins.retain(|origin| origin.is_selected(cluster, host));
    Ok(origins)
}

/// The same; fails if there is none.
fn some_origins(root: &Root, only: (Option<&str>, Option<&str>)) -> Result<Vec<Origin>, Error> {
    let origins = origins(root, only)?;
    if origins.is_empty() {
        let url = root.url();
        return Err(Error::Failed(format!("{url} has no recording of this cluster and host")));
    }
    Ok(origins)
}

/// A row for each selected host with what is wrong on it, as long as `wanted` holds; `None`: it did not until the end. There may be no
/// host.
pub fn diagnosed(
    root: &Root,
    only: &HostFilter,
    window: (f64, f64),
    wanted: impl Fn() -> bool,
) -> Result<Option<Table>, Error> {
    let only = (only.cluster.as_deref(), only.host.as_deref());
    let table = |hosts: Vec<HostDiagnoses>| Table {
        id: report::fleet::DOCTOR,
        title: "what is wrong on each host, the worst first".into(),
        ..table(&hosts)
    };
    Ok(examined(root, origins(root, only)?, window, wanted).map(table))
}

/// Diagnoses the hosts, one after the other, as long as `wanted` holds; `None`: it did not until the end. Fails if there is no host.
pub(crate) fn hosts(
    root: &Root,
    only: (Option<&str>, Option<&str>),
    window: (f64, f64),
    wanted: impl Fn() -> bool,
) -> Result<Option<Vec<HostDiagnoses>>, Error> {
    Ok(examined(root, some_origins(root, only)?, window, wanted))
}

fn examined(
    root: &Root,
    origins: Vec<Origin>,
    (since, until): (f64, f64),
    wanted: impl Fn() -> bool,
) -> Option<Vec<HostDiagnoses>> {
    let url = root.url();
    let each =
        origins.into_iter().map(|origin| wanted().then(|| examine(&url, origin, since, until)));
    each.collect()
}

/// A row for each host: the worst problems first, then hosts that could not be diagnosed, the healthy ones last.
pub(crate) fn table(hosts: &[HostDiagnoses]) -> Table {
    let columns = vec![
        Column::new("cluster", "CLUSTER", Unit::Id),
        Column::new("host", "HOST", Unit::Id),
        Column::new("finding", "WHAT IS WRONG", Unit::Text),
        Column::new("advice", "WHAT TO DO", Unit::Text),
        Column::new("evidence", "EVIDENCE", Unit::Text),
        Column::new("others", "OTHER FINDINGS", Unit::Text),
    ];
    let rank = |host: &HostDiagnoses| {
        let worst = host.found.diagnoses.first();
        let weight = worst.map_or(0.0, |worst| worst.weight(host.found.diagnosed_seconds));
        let kind = match (worst, host.found.healthy) {
            (Some(_), _) => 0,
            (None, Some(true)) if host.failure.is_none() => 2,
            _ => 1,
        };
        (kind, weight)
    };
    let mut sorted: Vec<&HostDiagnoses> = hosts.iter().collect();
    sorted.sort_by(|a, b| {
        let ((kind_a, a), (kind_b, b)) = (rank(a), rank(b));
        kind_a.cmp(&kind_b).then(b.total_cmp(&a))
    });
    let rows = sorted.into_iter().map(|host| {
        let mut all =
            host.found.diagnoses.iter().chain(&host.found.limits).chain(&host.found.notes);
        let worst = all.next();
        let others: Vec<String> = all.map(|other| other.headline()).collect();
        let (finding, tone) = match (&host.failure, host.found.healthy, host.found.diagnoses.len())
        {
            (Some(why), ..) => (format!("Not diagnosed: {why}"), Tone::Plain),
            (None, None, _) => ("Not measured: the level was off.".to_owned(), Tone::Plain),
            (None, _, 0) => (host.found.no_problem_but_limit(), Tone::Good),
            (None, _, 1) => (worst.map_or_else(String::new, Diagnosis::headline), Tone::Bad),
            (None, _, n) => {
                let worst = worst.map_or_else(String::new, Diagnosis::headline);
                let more =
                    if n == 2 { "1 more problem" } else { &format!("{} more problems", n - 1) };
                (format!("{worst} And {more}."), Tone::Bad)
            }
        };
        let text = |text: String| match text.is_empty() {
            true => Cell::Empty,
            false => Cell::from(text),
        };
        let advice = worst.map_or_else(String::new, |worst| worst.advice.to_string());
        let evidence = worst.map_or_else(String::new, |worst| worst.evidence.join("\n"));
        let cells = vec![
            host.cluster.as_str().into(),
            host.host.as_str().into(),
            finding.into(),
            text(advice),
            text(evidence),
            text(others.join("\n")),
        ];
        Row { tone, ..Row::new(host.name(), cells) }
    });
    Table::from_rows(columns, rows.collect())
}

fn examine(url: &str, origin: Origin, since: f64, until: f64) -> HostDiagnoses {
    let (found, failure) = match diagnoses(url, &origin, since, until) {
        Ok(found) => (found, None),
        Err(error) => (Diagnoses::default(), Some(error.to_string())),
    };
    HostDiagnoses { cluster: origin.cluster, host: origin.host, failure, found }
}

fn diagnoses(url: &str, of: &Origin, since: f64, until: f64) -> Result<Diagnoses, Error> {
    let (from, to) = (Some(Edge::at(since)), Some(Edge::at(until)));
    let place = std::path::Path::new(url);
    let source = RecordingPlace::open(place, (Some(&of.cluster), Some(&of.host)), (from, to))?;
    let directory = source.directory();
    report::diagnoses(&RecordingSelection {
        directory,
        name: None,
        host: None,
        from,
        to,
        client: None,
    })
}

/// All that is known of one host; of several, the first sentences, by rule.
fn text(answer: &FleetDiagnosesJson, width: usize, color: bool) -> String {
    let span = tables::span(answer.since, answer.until, &jiff::tz::TimeZone::system());
    match &answer.hosts[..] {
        [only] if only.failure.is_none() => {
            let mut out = format!("{}, {span}\n\n", only.name());
            for line in only.found.lines(width) {
                out += &strong(&line.text, color && line.strong);
            }
            out
        }
        hosts => by_rule(hosts, &span, width, color),
    }
}

/// A problem, and the hosts that have it.
#[derive(Debug, Default)]
struct ProblemGroup<'h> {
    /// Sum of [`Diagnosis::weight`].
    weight: f64,
    found: Vec<(&'h HostDiagnoses, &'h Diagnosis)>,
}

/// The hosts that have the same problem together. The worst problems come first, in the order of `tally doctor`, the limits last.
fn by_rule(hosts: &[HostDiagnoses], span: &str, width: usize, color: bool) -> String {
    let mut problems: BTreeMap<&'static str, ProblemGroup<'_>> = BTreeMap::new();
    let (mut limits, mut notes) = (Vec::new(), Vec::new());
    for host in hosts {
        for problem in &host.found.diagnoses {
            let group = problems.entry(problem.rule.name()).or_default();
            group.weight += problem.weight(host.found.diagnosed_seconds);
            group.found.push((host, problem));
        }
        limits.extend(host.found.limits.iter().map(|limit| (host, limit)));
        notes.extend(host.found.notes.iter().map(|note| (host, note)));
    }
    let mut problems: Vec<_> = problems.into_iter().collect();
    problems.sort_by(|(_, a), (_, b)| b.weight.total_cmp(&a.weight));
    let all = hosts.len();
    let healthy = hosts.iter().filter(|host| host.found.healthy == Some(true)).count();
    let mut out = format!("Healthy hosts: {healthy} of {all}, {span}\n");
    let mut group = |heading: &str, found: &[(&HostDiagnoses, &Diagnosis)]| {
        let mut names: Vec<String> = found.iter().map(|(host, _)| host.name()).collect();
        names.dedup();
        let heading = format!("{heading}: {} of {all} hosts", names.len());
        out += &format!("\n{}", strong(&heading, color));
        for (host, diagnosis) in found {
            indent(&mut out, &format!("{}: {}", host.name(), diagnosis.headline()), width);
        }
    };
    problems.iter().for_each(|(rule, problem)| group(rule, &problem.found));
    for (heading, found) in [("limits", limits), ("notes", notes)] {
        if !found.is_empty() {
            group(heading, &found);
        }
    }
    let without = |heading: &str, why: &dyn Fn(&HostDiagnoses) -> Option<String>| {
        let mut out = String::new();
        for host in hosts {
            if let Some(why) = why(host) {
                indent(&mut out, &format!("{}: {why}", host.name()), width);
            }
        }
        if out.is_empty() {
            out
        } else {
            format!("\n{heading}\n{out}")
        }
    };
    out += &without("not measured", &|host| {
        let is_off = host.failure.is_none() && host.found.healthy.is_none();
        is_off.then(|| "the level was off".to_owned())
    });
    out += &without("not diagnosed", &|host| host.failure.clone());
    if !problems.is_empty() {
        out += "\nEvidence and what to do: add --cluster and --host.\n";
    }
    out
}

fn strong(line: &str, color: bool) -> String {
    if color {
        format!("\x1b[1m{line}\x1b[0m\n")
    } else {
        format!("{line}\n")
    }
}

fn indent(out: &mut String, line: &str, width: usize) {
    for (n, part) in wrap(line, width.saturating_sub(4)).iter().enumerate() {
        *out += &format!("{}{part}\n", if n == 0 { "  " } else { "    " });
    }
}
