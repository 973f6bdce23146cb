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
Prints each message of the traced sessions with what was done for it: steps of the statement, \
each wait with its event and object, commits. At the end it prints sums, and whether the trace \
equals the ledger of the same process. Sessions that are not traced pay nothing.

A process is traced from its next wait or message on, so one that is idle appears when its \
client speaks. Parallel workers of a traced process are traced too. A trace needs a ring in the \
segment for each process (pg_tally.max_traces). Tracing needs the right to write the segment \
(the server's user or root).

-o writes a file: NAME.html for a page on which each message opens into a waterfall, NAME.pftrace for \
ui.perfetto.dev, NAME.otlp.json for spans in OTLP/JSON, NAME.jsonl for JSON lines, else text. --otlp sends the spans to an OpenTelemetry receiver: a \
statement belongs to the trace that its comment /*traceparent='00-...'*/ or application_name names.

Examples:
  sudo -u postgres tally trace 12345
  sudo -u postgres tally trace 12345 --nodes --seconds 10 -o slow.html
  sudo -u postgres tally trace --application billing --slower-than 500ms
  sudo -u postgres tally trace 12345 --client /dev/shm/pg_tally.java.4711
  ssh app tally calls 4711 --stream | tally trace --application billing --client -
  sudo -u postgres tally trace --application billing --otlp http://127.0.0.1:4318
  sudo -u postgres tally trace --database shop --statement -4711 --seconds 60 --json")]
pub struct TraceArgs {
    /// The process to trace; omit it to choose sessions by the options below
    #[arg(value_name = "PID")]
    pub(super) pid: Option<String>,
    /// The segment, data directory or connection string
    #[arg(value_name = "TARGET")]
    pub(super) target: Option<String>,
    /// How to connect to it
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
    /// Trace at most so many sessions at a time
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..=64))]
    pub sessions: u32,
    /// Print only messages that execute the statement of this query id
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub statement: Option<i64>,
    /// Print only messages that took at least this long: seconds, or with a unit (500ms, 0.5ms)
    #[arg(long, value_name = "TIME", value_parser = slowness)]
    pub slower_than: Option<Duration>,
    /// Charge waits to the nodes of plans, and count their rows
    #[arg(long)]
    pub nodes: bool,
    /// Stop after this time; otherwise when interrupted, or when the process ends
    #[arg(long, value_name = "TIME", value_parser = interval)]
    pub seconds: Option<Duration>,
    /// Print each wait, also those that repeat
    #[arg(long)]
    pub all: bool,
    /// Write to this file: .html (waterfalls), .pftrace (Perfetto), .jsonl (JSON lines), else text
    #[arg(long, short, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print JSON lines (docs/reference-json.md)
    #[arg(long, conflicts_with = "output")]
    pub json: bool,
    /// Print the calls of this Java client (its segment, docs/java.md) with what the server did for each, instead. "-": those
    /// that `tally calls --stream` writes on another machine, from standard input
    #[arg(long, value_name = "SEGMENT", conflicts_with_all = ["otlp", "statement", "slower_than"])]
    pub client: Option<String>,
    /// Send spans to the OTLP/HTTP receiver at this URL, or the environment's (docs/opentelemetry.md)
    #[arg(long, value_name = "URL", num_args = 0..=1)]
    pub otlp: Option<Option<String>>,
    /// In spans: waits and steps that took at least this long have spans of their own
    #[arg(long, value_name = "TIME", default_value = "1ms", value_parser = span_length)]
    pub span_from: Duration,
    /// Whether a screen shows the trace, so that nothing else is printed
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
    /// The flags, and TARGET, which may stand in the place of PID.
    pub fn connection_and_target(&mut self) -> (&ConnectionFlags, &mut Option<String>) {
        let is_target = |first: &String| first.parse::<i32>().is_err();
        match self.target.is_none() && self.pid.as_ref().is_some_and(is_target) {
            true => (&self.connection, &mut self.pid),
            false => (&self.connection, &mut self.target),
        }
    }
}

/// What the words without an option name.
pub(super) struct Chosen<'a> {
    /// The process; `None`: sessions, by options.
    pub pid: Option<i32>,
    /// The server.
    pub target: Option<&'a str>,
}

impl Chosen<'_> {
    /// The first word is a process id, or else TARGET.
    pub(super) fn parse(args: &TraceArgs) -> Result<Chosen<'_>, Error> {
        let (first, target) = (args.pid.as_deref(), args.target.as_deref());
        let pid = first.map(str::parse::<i32>);
        let named = [&args.application, &args.user, &args.database].iter().any(|it| it.is_some());
        match (pid, target) {
            (Some(Ok(pid)), _) if pid <= 0 => {
                Err(Error::Usage(format!("{pid} is not a process id")))
            }
            (Some(Ok(_)), _) if named => Err(Error::Usage(
                "a process id cannot be used with --application, --user or --database".into(),
            )),
            (Some(Ok(pid)), target) => Ok(Chosen { pid: Some(pid), target }),
            (Some(Err(_)), Some(_)) => Err(Error::Usage(format!(
                "\"{}\" is not a process id",
                first.unwrap_or_default()
            ))),
            (Some(Err(_)) | None, _)
                if named || args.statement.is_some() || args.slower_than.is_some() =>
            {
                Ok(Chosen { pid: None, target: first.or(target) })
            }
            _ => Err(Error::Usage(
                "name a process id (PID), or choose sessions by --application, --user, --database, \
                 --statement or --slower-than"
                    .into(),
            )),
        }
    }
}
