// SPDX-License-Identifier: PostgreSQL
//! `tally trace`: everything that a session does, in order.

mod follow;
mod join;
mod json;
mod names;
mod node_time;
mod offset;
mod otlp;
mod page;
mod parts;
mod perfetto;
mod sampler;
mod spans;
mod story;
mod summary;
mod text;

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use clap::Args;
use error::Error;
use live::target;
use segment::{Segment, Traced};
use view::escape::{self, Lines};

use crate::arguments::interval;
use crate::client::ring::Client;
use crate::client::stream::Stream;
use crate::connection::ConnectionFlags;
use names::Names;
use offset::Offset;
use story::{Story, Unit};

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
    pid: Option<String>,
    /// The segment, data directory or connection string
    #[arg(value_name = "TARGET")]
    target: Option<String>,
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

fn slowness(text: &str) -> Result<Duration, String> {
    view::duration::within(text, Duration::from_micros(1), Duration::from_secs(3600))
}

fn span_length(text: &str) -> Result<Duration, String> {
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

/// What a sink may ask for.
pub(super) struct Context {
    /// The server's segment.
    pub segment: Segment,
    /// Names of what records have as numbers.
    pub names: Names,
    /// The tick that output counts from.
    pub origin: u64,
    /// The same instant, ns since 1970.
    pub origin_realtime_ns: u64,
}

impl Context {
    /// Nanoseconds from the origin to a tick; one before it is negative.
    pub fn ns(&self, tick: u64) -> i64 {
        let clock = self.segment.clock();
        let ns = |ticks: u64| (clock.seconds(ticks) * 1e9).round() as i64;
        if tick >= self.origin {
            ns(tick - self.origin)
        } else {
            -ns(self.origin - tick)
        }
    }

    /// When a tick was, ns since 1970.
    pub fn realtime_ns(&self, tick: u64) -> u64 {
        self.origin_realtime_ns.saturating_add_signed(self.ns(tick))
    }

    /// The same of a length.
    pub fn length_ns(&self, ticks: u64) -> i64 {
        (self.segment.clock().seconds(ticks) * 1e9).round() as i64
    }
}

/// Where a trace goes.
pub(super) trait Sink {
    /// The trace of a process begins.
    fn session(&mut self, context: &mut Context, who: &Traced) -> Result<(), Error>;
    /// A message of it is over, or a part of it.
    fn unit(&mut self, context: &mut Context, who: &Traced, unit: &Unit) -> Result<(), Error>;
    /// The same of one that was not asked for.
    fn left_out(
        &mut self,
        _context: &mut Context,
        _who: &Traced,
        _unit: &Unit,
    ) -> Result<(), Error> {
        Ok(())
    }
    /// The trace of a process is over.
    fn ended(&mut self, _context: &mut Context, _who: &Traced) -> Result<(), Error> {
        Ok(())
    }
    /// False: what it is for has ended, and the trace may, too.
    fn wants_more(&self) -> bool {
        true
    }
    /// All that can be printed now.
    fn flush(&mut self) -> Result<(), Error>;
    /// The trace is over.
    fn finish(&mut self, context: &mut Context, stories: &[Story]) -> Result<(), Error>;
}

/// Trace processes and print what they do.
pub fn run(args: &TraceArgs, color: bool) -> Result<(), Error> {
    let chosen = Chosen::parse(args)?;
    let mut sink = sink(args, chosen.target, color)?;
    let stop = crate::stop::by_signals()?;
    follow::follow(args, &chosen, sink.as_mut(), &stop)
}

/// Traces one process of TARGET with its nodes and writes the text, until `stop`.
pub fn for_a_while(
    pid: i32,
    target: Option<&str>,
    seconds: Duration,
    out: Box<dyn Write>,
    stop: &AtomicBool,
) -> Result<(), Error> {
    let args =
        TraceArgs { nodes: true, seconds: Some(seconds), quiet: true, ..TraceArgs::default() };
    let out = Box::new(Lines::new(out));
    let mut sink = text::Text::new(out, text::Options { color: false, all: false });
    follow::follow(&args, &Chosen { pid: Some(pid), target }, &mut sink, stop)
}

/// The same as a page.
pub fn page_for_a_while(
    pid: i32,
    target: Option<&str>,
    seconds: Duration,
    stop: &AtomicBool,
) -> Result<String, Error> {
    let args =
        TraceArgs { nodes: true, seconds: Some(seconds), quiet: true, ..TraceArgs::default() };
    let mut sink = page::Page::new(format!("Trace of process {pid}"), None);
    follow::follow(&args, &Chosen { pid: Some(pid), target }, &mut sink, stop)?;
    Ok(sink.into_page())
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
    fn parse(args: &TraceArgs) -> Result<Chosen<'_>, Error> {
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

/// What is written, and what is sent.
struct Both(Vec<Box<dyn Sink>>);

impl Sink for Both {
    fn session(&mut self, context: &mut Context, who: &Traced) -> Result<(), Error> {
        self.0.iter_mut().try_for_each(|sink| sink.session(context, who))
    }

    fn unit(&mut self, context: &mut Context, who: &Traced, unit: &Unit) -> Result<(), Error> {
        self.0.iter_mut().try_for_each(|sink| sink.unit(context, who, unit))
    }

    fn left_out(&mut self, context: &mut Context, who: &Traced, unit: &Unit) -> Result<(), Error> {
        self.0.iter_mut().try_for_each(|sink| sink.left_out(context, who, unit))
    }

    fn ended(&mut self, context: &mut Context, who: &Traced) -> Result<(), Error> {
        self.0.iter_mut().try_for_each(|sink| sink.ended(context, who))
    }

    fn wants_more(&self) -> bool {
        self.0.iter().all(|sink| sink.wants_more())
    }

    fn flush(&mut self) -> Result<(), Error> {
        self.0.iter_mut().try_for_each(|sink| sink.flush())
    }

    fn finish(&mut self, context: &mut Context, stories: &[Story]) -> Result<(), Error> {
        self.0.iter_mut().try_for_each(|sink| sink.finish(context, stories))
    }
}

fn sink(args: &TraceArgs, target: Option<&str>, color: bool) -> Result<Box<dyn Sink>, Error> {
    if let Some(client) = &args.client {
        return joined(args, client);
    }
    let Some(url) = &args.otlp else { return written(args, target, color) };
    let sent = otlp::Otlp::to(url.as_deref(), target::source(target)?, args.span_from)?;
    let mut sinks: Vec<Box<dyn Sink>> = vec![Box::new(sent)];
    if args.output.is_some() || args.json {
        sinks.push(written(args, target, color)?);
    }
    Ok(Box::new(Both(sinks)))
}

/// Calls of a client instead.
fn joined(args: &TraceArgs, client: &str) -> Result<Box<dyn Sink>, Error> {
    let extension = |path: &PathBuf| path.extension().map(|it| it.to_string_lossy().into_owned());
    let kind = args.output.as_ref().and_then(extension).unwrap_or_default();
    let otlp = args.output.as_ref().is_some_and(|it| it.to_string_lossy().ends_with(".otlp.json"));
    if otlp || !matches!(kind.as_str(), "" | "txt" | "jsonl" | "json") {
        let message = "--client writes text or JSON lines: name the file .txt or .jsonl";
        return Err(Error::Usage(message.into()));
    }
    let client = match client {
        "-" => join::Calls::Elsewhere(
            Stream::start(BufReader::new(std::io::stdin())),
            Offset::default(),
        ),
        path => join::Calls::Here(Box::new(Client::open(path)?)),
    };
    let out: Box<dyn Write> = match &args.output {
        Some(path) => Box::new(Lines::new(BufWriter::new(create(path)?))),
        None => Box::new(escape::buffered_stdout(false)),
    };
    let json = args.json || matches!(kind.as_str(), "jsonl" | "json");
    Ok(Box::new(join::Join::new(client, out, json)))
}

fn written(args: &TraceArgs, target: Option<&str>, color: bool) -> Result<Box<dyn Sink>, Error> {
    let text = |out: Box<dyn Write>, color| {
        Box::new(text::Text::new(out, text::Options { color, all: args.all })) as Box<dyn Sink>
    };
    let Some(path) = &args.output else {
        let out = Box::new(escape::buffered_stdout(color));
        return Ok(if args.json { Box::new(json::Json::new(out)) } else { text(out, color) });
    };
    if path.extension().is_some_and(|it| it == "html") {
        return Ok(Box::new(page::Page::new(title(args), Some(path.clone()))));
    }
    let out = Box::new(BufWriter::new(create(path)?));
    if path.to_string_lossy().ends_with(".otlp.json") {
        let place = target::source(target)?;
        return Ok(Box::new(otlp::Otlp::file(out, place, args.span_from)?));
    }
    Ok(match path.extension().and_then(|it| it.to_str()) {
        Some("pftrace" | "perfetto" | "perfetto-trace") => Box::new(perfetto::Perfetto::new(out)),
        Some("jsonl" | "json") => Box::new(json::Json::new(out)),
        _ => text(Box::new(Lines::new(out)), false),
    })
}

/// What a page of this trace is headed.
fn title(args: &TraceArgs) -> String {
    let options =
        [("application", &args.application), ("user", &args.user), ("database", &args.database)];
    let chosen =
        options.iter().filter_map(|(name, option)| Some(format!("{name} {}", option.as_ref()?)));
    let chosen = match &args.pid {
        Some(pid) if pid.parse::<i32>().is_ok() => vec![format!("process {pid}")],
        _ => chosen.collect(),
    };
    match chosen.is_empty() {
        true => "Trace".to_string(),
        false => format!("Trace of {}", chosen.join(", ")),
    }
}

fn create(path: &Path) -> Result<File, Error> {
    files::create(path, files::Access::Owner)
        .map_err(|error| Error::Failed(format!("{}: {error}", path.display())))
}
