// SPDX-License-Identifier: PostgreSQL

//! `tally cost`: measures what a level, or statements, cost by toggling them on live backends.
//!
//! `crate::study::cost::design` randomises the order of the slices, [`runner`] runs them with [`toggle`]
//! and [`BackendMeter`], `crate::study::cost::contrast` turns each round into one number and [`Estimate`] all
//! rounds into a figure, [`outcome`] gives the verdict and [`render`] prints it. docs/cost.md gives
//! the reasons.

mod args;
mod outcome;
mod render;
mod runner;
#[cfg(test)]
mod simulation;
mod subject;
mod toggle;

use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use segment::Segment;

use crate::study::cost::contrast::percent;
use crate::study::cost::meter::BackendMeter;
use error::Error;
use live::host::Watch;
use outcome::CostOutcome;
use runner::{CostPlan, Record};
use stats::Estimate;
use subject::Subject;
use toggle::Toggle;
use view::measured::Measured;

pub use args::CostArgs;

/// How often the progress bar shows a new figure.
const SHOW: Duration = Duration::from_secs(5);

/// Measure the cost and print it.
pub fn run(args: &CostArgs) -> Result<(), Error> {
    if args.level == command::Level::Off {
        return Err(Error::Usage("--level off measures nothing; try --level waits".into()));
    }
    let stop = command::stop_on_signals_and_quit()?;
    let plan = CostPlan {
        of: args.of,
        level: args.level.into(),
        slice: args.slice,
        discard: args.discard,
        length: args.minutes.map_or(args.length, |minutes| Duration::from_secs_f64(minutes * 60.0)),
        seed: args.seed.unwrap_or_else(rand::random),
    };
    let bar = progress_bar(plan.length);
    let mut subject = match args.target {
        Some(_) => Subject::of_target(args)?,
        None => Subject::scratch(args, |what| bar.set_message(what.to_string()))?,
    };
    let segment = Segment::open(&subject.segment)?;
    let server = segment.header().server.clone();
    let clock = segment.clock().kind().name();
    let toggle = Toggle::new(&segment, plan.of, plan.level)?;
    let found = toggle.found();
    let mut meter = BackendMeter::new(segment, plan.of)?;
    warm_up(&subject, &toggle, &stop);

    // A higher priority makes slices end on time. Without the right to raise it, they end a little later, on
    // both sides alike.
    let _ = rustix::process::setpriority_process(None, -10);
    let watch = Watch::start();
    let mut shown = Instant::now();
    let record = runner::run(&plan, &mut meter, &toggle, &stop, |record| {
        bar.set_position(record.elapsed.as_millis() as u64);
        if shown.elapsed() >= SHOW {
            shown = Instant::now();
            bar.set_message(so_far(record));
        }
        subject.check()
    })?;
    let host = watch.host(clock);
    drop(toggle);
    bar.finish_and_clear();

    let interrupted = || {
        let after = record.elapsed.as_secs_f64();
        Err(Error::Failed(format!(
            "interrupted after {after:.0} s; level {found} has been restored"
        )))
    };
    if record.backends.1 == 0 && record.interrupted {
        return interrupted();
    }
    if record.backends.1 == 0 {
        return Err(Error::Failed(format!(
            "{}: no client backend to measure; connect a client and run a load",
            subject.segment.path().display()
        )));
    }
    outcome::check_alive(&record, plan.of)?;
    let outcome = CostOutcome::compute(&record, args.margin);
    let result = render::Result {
        plan: &plan,
        record: &record,
        outcome: &outcome,
        host: &host,
        server: if server.is_empty() { "the server" } else { &server },
        load: &subject.load,
        unit: subject.unit,
        commands_per_unit: subject.commands_per_unit,
        margin: args.margin,
    };
    if args.json {
        view::escape::stdout().wrapped(None).write_all((result.json()? + "\n").as_bytes())?;
    } else {
        view::escape::stdout().write_all(result.text().as_bytes())?;
    }
    if record.interrupted {
        return interrupted();
    }
    Ok(())
}

/// A progress bar on standard error, if that is a terminal.
fn progress_bar(length: Duration) -> ProgressBar {
    let bar = ProgressBar::new(length.as_millis() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} % {eta:>4} left  {msg}")
    {
        bar.set_style(style);
    }
    bar
}

/// Runs the load with measuring on, so that every backend has touched its accounts.
fn warm_up(subject: &Subject, toggle: &Toggle, stop: &AtomicBool) {
    toggle.set(true);
    let began = Instant::now();
    while began.elapsed() < subject.warm_up() && !stop.load(Ordering::Relaxed) {
        std::thread::sleep(Duration::from_millis(50));
    }
}

/// The figure so far.
fn so_far(record: &Record) -> String {
    let cpu: Vec<f64> = record.rounds.iter().map(|round| round.real.cpu).collect();
    Estimate::from_values(&cpu).map_or_else(String::new, |estimate| {
        let figure = Measured::new(percent(estimate.mean), percent(estimate.half_width));
        format!("{} so far", figure.change(2))
    })
}
