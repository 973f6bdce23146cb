// SPDX-License-Identifier: PostgreSQL
//! A statement's time, by account and by class of activity.

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
