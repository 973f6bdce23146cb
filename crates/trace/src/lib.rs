// SPDX-License-Identifier: PostgreSQL
//! `tally trace`: prints everything that a session does, in order.

mod args;
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
mod sink;
mod spans;
mod story;
mod summary;
mod text;

use std::fs::File;
use std::io::{BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use error::Error;
use live::target;
use segment::Traced;
use view::escape::{self, Lines};

use args::Chosen;
pub use args::TraceArgs;
use client::ring::Client;
use client::stream::Stream;
use offset::Offset;
use sink::{Context, Sink};
use story::{Story, Unit};

/// Traces processes and prints what they do.
pub fn run(args: &TraceArgs, color: bool) -> Result<(), Error> {
    let chosen = Chosen::parse(args)?;
    let mut sink = sink(args, chosen.target, color)?;
    let stop = command::stop_on_signals()?;
    follow::follow(args, &chosen, sink.as_mut(), &stop)?;
    drop(sink);
    args.output.iter().for_each(|path| view::output::announce(path));
    Ok(())
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
    let mut sink = text::Text::new(out, text::TextOptions { color: false, all: false });
    follow::follow(&args, &Chosen { pid: Some(pid), target }, &mut sink, stop)
}

/// Like [`for_a_while`], but returns a page.
pub fn page_for_a_while(
    pid: i32,
    target: Option<&str>,
    seconds: Duration,
    stop: &AtomicBool,
) -> Result<String, Error> {
    let args =
        TraceArgs { nodes: true, seconds: Some(seconds), quiet: true, ..TraceArgs::default() };
    let mut sink = page::TracePage::new(format!("Trace of process {pid}"), None);
    follow::follow(&args, &Chosen { pid: Some(pid), target }, &mut sink, stop)?;
    Ok(sink.into_page())
}

/// Several sinks, one to write and one to send.
struct SinkList(Vec<Box<dyn Sink>>);

impl Sink for SinkList {
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
    Ok(Box::new(SinkList(sinks)))
}

/// The sink for `--client`, which prints calls of a client.
fn joined(args: &TraceArgs, client: &str) -> Result<Box<dyn Sink>, Error> {
    let extension =
        |path: &PathBuf| path.extension().map(|extension| extension.to_string_lossy().into_owned());
    let kind = args.output.as_ref().and_then(extension).unwrap_or_default();
    let otlp =
        args.output.as_ref().is_some_and(|path| path.to_string_lossy().ends_with(".otlp.json"));
    if otlp || !matches!(kind.as_str(), "" | "txt" | "jsonl" | "json") {
        let message =
            "--client writes text or JSON lines; the file name must end in .txt or .jsonl";
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
        Box::new(text::Text::new(out, text::TextOptions { color, all: args.all })) as Box<dyn Sink>
    };
    let Some(path) = &args.output else {
        let out = Box::new(escape::buffered_stdout(color));
        return Ok(if args.json { Box::new(json::Json::new(out)) } else { text(out, color) });
    };
    if path.extension().is_some_and(|extension| extension == "html") {
        return Ok(Box::new(page::TracePage::new(title(args), Some(path.clone()))));
    }
    let out = Box::new(BufWriter::new(create(path)?));
    if path.to_string_lossy().ends_with(".otlp.json") {
        let place = target::source(target)?;
        return Ok(Box::new(otlp::Otlp::file(out, place, args.span_from)?));
    }
    Ok(match path.extension().and_then(|extension| extension.to_str()) {
        Some("pftrace" | "perfetto" | "perfetto-trace") => Box::new(perfetto::Perfetto::new(out)),
        Some("jsonl" | "json") => Box::new(json::Json::new(out)),
        _ => text(Box::new(Lines::new(out)), false),
    })
}

/// The title of a page of this trace.
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
