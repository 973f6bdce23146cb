// SPDX-License-Identifier: PostgreSQL
//! What our probes have counted, read around the presence of a witness: before it begins to look,
//! when it looks, when the load is over, and when the witness has gone. Between the first two and
//! between the last two nothing must happen; of which processes that holds can be judged.

use std::collections::{BTreeMap, BTreeSet};

/// Counts by process and whatever else tells them apart.
pub type Counts<K> = BTreeMap<K, u64>;

/// What one process has counted.
pub trait OfProcess: Ord + Clone {
    /// Its pid.
    fn pid(&self) -> i32;
}

impl OfProcess for (i32, String) {
    fn pid(&self) -> i32 {
        self.0
    }
}

/// The readings.
#[derive(Debug)]
pub struct Readings<K> {
    begun: Counts<K>,
    after: Counts<K>,
    moved: BTreeSet<i32>,
}

impl<K: OfProcess> Readings<K> {
    /// Read while the processes stand still, start the witness, load, come to stand still, end the
    /// witness. The load is given a way to ask what has been counted since. None where no witness is
    /// to be had.
    pub fn around<W, S>(
        mut read: impl FnMut() -> Counts<K>,
        start: impl FnOnce() -> Option<W>,
        load: impl FnOnce(&mut dyn FnMut() -> Counts<K>),
        stop: impl FnOnce(W) -> S,
    ) -> Option<(Self, S)> {
        let before = read();
        let witness = start()?;
        let begun = read();
        load(&mut || gained(&read(), &begun));
        let after = read();
        let seen = stop(witness);
        let ended = read();
        let mut moved = changed(&before, &begun);
        moved.append(&mut changed(&after, &ended));
        Some((Self { begun, after, moved }, seen))
    }

    /// Whether this process did nothing while the witness came or went.
    pub fn was_idle(&self, pid: i32) -> bool {
        !self.moved.contains(&pid)
    }

    /// Whether that holds for everybody.
    pub fn all_idle(&self) -> bool {
        self.moved.is_empty()
    }

    /// Processes whose counts are the witness's if both count well.
    pub fn judged(&self) -> BTreeSet<i32> {
        self.after.keys().map(OfProcess::pid).filter(|&pid| self.was_idle(pid)).collect()
    }

    /// Processes that were there in the end.
    pub fn living(&self) -> BTreeSet<i32> {
        self.after.keys().map(OfProcess::pid).collect()
    }

    /// Of these sessions, those that can be judged; nearly all must have stood still.
    pub fn judged_of(&self, pids: &[i32]) -> BTreeSet<i32> {
        let judged: BTreeSet<i32> =
            pids.iter().copied().filter(|&pid| self.was_idle(pid)).collect();
        println!("{} of {} sessions judged", judged.len(), pids.len());
        assert!(judged.len() + 2 >= pids.len(), "too few of the sessions stood still");
        judged
    }

    /// What was counted under the witness's eyes.
    pub fn gained(&self) -> Counts<K> {
        gained(&self.after, &self.begun)
    }
}

fn gained<K: OfProcess>(now: &Counts<K>, begun: &Counts<K>) -> Counts<K> {
    let since = |(key, &count): (&K, &u64)| (key.clone(), count - get(begun, key));
    now.iter().map(since).filter(|&(_, count)| count > 0).collect()
}

fn changed<K: OfProcess>(a: &Counts<K>, b: &Counts<K>) -> BTreeSet<i32> {
    a.keys().chain(b.keys()).filter(|key| get(a, key) != get(b, key)).map(OfProcess::pid).collect()
}

/// 0 where there is none.
pub fn get<K: Ord>(counts: &Counts<K>, key: &K) -> u64 {
    counts.get(key).copied().unwrap_or(0)
}

/// What the witness saw otherwise, of these processes.
pub fn differences<K: OfProcess + std::fmt::Debug>(
    ours: &Counts<K>,
    theirs: &Counts<K>,
    judged: &BTreeSet<i32>,
) -> Vec<String> {
    let keys: BTreeSet<&K> = ours.keys().chain(theirs.keys()).collect();
    keys.into_iter()
        .filter(|key| judged.contains(&key.pid()) && get(ours, key) != get(theirs, key))
        .map(|key| format!("{key:?}: {}, the witness {}", get(ours, key), get(theirs, key)))
        .collect()
}
