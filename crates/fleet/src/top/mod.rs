// SPDX-License-Identifier: PostgreSQL
//! `tally fleet top`: the named queries as panes of a terminal, run again at each interval; otherwise text or
//! JSON.
//!
//! [`screen`] is the state that keys and results change, [`draw`] draws it, and this module connects them with
//! the terminal and with the thread that runs queries.

mod ask;
mod draw;
mod help;
mod plain;
mod rows;
mod screen;
#[cfg(test)]
mod tests;

use std::io::IsTerminal;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{channel, Receiver, Sender, TryRecvError};
use std::time::{Duration, Instant};

use crossterm::event::Event;
use error::Error;
use fleet_sql::{HostFilter, Query, Window};
use ratatui::Frame;
use report::fleet::{Failure, FleetQueryResult};
use view::table::{speaks_utf8, Table};

use super::args::FleetTopArgs;
use super::asking::Asking;
use ask::{ask, diagnose};
use screen::{FleetScreen, PaneQuery, DOCTOR, PANES};
use terminal::Look;
use terminal::Terminal;
use terminal::{drive, App};

/// Runs the verb.
pub fn run(args: &FleetTopArgs, color: bool) -> Result<(), Error> {
    let only = HostFilter { cluster: args.cluster.clone(), host: args.host.clone() };
    Window::new(0, 1, only.clone()).map_err(Error::Usage)?;
    let asking = Asking::new(args.engine.clone(), args.root.clone())?;
    asking.check()?;
    let plain = args.once
        || args.json
        || args.count.is_some()
        || !view::escape::process_stdout().is_terminal();
    if plain {
        return plain::print(args, &asking, &only, color);
    }
    let look = Look { color, ascii: !speaks_utf8() };
    let mut screen = FleetScreen::new(only, asking.to_string(), args.interval, look);
    match args.view {
        Some(query) => screen.show(query.name),
        None if args.root.is_some() => screen.show(DOCTOR),
        None => {}
    }
    screen.filter = args.filter.as_deref().unwrap_or("").to_lowercase();
    let (wanted, wishes) = channel();
    let (replies, answered) = channel();
    let shown = AtomicUsize::new(screen.pane);
    std::thread::scope(|scope| {
        scope.spawn(|| work(args, &asking, &shown, wishes, replies));
        let mut top = Top { screen, wanted, answered, shown: &shown, drawn: Instant::now() };
        let done = drive(&mut top, false, None);
        // What is running is no longer needed.
        asking.stop();
        shown.store(PANES.len(), Ordering::Relaxed);
        done
    })
}

/// The result of a query; `None`: it was given up because another pane is shown.
type Reply = (PaneQuery, Option<Result<FleetQueryResult<Table>, Failure>>);

/// Runs queries until the screen is closed; `shown` is the pane on the screen.
fn work(
    args: &FleetTopArgs,
    asking: &Asking,
    shown: &AtomicUsize,
    wishes: Receiver<PaneQuery>,
    replies: Sender<Reply>,
) {
    for wanted in wishes {
        let answer = match Query::of_name(PANES[wanted.pane].1) {
            Some(query) => Some(ask(args, asking, query, &wanted.only)),
            None => diagnose(args, &wanted.only, || shown.load(Ordering::Relaxed) == wanted.pane),
        };
        if replies.send((wanted, answer)).is_err() {
            return;
        }
    }
}

struct Top<'s> {
    screen: FleetScreen,
    /// The pane on the screen.
    shown: &'s AtomicUsize,
    wanted: Sender<PaneQuery>,
    answered: Receiver<Reply>,
    drawn: Instant,
}

impl App for Top<'_> {
    fn draw(&mut self, frame: &mut Frame<'_>) {
        self.drawn = Instant::now();
        draw::draw(frame, &mut self.screen, self.drawn);
    }

    fn advance(&mut self, now: Instant) -> bool {
        let mut is_new = false;
        self.shown.store(self.screen.pane, Ordering::Relaxed);
        match self.answered.try_recv() {
            Ok((wanted, result)) => {
                self.screen.take(&wanted, result);
                is_new = true;
            }
            Err(TryRecvError::Empty | TryRecvError::Disconnected) => {}
        }
        if let Some(wanted) = self.screen.wanted(now) {
            // The thread that runs queries ends after this.
            let _ = self.wanted.send(wanted);
            is_new = true;
        }
        // The running time of a query is shown in seconds.
        is_new || self.screen.asking.is_some() && now >= self.drawn + Duration::from_secs(1)
    }

    fn due(&self) -> Option<Instant> {
        None
    }

    fn event(&mut self, event: Event, terminal: &mut Terminal) -> Result<bool, Error> {
        let mouse = self.screen.mouse;
        let goes_on = match event {
            Event::Key(key) => self.screen.key(key),
            Event::Mouse(event) => {
                self.screen.click(event);
                true
            }
            _ => true,
        };
        if self.screen.mouse != mouse {
            terminal.listen(self.screen.mouse)?;
        }
        Ok(goes_on)
    }
}
