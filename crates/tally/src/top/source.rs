// SPDX-License-Identifier: PostgreSQL
//! Where the full-screen view's intervals come from: a server that runs, or a recording.

use std::time::{Duration, Instant};

use super::screen::{Ask, Screen};
use super::views;
use live::feed::Feed;

/// The first interval is short, so that there is soon something to see.
const FIRST: Duration = Duration::from_millis(500);

/// A source of intervals. What goes wrong is said on the screen.
pub trait Source {
    /// When the next interval is to come; `None`: not by itself.
    fn due(&self, screen: &Screen) -> Option<Instant>;
    /// It is due.
    fn turn(&mut self, screen: &mut Screen);
    /// Do what the screen asks for, where that is of intervals.
    fn answer(&mut self, ask: Ask, screen: &mut Screen);
    /// The user has done something: see what is wanted now.
    fn wanted(&mut self, screen: &mut Screen);
}

/// A server that runs.
#[derive(Debug)]
pub struct Live {
    feed: Feed,
    due: Instant,
    /// Length of an interval.
    length: Duration,
}

impl Live {
    /// From now on.
    pub fn new(feed: Feed, screen: &Screen) -> Live {
        let due = Instant::now() + FIRST.min(screen.length);
        let mut live = Live { feed, due, length: screen.length };
        live.ask_for_more(screen);
        live
    }

    /// Ask the feed for what this pane shows. Returns whether that is new.
    fn ask_for_more(&mut self, screen: &Screen) -> bool {
        let view = screen.view();
        (views::of_statements(view) && self.feed.ask_for_statements())
            || (views::of_io(view) && self.feed.ask_for_io())
    }
}

impl Source for Live {
    fn due(&self, _screen: &Screen) -> Option<Instant> {
        Some(self.due)
    }

    fn turn(&mut self, screen: &mut Screen) {
        screen.step(self.feed.step());
        // What was late is not made up for.
        self.due = (self.due + self.length).max(Instant::now());
    }

    fn answer(&mut self, ask: Ask, screen: &mut Screen) {
        match ask {
            Ask::Further(by) if by < 0 => {
                screen.notice = Some("this is the oldest kept interval".into());
            }
            Ask::Further(_) => {
                screen.notice = Some("this is the newest interval; l resumes".into());
            }
            Ask::Seek(_) => {
                screen.notice = Some("not among the kept intervals".into());
            }
            _ => {}
        }
    }

    fn wanted(&mut self, screen: &mut Screen) {
        if self.length != screen.length {
            self.length = screen.length;
            self.due = Instant::now() + self.length;
        }
        if self.ask_for_more(screen) {
            self.due = Instant::now();
        }
    }
}
