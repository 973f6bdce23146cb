// SPDX-License-Identifier: PostgreSQL
//! Commits and checkpoints in an interval.
//!
//! Names are `commit::<part>` and `checkpoint::<part>`.

use crate::directory::{Stat, StatKind};
use crate::files::FileRow;
use crate::frame_totals::FrameTotals;
use crate::stat_names;
use crate::timing::Timing;
use serde::Serialize;

/// Commits that wrote WAL: who flushed it, and where the time went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Commits {
    /// Number of commits.
    pub count: u64,
    /// Commits that synced the WAL themselves, as a whole.
    pub leader: Timing,
    /// Commits whose WAL was synced together with that of another commit, as a whole.
    pub group_committed: Timing,
    /// Commits that did not wait for a sync (synchronous_commit = off), as a whole.
    pub asynchronous: Timing,
    /// Syncs of the WAL, by any process.
    pub flushes: u64,
    /// Number of commits that waited for a sync, per commit that synced; `None` if none synced.
    pub commits_per_flush: Option<f64>,
    /// Inserting the commit's own WAL record; only at level locks.
    pub insertion: Option<Timing>,
    /// Part: waiting for WAL buffers, and for other processes to insert their WAL. Each part counts only the commits
    /// that had it.
    pub insert: Timing,
    /// Part: waiting for the turn to flush, or for the leader's flush.
    pub queue: Timing,
    /// Part: sleeping for commit_delay.
    pub delay: Timing,
    /// Part: writing the WAL.
    pub write: Timing,
    /// Part: syncing the WAL.
    pub sync: Timing,
    /// Part: waiting for synchronous standbys.
    pub replication: Timing,
}

/// Checkpoints and restartpoints that ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Checkpoints {
    /// Total time of checkpoints.
    pub total: Timing,
    /// Writing buffers, including the pauses between writes.
    pub write: Timing,
    /// Syncing files.
    pub sync: Timing,
}

/// The field of a statistic.
enum Field {
    Commit(fn(&mut Commits) -> &mut Timing),
    Checkpoint(fn(&mut Checkpoints) -> &mut Timing),
}

fn field(stat: &Stat) -> Option<Field> {
    if stat.kind != StatKind::Timer {
        return None;
    }
    Some(match stat.name.as_str() {
        stat_names::COMMIT_LEADER | "commit::led" => Field::Commit(|c| &mut c.leader), // old name
        stat_names::COMMIT_GROUP | "commit::carried" => Field::Commit(|c| &mut c.group_committed), // old name
        stat_names::COMMIT_ASYNCHRONOUS => Field::Commit(|c| &mut c.asynchronous),
        stat_names::COMMIT_INSERTION => {
            Field::Commit(|c| c.insertion.get_or_insert_with(Timing::default))
        }
        stat_names::COMMIT_INSERT => Field::Commit(|c| &mut c.insert),
        stat_names::COMMIT_QUEUE => Field::Commit(|c| &mut c.queue),
        stat_names::COMMIT_DELAY => Field::Commit(|c| &mut c.delay),
        stat_names::COMMIT_WRITE => Field::Commit(|c| &mut c.write),
        stat_names::COMMIT_SYNC => Field::Commit(|c| &mut c.sync),
        stat_names::COMMIT_REPLICATION => Field::Commit(|c| &mut c.replication),
        stat_names::CHECKPOINT_TOTAL => Field::Checkpoint(|c| &mut c.total),
        stat_names::CHECKPOINT_WRITE => Field::Checkpoint(|c| &mut c.write),
        stat_names::CHECKPOINT_SYNC => Field::Checkpoint(|c| &mut c.sync),
        _ => return None,
    })
}

/// How the commits that this statistic times were made durable: "leader", "group_committed" or
/// "asynchronous"; `None` for other statistics. Every event is one of [`Commits::count`].
pub fn whole_commit(stat: &Stat) -> Option<&'static str> {
    match stat.name.as_str() {
        _ if stat.kind != StatKind::Timer => None,
        stat_names::COMMIT_LEADER | "commit::led" => Some("leader"), // old name
        stat_names::COMMIT_GROUP | "commit::carried" => Some("group_committed"), // old name
        stat_names::COMMIT_ASYNCHRONOUS => Some("asynchronous"),
        _ => None,
    }
}

/// Whether this statistic is shown as one of commits or checkpoints.
pub(crate) fn is_of_commit(stat: &Stat) -> bool {
    field(stat).is_some()
}

/// Commits and checkpoints; `files` are the operations on files in the same interval.
pub(crate) fn rows(sums: &FrameTotals<'_>, files: &[FileRow]) -> (Commits, Checkpoints) {
    let clock = sums.clock();
    let (mut commits, mut checkpoints) = (Commits::default(), Checkpoints::default());
    for (stat, total) in sums.changed() {
        match field(stat) {
            Some(Field::Commit(of)) => *of(&mut commits) = Timing::from_total(total, clock),
            Some(Field::Checkpoint(of)) => *of(&mut checkpoints) = Timing::from_total(total, clock),
            None => {}
        }
    }
    let waited = commits.leader.count.saturating_add(commits.group_committed.count);
    commits.count = waited.saturating_add(commits.asynchronous.count);
    commits.commits_per_flush =
        (commits.leader.count > 0).then(|| waited as f64 / commits.leader.count as f64);
    let is_flush = |row: &&FileRow| &*row.file == "wal" && &*row.operation == "sync";
    commits.flushes = files.iter().filter(is_flush).map(|row| row.timing.count).sum();
    (commits, checkpoints)
}
