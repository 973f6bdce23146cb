// SPDX-License-Identifier: PostgreSQL
//! Waits on a terminal or a pipe and notices when its other end closes. A program that neither
//! reads nor writes would not find out otherwise.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// Wait for `events`, for at most `length`; a signal may end the wait early. Returns whether the other
/// end is still open.
pub fn wait(end: impl AsFd, events: PollFlags, length: Duration) -> io::Result<bool> {
    let mut watched = [PollFd::new(&end, events)];
    let length =
        Timespec { tv_sec: length.as_secs() as i64, tv_nsec: length.subsec_nanos().into() };
    match poll(&mut watched, Some(&length)) {
        Ok(_) | Err(Errno::INTR) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(!watched[0].revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL))
}
