// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally trace`.

use clap::Args;
use command::interval;
use command::ConnectionFlags;
use error::Error;
use std::path::PathBuf;
use std::time::Duration;

/// Arguments of `tally trace`.
#[derive(Debug, Default, Args)]
#[command(after_help = "\
Prints each message of the traced sessions with the work done for it: the steps of the statement, \
each wait with its event and object, and commits. At the end it prints totals, and whether the trace \
matches the ledger of the same process. Sessions that are not traced are not slowed down.

The trace of a process begins at its next wait or message, so an idle session appears when its \
client sends something. Parallel workers of a traced process are traced too. Each traced process \
needs a ring in the segment (pg_tally.max_traces). Tracing requires write access to the segment (run \
tally as the server's user or root).

The name given with -o selects the format: NAME.html, a page on which each message opens into a \
waterfall; NAME.pftrace, for ui.perfetto.dev; NAME.otlp.json, spans in OTLP/JSON; NAME.jsonl, JSON \
lines; otherwise text. --otlp sends the spans to an OpenTelemetry receiver; a statement joins the \
trace that its comment /*traceparent='00-...'*/ or its application_name specifies.

Examples:
  sudo -u postgres tally trace 12345
  sudo -u postgres tally trace 12345 --nodes --for 10s -o slow.html
  sudo -u postgres tally trace 12345 --parameters
  sudo -u postgres tally trace --application billing --slower-than 500ms
  sudo -u postgres tally trace 12345 --client /dev/shm/pg_tally.java.4711
  ssh app tally calls 4711 --stream |
    tally trace --application billing --client -
  tally trace --application billing --otlp http://127.0.0.1:4318
  tally trace --database shop --statement -4711 --for 1min --json")]
pub struct TraceArgs {
    /// Process to trace; omit it to select sessions with the options below
    #[arg(value_name = "PID")]
    pub(super) pid: Option<String>,
    /// Segment, data directory or connection string
    #[arg(value_name = "TARGET")]
    pub(super) target: Option<String>,
    /// How to connect to the server
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// Trace sessions with this application_name
    #[arg(long, value_name = "NAME")]
    pub application: Option<String>,
    /// Trace sessions of this user
    #[arg(long, value_name = "NAME")]
    pub user: Option<String>,
    /// Trace sessions in this database
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// Maximum number of sessions to trace at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub sessions: u32,
    /// Print only messages that execute the statement with this query ID
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub statement: Option<i64>,
    /// Print only messages that took at least this long: seconds, or with a unit (500ms, 0.5ms)
    #[arg(long, value_name = "TIME", value_parser = slowness)]
    pub slower_than: Option<Duration>,
    /// Attribute waits to plan nodes, and count the rows of each node
    #[arg(long)]
    pub nodes: bool,
    /// Record the parameters of executions, if the setting pg_tally.trace_parameters is on. Parameters
    /// are data: the output then contains them
    #[arg(long, conflicts_with = "client")]
    pub parameters: bool,
    /// Stop after this time [default: when interrupted, or when the process ends]
    #[arg(long = "for", alias = "seconds", value_name = "TIME", value_parser = interval)]
    pub seconds: Option<Duration>,
    /// Print every wait instead of merging repeated ones
    #[arg(long)]
    pub all: bool,
    /// Write to this file: .html (waterfalls), .pftrace (Perfetto), .otlp.json (spans), .jsonl (JSON lines),
    /// otherwise text
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print JSON lines (docs/reference-json.md)
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
    /// Print the calls of this Java client (its segment, docs/java.md) instead, each with the server's
    /// work for it; "-" reads the output of `tally calls --stream` from standard input
    #[arg(long, value_name = "SEGMENT", conflicts_with_all = ["otlp", "statement", "slower_than"])]
    pub client: Option<String>,
    /// Send spans to the OTLP/HTTP receiver at this URL [default: from the environment, docs/opentelemetry.md]
    #[arg(long, value_name = "URL", num_args = 0..=1)]
    pub otlp: Option<Option<String>>,
    /// Give each wait and step that took at least this long its own span
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = span_length)]
    pub span_from: Duration,
    /// Whether a screen shows the trace, so that nothing else may be printed
    #[arg(skip)]
    pub quiet: bool,
}

pub(super) fn slowness(text: &str) -> Result<Duration, String> {
    view::duration::within(text, Duration::from_micros(1), Duration::from_secs(3600))
}

pub(super) fn span_length(text: &str) -> Result<Duration, String> {
    view::duration::within(text, Duration::from_millis(1), Duration::from_secs(3600))
}

impl TraceArgs {
    /// The flags, and TARGET, which may be given in place of PID.
    pub fn connection_and_target(&mut self) -> (&ConnectionFlags, &mut Option<String>) {
        let is_target = |first: &String| first.parse::<i32>().is_err();
        match self.target.is_none() && self.pid.as_ref().is_some_and(is_target) {
            true => (&self.connection, &mut self.pid),
            false => (&self.connection, &mut self.target),
        }
    }
}

/// The meaning of the positional arguments.
pub(super) struct Chosen<'a> {
    /// The process; `None` to select sessions by options.
    pub pid: Option<i32>,
    /// The server.
    pub target: Option<&'a str>,
}

impl Chosen<'_> {
    /// Parses the positional arguments: the first one is a process ID, otherwise TARGET.
    pub(super) fn parse(args: &TraceArgs) -> Result<Chosen<'_>, Error> {
        let (first, target) = (args.pid.as_deref(), args.target.as_deref());
        let pid = first.map(str::parse::<i32>);
        let named =
            [&args.application, &args.user, &args.database].iter().any(|option| option.is_some());
        match (pid, target) {
            (Some(Ok(pid)), _) if pid <= 0 => {
                Err(Error::Usage(format!("{pid} is not a process ID")))
            }
            (Some(Ok(_)), _) if named => Err(Error::Usage(
                "PID cannot be combined with --application, --user or --database".into(),
            )),
            (Some(Ok(pid)), target) => Ok(Chosen { pid: Some(pid), target }),
            (Some(Err(_)), Some(_)) => Err(Error::Usage(format!(
                "\"{}\" is not a process ID",
                first.unwrap_or_default()
            ))),
            (Some(Err(_)) | None, _)
                if named || args.statement.is_some() || args.slower_than.is_some() =>
            {
                Ok(Chosen { pid: None, target: first.or(target) })
            }
            _ => Err(Error::Usage(
                "specify a process ID (PID), or select sessions with --application, --user, --database, \
                 --statement or --slower-than"
                    .into(),
            )),
        }
    }
}
