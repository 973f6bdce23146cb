// SPDX-License-Identifier: PostgreSQL
//! The loop of the full-screen view: intervals and keys into the screen's state, the state onto
//! the terminal, and what the screen asks for.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ratatui::crossterm::event::{self, Event, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::feed::Feed;
use super::saved::{self, Saved};
use super::screen::{Ask, Screen};
use super::terminal::Terminal;
use super::{draw, export, views, NAP};
use crate::cli::TopArgs;
use crate::error::Error;

/// The first interval is short, so that there is soon something to see.
const FIRST: Duration = Duration::from_millis(500);

/// Show it until the user has seen enough.
pub fn run(args: &TopArgs, mut feed: Feed, color: bool) -> Result<(), Error> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP, SIGINT] {
        signal_hook::flag::register(signal, ended.clone())?;
    }
    let mut screen = begin(args, color);
    let mut terminal = Terminal::take(screen.mouse)?;
    ask_for(&screen, &mut feed);
    let mut due = Instant::now() + FIRST.min(screen.length);
    loop {
        terminal.draw(|frame| draw::draw(frame, &mut screen))?;
        loop {
            let now = Instant::now();
            if ended.load(Ordering::Relaxed) || args.until.is_some_and(|until| now >= until) {
                return Ok(());
            }
            if now >= due {
                screen.step(feed.next());
                // What was late is not made up for.
                due = (due + screen.length).max(Instant::now());
                break;
            }
            if !event::poll(due.saturating_duration_since(now).min(NAP))? {
                continue;
            }
            let length = screen.length;
            let ask = match event::read()? {
                Event::Key(key) if key.kind == KeyEventKind::Release => continue,
                Event::Key(key) => screen.key(key),
                Event::Mouse(event) => screen.mouse(event),
                Event::Resize(..) => break,
                _ => continue,
            };
            match ask {
                Some(Ask::Quit) => return Ok(()),
                Some(ask) => answer(ask, &mut screen, &mut terminal)?,
                None => {}
            }
            if screen.length != length {
                due = Instant::now() + screen.length;
            }
            if ask_for(&screen, &mut feed) {
                due = Instant::now();
            }
            break;
        }
    }
}

/// The screen as the command line and what was saved want it.
fn begin(args: &TopArgs, color: bool) -> Screen {
    let path = saved::path().filter(|_| !args.no_config);
    match path.map_or(Ok(Saved::default()), |path| saved::load(&path)) {
        Ok(saved) => Screen::new(args, &saved, color),
        Err(problem) => {
            let mut screen = Screen::new(args, &Saved::default(), color);
            screen.notice = Some(problem);
            screen
        }
    }
}

/// Ask the feed for what this pane shows. Returns whether that is new.
fn ask_for(screen: &Screen, feed: &mut Feed) -> bool {
    let view = screen.view();
    (views::of_statements(view) && feed.ask_for_statements())
        || (views::of_io(view) && feed.ask_for_io())
}

/// Do what the screen cannot.
fn answer(ask: Ask, screen: &mut Screen, terminal: &mut Terminal) -> Result<(), Error> {
    screen.notice = match ask {
        Ask::Quit => None,
        Ask::Export(form) => Some(match export::export(screen, form, Path::new(".")) {
            Ok(path) => format!("written: {}", path.display()),
            Err(problem) => problem,
        }),
        Ask::Save => Some(match saved::path() {
            Some(path) => match saved::save(&screen.saved(), &path) {
                Ok(()) => format!("saved: {}", path.display()),
                Err(problem) => problem,
            },
            None => "the view is not saved: set HOME or XDG_CONFIG_HOME".to_string(),
        }),
        Ask::Mouse => {
            screen.mouse = !screen.mouse;
            terminal.listen(screen.mouse)?;
            Some(match screen.mouse {
                true => "the mouse is listened to; m leaves it to the terminal".to_string(),
                false => "the mouse is the terminal's again".to_string(),
            })
        }
    };
    Ok(())
}
