// SPDX-License-Identifier: PostgreSQL
//! `tally demo`: runs a load on a scratch server, shows the live view and a summary, and writes a
//! report. Everything but the report is removed at the end.

mod recorder;

use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use indicatif::ProgressBar;
use scratch::{Cluster, Load, PgbenchResult, RunningPgbench};
use segment::{Interval, SegmentPath};

use command::Workload;
use error::Error;
use live::follower::{Figures, FollowOptions, Follower};
use live::instrumented;
use recorder::Recorder;
use top::{TopArgs, View};
use view::duration::within;
use view::table::{wrap, Table};
use view::units::maybe_duration;

/// Arguments of `tally demo`.
#[derive(Debug, Args)]
#[command(after_help = "\
Examples:
  tally demo
  tally demo --workload select --clients 16 --for 20s
  tally demo --once > interval.txt")]
pub struct DemoArgs {
    /// Duration of the load
    #[arg(long = "for", alias = "seconds", value_name = "TIME", default_value = "1min", value_parser = whole_seconds)]
    pub seconds: Duration,
    /// Number of client connections
    #[arg(long, value_name = "N", default_value_t = 8,
          value_parser = clap::value_parser!(u32).range(1..=1000))]
    pub clients: u32,
    /// Workload: select, tpcb, txid (one contended lock), or a pgbench script
    #[arg(long, value_name = "select|tpcb|txid|FILE", default_value = "tpcb")]
    pub workload: Workload,
    /// Print one interval as text and exit; without a terminal, tally prints all intervals
    #[arg(long)]
    pub once: bool,
    /// Write the report to this file [default: a new file in the temporary directory]
    #[arg(long, value_name = "FILE", conflicts_with = "once")]
    pub report: Option<PathBuf>,
}

fn whole_seconds(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), Duration::from_secs(86_400))
}

/// Scale of pgbench's tables, 15 MB each. With fewer branches than clients, TPC-B would mostly wait
/// for row locks.
const SCALE: u32 = 10;
/// Length of a printed interval, unless the demo is shorter.
const INTERVAL: Duration = Duration::from_secs(5);
/// How much longer the load runs than the view, so that its sessions do not end while the view runs.
const TAIL: Duration = Duration::from_secs(2);
/// How long the load may take to connect.
const PATIENCE: Duration = Duration::from_secs(10);
/// Ledger lines in the summary.
const LINES: usize = 12;

/// Runs the demo.
pub fn run(args: &DemoArgs, color: bool) -> Result<(), Error> {
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(100));
    progress.set_message("starting scratch server with pg_tally");
    let (cluster, segment_path) = server(args)?;
    if !matches!(args.workload, Workload::File(_)) {
        progress.set_message(format!("creating pgbench tables, scale {SCALE}"));
        cluster.fill(&Load::from(&args.workload), SCALE)?;
    }
    if is_live(args) {
        let width = command::terminal_width().unwrap_or(usize::MAX);
        progress.println(wrap(&keys(args), width).join("\n"));
    }
    progress.finish_and_clear();

    let mut load = cluster
        .pgbench()
        .load(Load::from(&args.workload))
        .clients(args.clients)
        .jobs(2)
        .duration(args.seconds + TAIL)
        .spawn()?;
    wait_for_load(&cluster, &mut load, args.clients)?;
    let recorder = (!args.once).then(|| Recorder::start(segment_path.path()));
    let end = Instant::now() + args.seconds;
    let wanted =
        FollowOptions { figures: Figures::Intervals, kernel: true, ..FollowOptions::default() };
    let mut follower = Follower::open(segment_path.clone(), wanted)?;
    top::run(&view(args, segment_path.path(), end), color)?;
    let interval = follower.interval()?.interval;
    // If the user left early, or after one interval, pgbench prints no result.
    let result = if end.saturating_duration_since(Instant::now()) < TAIL {
        Some(load.wait()?)
    } else {
        load.kill();
        None
    };
    summary(args, &interval, result.as_ref(), &mut view::escape::stdout())?;
    match recorder {
        Some(recorder) => recorder?.report(args.report.as_deref()),
        None => Ok(()),
    }
}

/// The text before the view; the view lists its keys in the last line.
fn keys(args: &DemoArgs) -> String {
    format!(
        "The live view follows for {} s. q quits, h or ? lists the keys, Tab or a digit selects a pane, Enter shows \
         the details of a row.",
        args.seconds.as_secs()
    )
}

