// SPDX-License-Identifier: PostgreSQL
//! `tally profile`: samples a running server, with accounts and statements, next to its ledger.

mod args;
mod diff;
mod output;
mod tables;
mod text;

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::recorder::{self, ProfileOptions, Recorded};
use error::Error;
use indicatif::{ProgressBar, ProgressStyle};
use live::server::Access;
use live::target;
use pq::Client;
use segment::{Segment, SegmentPath};
use view::units::duration;

use args::ProfileAction;
pub use args::ProfileArgs;

/// Takes a profile, and shows or writes it.
pub fn run(args: &ProfileArgs, color: bool) -> Result<(), Error> {
    if let Some(ProfileAction::Diff(args)) = &args.action {
        return diff::run(args, color);
    }
    let files = output::Files::from_paths(&args.output)?;
    let recorded = record(args)?;
    if recorded.server_stopped {
        view::escape::say("the server stopped; the profile ends there");
    }
    files.write(&recorded)?;
    if args.json {
        return view::output::json(&recorded.profile);
    }
    text::print(&recorded.profile, args.rows, color)
}

fn record(args: &ProfileArgs) -> Result<Recorded, Error> {
    let options = ProfileOptions {
        duration: args.seconds,
        hertz: args.hertz,
        system: args.system,
        unwind: args.unwind.into(),
    };
    let stop = command::stop_on_signals()?;
    let path = target::source(args.target.as_deref())?.file("tally profile")?.clone();
    target::need_measured(&Segment::open(&path)?)?;
    let transactions = Transactions::start(&path);
    let progress = ProgressBar::new(args.seconds.as_millis() as u64)
        .with_style(ProgressStyle::with_template("{bar:40} {msg}").expect("a fixed template"));
    let recorded = recorder::record(&path, &options, |passed: Duration| {
        progress.set_position(passed.as_millis() as u64);
        let left = args.seconds.saturating_sub(passed);
        progress.set_message(format!("sampling, {} left", duration(left.as_secs_f64().ceil())));
        !stop.load(Ordering::Relaxed)
    });
    progress.finish_and_clear();
    let mut recorded = recorded?;
    recorded.profile.transactions = transactions.and_then(Transactions::count);
    Ok(recorded)
}

/// A session that reads the server's number of transactions.
struct Transactions {
    client: Client,
    before: i64,
}

impl Transactions {
    /// Begins to count; `None` if the server cannot be asked.
    fn start(path: &SegmentPath) -> Option<Transactions> {
        let access = Access::of_segment(&Segment::open(path).ok()?)?;
        let mut client = access.connect(None).ok()?;
        let before = transactions(&mut client)?;
        Some(Transactions { client, before })
    }

    /// Number of transactions since the start.
    fn count(mut self) -> Option<u64> {
        let now = transactions(&mut self.client)?;
        u64::try_from(now - self.before).ok()
    }
}

fn transactions(client: &mut Client) -> Option<i64> {
    // Each query is a transaction of its own, so no statistics snapshot is kept from the one before.
    let query = "/* tally */ select sum(xact_commit + xact_rollback)::int8 from pg_stat_database";
    client.query_one(query, &[]).ok()?.get(0).ok()?
}
