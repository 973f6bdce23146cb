// SPDX-License-Identifier: PostgreSQL
//! The processes of the server and their slots, kept up to date while samplers look them up.

use std::collections::{HashMap, HashSet};
use std::sync::{PoisonError, RwLock};

use error::Error;
use process::Proc;
use segment::{Occupant, Segment};

/// The processes of a server.
#[derive(Debug, Default)]
pub struct Processes {
    known: RwLock<ServerProcesses>,
}

#[derive(Debug, Default)]
struct ServerProcesses {
    postmaster: i32,
    slots: HashMap<i32, Occupant>,
    /// Running processes of the server, with or without a slot.
    running: HashSet<i32>,
    /// Running and ended processes of the server.
    ours: HashSet<i32>,
    /// Processes without a slot, sampled for the first time.
    others: Vec<i32>,
}

impl Processes {
    /// Updates the list. Returns new processes of the server.
    pub fn refresh(&self, segment: &Segment) -> Result<Vec<i32>, Error> {
        let occupants = segment.occupants()?;
        let postmaster = i32::try_from(segment.header().server_pid).unwrap_or(0);
        let children = match postmaster {
            0 => Default::default(),
            pid => Proc::default().children(pid as u32),
        };
        let mut slots = occupants.iter().map(|occupant| (occupant.pid, *occupant)).collect();
        let now = children
            .iter()
            .map(|pid| *pid as i32)
            .chain(occupants.iter().map(|occupant| occupant.pid));
        let mut running: HashSet<i32> = now.chain([postmaster]).filter(|pid| *pid > 0).collect();
        let new = self.unknown(&running);
        // Samplers run before other processes and wait for this lock, so slow work is done without it.
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        known.postmaster = postmaster;
        std::mem::swap(&mut known.slots, &mut slots);
        std::mem::swap(&mut known.running, &mut running);
        known.ours.extend(&new);
        Ok(new)
    }

    fn unknown(&self, running: &HashSet<i32>) -> Vec<i32> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        running.difference(&known.ours).copied().collect()
    }

    /// Looks up the slot of a process that has just started.
    pub fn look_up(&self, segment: &Segment, pid: i32) -> Result<Option<Occupant>, Error> {
        let occupant = segment.occupants()?.into_iter().find(|occupant| occupant.pid == pid);
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(occupant) = occupant {
            known.slots.insert(pid, occupant);
        } else {
            known.others.push(pid);
        }
        Ok(occupant)
    }

    /// The slot of a process.
    pub fn slot(&self, pid: i32) -> Option<Occupant> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).slots.get(&pid).copied()
    }

    /// Whether it is, or was, a process of the server.
    pub fn is_ours(&self, pid: i32) -> bool {
        self.known.read().unwrap_or_else(PoisonError::into_inner).ours.contains(&pid)
    }

    /// Processes without a slot that were looked up since the last call.
    pub fn others(&self) -> Vec<i32> {
        let mut known = self.known.write().unwrap_or_else(PoisonError::into_inner);
        let mut others = std::mem::take(&mut known.others);
        others.sort_unstable();
        others.dedup();
        others
    }

    /// The postmaster; 0 if unknown.
    pub fn postmaster(&self) -> i32 {
        self.known.read().unwrap_or_else(PoisonError::into_inner).postmaster
    }

    /// The running processes of the server.
    pub fn running(&self) -> HashSet<i32> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).running.clone()
    }

    /// All processes of the server so far.
    pub fn ours(&self) -> Vec<i32> {
        self.known.read().unwrap_or_else(PoisonError::into_inner).ours.iter().copied().collect()
    }
}
