// SPDX-License-Identifier: PostgreSQL
//! `tally level`: shows or sets the measuring level: until further notice, for a limited time, or periodically.
//!
//! The end of a temporary level is stored in the segment, so that the server's processes end it if this command
//! cannot.

use std::io::Write;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use segment::{Level, LevelEnd, LevelSetting, LevelSwitch, Segment};
use serde::Serialize;

use clap::Args;
use command::interval;
use command::ConnectionFlags;
use error::Error;
use live::target::{self, Spec};
use view::duration::within;
use view::units::duration;

/// Arguments of `tally level`.
#[derive(Debug, Args)]
#[command(after_help = "\
Levels: off measures nothing; waits measures the ledger, commands, statements, files and timed \
functions; locks also measures lightweight and heavyweight locks. A new level applies at once to all \
processes that have loaded pg_tally.

The level lasts until it is set again, the setting pg_tally.level changes, or the server restarts. \
`tally enable --level` changes the setting. Setting the level requires write access to the segment \
(the server's user or root).

With --for, the previous level is restored after that time, or when the command is interrupted. If the \
command is killed, the server's processes end level locks themselves. With --every, this repeats \
until the command is interrupted; views show locks per second of the time at level locks.

Examples:
  tally level
  sudo -u postgres tally level locks --for 60s
  sudo -u postgres tally level locks --for 60s --every 300s")]
pub struct LevelArgs {
    /// off, waits or locks; omit it to print the current level
    #[arg(value_name = "LEVEL")]
    pub level: Option<String>,
    /// Segment, data directory or connection string
    #[arg(value_name = "TARGET")]
    pub target: Option<String>,
    /// Connection options
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// Restore the previous level after this time: seconds, or with a unit (500ms, 2min)
    #[arg(long = "for", value_name = "TIME", value_parser = interval)]
    pub length: Option<Duration>,
    /// Repeat every TIME until interrupted
    #[arg(long, value_name = "TIME", requires = "length", value_parser = period)]
    pub every: Option<Duration>,
    /// Print JSON (docs/reference-json.md)
    #[arg(long, conflicts_with = "length")]
    pub json: bool,
}

fn period(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100), Duration::from_secs(86_400))
}

/// How often to check for signals and for the server.
const NAP: Duration = Duration::from_millis(100);

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct LevelRow {
    level: Level,
    level_left_seconds: Option<f64>,
    level_then: Option<Level>,
}

impl LevelArgs {
    /// The connection flags, and TARGET, which may stand in the place of the level.
    pub fn connection_and_target(&mut self) -> (&ConnectionFlags, &mut Option<String>) {
        let is_target =
            |text: &String| text.parse::<Level>().is_err() && Spec::parse(Some(text)).is_ok();
        match self.target.is_none() && self.level.as_ref().is_some_and(is_target) {
            true => (&self.connection, &mut self.level),
            false => (&self.connection, &mut self.target),
        }
    }
}

/// Prints or sets the level.
pub fn run(args: &LevelArgs) -> Result<(), Error> {
    let (level, target) = level_and_target(args)?;
    let source = target::source(target)?;
    let segment = source.open()?;
    let Some(level) = level else {
        return print(&segment, args.json);
    };
    source.file("setting the level")?;
    if segment.server_runs() == Some(false) {
        return Err(not_running(&segment));
    }
    let switch = segment.level_switch()?;
    // A killed `tally cost` may have left statement statistics paused.
    switch.pause_statements(false);
    let mut out = view::escape::stdout();
    if let Some(length) = args.length {
        return for_a_while(&segment, &switch, level, length, args.every);
    }
    let before = switch.set(level);
    if args.json {
        return print(&segment, true);
    }
    writeln!(
        out,
        "level {level} (it was {before}), until it is set again, pg_tally.level changes or the \
         server restarts"
    )?;
    Ok(())
}

/// Separates level and target. A first argument that is neither is reported as a misspelt level.
fn level_and_target(args: &LevelArgs) -> Result<(Option<Level>, Option<&str>), Error> {
    let target = args.target.as_deref();
    let (level, target) = match args.level.as_deref() {
        None => (None, target),
        Some(text) => match text.parse::<Level>() {
            Ok(level) => (Some(level), target),
            Err(_) if target.is_none() && Spec::parse(Some(text)).is_ok() => (None, Some(text)),
            Err(error) => return Err(Error::Usage(error)),
        },
    };
    let (Some(length), None) = (args.length, level) else {
        return match (args.length, args.every) {
            (Some(length), Some(every)) if every <= length => Err(Error::Usage(format!(
                "--every {every:?} must be longer than --for {length:?}: --every is the time from one \
                 start to the next"
            ))),
            _ => Ok((level, target)),
        };
    };
    Err(Error::Usage(format!("--for {length:?} needs a level: off, waits or locks")))
}

fn print(segment: &Segment, json: bool) -> Result<(), Error> {
    let LevelSetting { level, end } = segment.level_setting()?;
    let now = segment.clock().now();
    let left = end.map(|end| segment.clock().seconds(end.tick.saturating_sub(now)));
    if json {
        let level_then = end.map(|end| end.then);
        return view::output::json(&LevelRow { level, level_left_seconds: left, level_then });
    }
    let mut out = view::escape::stdout();
    match (left, end) {
        (Some(left), Some(end)) => {
            writeln!(out, "{level}, for another {}, then {}", duration(left), end.then)?
        }
        _ => writeln!(out, "{level}")?,
    }
    Ok(())
}

