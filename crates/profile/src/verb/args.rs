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
Samples the CPUs with the stacks of kernel and server, and all sessions with what they wait for. Each \
sample has phase, activity and statement as the segment has them at that instant. The exact ledger of \
the same time stands next to the samples.

As root, the kernel is sampled too. The server's user may sample the server's own processes if \
kernel.perf_event_paranoid is 2 or lower; at 2, without the kernel's part.

FILE's name says what is written: .html a flame graph; .json the profile, for `tally profile diff`; \
.pb.gz pprof, for go tool pprof, Speedscope and Perfetto; .json.gz for profiler.firefox.com, with waits.

Examples:
  tally profile
  tally profile --seconds 10 --hertz 999 -o flames.html
  tally profile --system                    all processes of the machine: by image, then by function
  tally profile -o before.json
  tally profile diff before.json after.json"
)]
pub struct ProfileArgs {
    /// The segment, data directory or connection string
    pub target: Option<String>,
    /// How to connect to it
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// How long to sample: seconds, or with a unit (500ms, 30s, 5min)
    #[arg(long, short, value_name = "TIME", default_value = "30", value_parser = length)]
    pub seconds: Duration,
    /// Samples per second, of each CPU and of each session
    #[arg(long, short = 'F', value_name = "N", default_value = "99", value_parser = hertz)]
    pub hertz: f64,
    /// Sample all processes of the machine, not only the server's
    #[arg(long)]
    pub system: bool,
    /// How stacks of the server's processes are found
    #[arg(long, value_name = "HOW", value_enum, default_value_t = Unwind::Auto)]
    pub unwind: Unwind,
    /// Write to this file; may be repeated
    #[arg(long, short, value_name = "FILE")]
    pub output: Vec<PathBuf>,
    /// Rows of each table of functions
    #[arg(long, value_name = "N", default_value = "20")]
    pub rows: usize,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
    /// Another action than to sample
    #[command(subcommand)]
    pub action: Option<ProfileAction>,
}

/// How a stack is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Unwind {
    /// By frame pointers, and by unwind tables where code on the stack keeps none
    Auto,
    /// By frame pointers: less work for each sample
    FramePointer,
    /// By unwind tables (.eh_frame)
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

/// What can be done with profiles.
#[derive(Debug, Subcommand)]
pub enum ProfileAction {
    /// Compare two profiles: CPU time per transaction, and what changed beyond chance
    Diff(ProfileDiffArgs),
}

/// Arguments of `tally profile diff`.
#[derive(Debug, Args)]
#[command(after_help = "\
Times are divided by transactions, or by commands where transactions are not known. `*` marks what \
differs beyond the chance of sampling, all rows considered. Two runs of one server differ by more than \
that: take two profiles of each to see how much.

Examples:
  tally profile --system -o a.json; tally profile --system -o b.json; tally profile diff a.json b.json")]
pub struct ProfileDiffArgs {
    /// The profile to compare with, written by `tally profile -o FILE.json`
    pub a: PathBuf,
    /// The profile that may differ
    pub b: PathBuf,
    /// Rows of each table
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
