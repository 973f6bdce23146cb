// SPDX-License-Identifier: PostgreSQL
//! Sources of the full-screen view's intervals: a running server, or a recording.

use std::sync::mpsc::{Receiver, TryRecvError};
use std::time::{Duration, Instant};

use super::parameters::SlowExecutionWatch;
use super::screen::{Ask, Request, Screen};
use super::tracing::{Tracing, LENGTH};
use super::views;
use error::Error;
use live::backend::send_aside;
use live::follower::Follower;

/// The first interval is short, so that something appears soon.
const FIRST: Duration = Duration::from_millis(500);

/// A source of intervals. Errors appear on the screen.
pub trait Source {
    /// When the next interval is due; `None`: none is coming.
    fn due(&self, screen: &Screen) -> Option<Instant>;
    /// Called when the next interval is due.
    fn turn(&mut self, screen: &mut Screen);
    /// Does what the screen requests, if it concerns intervals.
    fn answer(&mut self, ask: Ask, screen: &mut Screen);
    /// Called after user input: checks what is needed now.
    fn wanted(&mut self, screen: &mut Screen);
    /// Called periodically: whether the screen has changed by itself, for example because the server has
    /// responded.
    fn news(&mut self, _screen: &mut Screen) -> bool {
        false
    }
}

/// A running server.
#[derive(Debug)]
pub struct Live {
    follower: Follower,
    /// With `--parameters`.
    slow: Option<SlowExecutionWatch>,
    /// The target as the user specified it.
    target: Option<String>,
    due: Instant,
    /// Length of an interval.
    length: Duration,
    /// The pending request to the server, and the channel for its response.
    asked: Option<(Request, Receiver<Result<(), Error>>)>,
    /// The trace in progress.
    tracing: Option<Tracing>,
}

impl Live {
    /// Starts now.
    pub fn new(
        follower: Follower,
        slow: Option<SlowExecutionWatch>,
        target: Option<&str>,
        screen: &Screen,
    ) -> Live {
        let due = Instant::now() + FIRST.min(screen.length);
        let (target, length) = (target.map(String::from), screen.length);
        let mut live = Live { follower, slow, target, due, length, asked: None, tracing: None };
        live.ask_for_more(screen);
        live
    }

    /// Asks the server to cancel a statement or terminate a session. Returns the notice to show until it
    /// responds.
    fn send(&mut self, request: Request) -> String {
        if let Some((before, _)) = &self.asked {
            return format!("the server has not responded yet: {}", before.asked());
        }
        let sent = match self.follower.segment() {
            Some(segment) => {
                send_aside(request.deed, request.session, segment, self.target.as_deref())
            }
            None => Err(Error::Failed("the server is not running".into())),
        };
        match sent {
            Ok(answers) => {
                let notice = request.asked();
                self.asked = Some((request, answers));
                notice
            }
            Err(error) => request.failed(&error.to_string()),
        }
    }

    /// Starts a trace, and returns the notice to show until it is over.
    fn trace(&mut self, pid: i32, name: String) -> String {
        let seconds = LENGTH.as_secs();
        if let Some(before) = &self.tracing {
            return format!("{} is still being traced", before.name);
        }
        let notice = format!("tracing {name} for {seconds} s");
        self.tracing = Some(Tracing::start(pid, name, self.target.as_deref()));
        notice
    }

    /// Shows the trace if it is over; returns whether it is.
    fn traced(&mut self, screen: &mut Screen) -> bool {
        let Some(tracing) = &mut self.tracing else { return false };
        let Some(result) = tracing.result() else { return false };
        match result {
            Ok(lines) => {
                screen.notice = Some(format!("trace of {}; Esc goes back", tracing.name));
                screen.show_trace(lines);
            }
            Err(error) => {
                screen.notice = Some(format!("could not trace {}: {error}", tracing.name));
            }
        }
        self.tracing = None;
        true
    }

    /// Shows the server's response to the pending request; returns whether there is one.
    fn answered(&mut self, screen: &mut Screen) -> bool {
        let Some((request, answers)) = &self.asked else { return false };
        let result = match answers.try_recv() {
            Ok(Ok(())) => request.done(),
            Ok(Err(error)) => request.failed(&error.to_string()),
            Err(TryRecvError::Disconnected) => request.failed("the server did not respond"),
            Err(TryRecvError::Empty) => return false,
        };
        self.asked = None;
        screen.notice = Some(result);
        true
    }

    /// Reads slow executions, so that the sessions do not overwrite them; returns whether there is a problem to show.
    fn follow_slow_executions(&mut self, screen: &mut Screen) -> bool {
        let followed = self.slow.as_mut().map_or(Ok(()), |slow| slow.follow(&self.follower));
        match followed {
            Ok(()) => false,
            Err(error) => {
                screen.notice = Some(error.to_string());
                true
            }
        }
    }

    /// Requests what this pane shows. Returns whether that changed.
    fn ask_for_more(&mut self, screen: &Screen) -> bool {
        let view = screen.view();
        let another = self.follower.want_session(screen.session);
        // The page of a session shows its statement.
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
        self.follow_slow_executions(screen);
        for mut step in self.follower.step(true) {
            let taken = self.slow.as_mut().map(|slow| slow.take_in(&mut step, &self.follower));
            screen.step(step);
            if let Some(Err(error)) = taken {
                screen.notice = Some(error.to_string());
            }
        }
        // Missed intervals are not made up for.
        self.due = (self.due + self.length).max(Instant::now());
    }

    fn answer(&mut self, ask: Ask, screen: &mut Screen) {
        match ask {
            Ask::Further(by) if by < 0 => {
                screen.notice = Some("this is the oldest stored interval".into());
            }
            Ask::Further(_) => {
                screen.notice = Some("this is the newest interval; l resumes".into());
            }
            Ask::Trace { pid, name } => screen.notice = Some(self.trace(pid, name)),
            Ask::Session(request) => screen.notice = Some(self.send(request)),
            Ask::Seek(_) => {
                screen.notice = Some("this time is outside the stored intervals".into());
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

    fn news(&mut self, screen: &mut Screen) -> bool {
        self.answered(screen) | self.traced(screen) | self.follow_slow_executions(screen)
    }
}
