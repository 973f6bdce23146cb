// SPDX-License-Identifier: PostgreSQL
//! Signals: the recording ends in good order, and a command that runs gets them too.

use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals as Pending;

use super::command::Command;
use error::Error;

/// Signals that have come.
#[derive(Debug)]
pub struct Signals {
    pending: Pending,
    count: u32,
}

impl Signals {
    /// From now on none of them ends the process.
    pub fn catch() -> Result<Signals, Error> {
        Ok(Signals { pending: Pending::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT])?, count: 0 })
    }

    /// Whether the recording is to end. A command gets what has come, and then it is the
    /// command's end that is waited for.
    pub fn stop(&mut self, command: Option<&Command>) -> bool {
        for signal in self.pending.pending() {
            self.count += 1;
            if let Some(command) = command {
                // What was typed at the terminal has gone to both of us already. Who comes a
                // second time means it, wherever it is from.
                let typed = matches!(signal, SIGINT | SIGQUIT) && in_foreground();
                if !typed || self.count > 1 {
                    command.signal(signal);
                }
            }
        }
        self.count > 0 && command.is_none()
    }
}

/// Whether the terminal is ours.
fn in_foreground() -> bool {
    tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}
