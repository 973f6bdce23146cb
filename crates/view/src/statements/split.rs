// SPDX-License-Identifier: PostgreSQL
//! A statement's time, by account and by class of activity.

use recording::SessionHistoryRow;
use segment::statements::{AccountTime, WaitClass};
use serde::{Serialize, Serializer};
use std::sync::Arc;

/// Time by class of activity, seconds, in the order of [`WaitClass::ALL`].
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Split([f64; WaitClass::ALL.len()]);

impl Split {
    /// Adds up these activities by class.
    pub fn from_activities(activities: &[ActivityRow]) -> Split {
        Split(WaitClass::ALL.map(|class| {
            let of_class = activities.iter().filter(|row| row.class.shown_as() == class);
            of_class.map(|row| row.seconds).sum::<f64>() + 0.0
        }))
    }

    /// The time of one class, seconds.
    pub fn class(&self, class: WaitClass) -> f64 {
        let shown = class.shown_as();
        WaitClass::ALL
            .iter()
            .zip(self.0)
            .find(|(class, _)| **class == shown)
            .map_or(0.0, |(_, s)| s)
    }
}

impl Serialize for Split {
    /// As an object: `cpu_seconds`, `io_seconds`, ...
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let classes = WaitClass::ALL.iter().zip(self.0);
        to.collect_map(classes.map(|(class, s)| (format!("{}_seconds", class.name()), s)))
    }
}

/// Time in one account of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ActivityRow {
    /// The phase.
    pub phase: Arc<str>,
    /// "cpu", or the wait event as `Type:Event`.
    pub activity: Arc<str>,
    /// The activity's class.
    #[serde(skip)]
    pub class: WaitClass,
    /// Number of times that it occurred.
    pub count: u64,
    /// Total time, seconds.
    pub seconds: f64,
}

impl ActivityRow {
    /// Whether samples could not tell what it was.
    pub fn is_unknown(&self) -> bool {
        *self.activity == *segment::sampling::UNKNOWN
    }

    /// What samples of a session say that it did while it was not idle, most time first: each stands for its interval.
    pub fn sampled<'r>(rows: impl Iterator<Item = &'r SessionHistoryRow>) -> Vec<ActivityRow> {
        let mut all: Vec<ActivityRow> = Vec::new();
        for row in rows.filter(|row| !row.state.starts_with("idle")) {
            let seconds = row.interval_ns as f64 * 1e-9;
            let same = |known: &&mut ActivityRow| {
                (&known.phase, &known.activity) == (&row.phase, &row.activity)
            };
            match all.iter_mut().find(same) {
                Some(known) => known.seconds += seconds,
                None => all.push(ActivityRow {
                    phase: row.phase.clone(),
                    activity: row.activity.clone(),
                    class: WaitClass::of_name(&row.activity),
                    count: 0,
                    seconds,
                }),
            }
        }
        all.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        all
    }

    pub(super) fn all(split: segment::statements::Split) -> Vec<ActivityRow> {
        let row = |a: AccountTime| ActivityRow {
            phase: a.phase,
            activity: a.activity,
            class: a.class,
            count: a.count,
            seconds: a.seconds,
        };
        split.accounts.into_iter().map(row).collect()
    }
}
