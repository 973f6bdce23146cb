// SPDX-License-Identifier: PostgreSQL
//! `tally doctor`: watches a server for some seconds and reports its problems.

use std::io::Write;
use std::time::{Duration, Instant};

use clap::Args;
use diagnose::{Diagnoses, Diagnosis};
use error::Error;
use indicatif::{ProgressBar, ProgressStyle};
use live::follower::{FollowOptions, Follower};
use live::settings::{self, SettingsReading};
use live::vacuum;
use segment::{Interval, Level};
use serde::Serialize;
use view::headline;
use view::health;
use view::table::{wrap, Table};
use view::units::duration;
use view::vacuum::Scope;
use view::Reading;

use command::interval;
use command::{ConnectionFlags, SamplingFlags};

/// Arguments of `tally doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Watches the server and prints its problems, the worst first: who or what causes each, how much of \
the sessions' time it takes, the evidence, and what to do. A server that is merely busy is healthy; \
the last lines say what bounds its load, and which settings have changed or wait for a restart.

Examples:
  tally doctor
  tally doctor /var/lib/postgresql/15/main --for 1min
  tally doctor --json | jq '.diagnoses[].text'")]
pub struct DoctorArgs {
    /// Segment, data directory or connection string
    pub target: Option<String>,
    /// Connection options
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// How to sample a server
    #[command(flatten)]
    pub sampling: SamplingFlags,
    /// How long to watch: seconds, or with a unit (500ms, 10s, 1min)
    #[arg(long = "for", value_name = "TIME", default_value = "10", value_parser = interval)]
    pub duration: Duration,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct DoctorJson<'r> {
    server: &'r str,
    host: &'r str,
    /// When the watch ended, seconds since 1970.
    time: f64,
    interval_seconds: f64,
    /// Whether no problem was found.
    healthy: bool,
    /// Whether the figures are estimates from samples.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    sampled: bool,
    /// The problems, the worst first; each consequence comes right after its cause.
    diagnoses: &'r [Diagnosis],
    /// What bounds the load, the largest first.
    limits: &'r [Diagnosis],
    /// What is good to know besides: changed settings, and those that wait for a restart.
    notes: &'r [Diagnosis],
    /// What keeps the figures from being complete.
    incomplete: Vec<String>,
    /// Replication, WAL archiving, transaction IDs, sizes, bloat and indexes, as tables.
    health: Vec<Table>,
}

/// Width if the output is not a terminal.
const WIDTH: usize = 100;
const TICK: Duration = Duration::from_millis(100);
/// How often to look at who blocks whom.
const LOOK: Duration = Duration::from_secs(1);

/// Watches the server and prints the diagnoses.
pub fn run(args: &DoctorArgs, color: bool) -> Result<(), Error> {
    let reading = watch(args)?;
    let interval = &reading.interval;
    let answer = Diagnoses::examine(&reading);
    if args.json {
        return view::output::json(&DoctorJson {
            server: &interval.server.name,
            host: &interval.server.host,
            time: interval.time,
            interval_seconds: interval.interval_seconds,
            healthy: answer.healthy == Some(true),
            sampled: answer.sampled,
            diagnoses: &answer.diagnoses,
            limits: &answer.limits,
            notes: &answer.notes,
            incomplete: incomplete(interval, &answer),
            health: reading.vacuum.as_ref().map(health::tables).unwrap_or_default(),
        });
    }
    let width = command::terminal_width().map_or(WIDTH, |width| width.min(WIDTH));
    let mut out = view::escape::coloured_stdout(color);
    out.write_all(text(interval, &answer, width, color).as_bytes())?;
    Ok(out.flush()?)
}

fn watch(args: &DoctorArgs) -> Result<Box<Reading>, Error> {
    let wanted = FollowOptions::of_diagnoses();
    let source = args.sampling.source(args.target.as_deref())?;
    let mut follower = Follower::open(source, wanted)?;
    let level = follower.segment().map(segment::Segment::level).transpose()?;
    if level == Some(Level::Off) {
        return Err(Error::Failed(
            "nothing is measured at level off; run `tally level waits` first".into(),
        ));
    }
    let before =
        follower.segment().and_then(|segment| vacuum::read(segment, Scope::Databases).ok());
    let settings_before = settings(&follower);
    // Statements are compared with this first reading.
    follower.interval()?;
    let begin = Instant::now();
    let mut looked = begin;
    let progress = ProgressBar::new(args.duration.as_millis() as u64)
        .with_style(ProgressStyle::with_template("{bar:40} {msg}").expect("a fixed template"));
    while let Some(left) = args.duration.checked_sub(begin.elapsed()).filter(|left| !left.is_zero())
    {
        progress.set_position(begin.elapsed().as_millis() as u64);
        progress.set_message(format!("watching, {} left", duration(left.as_secs_f64().ceil())));
        std::thread::sleep(left.min(TICK));
        if looked.elapsed() >= LOOK {
            looked = Instant::now();
            follower.look();
        }
    }
    progress.finish_and_clear();
    let mut reading = follower.interval()?;
    let after = follower.segment().and_then(|segment| vacuum::read(segment, Scope::Objects).ok());
    reading.vacuum = after.map(|answer| answer.since(before.as_ref()));
    if let (Some(all), Some(before), Some(after)) =
        (&mut reading.vacuum, settings_before, settings(&follower))
    {
        all.conditions.extend(after.changes_as_conditions(&before));
    }
    Ok(reading)
}

/// The server's settings, if it answers.
fn settings(follower: &Follower) -> Option<SettingsReading> {
    settings::read(follower.segment()?).ok()
}

/// The diagnoses as text.
fn text(interval: &Interval, answer: &Diagnoses, width: usize, color: bool) -> String {
    let mut out = String::new();
    let mut lines = |text: &str, first: &str, rest: &str| {
        for (n, part) in wrap(text, width.saturating_sub(rest.len())).iter().enumerate() {
            out.push_str(if n == 0 { first } else { rest });
            out.push_str(part);
            out.push('\n');
        }
    };
    lines(
        &format!(
            "{}, {}, watched for {}.",
            interval.server.name,
            interval.server.host,
            duration(answer.diagnosed_seconds)
        ),
        "",
        "",
    );
    lines(&headline::load(interval), "", "");
    for warning in incomplete(interval, answer) {
        lines(&warning, "! ", "  ");
    }
    if [&answer.diagnoses, &answer.limits, &answer.notes].iter().any(|found| !found.is_empty()) {
        out.push('\n');
    }
    for line in answer.lines(width) {
        match color && line.strong {
            true => out.push_str(&format!("\x1b[1m{}\x1b[0m\n", line.text)),
            false => out.push_str(&format!("{}\n", line.text)),
        }
    }
    out
}

/// Reasons why the figures are incomplete.
fn incomplete(interval: &Interval, answer: &Diagnoses) -> Vec<String> {
    headline::warnings(interval).into_iter().chain(answer.uncovered()).collect()
}