fn not_running(segment: &Segment) -> Error {
    Error::Failed(format!(
        "{}: its server ({}) is no longer running",
        segment.path().display(),
        segment.header().host
    ))
}

/// How a period at the level ended.
enum End {
    /// This command or the server's processes restored this level.
    Restored(Level),
    /// Another process set this level, which stays in force.
    Taken(Level),
}

fn for_a_while(
    segment: &Segment,
    switch: &LevelSwitch,
    level: Level,
    length: Duration,
    every: Option<Duration>,
) -> Result<(), Error> {
    let stop = command::stop_on_signals_and_quit()?;
    let line = |text: String| -> Result<(), Error> {
        let mut out = view::escape::stdout();
        writeln!(out, "{text}")?;
        Ok(out.flush()?)
    };
    let began = Instant::now();
    loop {
        let turn = Instant::now();
        let held = Held::set(switch, segment, level, length);
        let then = held.then;
        if every.is_none() || turn.duration_since(began) < NAP {
            let again = every.map_or(String::new(), |every| {
                format!(", every {}, until interrupted", duration(every.as_secs_f64()))
            });
            let length = duration(length.as_secs_f64());
            line(format!("level {level} for {length}, then {then}{again}"))?;
        }
        let waited = wait(segment, turn + length, &format!("level {level}, then {then}"), &stop);
        let end = held.end();
        waited?;
        let interrupted = stop.load(Ordering::Relaxed);
        match (end, every) {
            (End::Restored(now), None) if interrupted => {
                return Err(Error::Failed(format!(
                    "interrupted after {}; the level is {now} again",
                    duration(turn.elapsed().as_secs_f64())
                )));
            }
            (End::Restored(now), None) => return line(format!("level {now} again")),
            (End::Taken(now), None) => {
                return Err(Error::Failed(format!(
                    "another process has set the level to {now}, which is kept"
                )));
            }
            (End::Restored(now) | End::Taken(now), Some(_)) if interrupted => {
                return line(format!("interrupted; level {now}"));
            }
            (_, Some(every)) => {
                let text = format!("level {then}, then {level} again");
                wait(segment, turn + every, &text, &stop)?;
                if stop.load(Ordering::Relaxed) {
                    return line(format!("interrupted; level {}", switch.level()));
                }
            }
        }
    }
}

/// A temporary level. The previous level is restored on drop, also after a panic.
struct Held<'s> {
    switch: &'s LevelSwitch,
    mine: LevelSetting,
    found: LevelSetting,
    then: Level,
    segment: &'s Segment,
    ended: bool,
}

impl<'s> Held<'s> {
    fn set(switch: &'s LevelSwitch, segment: &'s Segment, level: Level, length: Duration) -> Self {
        let found = switch.level_setting();
        let clock = segment.clock();
        let tick = clock.now().saturating_add(clock.ticks(length.as_secs_f64()));
        // If the previous level is temporary too, the level after its end is restored.
        let then = found.end.map_or(found.level, |end| end.then);
        let mine = LevelSetting { level, end: Some(LevelEnd { tick, then }) };
        switch.apply(mine);
        Self { switch, mine, found, then, segment, ended: false }
    }

    fn end(mut self) -> End {
        self.restore()
    }

    fn restore(&mut self) -> End {
        self.ended = true;
        let mut setting = self.switch.level_setting();
        // A server process clears the end before it sets the next level.
        let began = Instant::now();
        while setting == (LevelSetting { end: None, ..self.mine }) && began.elapsed() < NAP {
            std::thread::sleep(Duration::from_millis(1));
            setting = self.switch.level_setting();
        }
        if setting == self.mine {
            // The previous level may itself have an end in the future.
            let over = self.found.end.is_some_and(|end| end.tick <= self.segment.clock().now());
            let back = if over { LevelSetting { level: self.then, end: None } } else { self.found };
            self.switch.apply(back);
            return End::Restored(back.level);
        }
        if setting.level == self.then {
            return End::Restored(self.then);
        }
        End::Taken(setting.level)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.restore();
        }
    }
}

/// Waits until `until`, or until a signal arrives. Fails if the server ends meanwhile.
fn wait(segment: &Segment, until: Instant, text: &str, stop: &AtomicBool) -> Result<(), Error> {
    let began = Instant::now();
    let length = until.saturating_duration_since(began);
    // Shown on standard error if that is a terminal.
    let bar = ProgressBar::new(length.as_millis() as u64);
    if let Ok(style) = ProgressStyle::with_template("{bar:30} {eta:>4} left  {msg}") {
        bar.set_style(style);
    }
    bar.set_message(text.to_string());
    while !stop.load(Ordering::Relaxed) {
        let left = until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            break;
        }
        if segment.server_runs() == Some(false) || segment.replaced() {
            bar.finish_and_clear();
            return Err(lost(segment.path()));
        }
        bar.set_position(began.elapsed().as_millis() as u64);
        std::thread::sleep(left.min(NAP));
    }
    bar.finish_and_clear();
    Ok(())
}

fn lost(path: &Path) -> Error {
    Error::Failed(format!(
        "{}: the server stopped or was restarted, so the level is that of its setting",
        path.display()
    ))
}
