// SPDX-License-Identifier: PostgreSQL
//! Response times from the scheduled start.
//!
//! Operation k of a thread is due at `began + k / rate`. fio measures an operation from the moment it is
//! issued, and a thread that waits for one operation cannot issue the next: operations due meanwhile would
//! not count as late (coordinated omission; G. Tene, How NOT to Measure Latency, 2013). Each report shows how
//! far the thread is behind at that moment. If a thread fell behind between two reports, its operations are
//! spread evenly. Otherwise an operation that took longer than a period has delayed those that became due
//! meanwhile.

use std::collections::BTreeMap;

use super::document::Totals;
use super::threads::Thread;

/// Numbers of operations by response time in ns, with three digits.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Responses(BTreeMap<u64, u64>);

impl Responses {
    /// Adds `count` operations with this response time, in seconds.
    pub fn add(&mut self, seconds: f64, count: u64) {
        if count > 0 {
            *self.0.entry(rounded(seconds.max(0.0) * 1e9)).or_default() += count;
        }
    }

    /// Adds the operations of another set.
    pub fn merge(&mut self, other: &Responses) {
        for (ns, count) in &other.0 {
            *self.0.entry(*ns).or_default() += count;
        }
    }

    /// Number of operations.
    pub fn count(&self) -> u64 {
        self.0.values().sum()
    }

    /// The quantile `q` (0 to 1), in seconds; `None` without operations.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let wanted = ((q * self.count() as f64).ceil() as u64).max(1);
        let mut seen = 0;
        self.0.iter().find_map(|(ns, count)| {
            seen += count;
            (seen >= wanted).then_some(*ns as f64 * 1e-9)
        })
    }

    /// The mean, in seconds; `None` without operations.
    pub fn mean(&self) -> Option<f64> {
        let sum: f64 = self.0.iter().map(|(ns, count)| *ns as f64 * *count as f64).sum();
        (self.count() > 0).then(|| sum * 1e-9 / self.count() as f64)
    }

    /// Response times in ns, and how many operations had each.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u64)> + '_ {
        self.0.iter().map(|(ns, count)| (*ns, *count))
    }
}

/// Rounds to three digits.
fn rounded(ns: f64) -> u64 {
    let step = 10f64.powf((ns.max(1.0).log10().floor() - 2.0).max(0.0));
    ((ns / step).round() * step) as u64
}

/// Operations due by `time`, including the first.
pub fn due(thread: &Thread, began: f64, time: f64) -> u64 {
    if time < began {
        return 0;
    }
    ((time - began) * thread.rate).floor() as u64 + 1
}

/// Operations that should have been issued by `time` but were not; one in progress is not owed.
pub fn owed(thread: &Thread, totals: &Totals, time: f64) -> u64 {
    let Some(began) = totals.began else { return 0 };
    due(thread, began, time).saturating_sub(totals.operations + 1)
}

/// A report's totals of a thread, and when they were taken.
#[derive(Debug, Clone, Copy)]
pub struct At<'a> {
    /// Seconds since 1970.
    pub time: f64,
    /// The totals.
    pub totals: &'a Totals,
}

