// SPDX-License-Identifier: PostgreSQL
//! Locks in an interval: lightweight locks held, acquired and waited for, waits for heavyweight locks,
//! deadlock checks, and delays at spinlocks.
//!
//! Names are `lwlock::<lock>::<part>::<phase>::<mode>`, `lock::<type>::wait::<phase>::<mode>`,
//! `lock::deadlock::check::<phase>` and `spin::delay::<phase>`.

use crate::directory::{Stat, StatKind};
use crate::frame_totals::FrameTotals;
use crate::stat_names;
use crate::timing::{most_first, Timing};
use crate::total::Total;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

/// The lightweight locks of one tranche, acquired in one mode and phase.
#[derive(Debug, Clone, Serialize)]
pub struct LwlockRow {
    /// The tranche.
    pub lock: Arc<str>,
    /// "exclusive", "shared" or "share-exclusive"; "variable" for waits for a variable that a lock protects. Empty in a
    /// sum.
    pub mode: Arc<str>,
    /// The session's phase. Empty in a sum.
    pub phase: Arc<str>,
    /// Time from acquisition to release, counted at the release.
    pub held: Timing,
    /// Acquisitions. Only those that had to queue have a time: from the first sleep to the acquisition.
    pub acquire: Timing,
    /// Sleeps in the lock's queue.
    pub wait: Timing,
    /// Failed conditional acquisitions, and waits that ended without the lock.
    pub failed: u64,
    #[serde(skip)]
    totals: Box<LwlockTotals>,
}

/// The sums of one lock, in ticks.
#[derive(Debug, Clone, Default)]
pub struct LwlockTotals {
    /// See [`LwlockRow::held`].
    pub held: Total,
    /// See [`LwlockRow::acquire`].
    pub acquire: Total,
    /// See [`LwlockRow::wait`].
    pub wait: Total,
    /// See [`LwlockRow::failed`].
    pub failed: u64,
}

impl LwlockRow {
    /// The row of these totals, for the names of lock, mode and phase.
    pub fn from_totals(
        [lock, mode, phase]: [&str; 3],
        totals: LwlockTotals,
        ticks_per_second: f64,
    ) -> Self {
        let timing = |total| Timing::with(total, |ticks| ticks as f64 / ticks_per_second);
        // The histogram has only acquisitions that queued.
        let acquire = Timing { p50_seconds: None, p99_seconds: None, ..timing(&totals.acquire) };
        Self {
            lock: lock.into(),
            mode: mode.into(),
            phase: phase.into(),
            held: timing(&totals.held),
            acquire,
            wait: timing(&totals.wait),
            failed: totals.failed,
            totals: Box::new(totals),
        }
    }

    /// The sum of these rows of one lock.
    pub fn sum(rows: &[&LwlockRow], ticks_per_second: f64) -> Self {
        let mut totals = LwlockTotals::default();
        for row in rows {
            totals.held.merge(&row.totals.held);
            totals.acquire.merge(&row.totals.acquire);
            totals.wait.merge(&row.totals.wait);
            totals.failed = totals.failed.saturating_add(row.failed);
        }
        let lock = rows.first().map_or("", |row| &row.lock);
        Self::from_totals([lock, "", ""], totals, ticks_per_second)
    }
}

/// Waits for the heavyweight locks of one type.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LockRow {
    /// "relation", "transactionid", "tuple", ...
    #[serde(rename = "type")]
    pub kind: Arc<str>,
    /// "ShareLock", "AccessExclusiveLock", ...
    pub mode: Arc<str>,
    /// The session's phase.
    pub phase: Arc<str>,
    /// Time waiting for the locks.
    pub wait: Timing,
}

/// The events of one phase.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PhaseRow {
    /// The session's phase.
    pub phase: Arc<str>,
    /// Number and time.
    #[serde(flatten)]
    pub timing: Timing,
}

/// All rows about locks.
#[derive(Debug, Default)]
pub(crate) struct Locks {
    pub lwlocks: Vec<LwlockRow>,
    pub locks: Vec<LockRow>,
    pub deadlock_checks: Vec<PhaseRow>,
    pub spin_delays: Vec<PhaseRow>,
}

