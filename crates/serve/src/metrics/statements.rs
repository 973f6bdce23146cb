// SPDX-License-Identifier: PostgreSQL
//! Statements as metrics: some by query ID and all others as one sum, so that the number of series is bounded.
//!
//! A series is a set of labels, which are names. A role that is dropped and created again under the same name
//! continues its series; a role that is renamed starts another. Values never fall: each reading adds what a
//! statement has done since the previous one, even if the server's table has evicted it in between or was reset.
//! A series that is shown stays for at least [`KEPT`], with its last value if the statement is no longer there,
//! because series that come and go are of little use.
//!
//! The figures of a series count from the statement's first execution. Those of the others count from the start
//! of this command, so that their sum never falls when a statement is shown or no longer shown.

use std::collections::{HashMap, HashSet};

use segment::StatementKey;

use super::family::{Family, Kind};
use view::statements::{StatementFigures, StatementsTable};

/// Minimum time for which a series is shown, seconds.
const KEPT: f64 = 3600.0;
/// Factor by which a statement must exceed the time of a shown one to replace it.
const CLEARLY: f64 = 1.25;
/// Number of series that are remembered, because they were shown once, while their statements are not there.
const REMEMBERED: usize = 10_000;

/// Calls, seconds, rows, errors.
type Figures = [f64; 4];

/// Distinguishes series from each other.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct Labels {
    queryid: Option<i64>,
    database: String,
    user: String,
    toplevel: bool,
}

/// The activity of the statements with these labels.
#[derive(Debug, Default)]
struct Series {
    total: Figures,
    /// When counting started, seconds since 1970.
    since: f64,
    /// Their time in the last reading, according to the server's table.
    seconds: f64,
    /// Since when it is shown; `None` if it is one of the others.
    shown: Option<f64>,
    /// Whether it was shown at any time.
    known: bool,
}

/// The figures of a statement at the last reading.
#[derive(Debug)]
struct LastFigures {
    /// When it was first executed, which distinguishes it from one that was evicted or reset in between.
    first_seen: Option<f64>,
    /// The highest figures so far. While a statement that has no ID yet runs, its time belongs to the
    /// unidentified statements, and leaves them later.
    figures: Figures,
    labels: Labels,
}

/// The statements that have a series of their own, and the sum of the others.
#[derive(Debug)]
pub struct NamedStatements {
    number: usize,
    series: HashMap<Labels, Series>,
    last: HashMap<StatementKey, LastFigures>,
    others: Figures,
    /// When the first and the last reading were taken, seconds since 1970.
    begun: Option<f64>,
    read: f64,
}

/// Excludes time that will later belong to another statement, because a counter must not fall.
fn figures(row: &StatementFigures) -> Figures {
    let seconds = (row.seconds - row.unnamed_seconds).max(0.0);
    [row.calls as f64, seconds, row.rows as f64, (row.errors + row.cancels) as f64]
}