/// The response times of the operations that ended between two reports.
pub fn responses(thread: &Thread, began: f64, before: At<'_>, after: At<'_>) -> Responses {
    let mut found = Responses::default();
    let done = after.totals.operations.saturating_sub(before.totals.operations);
    let period = 1.0 / thread.rate;
    let behind = |at: &At<'_>| owed(thread, at.totals, at.time) > 0;
    if behind(&before) || behind(&after) {
        let length = after.time - before.time;
        for number in 0..done {
            let ended = before.time + (number as f64 + 1.0) / done as f64 * length;
            let due = began + (before.totals.operations + number) as f64 * period;
            found.add(ended - due, 1);
        }
        return found;
    }
    let mut durations: Vec<(u64, u64)> = after
        .totals
        .durations
        .iter()
        .map(|(ns, count)| {
            let known = before.totals.durations.get(ns).copied().unwrap_or(0);
            (*ns, count.saturating_sub(known))
        })
        .filter(|(_, count)| *count > 0)
        .collect();
    // Operations that were due during a long one completed just after it, so they are among the short ones.
    let mut delayed = Vec::new();
    for (ns, count) in durations.iter().rev() {
        let seconds = *ns as f64 * 1e-9;
        let waiting = (seconds * thread.rate).floor() as u64;
        for number in 1..=waiting.min(done) {
            let response = seconds - number as f64 * period;
            delayed.push((response, *count));
        }
    }
    for (response, count) in delayed {
        let mut left = count;
        for (ns, short) in &mut durations {
            let taken = left.min(*short);
            if taken > 0 && *ns as f64 * 1e-9 < period {
                *short -= taken;
                left -= taken;
                found.add(response + *ns as f64 * 1e-9, taken);
            }
        }
    }
    for (ns, count) in durations {
        found.add(ns as f64 * 1e-9, count);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    const THREAD: Thread = Thread { reads: true, sequential: false, rate: 100.0, offset: 0.0 };

    fn totals(durations: &[(u64, u64)]) -> Totals {
        Totals {
            operations: durations.iter().map(|duration| duration.1).sum(),
            durations: durations.iter().copied().collect(),
            began: Some(0.0),
            ..Totals::default()
        }
    }

    fn between(before: (f64, &[(u64, u64)]), after: (f64, &[(u64, u64)])) -> Responses {
        let (b, a) = (totals(before.1), totals(after.1));
        responses(&THREAD, 0.0, At { time: before.0, totals: &b }, At { time: after.0, totals: &a })
    }

    /// A simulated thread: operation k is due at k / rate, waits for the one before, and takes `service(k)`.
    /// Returns the ends and durations, and the true response times.
    fn simulate(count: u64, service: impl Fn(u64) -> f64) -> (Vec<(f64, f64)>, Vec<f64>) {
        let mut free = 0.0f64;
        let mut all = Vec::new();
        let mut truth = Vec::new();
        for k in 0..count {
            let due = k as f64 / THREAD.rate;
            let began = free.max(due);
            free = began + service(k);
            all.push((free, service(k)));
            truth.push(free - due);
        }
        (all, truth)
    }

    /// The response times computed from one report per second of the simulated thread, for ten seconds.
    fn reported(ended: &[(f64, f64)]) -> Responses {
        let at = |time: f64| {
            let mut totals = Totals { began: Some(0.0), ..Totals::default() };
            for (_, service) in ended.iter().filter(|(ended, _)| *ended <= time) {
                totals.operations += 1;
                *totals.durations.entry((service * 1e9) as u64).or_default() += 1;
            }
            totals
        };
        let mut found = Responses::default();
        for second in 0..10 {
            let (from, to) = (f64::from(second), f64::from(second) + 1.0);
            let (before, after) = (at(from), at(to));
            let (b, a) = (At { time: from, totals: &before }, At { time: to, totals: &after });
            found.merge(&responses(&THREAD, 0.0, b, a));
        }
        found
    }

    fn compare(service: impl Fn(u64) -> f64, error: f64) {
        let (ended, truth) = simulate(2000, service);
        let found = reported(&ended);
        let within = ended.iter().zip(&truth).filter(|(operation, _)| operation.0 <= 10.0);
        let mut truth: Vec<f64> = within.map(|(_, response)| *response).collect();
        truth.sort_by(f64::total_cmp);
        let count = truth.len() as f64;
        assert_eq!(found.count() as f64, count);
        for q in [0.5, 0.9, 0.99, 1.0] {
            let exact = truth[((q * count).ceil() as usize).max(1) - 1];
            let value = found.quantile(q).unwrap();
            assert!(
                (value - exact).abs() <= error * exact + 0.002,
                "{q}: {value} instead of {exact}"
            );
        }
    }

    #[test]
    fn on_schedule_the_response_is_the_duration() {
        let found = between((1.0, &[(2_000_000, 101)]), (2.0, &[(2_000_000, 201)]));
        assert_eq!((found.count(), found.quantile(0.99)), (100, Some(0.002)));
        compare(|_| 0.003, 0.01);
    }

    #[test]
    fn operations_that_wait_for_a_long_one_are_late() {
        // One operation of 300 ms: 30 others were due meanwhile.
        compare(|k| if k == 350 { 0.3 } else { 0.0002 }, 0.05);
    }

    #[test]
    fn a_thread_that_falls_behind_has_responses_that_grow() {
        // 100/s are due, 80/s are made.
        compare(|_| 0.0125, 0.02);
        // A stop of three seconds, then made up.
        compare(|k| if k == 250 { 3.0 } else { 0.001 }, 0.25);
    }

    #[test]
    fn owed_operations_are_those_that_were_due_and_not_issued() {
        let made = |operations| Totals { operations, began: Some(10.0), ..Totals::default() };
        assert_eq!(owed(&THREAD, &made(100), 11.0), 0);
        assert_eq!(owed(&THREAD, &made(90), 11.0), 10);
        assert_eq!(owed(&THREAD, &made(0), 9.0), 0);
        assert_eq!(owed(&THREAD, &Totals::default(), 99.0), 0);
    }

    #[test]
    fn quantiles_are_exact_to_three_digits() {
        let mut all = Responses::default();
        (1..=1000).for_each(|n| all.add(f64::from(n) * 1e-3, 1));
        assert!((all.quantile(0.5).unwrap() - 0.5).abs() < 1e-9);
        assert!((all.mean().unwrap() - 0.5005).abs() < 1e-9);
        assert_eq!(Responses::default().quantile(0.5), None);
        assert_eq!(rounded(123_456.0), 123_000);
    }
}
