// SPDX-License-Identifier: PostgreSQL
//! Input from the terminal, and detection that the terminal was closed.
//!
//! The library that reads keys may wait for ever for those of a closed terminal if no signal reports it, for example
//! if it was never the session's controlling terminal. So this module waits itself and notices a hangup. A terminal
//! that closes right after that is an error of the library's read (feature `use-dev-tty`; its other source of events,
//! mio's, tries that read again for ever).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crossterm::event::{self, Event};
use rustix::event::PollFlags;
use rustix::termios::isatty;

use live::hangup;

/// How long the library looks for events: with zero it would not.
const LOOK: Duration = Duration::from_millis(1);

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
            if event::poll(LOOK)? {
                return event::read().map(Some);
            }
        }
        Ok(None)
    }
}
