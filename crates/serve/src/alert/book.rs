// SPDX-License-Identifier: PostgreSQL
//! Which problems have been reported, and which are to be reported now.
//!
//! There is one alert for each rule: problems that one rule finds at the same time, and their consequences,
//! are reported together. The result depends only on the given times and problems; no clock is read here.

use std::collections::BTreeMap;
use std::time::Duration;

use diagnose::{changed_settings, Diagnosis, Rule};
use jiff::Timestamp;
use serde::Serialize;
use view::settings::SettingChange;

/// A problem has ended once it was not found this many times in a row.
const ABSENT: u32 = 2;

/// How often to send messages.
#[derive(Debug, Clone, Copy)]
pub struct Pacing {
    /// Minimum time between two messages about one rule, except about the end of a reported
    /// problem.
    pub repeat: Duration,
}

/// What happened to a problem.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum AlertEvent {
    /// It was not there before.
    Begin,
    /// It lasts.
    Update,
    /// It is over.
    End,
    /// No problem: settings have changed.
    Note,
}

/// A message about one rule's problems.
#[derive(Debug, Clone, PartialEq)]
pub struct Alert {
    /// What happened.
    pub event: AlertEvent,
    /// The rule that found the problem, or its cause.
    pub rule: Rule,
    /// When it was first found.
    pub since: Timestamp,
    /// The diagnoses, the last ones if it is over.
    pub diagnoses: Vec<Diagnosis>,
    /// The changed settings of a note.
    pub changes: Vec<SettingChange>,
}

impl Alert {
    /// A note on changed settings, oldest first, of which there is at least one.
    pub fn of_changes(changes: Vec<SettingChange>, now: Timestamp) -> Alert {
        let words: Vec<String> = changes.iter().map(SettingChange::words).collect();
        let since = changes.first().map(|first| first.time);
        let since = since.and_then(|time| Timestamp::from_microsecond((time * 1e6) as i64).ok());
        Alert {
            event: AlertEvent::Note,
            rule: Rule::ChangedSettings,
            since: since.unwrap_or(now),
            diagnoses: vec![changed_settings(&words)],
            changes,
        }
    }
}

#[derive(Debug)]
struct Ongoing {
    rule: Rule,
    since: Timestamp,
    /// When it was last reported; `None`: it is silenced, or its rule was reported too recently.
    told: Option<Timestamp>,
    absent: u32,
    diagnoses: Vec<Diagnosis>,
}

/// The problems that last.
#[derive(Debug)]
pub struct AlertBook {
    pacing: Pacing,
    ongoing: BTreeMap<&'static str, Ongoing>,
    /// When each rule's problems were last reported, kept when they end.
    told: BTreeMap<&'static str, Timestamp>,
}

impl AlertBook {
    /// No problem is known.
    pub fn new(pacing: Pacing) -> AlertBook {
        AlertBook { pacing, ongoing: BTreeMap::new(), told: BTreeMap::new() }
    }

    /// The messages to send if these problems are found now. The end of a reported problem is reported even
    /// if the problem has been silenced since.
    pub fn look(
        &mut self,
        now: Timestamp,
        problems: &[Diagnosis],
        silenced: &dyn Fn(Rule) -> bool,
    ) -> Vec<Alert> {
        let mut found: BTreeMap<&'static str, (Rule, Vec<Diagnosis>)> = BTreeMap::new();
        for problem in problems {
            let rule = problem.consequence_of.unwrap_or(problem.rule);
            found.entry(rule.name()).or_insert((rule, Vec::new())).1.push(problem.clone());
        }
        let mut alerts = self.ended(|name| found.contains_key(name));
        for (name, (rule, diagnoses)) in found {
            let last = self.told.get(name).copied();
            let new = Ongoing { rule, since: now, told: None, absent: 0, diagnoses: Vec::new() };
            let known = self.ongoing.entry(name).or_insert(new);
            (known.absent, known.diagnoses) = (0, diagnoses);
            let early = last.is_some_and(|last| {
                let passed = now.duration_since(last);
                // The clock may have been set back.
                !passed.is_negative() && passed.unsigned_abs() < self.pacing.repeat
            });
            if early || silenced(rule) {
                continue;
            }
            let event = if known.told.is_none() { AlertEvent::Begin } else { AlertEvent::Update };
            known.told = Some(now);
            self.told.insert(name, now);
            alerts.push(known.alert(event));
        }
        alerts
    }

    /// Removes the problems that are over; returns those that were reported.
    fn ended(&mut self, is_found: impl Fn(&str) -> bool) -> Vec<Alert> {
        let mut ended = Vec::new();
        self.ongoing.retain(|name, known| {
            if is_found(name) {
                return true;
            }
            known.absent += 1;
            if known.absent < ABSENT {
                return true;
            }
            if known.told.is_some() {
                ended.push(known.alert(AlertEvent::End));
            }
            false
        });
        ended
    }
}