/// Waits until all clients are connected, or the load has ended.
fn wait_for_load(cluster: &Cluster, load: &mut RunningPgbench, clients: u32) -> Result<(), Error> {
    let began = Instant::now();
    while began.elapsed() < PATIENCE && load.running() {
        if cluster.backend_pids()?.len() >= clients as usize {
            break;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Ok(())
}

/// A server with fsync on, as in production, and the path of its segment.
fn server(args: &DemoArgs) -> Result<(Cluster, SegmentPath), Error> {
    instrumented::start(
        Cluster::builder()
            .fsync(true)
            .setting("shared_buffers", "256MB")
            .setting("max_wal_size", "4GB")
            .setting("pg_tally.slow_threshold", "200ms")
            .setting("max_connections", &(args.clients + 20).to_string()),
    )
}

/// Whether the view fills the screen.
fn is_live(args: &DemoArgs) -> bool {
    view::escape::process_stdout().is_terminal() && !args.once
}

/// Full-screen view on a terminal until the load ends; otherwise intervals as text.
fn view(args: &DemoArgs, path: &Path, end: Instant) -> TopArgs {
    let live = is_live(args);
    let interval = if live { Duration::from_secs(1) } else { INTERVAL.min(args.seconds) };
    let all = args.seconds.as_secs() / interval.as_secs().max(1);
    TopArgs {
        target: Some(path.display().to_string()),
        interval: Some(interval),
        once: args.once,
        count: (!live && !args.once).then_some(all),
        view: Some(View::Ledger),
        no_config: true,
        until: Some(end),
        ..TopArgs::default()
    }
}

fn summary(
    args: &DemoArgs,
    interval: &Interval,
    result: Option<&PgbenchResult>,
    out: &mut impl Write,
) -> Result<(), Error> {
    writeln!(out)?;
    writeln!(
        out,
        "{:.1} s of {} with {} on {}, level {}",
        interval.interval_seconds,
        args.workload.name(),
        match args.clients {
            1 => "1 client".to_string(),
            n => format!("{n} clients"),
        },
        interval.server.name,
        interval.level
    )?;
    if let Some(result) = result {
        writeln!(
            out,
            "pgbench: {:.0} transactions/s, latency {:.3} ms, {} failed",
            result.tps, result.latency_ms, result.failed
        )?;
    }
    writeln!(out)?;
    writeln!(
        out,
        "all processes together: {:.1} s, {:.1} s of it busy:",
        interval.wall_seconds, interval.busy_seconds
    )?;
    writeln!(out)?;
    ledger(interval, out)?;
    commands(interval, out)?;
    let kernel = &interval.kernel;
    if kernel.available {
        writeln!(out)?;
        writeln!(
            out,
            "unexplained: {:.2} % ± {:.2} of busy time ({} samples of kernel accounting)",
            100.0 * kernel.unexplained_share,
            100.0 * kernel.unexplained_error,
            kernel.samples
        )?;
    }
    writeln!(
        out,
        "\nThese figures do not show the cost of measuring; run `tally cost` to measure it."
    )?;
    Ok(())
}

fn ledger(interval: &Interval, out: &mut impl Write) -> Result<(), Error> {
    let mut columns =
        Table::with_headings(&["SECONDS", "%TIME", "COUNT", "MEAN", "PHASE", "ACTIVITY"], 0..4);
    for account in interval.ledger.iter().filter(|account| !account.idle).take(LINES) {
        let timing = &account.timing;
        columns.push_texts(vec![
            format!("{:.2}", timing.seconds),
            format!("{:.1}", 100.0 * timing.seconds / interval.busy_seconds),
            timing.count.to_string(),
            maybe_duration(timing.mean_seconds),
            account.phase.to_string(),
            account.activity.to_string(),
        ]);
    }
    Ok(out.write_all(columns.to_string().as_bytes())?)
}

fn commands(interval: &Interval, out: &mut impl Write) -> Result<(), Error> {
    let mut columns = Table::with_headings(&["COMMAND", "HANDLED", "MEAN", "P99", "MAX"], 1..5);
    for command in interval.commands.iter().filter(|command| command.handle.count > 0) {
        let handle = &command.handle;
        columns.push_texts(vec![
            command.kind.clone(),
            handle.count.to_string(),
            maybe_duration(handle.mean_seconds),
            maybe_duration(handle.p99_seconds),
            maybe_duration(handle.max_seconds),
        ]);
    }
    writeln!(out)?;
    Ok(out.write_all(columns.to_string().as_bytes())?)
}
