// SPDX-License-Identifier: PostgreSQL
//! What the user does at the terminal, and that the terminal has gone.
//!
//! The library that reads keys goes round for ever at a terminal that has gone and of which no
//! signal tells, as when it was never the session's own. So the waiting is done here, where a
//! terminal that hangs up is seen, and the library is asked only for what there is.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event};
use rustix::event::PollFlags;
use rustix::termios::isatty;

use live::hangup;

/// The terminal from which keys come.
pub struct Input {
    terminal: OwnedFd,
}

impl Input {
    /// Standard input where that is a terminal, else the session's own, as the library does.
    pub fn open() -> io::Result<Input> {
        let standard = io::stdin();
        let terminal = match isatty(&standard) {
            true => standard.as_fd().try_clone_to_owned()?,
            false => File::open("/dev/tty")?.into(),
        };
        Ok(Input { terminal })
    }

    /// What comes next, or `None` where nothing comes within `wait`, which a signal may cut
    /// short. A terminal that has gone is a broken pipe.
    pub fn next(&self, wait: Duration) -> io::Result<Option<Event>> {
        // What was read together with the key before is in the terminal no more.
        for wait in [Duration::ZERO, wait] {
            if !hangup::wait(&self.terminal, PollFlags::IN, wait)? {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            if event::poll(Duration::ZERO)? {
                return event::read().map(Some);
            }
        }
        Ok(None)
    }
}