fn add(sum: &mut Figures, more: &Figures) {
    sum.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

impl Labels {
    fn from_row(row: &StatementFigures) -> Labels {
        let (database, user) = (row.database.clone(), row.user.clone());
        Labels { queryid: row.queryid, database, user, toplevel: row.toplevel }
    }
}

impl NamedStatements {
    /// For at most `number` series.
    pub fn new(number: usize) -> NamedStatements {
        NamedStatements {
            number,
            series: HashMap::new(),
            last: HashMap::new(),
            others: Figures::default(),
            begun: None,
            read: 0.0,
        }
    }

    /// Adds a reading of all statements since their last reset.
    pub fn note(&mut self, statements: &StatementsTable) {
        let now = statements.time;
        let mut before = std::mem::take(&mut self.last);
        self.series.values_mut().for_each(|series| series.seconds = 0.0);
        for row in statements.rows.iter().filter(|row| !row.unnamed) {
            let labels = Labels::from_row(row);
            let (last, growth) = grown(row, before.remove(&row.key), &labels);
            let since = match growth.of {
                Counted::All => row.first_seen.map_or(now, |first| first.min(now)),
                // Under another name it starts at zero, at the previous reading.
                Counted::SinceLast { renamed: true } => self.read,
                Counted::SinceLast { renamed: false } => f64::INFINITY,
            };
            let begun = || Series { since, ..Series::default() };
            let series = self.series.entry(labels).or_insert_with(begun);
            add(&mut series.total, &growth.figures);
            series.since = series.since.min(since);
            series.seconds += row.seconds;
            if series.shown.is_none() && self.begun.is_some() {
                add(&mut self.others, &growth.figures);
            }
            self.last.insert(row.key, last);
        }
        self.forget();
        self.choose(now);
        self.begun.get_or_insert(now);
        self.read = now;
    }

    /// Drops series that have no statement and were never shown.
    fn forget(&mut self) {
        let there: HashSet<&Labels> = self.last.values().map(|last| &last.labels).collect();
        let absent = |labels: &Labels| !there.contains(labels);
        let known =
            self.series.iter().filter(|(labels, sery)| sery.known && absent(labels)).count();
        self.series.retain(|labels, series| {
            !absent(labels) || series.shown.is_some() || (series.known && known <= REMEMBERED)
        });
    }

    /// Chooses the statements to show: those with the most time. One that is already shown is replaced, after
    /// [`KEPT`], by one that has clearly more.
    fn choose(&mut self, now: f64) {
        let mut shown: Vec<(f64, f64, Labels)> = Vec::new();
        let mut candidates: Vec<(f64, Labels)> = Vec::new();
        for (labels, series) in &self.series {
            match series.shown {
                Some(since) => shown.push((series.seconds, since, labels.clone())),
                None => candidates.push((series.seconds, labels.clone())),
            }
        }
        candidates.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        // Of those that may be replaced, the one with the least time comes last.
        let mut replaceable: Vec<(f64, Labels)> = shown
            .iter()
            .filter(|(_, since, _)| now - since >= KEPT)
            .map(|(seconds, _, labels)| (*seconds, labels.clone()))
            .collect();
        replaceable.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(&b.1)));
        let mut free = self.number.saturating_sub(shown.len());
        for (seconds, labels) in candidates {
            if free > 0 {
                free -= 1;
            } else {
                match replaceable.pop() {
                    Some((min, old)) if seconds > min * CLEARLY => {
                        if let Some(old) = self.series.get_mut(&old) {
                            old.shown = None;
                        }
                    }
                    // The following ones have less time.
                    _ => break,
                }
            }
            if let Some(series) = self.series.get_mut(&labels) {
                (series.shown, series.known) = (Some(now), true);
            }
        }
    }

    /// Whether anything has counted calls.
    fn counts_calls(&self) -> bool {
        self.others[0] > 0.0 || self.series.values().any(|series| series.total[0] > 0.0)
    }

    /// Adds the metrics of statements.
    pub fn metrics(&self, statements: &StatementsTable, families: &mut Vec<Family>) {
        let mut own = [
            Family::new(
                "pgtally_statement_calls_total",
                Kind::Counter,
                "Executions that ended without an error, by statement; all other statements are under one label.",
            ),
            Family::new(
                "pgtally_statement_seconds_total",
                Kind::Counter,
                "Server time, by statement.",
            ),
            Family::new(
                "pgtally_statement_rows_total",
                Kind::Counter,
                "Rows returned or changed, by statement.",
            ),
            Family::new(
                "pgtally_statement_failures_total",
                Kind::Counter,
                "Executions that ended with an error or were cancelled, by statement.",
            ),
        ];
        for (names, series) in self.series.iter().filter(|(_, series)| series.shown.is_some()) {
            let id = names.queryid.map_or_else(|| "none".to_string(), |id| id.to_string());
            let labels = [
                ("queryid", id.as_str()),
                ("database", &names.database),
                ("user", &names.user),
                ("toplevel", if names.toplevel { "true" } else { "false" }),
            ];
            for (family, value) in own.iter_mut().zip(series.total) {
                family.number_since(labels, value, series.since);
            }
        }
        let other = [("queryid", "other"), ("database", ""), ("user", ""), ("toplevel", "")];
        for (family, value) in own.iter_mut().zip(self.others) {
            family.number_since(other, value, self.begun.unwrap_or(0.0));
        }
        // Samples show no failures, and pg_stat_statements counts calls and rows only where it is.
        let is_known = |name: &str| match statements.sample_seconds {
            None => true,
            Some(_) if name.ends_with("_failures_total") => false,
            Some(_) if name.ends_with("_seconds_total") => true,
            Some(_) => self.counts_calls(),
        };
        families.extend(own.into_iter().filter(|family| is_known(family.name)));
        let mut known = Family::new(
            "pgtally_statements_known",
            Kind::Gauge,
            "Statements in the server's table.",
        );
        known.number([], f64::from(statements.table.used));
        families.push(known);
    }
}

