// SPDX-License-Identifier: PostgreSQL
//! Input from the terminal, and detection that the terminal was closed.
//!
//! The library that reads keys may wait forever on a closed terminal if no signal reports the hangup, for example
//! if it was never the controlling terminal of the session. Therefore this module waits by itself and notices a
//! hangup. A terminal that closes right after that is a read error in the library (feature `use-dev-tty`; its
//! other source of events, mio's, would retry that read forever).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use crossterm::event::{self, Event};
use rustix::event::PollFlags;
use rustix::termios::isatty;

use live::hangup;

/// How long the library looks for events; with zero it would not look at all.
const LOOK: Duration = Duration::from_millis(1);

/// The terminal from which keys are read.
pub struct Input {
    terminal: OwnedFd,
}

impl Input {
    /// Standard input if it is a terminal, otherwise the controlling terminal, as in the library.
    pub fn open() -> io::Result<Input> {
        let standard = io::stdin();
        let terminal = match isatty(&standard) {
            true => standard.as_fd().try_clone_to_owned()?,
            false => File::open("/dev/tty")?.into(),
        };
        Ok(Input { terminal })
    }

    /// The next event, or `None` after `wait` or earlier if a signal arrives. A closed terminal is reported as a
    /// broken pipe.
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
