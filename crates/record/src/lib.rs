// SPDX-License-Identifier: PostgreSQL
//! `tally record`: records everything in a segment to disk, interval by interval.

mod args;
mod clocks;
mod command;
mod duty;
mod plans;
mod recorder;
mod recorders;
mod server_log;
mod sessions;
mod shipping;
mod signals;
mod summary;
mod vacuum;

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use indicatif::ProgressBar;

use clocks::Clocks;
use command::Command;
use error::Error;
use live::target::SegmentSource;
use recorders::Recorders;
use shipping::Destination;
use signals::Signals;
use view::units;

pub use args::RecordArgs;

/// How often to check for signals and for the command's end.
const NAP: Duration = Duration::from_millis(50);

/// Record until a signal arrives, `--for` has passed or the command ends.
pub fn run(args: &RecordArgs) -> Result<(), Error> {
    if args.detail < args.interval {
        return Err(Error::Usage("--detail must not be shorter than --interval".into()));
    }
    if args.parameters && args.texts != args::Texts::Keep {
        let text = "--parameters records values, so it cannot be combined with --texts hash or --texts omit";
        return Err(Error::Usage(text.into()));
    }
    use segment::Error::{Foreign, NotAFile};
    let bucket = args.shipping.bucket(&args.output)?;
    let mut signals = Signals::catch()?;
    let place = args.sampling.source(args.server().as_deref())?;
    // A server may start later, but another user's file never becomes its segment.
    if let SegmentSource::File(path) = &place {
        if let Err(error @ (Foreign { .. } | NotAFile { .. })) = segment::Segment::open(path) {
            return Err(error.into());
        }
    }
    if args.duty.is_some() {
        place.file("--duty")?;
    }
    if args.parameters {
        place.file("--parameters")?;
    }
    let mut notes = Vec::new();
    let destination =
        Destination::find(&args.output, bucket, &args.shipping, args.retention, &mut notes)?;
    let mut recorder = Recorders::new(args, place, destination)?;
    recorder.server.messages.append(&mut notes);
    recorder.look(false)?;
    if !recorder.server.has_begun() && !args.command.is_empty() {
        let why = recorder.server.waiting().unwrap_or("nothing to record").to_string();
        return Err(Error::Failed(format!("{why}; the command was not run")));
    }
    let mut command = match args.command.as_slice() {
        [] => None,
        words => Some(Command::start(words)?),
    };
    let messages = Messages::new(args);
    let outcome = record(args, &mut recorder, &mut signals, &mut command, &messages);
    messages.clear();
    if let Err(error) = outcome {
        // Keep the recording so far, and let the command run to its end.
        drop(recorder);
        if let Some(mut command) = command {
            messages.say(args, &error.to_string());
            while command.ended()?.is_none() {
                signals.stop(Some(&command));
                std::thread::sleep(NAP);
            }
        }
        return Err(error);
    }
    let status = outcome?;
    let why = recorder.server.waiting().unwrap_or("no interval was complete").to_string();
    let (summary, last) = recorder.close()?;
    last.iter().for_each(|text| messages.say(args, text));
    if args.json {
        let mut out = view::escape::stdout();
        serde_json::to_writer(&mut out, &summary)?;
        writeln!(out)?;
    } else {
        messages.say(args, &summary.line());
    }
    match status {
        Some(status) if status != 0 => Err(Error::Command(status)),
        _ if summary.intervals == 0 => Err(Error::Failed(format!("nothing was recorded: {why}"))),
        _ => Ok(()),
    }
}

/// Records interval by interval until the end. Returns the command's exit status.
fn record(
    args: &RecordArgs,
    recorder: &mut Recorders<'_>,
    signals: &mut Signals,
    command: &mut Option<Command>,
    messages: &Messages,
) -> Result<Option<u8>, Error> {
    let begun = Instant::now();
    let until = args.duration.map(|length| begun + length);
    loop {
        let due = next(args.interval, until);
        let mut ended = None;
        while Instant::now() < due {
            if signals.stop(command.as_ref()) {
                recorder.look(true)?;
                return Ok(None);
            }
            if let Some(command) = command {
                ended = command.ended()?;
                if ended.is_some() {
                    break;
                }
            }
            recorder.follow();
            std::thread::sleep(NAP.min(due.saturating_duration_since(Instant::now())));
        }
        if let (Some(status), Some(command)) = (ended, command.take_if(|_| ended.is_some())) {
            recorder.ran(command.finish(status));
            recorder.look(true)?;
            return Ok(Some(command::exit_code(status)));
        }
        if let Some(command) = command {
            recorder.ran(command.news());
        }
        let last = until.is_some_and(|until| Instant::now() >= until);
        recorder.look(last)?;
        for text in recorder.messages() {
            messages.say(args, &text);
        }
        messages.progress(begun, recorder);
        if last {
            if let Some(command) = command {
                // The command continues without being recorded.
                recorder.ran(command.news());
            }
            return Ok(None);
        }
    }
}

/// The end of the next interval: a multiple of its length since 1970, so that recordings of several
/// machines have the same intervals.
fn next(interval: Duration, until: Option<Instant>) -> Instant {
    let (now, clocks) = (Instant::now(), Clocks::now());
    let length = u64::try_from(interval.as_nanos()).unwrap_or(u64::MAX).max(1);
    let due = now + Duration::from_nanos(length - clocks.realtime % length);
    until.map_or(due, |until| due.min(until))
}

/// Messages and progress on standard error.
struct Messages {
    bar: Option<ProgressBar>,
}

impl Messages {
    fn new(args: &RecordArgs) -> Messages {
        // Standard error belongs to the command's output, if there is one.
        let shown = args.command.is_empty() && std::io::stderr().is_terminal();
        Messages { bar: shown.then(ProgressBar::new_spinner) }
    }

    fn progress(&self, begun: Instant, recorder: &Recorders<'_>) {
        let Some(bar) = &self.bar else { return };
        let state = recorder.server.state();
        let (length, size) = (begun.elapsed().as_secs_f64(), recorder.size() as f64);
        let intervals = units::whole(recorder.server.summary.intervals);
        bar.set_message(format!(
            "{state}: {}, {intervals} intervals, {}",
            units::duration(length.floor()),
            units::bytes(size)
        ));
        bar.tick();
    }

    fn clear(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    fn say(&self, args: &RecordArgs, text: &str) {
        let say = || view::escape::say_of(args.target.as_deref(), text);
        match &self.bar {
            Some(bar) => bar.suspend(say),
            None => say(),
        }
    }
}
