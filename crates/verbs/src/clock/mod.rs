// SPDX-License-Identifier: PostgreSQL
//! `tally clock`: tests whether this machine's clocks are reliable, and what timing costs.
//!
//! The crate `clock` runs the tests. [`forecast`] estimates what the server's settings and pgtally's
//! levels cost, [`verify`] checks these estimates on a scratch server, [`render`] prints all.
//! docs/clock.md gives the reasons.

mod args;
mod forecast;
mod outcome;
mod render;
mod verify;

use std::io::Write;

use indicatif::{ProgressBar, ProgressStyle};

use error::Error;
use verify::{EstimateVerdict, Verified};

pub use args::ClockArgs;
use outcome::ClockTest;

/// Test the clocks and print the result.
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
        return Err(Error::Failed("the clocks of this machine are unfit; see the verdict".into()));
    }
    let fails =
        |verified: &Verified| verified.checks.iter().any(|c| c.verdict == EstimateVerdict::Fails);
    if outcome.verified.as_ref().is_some_and(fails) {
        return Err(Error::Failed("the estimates of timing cost do not hold; see above".into()));
    }
    Ok(())
}

/// A progress bar on standard error, if that is a terminal.
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
