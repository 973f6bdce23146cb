// SPDX-License-Identifier: PostgreSQL
//! The differences of a segment whose bytes come from elsewhere (`origin`).

use crate::error::Error;
use crate::moment::UNKNOWN_PROCESSORS;
use crate::origin::Parts;
use crate::sampling;
use crate::segment::Segment;
use crate::this_host;

impl Segment {
    /// Bring the image up to date. A file always is.
    pub fn refresh(&mut self) -> Result<(), Error> {
        let Some(remote) = &mut self.remote else { return Ok(()) };
        remote.moment = remote.origin.bring(&self.file, remote.parts)?;
        self.clock.set_moment(&remote.moment);
        Ok(())
    }

    /// From now on, also read these parts. A file always has them.
    pub fn want(&mut self, parts: Parts) -> Result<(), Error> {
        let Some(remote) = &mut self.remote else { return Ok(()) };
        let all = remote.parts.and(parts);
        if std::mem::replace(&mut remote.parts, all) == all {
            return Ok(());
        }
        self.refresh()
    }

    /// How to connect to the server that supplies the bytes; `None`: the segment is a file.
    pub fn remote(&self) -> Option<&str> {
        self.remote.as_ref().map(|remote| remote.origin.conninfo())
    }

    /// The mean distance between samples, in seconds, if the segment is made of samples.
    pub fn sample_seconds(&self) -> Option<f64> {
        let so_far = self.remote.as_ref().and_then(|remote| remote.moment.sample_seconds);
        so_far.or_else(|| sampling::distance_of(&self.header().producer))
    }

    /// Whether the segment shows all sessions and statements, or only those that the connection's role may see.
    pub fn is_complete(&self) -> bool {
        self.remote.as_ref().is_none_or(|remote| remote.moment.complete)
    }

    /// The online CPUs of the segment's machine, or the CPUs of this machine that we may use; 0: not known.
    pub(crate) fn cores(&self) -> usize {
        match self.remote.as_ref().map(|remote| remote.moment.processors) {
            Some(UNKNOWN_PROCESSORS) => 0,
            Some(count) if count > 0 => count as usize,
            _ => this_host::cores(),
        }
    }

    /// The current tick for a slot: its account, read before, was running at this tick.
    pub(crate) fn now_in(&self, slot: u32) -> u64 {
        let seen =
            self.remote.as_ref().and_then(|remote| remote.moment.slots.get(slot as usize).copied());
        seen.filter(|tick| *tick != 0).unwrap_or_else(|| self.now())
    }

    /// The current time, ns since 1970, by the clock of the segment's machine; for an image, when it was created.
    pub fn realtime_ns(&self) -> u64 {
        match &self.remote {
            Some(remote) => remote.moment.realtime_ns,
            None if self.clock.is_virtual() => {
                // A counter that has restarted is behind the segment's first instant.
                let now =
                    self.header().created_realtime_ns.saturating_add(self.clock.ns_of(self.now()));
                now.saturating_sub(self.header().clock_ns0)
            }
            None => crate::clock::realtime_ns().saturating_sub(self.ended_ns_ago()),
        }
    }
}
