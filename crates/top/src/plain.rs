// SPDX-License-Identifier: PostgreSQL
//! Prints intervals as text or JSON, one after the other.

use std::io::Write;
use std::time::Instant;

use super::args::INTERVAL;
use super::parameters::SlowExecutionWatch;
use super::replay::{Frames, RecordingSource};
use super::{text, views};
use super::{TopArgs, View};
use diagnose::Diagnoses;
use error::Error;
use live::follower::{Follower, Step};
use serde::Serialize;
use terminal::NAP;
use view::locks;
use view::rows::{Open, RowOptions};
use view::Reading;

/// Prints the requested number of intervals, or until the reader closes the pipe.
pub fn print(
    args: &TopArgs,
    mut follower: Follower,
    mut slow: Option<SlowExecutionWatch>,
    color: bool,
) -> Result<(), Error> {
    let mut left = if args.once { Some(1) } else { args.count };
    let wish = views::wish(args, Open::All);
    let length = args.interval.unwrap_or(INTERVAL);
    let mut due = Instant::now();
    let mut last = None;
    while left != Some(0) {
        due = (due + length).max(Instant::now());
        while let Some(wait) = due.checked_duration_since(Instant::now()) {
            if args.until.is_some_and(|until| Instant::now() >= until) {
                return Ok(());
            }
            std::thread::sleep(wait.min(NAP));
            follow(args, &mut slow, &follower);
        }
        follow(args, &mut slow, &follower);
        for mut step in follower.step(true) {
            if let Some(Err(error)) = slow.as_mut().map(|slow| slow.take_in(&mut step, &follower)) {
                note(args, &error.to_string(), &mut None);
            }
            match step {
                Step::Interval(reading) => {
                    write(args, &reading, &wish, color)?;
                    left = left.map(|n| n - 1);
                    last = None;
                }
                Step::Attached { .. } => note(args, "the server was restarted", &mut last),
                Step::Absent(why) if args.once => return Err(Error::Failed(why.waiting())),
                Step::Absent(why) => note(args, &why.waiting(), &mut last),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Reads slow executions, so that the sessions do not overwrite them.
fn follow(args: &TopArgs, slow: &mut Option<SlowExecutionWatch>, follower: &Follower) {
    if let Some(Err(error)) = slow.as_mut().map(|slow| slow.follow(follower)) {
        note(args, &error.to_string(), &mut None);
    }
}

/// Number of intervals of a recording to read at once.
const BATCH: usize = 600;

/// The same for a recording: its intervals without waiting, or all merged into one.
pub fn print_recording(
    args: &TopArgs,
    mut recording: RecordingSource,
    color: bool,
) -> Result<(), Error> {
    let wish = views::wish(args, Open::All);
    if args.once || args.per_second {
        write(args, &recording.whole()?, &wish, color)?;
    } else {
        let most = args.count.and_then(|count| usize::try_from(count).ok());
        let end = most.map_or(recording.len(), |most| most.min(recording.len()));
        for begin in (0..end).step_by(BATCH) {
            let scenes = recording.read(begin..(begin + BATCH).min(end)).map_err(Error::Failed)?;
            for mut scene in scenes {
                let last = &mut None;
                scene.gap.iter().for_each(|gap| note(args, &format!("gap: {gap}"), last));
                let views = if args.json { View::All } else { args.view.unwrap_or(View::All) };
                recording.fill(&mut scene.reading, views).map_err(Error::Failed)?;
                if views::of_blocking(views) {
                    recording.fill_sessions(&mut scene.reading, None).map_err(Error::Failed)?;
                }
                write(args, &scene.reading, &wish, color)?;
            }
        }
    }
    recording.problems().iter().for_each(|problem| note(args, problem, &mut None));
    Ok(())
}

/// Writes a message to standard error, unless it repeats the last one.
fn note(args: &TopArgs, text: &str, last: &mut Option<String>) {
    if last.as_deref() != Some(text) {
        view::escape::say_of(args.target.as_deref(), text);
        *last = Some(text.to_string());
    }
}

/// One line of JSON.
#[derive(Debug, Serialize)]
pub struct Json<'r> {
    /// The interval.
    #[serde(flatten)]
    pub reading: &'r Reading,
    /// The diagnoses.
    #[serde(flatten)]
    pub answer: &'r Diagnoses,
}

fn write(args: &TopArgs, reading: &Reading, wish: &RowOptions, color: bool) -> Result<(), Error> {
    let mut out = view::escape::coloured_stdout(color);
    let answer = Diagnoses::examine(reading);
    if args.json {
        serde_json::to_writer(&mut out, &Json { reading, answer: &answer })?;
        writeln!(out)?;
    } else {
        let view = args.view.unwrap_or(View::All);
        let width = command::terminal_width();
        if args.per_second {
            let width = width.unwrap_or(usize::MAX);
            out.write_all(locks::per_second(&reading.interval, wish, width).as_bytes())?;
            return Ok(out.flush()?);
        }
        out.write_all(text::render(reading, &answer, wish, view, width, color).as_bytes())?;
    }
    Ok(out.flush()?)
}
