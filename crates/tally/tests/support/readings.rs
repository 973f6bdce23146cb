// SPDX-License-Identifier: PostgreSQL
//! pg_tally's counts, read four times around a witness: before it starts, once it is attached, after the
//! load, and after the witness has ended. A process can be judged if its counts did not change between
//! the first two readings nor between the last two.

use std::collections::{BTreeMap, BTreeSet};

/// Counts by process and other attributes.
pub type Counts<K> = BTreeMap<K, u64>;

/// A key that belongs to one process.
pub trait OfProcess: Ord + Clone {
    /// The process id, or `ENDED`.
    fn pid(&self) -> i32;
    /// The same counter of another process.
    fn of_process(&self, pid: i32) -> Self;
}

impl OfProcess for (i32, String) {
    fn pid(&self) -> i32 {
        self.0
    }

    fn of_process(&self, pid: i32) -> Self {
        (pid, self.1.clone())
    }
}

/// Stands for all ended processes.
pub const ENDED: i32 = 0;

/// The readings.
#[derive(Debug)]
pub struct Readings<K> {
    begun: Counts<K>,
    after: Counts<K>,
    moved: BTreeSet<i32>,
}

impl<K: OfProcess> Readings<K> {
    /// Reads while the processes are idle, starts the witness, runs the load until they are idle again, and stops
    /// the witness. The load can query what has been counted since it started. None if no witness is available.
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

    /// Whether this process counted nothing while the witness started and stopped.
    pub fn was_idle(&self, pid: i32) -> bool {
        !self.moved.contains(&pid)
    }

    /// Whether that is true for all processes.
    pub fn all_idle(&self) -> bool {
        self.moved.is_empty()
    }

    /// Processes that can be judged: their counts must equal the witness's.
    pub fn judged(&self) -> BTreeSet<i32> {
        self.after.keys().map(OfProcess::pid).filter(|&pid| self.was_idle(pid)).collect()
    }

    /// Processes that existed at the end of the load.
    pub fn living(&self) -> BTreeSet<i32> {
        self.after.keys().map(OfProcess::pid).collect()
    }

    /// Those of these sessions that can be judged; all but two must be.
    pub fn judged_of(&self, pids: &[i32]) -> BTreeSet<i32> {
        let judged: BTreeSet<i32> =
            pids.iter().copied().filter(|&pid| self.was_idle(pid)).collect();
        println!("{} of {} sessions judged", judged.len(), pids.len());
        assert!(judged.len() + 2 >= pids.len(), "too few sessions were idle");
        judged
    }

    /// What was counted while the witness was attached.
    pub fn gained(&self) -> Counts<K> {
        gained(&self.after, &self.begun)
    }
}

fn gained<K: OfProcess>(now: &Counts<K>, begun: &Counts<K>) -> Counts<K> {
    // What a process had counted before moves to the ended ones with it.
    let living: BTreeSet<i32> = now.keys().map(OfProcess::pid).collect();
    let mut then = Counts::new();
    for (key, count) in begun {
        let pid = if living.contains(&key.pid()) { key.pid() } else { ENDED };
        *then.entry(key.of_process(pid)).or_default() += count;
    }
    let since = |(key, &count): (&K, &u64)| (key.clone(), count - get(&then, key));
    now.iter().map(since).filter(|&(_, count)| count > 0).collect()
}

fn changed<K: OfProcess>(a: &Counts<K>, b: &Counts<K>) -> BTreeSet<i32> {
    a.keys().chain(b.keys()).filter(|key| get(a, key) != get(b, key)).map(OfProcess::pid).collect()
}

/// A count, 0 if absent.
pub fn get<K: Ord>(counts: &Counts<K>, key: &K) -> u64 {
    counts.get(key).copied().unwrap_or(0)
}

/// Counts of the judged processes that differ from the witness's.
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

#[test]
fn a_process_that_ends_takes_its_earlier_counts_along() {
    let counts = |rows: &[(i32, u64)]| -> Counts<(i32, String)> {
        rows.iter().map(|&(pid, count)| ((pid, "read".into()), count)).collect()
    };
    let (begun, now) = (counts(&[(ENDED, 5), (7, 20), (8, 3)]), counts(&[(ENDED, 26), (8, 4)]));
    assert_eq!(gained(&now, &begun), counts(&[(ENDED, 1), (8, 1)]));
}
