// SPDX-License-Identifier: PostgreSQL
//! What differs for a segment whose bytes come from elsewhere (`origin`).

use crate::error::Error;
use crate::origin::Parts;
use crate::segment::Segment;
use crate::this_host;

impl Segment {
    /// Read from now on what has changed by now. Of a file that is so anyway.
    pub fn refresh(&mut self) -> Result<(), Error> {
        let Some(remote) = &mut self.remote else { return Ok(()) };
        remote.moment = remote.origin.bring(&self.file, remote.parts)?;
        self.clock.set_moment(&remote.moment);
        Ok(())
    }

    /// Also read these parts from now on. A file has them anyway.
    pub fn want(&mut self, parts: Parts) -> Result<(), Error> {
        let Some(remote) = &mut self.remote else { return Ok(()) };
        let all = remote.parts.and(parts);
        if std::mem::replace(&mut remote.parts, all) == all {
            return Ok(());
        }
        self.refresh()
    }

    /// How to connect to the server that brings its bytes; `None`: it is a file.
    pub fn remote(&self) -> Option<&str> {
        self.remote.as_ref().map(|it| it.origin.conninfo())
    }

    /// Whether it shows all sessions and statements; otherwise only those that the connection's role may see.
    pub fn is_complete(&self) -> bool {
        self.remote.as_ref().is_none_or(|it| it.moment.complete)
    }

    /// Processors of its machine that are online, or of this one that we may use.
    pub(crate) fn cores(&self) -> usize {
        let there = self.remote.as_ref().map(|it| it.moment.processors as usize);
        there.filter(|count| *count > 0).unwrap_or_else(this_host::cores)
    }

    /// Now, for what runs in a slot: its account, read before, was running at this tick.
    pub(crate) fn now_in(&self, slot: u32) -> u64 {
        let seen = self.remote.as_ref().and_then(|it| it.moment.slots.get(slot as usize).copied());
        seen.filter(|tick| *tick != 0).unwrap_or_else(|| self.now())
    }

    /// Now, ns since 1970, by the clock of the segment's machine; of an image, when it was made.
    pub fn realtime_ns(&self) -> u64 {
        match &self.remote {
            Some(remote) => remote.moment.realtime_ns,
            None if self.clock.is_virtual() => {
                // A counter that began anew is behind where the segment's began.
                let now =
                    self.header().created_realtime_ns.saturating_add(self.clock.ns_of(self.now()));
                now.saturating_sub(self.header().clock_ns0)
            }
            None => crate::clock::realtime_ns().saturating_sub(self.ended_ns_ago()),
        }
    }
}
