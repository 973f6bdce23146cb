// SPDX-License-Identifier: PostgreSQL
//! Waiting at a terminal or a pipe, and seeing that its other end has gone: who neither reads nor
//! writes there meanwhile would not find out.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use rustix::event::{poll, PollFd, PollFlags, Timespec};
use rustix::io::Errno;

/// Wait for `events`, so long at most; a signal may cut it short. Whether the other end is still
/// there.
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