impl Ongoing {
    fn alert(&self, event: AlertEvent) -> Alert {
        let diagnoses = self.diagnoses.clone();
        Alert { event, rule: self.rule, since: self.since, diagnoses, changes: Vec::new() }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use diagnose::{Confidence, Kind};
    use AlertEvent::{Begin, End, Update};

    pub fn problem(rule: Rule, text: &str) -> Diagnosis {
        Diagnosis {
            rule,
            kind: Kind::Problem,
            text: text.to_string(),
            seconds: 1.0,
            share: Some(0.5),
            evidence: vec!["It was seen.".to_string()],
            advice: "End it.".into(),
            confidence: Confidence::Certain,
            section: "locks",
            consequence_of: None,
        }
    }

    const EVERY: i64 = 10;

    /// The events of looks every ten seconds, each with the problems of these rules.
    fn told(
        repeat: u64,
        looks: &[&[Rule]],
        silenced: &dyn Fn(Rule) -> bool,
    ) -> Vec<(usize, AlertEvent, Rule)> {
        let mut book = AlertBook::new(Pacing { repeat: Duration::from_secs(repeat) });
        let mut all = Vec::new();
        for (n, rules) in looks.iter().enumerate() {
            let now = Timestamp::from_second(1_000_000 + n as i64 * EVERY).unwrap();
            let problems: Vec<_> = rules.iter().map(|rule| problem(*rule, "It is slow.")).collect();
            for alert in book.look(now, &problems, silenced) {
                all.push((n, alert.event, alert.rule));
            }
        }
        all
    }

    const NONE: &[Rule] = &[];
    const LOCKS: &[Rule] = &[Rule::Locks];
    const BOTH: &[Rule] = &[Rule::Locks, Rule::Locks, Rule::Jit];

    #[test]
    fn a_problem_is_told_when_it_begins_while_it_lasts_and_when_it_ends() {
        let looks = [NONE, LOCKS, LOCKS, LOCKS, LOCKS, NONE, NONE, NONE];
        let expected = [(1, Begin, Rule::Locks), (4, Update, Rule::Locks), (6, End, Rule::Locks)];
        assert_eq!(told(30, &looks, &|_| false), expected);
    }

    #[test]
    fn a_problem_that_comes_and_goes_is_told_once_in_a_time() {
        let looks = [LOCKS, NONE, LOCKS, NONE, NONE, LOCKS, LOCKS, LOCKS];
        let expected = [(0, Begin, Rule::Locks), (4, End, Rule::Locks), (6, Begin, Rule::Locks)];
        assert_eq!(told(60, &looks, &|_| false), expected);
    }

    #[test]
    fn problems_of_one_rule_and_consequences_are_one_alert() {
        assert_eq!(told(60, &[BOTH], &|_| false).len(), 2);
        let mut book = AlertBook::new(Pacing { repeat: Duration::from_secs(60) });
        let consequence = Diagnosis {
            consequence_of: Some(Rule::Checkpoints),
            ..problem(Rule::Commits, "Commits wait.")
        };
        let problems = [problem(Rule::Checkpoints, "Checkpoints come often."), consequence];
        let alerts = book.look(Timestamp::UNIX_EPOCH, &problems, &|_| false);
        assert_eq!(alerts.len(), 1);
        assert_eq!((alerts[0].rule, alerts[0].diagnoses.len()), (Rule::Checkpoints, 2));
    }

    #[test]
    fn what_is_silenced_begins_when_the_silence_ends_and_ends_in_any_case() {
        let looks = [LOCKS, LOCKS, LOCKS, NONE, NONE];
        assert!(told(0, &looks, &|_| true).is_empty());
        let count = std::cell::Cell::new(0);
        let first_two = |_| {
            count.set(count.get() + 1);
            count.get() <= 2
        };
        let expected = [(2, Begin, Rule::Locks), (4, End, Rule::Locks)];
        assert_eq!(told(0, &looks, &first_two), expected);
        let count = std::cell::Cell::new(0);
        let all_but_the_first = |_| {
            count.set(count.get() + 1);
            count.get() > 1
        };
        let expected = [(0, Begin, Rule::Locks), (4, End, Rule::Locks)];
        assert_eq!(told(0, &looks, &all_but_the_first), expected);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_stop_messages() {
        let mut book = AlertBook::new(Pacing { repeat: Duration::from_secs(60) });
        let problems = [problem(Rule::Locks, "It is slow.")];
        let at = |second| Timestamp::from_second(second).unwrap();
        assert_eq!(book.look(at(1_000_000), &problems, &|_| false).len(), 1);
        assert_eq!(book.look(at(1_000), &problems, &|_| false).len(), 1);
    }
}
