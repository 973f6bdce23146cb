// SPDX-License-Identifier: PostgreSQL
//! Which changes of settings are to be reported now. One message has all changes since the one before; a setting that has its
//! former value again is left out. The result depends only on the given times and changes; no clock is read here.

use std::time::Duration;

use jiff::Timestamp;
use view::settings::SettingChange;

/// Changes that were not reported yet.
#[derive(Debug)]
pub struct ChangeBook {
    /// Minimum time between two messages.
    repeat: Duration,
    waiting: Vec<SettingChange>,
    /// When changes were last reported.
    told: Option<Timestamp>,
}

impl ChangeBook {
    /// Nothing has changed.
    pub fn new(repeat: Duration) -> ChangeBook {
        ChangeBook { repeat, waiting: Vec::new(), told: None }
    }

    /// Adds changes, later ones than before.
    pub fn add(&mut self, changes: Vec<SettingChange>) {
        for change in changes {
            let known = self.waiting.iter_mut().find(|known| known.name == change.name);
            match known {
                Some(known) => (known.time, known.after) = (change.time, change.after),
                None => {
                    // Values that are not shown are equal, too.
                    self.waiting.push(change);
                    continue;
                }
            }
            self.waiting.retain(|known| known.before != known.after || is_hidden(&known.after));
        }
    }

    /// The changes to report, oldest first; none if it is too early or they are silenced. Those are reported when the silence ends.
    pub fn take_due(&mut self, now: Timestamp, silenced: bool) -> Vec<SettingChange> {
        let early = self.told.is_some_and(|last| {
            let passed = now.duration_since(last);
            // The clock may have been set back.
            !passed.is_negative() && passed.unsigned_abs() < self.repeat
        });
        if self.waiting.is_empty() || early || silenced {
            return Vec::new();
        }
        self.told = Some(now);
        let mut changes = std::mem::take(&mut self.waiting);
        changes.sort_by(|a, b| a.time.total_cmp(&b.time));
        changes
    }
}

fn is_hidden(value: &str) -> bool {
    value == view::settings::HIDDEN
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(time: f64, name: &str, before: &str, after: &str) -> SettingChange {
        SettingChange { time, name: name.into(), before: before.into(), after: after.into() }
    }

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_000_000 + second).unwrap()
    }

    fn words(changes: &[SettingChange]) -> Vec<String> {
        changes.iter().map(SettingChange::words).collect()
    }

    #[test]
    fn changes_are_reported_once_and_together_within_a_time() {
        let mut book = ChangeBook::new(Duration::from_secs(60));
        assert_eq!(book.take_due(at(0), false), []);
        book.add(vec![change(1.0, "work_mem", "4MB", "64MB")]);
        assert_eq!(words(&book.take_due(at(1), false)), ["work_mem: 4MB -> 64MB"]);
        assert_eq!(book.take_due(at(100), false), []);
        book.add(vec![change(101.0, "jit", "on", "off")]);
        assert_eq!(words(&book.take_due(at(101), false)), ["jit: on -> off"]);
        // Within the pause: one goes back, one goes on.
        book.add(vec![change(110.0, "jit", "off", "on"), change(111.0, "work_mem", "64MB", "1MB")]);
        book.add(vec![change(120.0, "jit", "on", "off"), change(121.0, "work_mem", "1MB", "2MB")]);
        assert_eq!(book.take_due(at(160), false), []);
        assert_eq!(words(&book.take_due(at(161), false)), ["work_mem: 64MB -> 2MB"]);
    }

    #[test]
    fn what_is_silenced_is_reported_when_the_silence_ends() {
        let mut book = ChangeBook::new(Duration::ZERO);
        book.add(vec![change(1.0, "jit", "on", "off")]);
        assert_eq!(book.take_due(at(1), true), []);
        assert_eq!(book.take_due(at(2), false).len(), 1);
    }

    #[test]
    fn a_hidden_value_that_changes_twice_is_a_change() {
        let hidden = view::settings::HIDDEN;
        let mut book = ChangeBook::new(Duration::ZERO);
        for time in [1.0, 2.0] {
            book.add(vec![change(time, "primary_conninfo", hidden, hidden)]);
        }
        assert_eq!(words(&book.take_due(at(3), false)), ["primary_conninfo: (not recorded)"]);
    }
}
