// SPDX-License-Identifier: PostgreSQL
//! Input from the terminal, and detection that the terminal was closed.
//!
//! The library that reads keys loops forever after the terminal was closed if no
//! signal reports it, for example if it was never the session's controlling terminal. So this module waits itself,
//! notices a hangup, and asks the library only for input that is there.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use ratatui::crossterm::event::{self, Event};
use rustix::event::PollFlags;
use rustix::termios::isatty;

use live::hangup;

/// The terminal from which keys are read.
pub struct Input {
    terminal: OwnedFd,
}

impl Input {
    /// Standard input if that is a terminal, else the controlling terminal, as the library does.
    pub fn open() -> io::Result<Input> {
        let standard = io::stdin();
        let terminal = match isatty(&standard) {
            true => standard.as_fd().try_clone_to_owned()?,
            false => File::open("/dev/tty")?.into(),
        };
        Ok(Input { terminal })
    }

    /// The next event, or `None` after `wait`, or earlier because of a
    /// signal. A closed terminal is a broken pipe.
    pub fn next(&self, wait: Duration) -> io::Result<Option<Event>> {
        // The library may have read several keys at once; poll does not see those.
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
