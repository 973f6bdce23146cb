// SPDX-License-Identifier: PostgreSQL
//! Sources of the full-screen view's intervals: a running server, or a recording.

use std::time::{Duration, Instant};

use super::screen::{Ask, Screen};
use super::views;
use error::Error;
use live::backend::send;
use live::follower::Follower;

/// The first interval is short, so that something appears soon.
const FIRST: Duration = Duration::from_millis(500);

/// A source of intervals. Errors appear on the screen.
pub trait Source {
    /// When the next interval is due; `None`: none is coming.
    fn due(&self, screen: &Screen) -> Option<Instant>;
    /// Called when it is due.
    fn turn(&mut self, screen: &mut Screen);
    /// Does what the screen requests, if it concerns intervals.
    fn answer(&mut self, ask: Ask, screen: &mut Screen);
    /// Called after user input: checks what is needed now.
    fn wanted(&mut self, screen: &mut Screen);
}

/// A running server.
#[derive(Debug)]
pub struct Live {
    follower: Follower,
    /// What the user named.
    target: Option<String>,
    due: Instant,
    /// Length of an interval.
    length: Duration,
}

impl Live {
    /// Starts now.
    pub fn new(follower: Follower, target: Option<&str>, screen: &Screen) -> Live {
        let due = Instant::now() + FIRST.min(screen.length);
        let target = target.map(String::from);
        let mut live = Live { follower, target, due, length: screen.length };
        live.ask_for_more(screen);
        live
    }

    /// Asks for what this pane shows. Returns whether that changed.
    fn ask_for_more(&mut self, screen: &Screen) -> bool {
        let view = screen.view();
        let another = self.follower.want_session(screen.session);
        // A page shows its statement.
        let statements = views::of_statements(view) || screen.session.is_some();
        let more = (statements && self.follower.want_statements())
            || (views::of_io(view) && self.follower.want_storage());
        more || another && screen.session.is_some()
    }
}

impl Source for Live {
    fn due(&self, _screen: &Screen) -> Option<Instant> {
        Some(self.due)
    }

    fn turn(&mut self, screen: &mut Screen) {
        self.follower.step(true).into_iter().for_each(|step| screen.step(step));
        // Missed intervals are not caught up.
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
            Ask::Session(request) => {
                let sent = match self.follower.segment() {
                    Some(segment) => {
                        send(request.deed, request.session, segment, self.target.as_deref())
                    }
                    None => Err(Error::Failed("the server is not running".into())),
                };
                screen.notice = Some(match sent {
                    Ok(()) => request.done(),
                    Err(error) => request.failed(&error.to_string()),
                });
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