/// The activity of a statement since the last reading.
struct Growth {
    figures: Figures,
    of: Counted,
}

/// The executions that a growth covers.
enum Counted {
    /// All of them: the statement was not there, or was evicted or reset in between.
    All,
    /// Those since the last reading; `renamed` says whether its names have changed.
    SinceLast { renamed: bool },
}

fn grown(
    row: &StatementFigures,
    before: Option<LastFigures>,
    labels: &Labels,
) -> (LastFigures, Growth) {
    let now = figures(row);
    let labels = labels.clone();
    let began_again = |last: &LastFigures| {
        last.first_seen.zip(row.first_seen).is_some_and(|(then, first_seen)| first_seen > then)
    };
    let Some(last) = before.filter(|last| !began_again(last)) else {
        let last = LastFigures { first_seen: row.first_seen, figures: now, labels };
        return (last, Growth { figures: now, of: Counted::All });
    };
    let mut highest = last.figures;
    let mut growth = Figures::default();
    for ((growth, highest), now) in growth.iter_mut().zip(&mut highest).zip(now) {
        *growth = (now - *highest).max(0.0);
        *highest = highest.max(now);
    }
    let of = Counted::SinceLast { renamed: last.labels != labels };
    // Once it has been executed, this says from when it counts.
    let first_seen = last.first_seen.or(row.first_seen);
    (LastFigures { first_seen, figures: highest, labels }, Growth { figures: growth, of })
}

#[cfg(test)]
mod tests {
    use super::super::family::Value;
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    const MINUTE: f64 = 60.0;

    fn statement(id: u64, user: (u32, &str), first: f64, seconds: f64) -> StatementFigures {
        StatementFigures {
            key: StatementKey { id, user_id: user.0, ..StatementKey::default() },
            queryid: Some(id as i64),
            user: user.1.to_string(),
            calls: seconds as u64 * 10,
            first_seen: Some(first),
            seconds,
            ..StatementFigures::default()
        }
    }

    fn reading(time: f64, mut rows: Vec<StatementFigures>) -> StatementsTable {
        rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        StatementsTable { time, rows, ..StatementsTable::default() }
    }

    fn of_app(time: f64, rows: &[(u64, f64)]) -> StatementsTable {
        reading(time, rows.iter().map(|(id, s)| statement(*id, (10, "app"), 1.0, *s)).collect())
    }

    /// ID, user, seconds and start of each series, as written.
    fn shown(named: &NamedStatements) -> Vec<(String, String, f64, f64)> {
        let mut families = Vec::new();
        named.metrics(&StatementsTable::default(), &mut families);
        let family = families.iter_mut().find(|f| f.name == "pgtally_statement_seconds_total");
        let family = family.unwrap();
        let samples = family.samples.len();
        family.settle();
        assert_eq!(family.samples.len(), samples, "the same labels twice");
        let of = |sample: &super::super::family::MetricSample| match sample.value {
            Value::Number(value) => {
                let label = |at: usize| sample.labels[at].1.clone();
                (label(0), label(2), value, sample.since.unwrap())
            }
            _ => unreachable!(),
        };
        family.samples.iter().map(of).collect()
    }

    fn seconds(named: &NamedStatements) -> Vec<(String, f64)> {
        shown(named).into_iter().map(|(id, _, seconds, _)| (id, seconds)).collect()
    }

    fn entries(of: &[(&str, f64)]) -> Vec<(String, f64)> {
        of.iter().map(|(id, seconds)| (id.to_string(), *seconds)).collect()
    }