/// The parts of the name of a statistic of locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name<'n> {
    /// A statistic of a lightweight lock.
    Lwlock {
        /// Lock, mode, phase, as in [`LwlockRow`].
        key: [&'n str; 3],
        /// The figure of the lock.
        figure: LwlockFigure,
    },
    /// A wait for a heavyweight lock.
    Lock {
        /// The type of the lock.
        kind: &'n str,
        /// The requested mode.
        mode: &'n str,
        /// The session's phase.
        phase: &'n str,
    },
    /// A check for deadlocks, in this phase.
    DeadlockCheck(&'n str),
    /// A delay at a spinlock, in this phase.
    SpinDelay(&'n str),
}

/// A figure of a lightweight lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LwlockFigure {
    /// See [`LwlockRow::held`].
    Held,
    /// See [`LwlockRow::acquire`].
    Acquire,
    /// See [`LwlockRow::wait`].
    Wait,
    /// See [`LwlockRow::failed`].
    Failed,
}

/// The parts of a statistic's name; `None` if it is not about locks. The name of an extension's tranche may
/// contain colons, so parsing starts at the end.
pub fn parse(stat: &Stat) -> Option<Name<'_>> {
    if stat.kind != StatKind::Timer {
        return None;
    }
    if let Some(phase) = stat.name.strip_prefix(stat_names::DEADLOCK_CHECK) {
        return Some(Name::DeadlockCheck(phase));
    }
    if let Some(phase) = stat.name.strip_prefix(stat_names::SPIN_DELAY) {
        return Some(Name::SpinDelay(phase));
    }
    if let Some(tags) = stat.name.strip_prefix(stat_names::LOCK) {
        return match tags.split("::").collect::<Vec<_>>()[..] {
            [kind, "wait", phase, mode] => Some(Name::Lock { kind, mode, phase }),
            _ => None,
        };
    }
    let mut tags = stat.name.strip_prefix(stat_names::LWLOCK)?.rsplitn(4, "::");
    let (mode, phase, figure, lock) = (tags.next()?, tags.next()?, tags.next()?, tags.next()?);
    let figure = match figure {
        stat_names::LWLOCK_HELD => LwlockFigure::Held,
        stat_names::LWLOCK_ACQUIRE => LwlockFigure::Acquire,
        stat_names::LWLOCK_WAIT => LwlockFigure::Wait,
        stat_names::LWLOCK_FAILED => LwlockFigure::Failed,
        _ => return None,
    };
    Some(Name::Lwlock { key: [lock, mode, phase], figure })
}

/// Whether this statistic is shown among the locks.
pub(crate) fn is_of_lock(stat: &Stat) -> bool {
    parse(stat).is_some()
}

impl Locks {
    pub fn from_totals(sums: &FrameTotals<'_>) -> Locks {
        let clock = sums.clock();
        let mut locks = Locks::default();
        let mut lwlocks: HashMap<[&str; 3], LwlockTotals> = HashMap::new();
        for (stat, total) in sums.changed() {
            let timing = || Timing::from_total(total, clock);
            match parse(stat) {
                Some(Name::Lwlock { key, figure }) => {
                    let totals = lwlocks.entry(key).or_default();
                    match figure {
                        LwlockFigure::Held => totals.held = total.clone(),
                        LwlockFigure::Acquire => totals.acquire = total.clone(),
                        LwlockFigure::Wait => totals.wait = total.clone(),
                        LwlockFigure::Failed => totals.failed = total.change.count,
                    }
                }
                Some(Name::Lock { kind, mode, phase }) => locks.locks.push(LockRow {
                    kind: kind.into(),
                    mode: mode.into(),
                    phase: phase.into(),
                    wait: timing(),
                }),
                Some(Name::DeadlockCheck(phase)) => {
                    locks.deadlock_checks.push(PhaseRow { phase: phase.into(), timing: timing() })
                }
                Some(Name::SpinDelay(phase)) => {
                    locks.spin_delays.push(PhaseRow { phase: phase.into(), timing: timing() })
                }
                None => {}
            }
        }
        locks.lwlocks = lwlocks
            .into_iter()
            .map(|(key, totals)| LwlockRow::from_totals(key, totals, clock.ticks_per_second))
            .collect();
        locks.sort();
        locks
    }

    /// Sorts rows by wait time, longest first.
    fn sort(&mut self) {
        self.lwlocks.sort_by(|a, b| {
            (b.wait.seconds)
                .total_cmp(&a.wait.seconds)
                .then_with(|| b.held.seconds.total_cmp(&a.held.seconds))
                .then_with(|| (&a.lock, &a.mode, &a.phase).cmp(&(&b.lock, &b.mode, &b.phase)))
        });
        most_first!(self.locks, wait.seconds, kind, mode, phase);
        for rows in [&mut self.deadlock_checks, &mut self.spin_delays] {
            most_first!(rows, timing.seconds, phase);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_locks_are_distinguished_from_others() {
        let stat = |name: &str| Stat::new(name.to_string(), StatKind::Timer, "ticks".to_string());
        for name in [
            "lwlock::ProcArray::held::execute::shared",
            "lwlock::my::own::tranche::wait::idle in transaction::variable",
            "lock::relation::wait::execute::AccessExclusiveLock",
            "lock::deadlock::check::execute",
            "spin::delay::background",
        ] {
            assert!(is_of_lock(&stat(name)), "{name}");
        }
        for name in [
            "lwlock::ProcArray::kept::execute::shared",
            "lwlock::held::execute::shared",
            "lock::relation::execute",
            "spin::lock::execute",
            "command::Query::handle",
            "lwlock",
        ] {
            assert!(!is_of_lock(&stat(name)), "{name}");
        }
        let own = stat("lwlock::my::own::tranche::wait::idle::variable");
        assert!(matches!(
            parse(&own),
            Some(Name::Lwlock {
                key: ["my::own::tranche", "variable", "idle"],
                figure: LwlockFigure::Wait
            })
        ));
    }
}
