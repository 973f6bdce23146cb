// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally profile`.

use std::path::PathBuf;
use std::time::Duration;

use crate::recorder;
use clap::{Args, Subcommand, ValueEnum};
use command::ConnectionFlags;
use view::duration::within;

use command::positive;

/// Arguments of `tally profile`.
#[derive(Debug, Args)]
#[command(
    args_conflicts_with_subcommands = true,
    after_help = "\
Samples the CPUs, with kernel and server stacks, and all sessions, with their waits. Each sample \
carries the phase, activity and statement of its process at that instant. The exact ledger of the \
same period is shown next to the samples.

As root, tally samples the kernel too. The server's user may sample the server's own processes if \
kernel.perf_event_paranoid is 2 or lower; at 2, without the kernel.

The name of FILE selects the format: .html, a flame graph; .json, the profile, for `tally profile \
diff`; .pb.gz, pprof, for go tool pprof, Speedscope and Perfetto; .json.gz, for profiler.firefox.com, \
with waits.

Examples:
  tally profile
  tally profile --for 10s --hertz 999 -o flames.html
  tally profile --system              all processes, by image and function
  tally profile -o before.json
  tally profile diff before.json after.json"
)]
pub struct ProfileArgs {
    /// Segment, data directory or connection string
    pub target: Option<String>,
    /// How to connect to the server
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// How long to sample, in seconds or with a unit (500ms, 30s, 5min)
    #[arg(long = "for", alias = "seconds", short, value_name = "TIME", default_value = "30s", value_parser = length)]
    pub seconds: Duration,
    /// Samples per second for each CPU and each session
    #[arg(long, short = 'F', value_name = "N", default_value = "99", value_parser = hertz)]
    pub hertz: f64,
    /// Sample all processes on the machine, not only the server's
    #[arg(long)]
    pub system: bool,
    /// How to unwind the stacks of the server's processes
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Unwind::Auto)]
    pub unwind: Unwind,
    /// Write the profile to this file; may be repeated
    #[arg(long, short, value_name = "FILE")]
    pub output: Vec<PathBuf>,
    /// Rows in each table of functions
    #[arg(long, value_name = "N", default_value = "20")]
    pub rows: usize,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
    /// Action other than sampling
    #[command(subcommand)]
    pub action: Option<ProfileAction>,
}

/// How to unwind a stack.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unwind {
    /// Frame pointers, and unwind tables for code without frame pointers
    Auto,
    /// Frame pointers only, which is less work per sample
    FramePointer,
    /// Unwind tables (.eh_frame)
    Dwarf,
}

impl From<Unwind> for recorder::Unwind {
    fn from(unwind: Unwind) -> recorder::Unwind {
        match unwind {
            Unwind::Auto => recorder::Unwind::Auto,
            Unwind::FramePointer => recorder::Unwind::FramePointer,
            Unwind::Dwarf => recorder::Unwind::Dwarf,
        }
    }
}

/// Actions on profiles.
#[derive(Debug, Subcommand)]
pub enum ProfileAction {
    /// Compare two profiles: CPU time per transaction, with significant changes marked
    Diff(ProfileDiffArgs),
}

/// Arguments of `tally profile diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Times are per transaction, or per command if the number of transactions is unknown. `*` marks \
differences larger than the sampling error, corrected for the number of rows. Two runs of the same \
server differ by more than the sampling error: take two profiles of each to see by how much.

Examples:
  tally profile --system -o a.json
  tally profile --system -o b.json
  tally profile diff a.json b.json
  tally profile diff a.json b.json -o diff.html")]
pub struct ProfileDiffArgs {
    /// Baseline profile, written by `tally profile -o FILE.json`
    pub a: PathBuf,
    /// Profile to compare with the baseline
    pub b: PathBuf,
    /// Write a page with a flame graph of both to FILE.html: red is slower in B, blue is faster
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Rows in each table
    #[arg(long, value_name = "N", default_value = "20")]
    pub rows: usize,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
    /// Print help
    // The flag of `tally profile`, whose -h is the host, is not this one's.
    #[arg(short = 'h', long, action = clap::ArgAction::Help)]
    pub help: Option<bool>,
}

fn length(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100), Duration::from_secs(3600))
}

fn hertz(text: &str) -> Result<f64, String> {
    positive(text, 10_000.0)
}
