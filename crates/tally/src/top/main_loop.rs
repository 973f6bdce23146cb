// SPDX-License-Identifier: PostgreSQL
//! The loop of the full-screen view: passes intervals and keys to the screen's state, draws the state,
//! and does what the screen requests.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Instant;

use ratatui::crossterm::event::{Event, KeyEventKind};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::input::Input;
use super::saved::{self, Saved};
use super::screen::{Ask, Screen};
use super::source::Source;
use super::terminal::Terminal;
use super::TopArgs;
use super::{draw, export, NAP};
use error::Error;

/// Runs the view until the user quits, or until `until`.
pub fn run(
    screen: &mut Screen,
    source: &mut dyn Source,
    until: Option<Instant>,
) -> Result<(), Error> {
    let ended = Arc::new(AtomicBool::new(false));
    for signal in [SIGTERM, SIGHUP, SIGINT] {
        signal_hook::flag::register(signal, ended.clone())?;
    }
    let input = Input::open()?;
    let mut terminal = Terminal::take(screen.mouse)?;
    loop {
        source.wanted(screen);
        terminal.draw(|frame| draw::draw(frame, screen))?;
        loop {
            let now = Instant::now();
            if ended.load(Ordering::Relaxed) || until.is_some_and(|until| now >= until) {
                return Ok(());
            }
            let due = source.due(screen);
            if due.is_some_and(|due| now >= due) {
                source.turn(screen);
                break;
            }
            if source.news(screen) {
                break;
            }
            let wait = due.map_or(NAP, |due| due.saturating_duration_since(now));
            let Some(event) = input.next(wait.min(NAP))? else {
                continue;
            };
            let ask = match event {
                Event::Key(key) if key.kind == KeyEventKind::Release => continue,
                Event::Key(key) => screen.key(key),
                Event::Mouse(event) => screen.mouse(event),
                Event::Resize(..) => break,
                _ => continue,
            };
            match ask {
                Some(Ask::Quit) => return Ok(()),
                Some(ask) => answer(ask, screen, source, &mut terminal)?,
                None => {}
            }
            break;
        }
    }
}

/// The screen as the command line and the saved view want it.
pub fn screen(args: &TopArgs, color: bool) -> Screen {
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

/// Does what the screen cannot do itself.
fn answer(
    ask: Ask,
    screen: &mut Screen,
    source: &mut dyn Source,
    terminal: &mut Terminal,
) -> Result<(), Error> {
    let notice = match ask {
        Ask::Export(form) => match export::export(screen, form, Path::new(".")) {
            Ok(path) => format!("written: {}", path.display()),
            Err(problem) => problem,
        },
        Ask::Save => match saved::path() {
            Some(path) => match saved::save(&screen.saved(), &path) {
                Ok(()) => format!("saved: {}", path.display()),
                Err(problem) => problem,
            },
            None => "the view is not saved: set HOME or XDG_CONFIG_HOME".to_string(),
        },
        Ask::Mouse => {
            screen.mouse = !screen.mouse;
            terminal.listen(screen.mouse)?;
            match screen.mouse {
                true => "mouse on; m returns it to the terminal".to_string(),
                false => "mouse off".to_string(),
            }
        }
        Ask::Quit | Ask::Session(_) | Ask::Trace { .. } | Ask::Further(_) | Ask::Seek(_) => {
            source.answer(ask, screen);
            return Ok(());
        }
    };
    screen.notice = Some(notice);
    Ok(())
}
