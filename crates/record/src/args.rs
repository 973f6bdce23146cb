// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally record`.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use view::duration::within;

use super::server_log::LogOption;
use super::shipping::ShippingArgs;
use command::{ConnectionFlags, SamplingFlags};

/// Arguments of `tally record`.
#[derive(Debug, Args)]
#[command(after_help = "\
DIR may be new, empty, or contain a recording of the same server, which tally then continues. \
While it grows, `tally report` can read it, and so can pandas, DuckDB and Spark \
(docs/reference-recording.md).

With a bucket URL instead of a directory (s3://BUCKET/PREFIX, gs://, az://, file:///DIRECTORY), tally \
records into a spool directory and ships the files to the bucket (docs/shipping.md). Credentials come \
from the environment.

Through a connection, it records from the database postgres unless you name another one, because it stays \
connected, and a database cannot be dropped meanwhile.

Exit status: 0 success, 1 failure, 2 usage error; with COMMAND, the exit status of COMMAND.

Examples:
  tally record -o /var/lib/pgtally/main --retention 30d
  tally record -o run1 --for 10min /var/lib/postgresql/15/main
  tally record -o run1 -- pgbench -c 8 -T 60 bench
  tally record -o light --duty 60s/300s
  tally record -o main --log jsonlog /var/lib/postgresql/15/main
  tally record -o both --client 4711
  tally record -o s3://bucket/pgtally --cluster orders")]
pub struct RecordArgs {
    /// Segment, data directory or connection string
    pub target: Option<String>,
    /// Connection options
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// How to sample a server
    #[command(flatten)]
    pub sampling: SamplingFlags,
    /// Directory to record into, or bucket URL to ship the recording to
    #[arg(short, long, value_name = "DIR|URL")]
    pub output: PathBuf,
    /// Shipping options
    #[command(flatten)]
    pub shipping: ShippingArgs,
    /// Length of an interval
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = recorded_interval)]
    pub interval: Duration,
    /// How often to record histograms, statements and kernel figures; more often in the first minutes
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = recorded_interval)]
    pub detail: Duration,
    /// Stop after this time [default: when interrupted, or when COMMAND ends]
    #[arg(long = "for", alias = "duration", value_name = "TIME", value_parser = recorded_length)]
    pub duration: Option<Duration>,
    /// Remove data older than this [default: keep everything; with a bucket URL: keep sent data for 8 days]
    #[arg(long, value_name = "TIME", value_parser = retention)]
    pub retention: Option<Duration>,
    /// Also record this client of the server (PID or segment) into DIR/client (docs/java.md, docs/libpq.md)
    #[arg(long, value_name = "PID|SEGMENT", conflicts_with = "duty")]
    pub client: Option<String>,
    /// Measure for ON out of every EVERY, with level off in between (such as 60s/300s)
    #[arg(long, value_name = "ON/EVERY")]
    pub duty: Option<Duty>,
    /// Do not record individual sessions
    #[arg(long)]
    pub no_sessions: bool,
    /// Also record errors, deadlocks, plans, autovacuum, checkpoints and the like from the server's log: what its collector
    /// writes (csvlog, jsonlog or stderr), or this file
    #[arg(long, value_name = "csvlog|jsonlog|stderr|FILE")]
    pub log: Option<LogOption>,
    /// What to record of the texts of statements and plans
    #[arg(long, value_name = "WHAT", value_enum, default_value = "keep")]
    pub texts: Texts,
    /// Also record the slowest executions of statements with their parameters, if the setting pg_tally.trace_parameters is
    /// on. Parameters are data: the recording then contains them
    #[arg(long)]
    pub parameters: bool,
    /// Print a summary as JSON at the end (docs/reference-json.md)
    #[arg(long, conflicts_with = "command")]
    pub json: bool,
    /// Record while this command runs, save its output with the recording, and exit with its status
    #[arg(last = true, value_name = "COMMAND")]
    pub command: Vec<std::ffi::OsString>,
}

impl RecordArgs {
    /// TARGET, with the database `postgres` if it is a connection and nobody names another one: a recorder stays connected.
    pub(super) fn server(&self) -> Option<String> {
        live::spec::default_to_postgres(self.target.as_deref())
    }
}

/// What to record of the texts of statements and plans.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Texts {
    /// The whole texts
    Keep,
    /// "sha256:" and the hash of each text, the same on every server
    Hash,
    /// Nothing
    Omit,
}

impl From<Texts> for recording::Texts {
    fn from(texts: Texts) -> recording::Texts {
        match texts {
            Texts::Keep => recording::Texts::Keep,
            Texts::Hash => recording::Texts::Hash,
            Texts::Omit => recording::Texts::Omit,
        }
    }
}

/// How much of each period the level is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Duty {
    /// Time with the level on.
    pub on: Duration,
    /// Length of a period.
    pub every: Duration,
}

impl std::str::FromStr for Duty {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (on, every) = text.split_once('/').ok_or("expected two times, such as 60s/300s")?;
        let second = Duration::from_secs(1);
        let day = Duration::from_secs(86_400);
        let duty = Self { on: within(on, second, day)?, every: within(every, second, day)? };
        if duty.on >= duty.every {
            return Err("the first time must be shorter than the second".into());
        }
        Ok(duty)
    }
}

fn recorded_interval(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100), Duration::from_secs(600))
}

fn recorded_length(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100), Duration::from_secs(3650 * 86_400))
}

fn retention(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(3600), Duration::from_secs(3650 * 86_400))
}
