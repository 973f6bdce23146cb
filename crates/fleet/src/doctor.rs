// SPDX-License-Identifier: PostgreSQL
//! `tally fleet doctor`: diagnoses each host from its recording, and groups the hosts by diagnosis.

use std::io::Write;

use diagnose::Diagnosis;
use error::Error;
use indicatif::ProgressBar;
use report::source::RecordingSelection;
use report::Edge;
use serde::Serialize;
use ship::layout::Origin;
use ship::Bucket;
use view::table::wrap;
use view::{escape, output, table};

use super::args::FleetDoctorArgs;
use report::RecordingPlace;

/// Width if the output is not a terminal.
const WIDTH: usize = 100;

/// A host and its problems.
#[derive(Debug, Serialize)]
struct Host {
    cluster: String,
    host: String,
    /// Why it could not be diagnosed.
    failure: Option<String>,
    diagnoses: Vec<Diagnosis>,
}

/// The output of `--json` (docs/reference-json.md).
#[derive(Debug, Serialize)]
struct FleetDiagnosesJson {
    since: f64,
    until: f64,
    hosts: Vec<Host>,
}

/// Diagnoses all hosts, one after the other, and prints the diagnoses.
pub fn run(args: &FleetDoctorArgs, color: bool) -> Result<(), Error> {
    let (since, until) = args.scope.window();
    if since >= until {
        let text = "the time range is empty: its start is not before its end";
        return Err(Error::Usage(text.into()));
    }
    let url = args.root.url();
    let bucket = Bucket::open(&url)?;
    let mut origins = ship::origins(&bucket)?;
    let is =
        |wanted: &Option<String>, name: &str| wanted.as_deref().is_none_or(|wanted| wanted == name);
    origins.retain(|origin| {
        is(&args.scope.cluster, &origin.cluster) && is(&args.scope.host, &origin.host)
    });
    if origins.is_empty() {
        return Err(Error::Failed(format!("{url} has no recording of this cluster and host")));
    }
    let progress = ProgressBar::new(origins.len() as u64);
    let mut hosts = Vec::new();
    for origin in origins {
        hosts.push(host(&url, origin, since, until));
        progress.inc(1);
    }
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

fn host(url: &str, origin: Origin, since: f64, until: f64) -> Host {
    let (diagnoses, failure) = match diagnosed(url, &origin, since, until) {
        Ok(diagnoses) => (diagnoses, None),
        Err(error) => (Vec::new(), Some(error.to_string())),
    };
    Host { cluster: origin.cluster, host: origin.host, failure, diagnoses }
}

fn diagnosed(url: &str, of: &Origin, since: f64, until: f64) -> Result<Vec<Diagnosis>, Error> {
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

/// Grouped by rule: those that take the most time of sessions first.
fn text(answer: &FleetDiagnosesJson, width: usize, color: bool) -> String {
    let mut rules: Vec<(&'static str, f64, Vec<String>)> = Vec::new();
    for host in &answer.hosts {
        for it in &host.diagnoses {
            let line = format!("{}/{}: {}", host.cluster, host.host, it.headline());
            match rules.iter_mut().find(|(name, ..)| *name == it.rule.name()) {
                Some((_, seconds, lines)) => {
                    *seconds += it.seconds;
                    lines.push(line);
                }
                None => rules.push((it.rule.name(), it.seconds, vec![line])),
            }
        }
    }
    rules.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(b.0)));
    let healthy =
        answer.hosts.iter().filter(|host| host.failure.is_none() && host.diagnoses.is_empty());
    let span = table::span(answer.since, answer.until, &jiff::tz::TimeZone::system());
    let all = answer.hosts.len();
    let mut out = format!("{} of {all} hosts are healthy, {span}\n", healthy.count());
    for (name, _, lines) in &rules {
        let heading = format!("{name}: {} of {all} hosts", lines.len());
        out +=
            &if color { format!("\n\x1b[1m{heading}\x1b[0m\n") } else { format!("\n{heading}\n") };
        lines.iter().for_each(|line| indent(&mut out, line, width));
    }
    let failures = answer.hosts.iter().filter_map(|host| Some((host, host.failure.as_ref()?)));
    for (n, (host, why)) in failures.enumerate() {
        out += if n == 0 { "\nnot diagnosed\n" } else { "" };
        indent(&mut out, &format!("{}/{}: {why}", host.cluster, host.host), width);
    }
    out
}

fn indent(out: &mut String, line: &str, width: usize) {
    for (n, part) in wrap(line, width.saturating_sub(4)).iter().enumerate() {
        *out += &format!("{}{part}\n", if n == 0 { "  " } else { "    " });
    }
}
