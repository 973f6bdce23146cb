// SPDX-License-Identifier: PostgreSQL
//! Connects the screen with the source of its intervals: passes intervals and keys to the screen's state, and
//! does what the screen requests.

use std::path::Path;
use std::time::Instant;

use crossterm::event::Event;
use ratatui::Frame;

use super::saved::{self, Saved};
use super::screen::{Ask, Screen};
use super::source::Source;
use super::TopArgs;
use super::{draw, export};
use error::Error;
use terminal::Terminal;
use terminal::{drive, App};

/// Runs the view until the user quits, or until `until`.
pub fn run(
    screen: &mut Screen,
    source: &mut dyn Source,
    until: Option<Instant>,
) -> Result<(), Error> {
    let mouse = screen.mouse;
    drive(&mut Top { screen, source }, mouse, until)
}

struct Top<'t> {
    screen: &'t mut Screen,
    source: &'t mut dyn Source,
}

impl App for Top<'_> {
    fn draw(&mut self, frame: &mut Frame<'_>) {
        self.source.wanted(self.screen);
        draw::draw(frame, self.screen);
    }

    fn advance(&mut self, now: Instant) -> bool {
        if self.source.due(self.screen).is_some_and(|due| now >= due) {
            self.source.turn(self.screen);
            return true;
        }
        self.source.news(self.screen)
    }

    fn due(&self) -> Option<Instant> {
        self.source.due(self.screen)
    }

    fn event(&mut self, event: Event, terminal: &mut Terminal) -> Result<bool, Error> {
        let ask = match event {
            Event::Key(key) => self.screen.key(key),
            Event::Mouse(event) => self.screen.mouse(event),
            _ => None,
        };
        match ask {
            Some(Ask::Quit) => return Ok(false),
            Some(ask) => answer(ask, self.screen, self.source, terminal)?,
            None => {}
        }
        Ok(true)
    }
}

/// The screen as the command line and the saved view specify it.
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

/// Does what the screen cannot do by itself.
fn answer(
    ask: Ask,
    screen: &mut Screen,
    source: &mut dyn Source,
    terminal: &mut Terminal,
) -> Result<(), Error> {
    let notice = match ask {
        Ask::Export(form) => match export::export(screen, form, Path::new(".")) {
            Ok(path) => format!("wrote {}", path.display()),
            Err(problem) => problem,
        },
        Ask::Save => match saved::path() {
            Some(path) => match saved::save(&screen.saved(), &path) {
                Ok(()) => format!("saved view to {}", path.display()),
                Err(problem) => problem,
            },
            None => "could not save the view: set HOME or XDG_CONFIG_HOME".to_string(),
        },
        Ask::Mouse => {
            screen.mouse = !screen.mouse;
            terminal.listen(screen.mouse)?;
            match screen.mouse {
                true => "mouse on; m gives it back to the terminal".to_string(),
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