    #[test]
    fn the_top_statements_are_shown_and_the_others_summed() {
        let mut named = NamedStatements::new(2);
        named.note(&of_app(1000.0, &[(1, 9.0), (2, 8.0), (3, 5.0), (4, 1.0)]));
        assert_eq!(seconds(&named), entries(&[("1", 9.0), ("2", 8.0), ("other", 0.0)]));
        // 3 has clearly more than 2 now, which is shown for less than an hour; 5 is new.
        let later = [(1, 9.0), (2, 8.0), (3, 10.5), (4, 1.5), (5, 0.25)];
        named.note(&of_app(1000.0 + 59.0 * MINUTE, &later));
        assert_eq!(seconds(&named), entries(&[("1", 9.0), ("2", 8.0), ("other", 6.25)]));
        named.note(&of_app(1000.0 + 60.0 * MINUTE, &later));
        assert_eq!(seconds(&named), entries(&[("1", 9.0), ("3", 10.5), ("other", 6.25)]));
        // A replaced statement counts among the others.
        let last = [(1, 9.0), (2, 8.5), (3, 10.5), (4, 1.5), (5, 0.25)];
        named.note(&of_app(1000.0 + 61.0 * MINUTE, &last));
        assert_eq!(seconds(&named)[2].1, 6.75);
        // Not clearly more than 1: 9.0.
        let almost = [(1, 9.0), (2, 11.0), (3, 10.5), (4, 1.5), (5, 0.25)];
        named.note(&of_app(1000.0 + 200.0 * MINUTE, &almost));
        assert_eq!(seconds(&named), entries(&[("1", 9.0), ("3", 10.5), ("other", 9.25)]));
    }

    #[test]
    fn a_role_that_is_made_again_continues_its_series() {
        let mut named = NamedStatements::new(2);
        let (old, new) = ((10, "app"), (20, "app"));
        named.note(&reading(100.0, vec![statement(1, old, 1.0, 5.0)]));
        // DROP ROLE, CREATE ROLE: statements like COMMIT have the same query id.
        let both = vec![statement(1, old, 1.0, 5.0), statement(1, new, 150.0, 2.0)];
        named.note(&reading(200.0, both));
        let one = |seconds| vec![("1".to_string(), "app".to_string(), seconds, 1.0)];
        assert_eq!(shown(&named)[..1], one(7.0));
        // The server has evicted the former.
        named.note(&reading(300.0, vec![statement(1, new, 150.0, 3.0)]));
        assert_eq!(shown(&named)[..1], one(8.0));
    }

    #[test]
    fn a_renamed_role_begins_a_series_at_zero_and_the_former_stays() {
        let mut named = NamedStatements::new(2);
        named.note(&reading(100.0, vec![statement(1, (10, "app"), 1.0, 5.0)]));
        named.note(&reading(200.0, vec![statement(1, (10, "web"), 1.0, 7.0)]));
        let row = |user: &str, seconds, since| ("1".into(), user.to_string(), seconds, since);
        assert_eq!(shown(&named)[..2], [row("app", 5.0, 1.0), row("web", 2.0, 100.0)]);
        named.note(&reading(300.0, vec![statement(1, (10, "web"), 1.0, 8.0)]));
        assert_eq!(shown(&named)[..2], [row("app", 5.0, 1.0), row("web", 3.0, 100.0)]);
    }

    #[test]
    fn nothing_falls_by_an_eviction_a_reset_or_a_restart_and_nothing_is_counted_twice() {
        let mut named = NamedStatements::new(1);
        let of =
            |time, first, seconds| reading(time, vec![statement(1, (10, "app"), first, seconds)]);
        let value = |named: &NamedStatements| seconds(named)[0].1;
        named.note(&of(100.0, 50.0, 5.0));
        named.note(&reading(110.0, Vec::new()));
        assert_eq!(value(&named), 5.0, "evicted");
        named.note(&of(120.0, 115.0, 6.0));
        assert_eq!(value(&named), 11.0, "it came back, and has done more than before");
        named.note(&of(130.0, 125.0, 7.0));
        assert_eq!(value(&named), 18.0, "reset between two readings");
        // The server was restarted and has loaded what it had saved, with half a second since the last reading.
        named.note(&of(140.0, 125.0, 7.5));
        assert_eq!(value(&named), 18.5, "restarted");
        // Time of a statement that runs without an ID, and takes the time along when it gets one.
        named.note(&of(150.0, 125.0, 7.0));
        named.note(&of(160.0, 125.0, 7.5));
        assert_eq!(value(&named), 18.5);
    }

