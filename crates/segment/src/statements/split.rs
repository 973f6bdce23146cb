// SPDX-License-Identifier: PostgreSQL
//! A statement's time by account, by class of wait and by phase.

use super::account_ticks::AccountTicks;
use crate::directory::{Directory, Stat};
use crate::timing::most_first;
use crate::wait_class::{tells_cpu_apart, WaitClass, UNKNOWN};
use serde::Serialize;
use std::sync::Arc;

/// Time in one account.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AccountTime {
    /// The phase.
    pub phase: Arc<str>,
    /// "cpu", or the wait event as `Type:Event`.
    pub activity: Arc<str>,
    /// The class of the activity.
    pub class: WaitClass,
    /// Number of events.
    pub count: u64,
    /// Time.
    pub seconds: f64,
}

/// Where time went, longest first; each account occurs once.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Split {
    /// By account.
    pub accounts: Vec<AccountTime>,
    /// By class.
    pub classes: Vec<(WaitClass, f64)>,
    /// By phase.
    pub phases: Vec<(Arc<str>, f64)>,
}

impl Split {
    pub(super) fn from_parts(parts: &[AccountTicks], directory: &Directory, second: f64) -> Split {
        let mut split = Split::default();
        let ticks = |is: &dyn Fn(&Stat) -> bool| -> u64 {
            let those = parts.iter().filter(|part| directory.get(part.stat).is_some_and(is));
            those.fold(0, |sum, part| sum.saturating_add(part.ticks))
        };
        let is_unknown = |stat: &Stat| **stat.activity() == *UNKNOWN;
        let (cpu, unknown) = (ticks(&Stat::is_cpu), ticks(&is_unknown));
        let told_apart = tells_cpu_apart(cpu as f64, unknown as f64);
        for part in parts.iter().filter(|part| part.count > 0 || part.ticks > 0) {
            let stat = directory.get(part.stat);
            if !told_apart && stat.is_some_and(Stat::is_cpu) {
                split.add(AccountTime {
                    phase: stat.map_or_else(|| "?".into(), |stat| stat.phase().clone()),
                    activity: UNKNOWN.into(),
                    class: WaitClass::Other,
                    count: part.count,
                    seconds: part.ticks as f64 * second,
                });
                continue;
            }
            let name = |of: fn(&Stat) -> &Arc<str>| {
                stat.map_or_else(|| "?".into(), |stat| of(stat).clone())
            };
            let activity = name(Stat::activity);
            split.add(AccountTime {
                phase: name(Stat::phase),
                class: stat.map_or(WaitClass::Other, Stat::class),
                activity,
                count: part.count,
                seconds: part.ticks as f64 * second,
            });
        }
        split.sort();
        split
    }

    fn add(&mut self, part: AccountTime) {
        let shown_as = part.class.shown_as();
        match self.classes.iter_mut().find(|c| c.0 == shown_as) {
            Some(class) => class.1 += part.seconds,
            None => self.classes.push((shown_as, part.seconds)),
        }
        match self.phases.iter_mut().find(|p| p.0 == part.phase) {
            Some(phase) => phase.1 += part.seconds,
            None => self.phases.push((part.phase.clone(), part.seconds)),
        }
        let same = |a: &&mut AccountTime| a.phase == part.phase && a.activity == part.activity;
        match self.accounts.iter_mut().find(same) {
            Some(account) => {
                account.count = account.count.saturating_add(part.count);
                account.seconds += part.seconds;
            }
            None => self.accounts.push(part),
        }
    }

    fn sort(&mut self) {
        most_first!(self.accounts, seconds, phase, activity);
        self.classes.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        self.phases.sort_by(|a, b| b.1.total_cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
    }

    /// The total.
    pub fn seconds(&self) -> f64 {
        self.classes.iter().map(|c| c.1).fold(0.0, |sum, s| sum + s)
    }

    /// The time of one class.
    pub fn class(&self, class: WaitClass) -> f64 {
        self.classes.iter().find(|c| c.0 == class).map_or(0.0, |c| c.1)
    }

    /// Add another split.
    pub fn merge(&mut self, other: &Split) {
        other.accounts.iter().for_each(|part| self.add(part.clone()));
        self.sort();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::directory::StatKind;

    #[test]
    fn time_is_split_by_account_class_and_phase() {
        let mut directory = Arc::default();
        let names = [
            "execute::cpu",
            "execute::wait::IO:DataFileRead",
            "commit::wait::IO:WALSync",
            "execute::wait::Lock:tuple",
            "commit::cpu",
        ];
        let parts: Vec<AccountTicks> = (1..)
            .zip(names)
            .map(|(n, name)| {
                let stat = Stat::new(name.to_string(), StatKind::Account, "ticks".to_string());
                AccountTicks {
                    stat: Directory::intern(&mut directory, stat),
                    count: n,
                    ticks: n * 10,
                }
            })
            .collect();
        let mut split = Split::from_parts(&parts, &directory, 0.5);
        assert_eq!(split.seconds(), 75.0);
        assert_eq!(split.class(WaitClass::Cpu), 30.0);
        assert_eq!(split.class(WaitClass::Lock), 20.0);
        assert_eq!(split.class(WaitClass::Client), 0.0);
        assert_eq!(split.classes[0], (WaitClass::Cpu, 30.0));
        let phases: Vec<_> = split.phases.iter().map(|p| (&*p.0, p.1)).collect();
        assert_eq!(phases, [("commit", 40.0), ("execute", 35.0)]);
        assert_eq!(&*split.accounts[0].activity, "cpu");
        assert_eq!((split.accounts[0].count, split.accounts[0].seconds), (5, 25.0));
        split.merge(&Split::from_parts(&parts[..1], &directory, 10.0));
        assert_eq!((&*split.accounts[0].phase, split.accounts[0].seconds), ("execute", 105.0));
        assert_eq!(split.accounts.len(), 5);
        // An account without a name keeps its time.
        let nameless = [AccountTicks { stat: crate::book::NAMELESS, count: 0, ticks: 3 }];
        assert_eq!(Split::from_parts(&nameless, &directory, 1.0).class(WaitClass::Other), 3.0);
    }
}
