// SPDX-License-Identifier: PostgreSQL
//! `tally clock`: tests whether this machine's clocks are reliable, and estimates the cost of timing.
//!
//! The crate `clock` runs the tests. [`forecast`] estimates the cost of the server's timing settings and of
//! pgtally's levels, [`verify`] checks these estimates on a scratch server, [`render`] prints the result.
//! docs/clock.md explains the method.

mod forecast;
mod render;
mod verify;

use std::io::Write;
use std::time::Duration;

use clap::Args;
use command::interval;
use indicatif::{ProgressBar, ProgressStyle};

use error::Error;
use render::ClockTest;
use verify::{EstimateVerdict, Verified};

/// Arguments of `tally clock`.
#[derive(Debug, Args)]
#[command(after_help = "\
Needs no server and no privileges. It keeps one or two CPUs busy at a time. With many CPUs it takes \
longer than --for, because every pair is compared.

--verify measures the estimates on a scratch server, which takes about 40 s more.

Exit status: 0 fit (the clocks are reliable), 1 unfit or failure, 2 usage error.

Examples:
  tally clock
  tally clock --for 30s
  tally clock --verify
  tally clock --json | jq '.sources[] | [.name, .loop_cost.typical_seconds]'
  taskset -c 0,1 tally clock        test only these CPUs")]
pub struct ClockArgs {
    /// How long to test: seconds, or with a unit (500ms, 1min)
    #[arg(long = "for", alias = "seconds", short, value_name = "TIME", default_value = "3s", value_parser = interval)]
    pub seconds: Duration,
    /// Also check the estimated cost of timing on a scratch server
    #[arg(long)]
    pub verify: bool,
    /// Print JSON (docs/clock.md)
    #[arg(long)]
    pub json: bool,
}

/// Tests the clocks and prints the result.
pub fn run(args: &ClockArgs) -> Result<(), Error> {
    let bar = progress_bar();
    let report = ::clock::test_clocks(args.seconds, &mut |what, done| show(&bar, what, done));
    let verified = match args.verify {
        true => Some(verify::run(|what, done| show(&bar, what, done))?),
        false => None,
    };
    bar.finish_and_clear();
    let outcome = ClockTest { forecasts: forecast::forecast_clocks(&report), report, verified };
    let mut out = view::escape::stdout();
    if args.json {
        serde_json::to_writer_pretty(&mut out, &outcome)?;
        writeln!(out)?;
    } else {
        render::text(&outcome, &mut out)?;
    }
    out.flush()?;
    if !outcome.report.fit {
        return Err(Error::Failed(
            "the clocks of this machine are not reliable; see the verdict".into(),
        ));
    }
    let fails =
        |verified: &Verified| verified.checks.iter().any(|c| c.verdict == EstimateVerdict::Fails);
    if outcome.verified.as_ref().is_some_and(fails) {
        return Err(Error::Failed(
            "the estimated cost of timing does not match the measured cost; see the checks above"
                .into(),
        ));
    }
    Ok(())
}

/// A progress bar on standard error, if standard error is a terminal.
fn progress_bar() -> ProgressBar {
    let bar = ProgressBar::new(1000);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {percent:>3} %  {msg}") {
        bar.set_style(style);
    }
    bar
}

fn show(bar: &ProgressBar, what: &'static str, done: f64) {
    bar.set_message(what);
    bar.set_position((done * 1000.0) as u64);
}
