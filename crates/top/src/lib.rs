// SPDX-License-Identifier: PostgreSQL
//! `tally top`: shows where the time goes, interval by interval; full-screen on a terminal, otherwise as text or
//! JSON.
//!
//! For the full-screen view, the crate `terminal` waits for the user and converts keys and clicks to actions. `screen` is the state that actions change, `draw` draws it, and `main_loop` connects them.

mod args;
pub mod draw;
mod export;
mod help;
mod history;
mod main_loop;
mod moment;
mod orders;
mod parameters;
mod plain;
mod replay;
mod saved;
pub mod screen;
mod source;
mod text;
mod tracing;
mod trend;
mod views;

use std::io::IsTerminal;
use std::path::Path;

use error::Error;
use live::follower::{Figures, FollowOptions, Follower};
use parameters::SlowExecutionWatch;
use replay::{Frames, Player, RecordingSource};
use report::RecordingPlace;
use screen::Play;
use source::Live;

pub use args::{TopArgs, View};

use args::DIAGNOSED;

/// Runs `tally top`.
pub fn run(args: &TopArgs, color: bool) -> Result<(), Error> {
    if args.per_second && args.view != Some(View::Lwlocks) {
        return Err(Error::Usage("--per-second requires --view lwlocks".into()));
    }
    let plain = args.once || args.json || args.count.is_some() || args.per_second;
    let plain = plain || !view::escape::process_stdout().is_terminal();
    if let Some(directory) = &args.replay {
        return replay(args, directory, plain, color);
    }
    if args.parameters && plain && !args.json {
        let text =
            "--parameters requires the full-screen view or --json: text has no page of a statement";
        return Err(Error::Usage(text.into()));
    }
    let place = args.sampling.source(args.target.as_deref())?;
    if args.parameters {
        place.file("--parameters")?;
    }
    let mut screen = (!plain).then(|| main_loop::screen(args, color));
    let first = match &screen {
        Some(screen) => screen.view(),
        None if args.json => View::All,
        None => args.view.unwrap_or(View::All),
    };
    let wanted = FollowOptions {
        figures: Figures::Intervals,
        kernel: !args.no_witness,
        statements: views::of_statements(first),
        // too many texts for each interval
        plans: !args.json,
        storage: views::of_io(first),
        leaders: args.leaders,
        blocking: true,
        vacuum: true,
        recent: Some(DIAGNOSED),
        ..FollowOptions::default()
    };
    let follower = Follower::open(place, wanted)?;
    if let (Some(sort), Some(segment)) = (&args.sort, follower.segment()) {
        sort.check_on(segment)?;
    }
    let slow = args.parameters.then(|| SlowExecutionWatch::start(&follower)).transpose()?;
    match &mut screen {
        Some(screen) => {
            let mut source = Live::new(follower, slow, args.target.as_deref(), screen);
            main_loop::run(screen, &mut source, args.until)
        }
        None => plain::print(args, follower, slow, color),
    }
}

/// Runs `tally top --replay`.
fn replay(args: &TopArgs, directory: &Path, plain: bool, color: bool) -> Result<(), Error> {
    let (edges, host) = ((args.from, args.to), args.connection.host.as_deref());
    let place = RecordingPlace::open(directory, (args.cluster.as_deref(), host), edges)?;
    let recording = RecordingSource::open(place.recording(host)?, edges, args.interval)?;
    if plain {
        return plain::print_recording(args, recording, color);
    }
    let mut screen = main_loop::screen(args, color);
    screen.length = args.interval.unwrap_or_default().max(recording.interval());
    let name = place.name();
    screen.play = Some(Play::new(name, recording.len(), args.speed.unwrap_or(1.0)));
    let mut source = Player::new(recording, &mut screen);
    main_loop::run(&mut screen, &mut source, args.until)
}
