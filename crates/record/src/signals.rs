// SPDX-License-Identifier: PostgreSQL
//! Signals end the recording cleanly, and are forwarded to a running command.

use rustix::termios::tcgetpgrp;
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals as Pending;

use super::command::Command;
use error::Error;

/// Caught signals.
#[derive(Debug)]
pub struct Signals {
    pending: Pending,
    count: u32,
}

impl Signals {
    /// Catches SIGINT, SIGTERM, SIGHUP and SIGQUIT from now on.
    pub fn catch() -> Result<Signals, Error> {
        Ok(Signals { pending: Pending::new([SIGINT, SIGTERM, SIGHUP, SIGQUIT])?, count: 0 })
    }

    /// Whether the recording must end. Signals are forwarded to the command, if there is one; then the
    /// recording ends with the command.
    pub fn stop(&mut self, command: Option<&Command>) -> bool {
        for signal in self.pending.pending() {
            self.count += 1;
            if let Some(command) = command {
                // The terminal has already sent a typed signal to both processes. A second signal
                // is always forwarded.
                let typed = matches!(signal, SIGINT | SIGQUIT) && in_foreground();
                if !typed || self.count > 1 {
                    command.signal(signal);
                }
            }
        }
        self.count > 0 && command.is_none()
    }
}

/// Whether this process is in the terminal's foreground group.
fn in_foreground() -> bool {
    tcgetpgrp(std::io::stdin()).is_ok_and(|group| group == rustix::process::getpgrp())
}