    /// A random number below `below`, by a linear congruential generator.
    fn random(state: &mut u64, below: u64) -> u64 {
        *state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (*state >> 33) % below
    }

    #[test]
    fn under_churn_series_stay_for_an_hour_and_their_number_is_bounded() {
        let (number, hot) = (20, 60);
        let mut state = 7;
        let mut named = NamedStatements::new(number);
        let mut labels = BTreeSet::new();
        let mut totals = vec![0.0; hot as usize];
        let mut first = vec![1.0; hot as usize];
        // 24 scrapes, one minute apart, of a table that forgets most statements that are not executed all the
        // time.
        for scrape in 0..24 {
            let time = 1e6 + f64::from(scrape) * MINUTE;
            let mut rows = Vec::new();
            for id in 0..hot {
                let at = id as usize;
                totals[at] += 1.0 + random(&mut state, 10) as f64;
                if random(&mut state, 3) == 0 {
                    (totals[at], first[at]) = (0.5, time);
                    continue;
                }
                rows.push(statement(id, (10, "app"), first[at], totals[at]));
            }
            for fresh in 0..3000 {
                let (id, seconds) =
                    (1_000_000 + scrape as u64 * 3000 + fresh, random(&mut state, 9));
                rows.push(statement(id, (10, "app"), time, seconds as f64));
            }
            named.note(&reading(time, rows));
            labels.extend(seconds(&named).into_iter().map(|(id, _)| id));
        }
        assert_eq!(labels.len(), number + 1, "with the others: {labels:?}");
    }

    #[test]
    fn every_series_is_monotonic_and_all_of_them_are_what_was_done() {
        for seed in 1..=40 {
            // With 50 all are shown, and none is forgotten.
            let number = if seed % 2 == 0 { 50 } else { 3 };
            let mut state = seed;
            let mut named = NamedStatements::new(number);
            let mut values: BTreeMap<(String, String), f64> = BTreeMap::new();
            // The time of a role's statement in the table, and since when it counts.
            let mut table: BTreeMap<(u64, u32), (f64, f64)> = BTreeMap::new();
            let mut names = BTreeMap::from([(10, "a"), (20, "b"), (30, "a")]);
            let mut truth = 0.0;
            for step in 0..60 {
                let time = 1e6 + f64::from(step) * 20.0 * MINUTE;
                match random(&mut state, 8) {
                    0 => table.clear(),
                    1 => table.retain(|(id, _), _| id % 2 == 0),
                    2 => drop(names.insert(20, if names[&20] == "b" { "c" } else { "b" })),
                    _ => {}
                }
                for _ in 0..random(&mut state, 12) {
                    let role = [10, 20, 30][random(&mut state, 3) as usize];
                    let (id, more) = (random(&mut state, 6), random(&mut state, 100) as f64);
                    table.entry((id, role)).or_insert((time, 0.0)).1 += more;
                    truth += more;
                }
                let row = |(&(id, role), &(first, seconds)): (&(u64, u32), &(f64, f64))| {
                    statement(id, (role, names[&role]), first, seconds)
                };
                named.note(&reading(time, table.iter().map(row).collect()));
                for (id, user, seconds, since) in shown(&named) {
                    let at = format!("seed {seed}, step {step}: {id} of {user}");
                    let value = values.entry((id, user)).or_default();
                    assert!(seconds >= *value && since <= time, "{at}");
                    *value = seconds;
                }
                let all: f64 = named.series.values().map(|series| series.total[1]).sum();
                assert!(number == 3 || all == truth, "seed {seed}, step {step}: {all} of {truth}");
            }
        }
    }
}
