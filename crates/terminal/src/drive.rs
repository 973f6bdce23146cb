// SPDX-License-Identifier: PostgreSQL
//! The loop of a full-screen view: draws it, passes on the user's input, and ends on a signal.

use std::sync::atomic::Ordering;
use std::time::Duration;
use std::time::Instant;

use crossterm::event::{Event, KeyEventKind};
use error::Error;
use ratatui::Frame;

use crate::input::Input;
use crate::take::Terminal;

/// A full-screen view.
pub trait App {
    /// Draws it.
    fn draw(&mut self, frame: &mut Frame<'_>);
    /// Takes in what is new at this time; returns whether to draw it.
    fn advance(&mut self, now: Instant) -> bool;
    /// When it has to advance next, at the latest; `None` if only when something is new.
    fn due(&self) -> Option<Instant>;
    /// Handles a key or a mouse event; returns false if the user quits.
    fn event(&mut self, event: Event, terminal: &mut Terminal) -> Result<bool, Error>;
}

/// Runs the view until the user quits, or until `until`.
pub fn drive(app: &mut dyn App, mouse: bool, until: Option<Instant>) -> Result<(), Error> {
    let ended = command::stop_on_signals()?;
    let input = Input::open()?;
    let mut terminal = Terminal::take(mouse)?;
    loop {
        terminal.draw(|frame| app.draw(frame))?;
        loop {
            let now = Instant::now();
            if ended.load(Ordering::Relaxed) || until.is_some_and(|until| now >= until) {
                return Ok(());
            }
            if app.advance(now) {
                break;
            }
            let wait = app.due().map_or(NAP, |due| due.saturating_duration_since(now));
            match input.next(wait.min(NAP))? {
                Some(Event::Key(key)) if key.kind == KeyEventKind::Release => continue,
                Some(event @ (Event::Key(_) | Event::Mouse(_))) => {
                    if !app.event(event, &mut terminal)? {
                        return Ok(());
                    }
                }
                Some(Event::Resize(..)) => {}
                _ => continue,
            }
            break;
        }
    }
}

/// How often a sleeping view checks whether it should end.
pub const NAP: Duration = Duration::from_millis(100);
