// SPDX-License-Identifier: PostgreSQL
//! Statements as metrics: some by query id, all others summed, so that the number of series is
//! bounded.
//!
//! A named statement is replaced only by one with clearly more time, because series that come and go
//! are of little use. Its figures count from its first execution. Those of the others count from the
//! start of this command, so that the sum never falls when a named statement is replaced.

use std::collections::{HashMap, HashSet};

use segment::StatementKey;

use super::family::{Family, Kind};
use view::statements::{StatementRow, Statements};

/// Factor by which a statement must exceed the time of a named one to replace it.
const CLEARLY: f64 = 1.25;
/// Calls, seconds, rows, errors.
type Figures = [f64; 4];

/// The named statements, and the sum of the others.
#[derive(Debug)]
pub struct NamedStatements {
    number: usize,
    named: HashSet<StatementKey>,
    /// Last figures of the other statements.
    last: HashMap<StatementKey, Figures>,
    others: Figures,
    /// When the first reading was, seconds since 1970.
    begun: Option<f64>,
}

/// Without what will be another statement's time: a counter does not fall.
fn figures(row: &StatementRow) -> Figures {
    let seconds = (row.seconds - row.unnamed_seconds).max(0.0);
    [row.calls as f64, seconds, row.rows as f64, (row.errors + row.cancels) as f64]
}

impl NamedStatements {
    /// For at most `number` named statements.
    pub fn new(number: usize) -> NamedStatements {
        NamedStatements {
            number,
            named: HashSet::new(),
            last: HashMap::new(),
            others: Figures::default(),
            begun: None,
        }
    }

    /// Adds a reading.
    pub fn note(&mut self, statements: &Statements) {
        // Sorted by time, most first.
        let rows: Vec<&StatementRow> = statements.rows.iter().filter(|row| !row.unnamed).collect();
        let there: HashSet<&StatementKey> = rows.iter().map(|row| &row.key).collect();
        self.named.retain(|key| there.contains(key));
        for row in rows.iter().filter(|row| !self.named.contains(&row.key)) {
            let now = figures(row);
            let before = match self.last.get(&row.key) {
                Some(before) => *before,
                // Figures from before the first reading do not count.
                None if self.begun.is_none() => now,
                None => Figures::default(),
            };
            for ((sum, now), before) in self.others.iter_mut().zip(now).zip(before) {
                // Figures fall after a reset.
                *sum += if now >= before { now - before } else { now };
            }
        }
        let seconds: HashMap<StatementKey, f64> =
            rows.iter().map(|row| (row.key, row.seconds)).collect();
        for row in &rows {
            if self.named.contains(&row.key) {
                continue;
            }
            if self.named.len() < self.number {
                self.named.insert(row.key);
                continue;
            }
            let of = |key: &StatementKey| seconds.get(key).copied().unwrap_or(0.0);
            let min = self.named.iter().min_by(|a, b| of(a).total_cmp(&of(b))).copied();
            match min.filter(|min| row.seconds > of(min) * CLEARLY) {
                Some(min) => {
                    self.named.remove(&min);
                    self.named.insert(row.key);
                }
                // The following ones have less time.
                None => break,
            }
        }
        self.last = rows
            .iter()
            .filter(|row| !self.named.contains(&row.key))
            .map(|row| (row.key, figures(row)))
            .collect();
        self.begun.get_or_insert_with(|| segment::clock::realtime_ns() as f64 * 1e-9);
    }

    /// Adds the metrics of statements.
    pub fn metrics(&self, statements: &Statements, families: &mut Vec<Family>) {
        let mut own = [
            Family::new(
                "pgtally_statement_calls_total",
                Kind::Counter,
                "Executions that ended without an error, by statement; all others under one label.",
            ),
            Family::new(
                "pgtally_statement_seconds_total",
                Kind::Counter,
                "Server time of these statements.",
            ),
            Family::new(
                "pgtally_statement_rows_total",
                Kind::Counter,
                "Rows returned or changed by them.",
            ),
            Family::new(
                "pgtally_statement_failures_total",
                Kind::Counter,
                "Executions that an error or a cancellation ended.",
            ),
        ];
        // A clean stop hands them on to the next run, which has other totals.
        let since = statements.source.as_ref().map(|source| source.since_ns() as f64 * 1e-9);
        for row in statements.rows.iter().filter(|row| self.named.contains(&row.key)) {
            let id = row.queryid.map_or_else(|| "none".to_string(), |id| id.to_string());
            let labels = [
                ("queryid", id.as_str()),
                ("database", &row.database),
                ("user", &row.user),
                ("toplevel", if row.toplevel { "true" } else { "false" }),
            ];
            for (family, value) in own.iter_mut().zip(figures(row)) {
                match since {
                    Some(since) => family.number_since(labels, value, since),
                    None => family.number(labels, value),
                }
            }
        }
        let other = [("queryid", "other"), ("database", ""), ("user", ""), ("toplevel", "")];
        for (family, value) in own.iter_mut().zip(self.others) {
            family.number_since(other, value, self.begun.unwrap_or(0.0));
        }
        families.extend(own);
        let mut known = Family::new(
            "pgtally_statements_known",
            Kind::Gauge,
            "Statements in the server's table.",
        );
        known.number([], f64::from(statements.table.used));
        families.push(known);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(rows: &[(u64, f64)]) -> Statements {
        let mut rows: Vec<StatementRow> = rows
            .iter()
            .map(|&(id, seconds)| StatementRow {
                key: StatementKey { id, ..StatementKey::default() },
                queryid: Some(id as i64),
                calls: seconds as u64 * 10,
                seconds,
                ..StatementRow::default()
            })
            .collect();
        rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        Statements { rows, ..Statements::default() }
    }

    fn seconds_by_id(named: &NamedStatements, reading: &Statements) -> Vec<(String, f64)> {
        let mut families = Vec::new();
        named.metrics(reading, &mut families);
        let seconds = families.iter().find(|f| f.name == "pgtally_statement_seconds_total");
        let samples = seconds.unwrap().samples.iter().map(|sample| match sample.value {
            super::super::family::Value::Number(value) => (sample.labels[0].1.clone(), value),
            _ => unreachable!(),
        });
        samples.collect()
    }

    #[test]
    fn the_top_statements_are_named_and_the_others_summed() {
        let mut named = NamedStatements::new(2);
        let first = reading(&[(1, 9.0), (2, 8.0), (3, 5.0), (4, 1.0)]);
        named.note(&first);
        let entry = |id: &str, seconds| (id.to_string(), seconds);
        assert_eq!(
            seconds_by_id(&named, &first),
            [entry("1", 9.0), entry("2", 8.0), entry("other", 0.0)]
        );
        // 3 has more than 2 now, but not clearly; 5 is new.
        let second = reading(&[(1, 9.0), (2, 8.0), (3, 9.5), (4, 1.5), (5, 0.25)]);
        named.note(&second);
        assert_eq!(seconds_by_id(&named, &second)[2], entry("other", 5.25));
        assert_eq!(seconds_by_id(&named, &second)[1], entry("2", 8.0));
        let third = reading(&[(1, 9.0), (2, 8.0), (3, 10.5), (4, 1.5), (5, 0.25)]);
        named.note(&third);
        let now = seconds_by_id(&named, &third);
        assert_eq!(now, [entry("3", 10.5), entry("1", 9.0), entry("other", 6.25)]);
        // The replaced statement counts among the others.
        let fourth = reading(&[(1, 9.0), (2, 8.5), (3, 10.5), (4, 1.5), (5, 0.25)]);
        named.note(&fourth);
        assert_eq!(seconds_by_id(&named, &fourth)[2], entry("other", 6.75));
        // After a reset named statements start again; the sum of the others is kept.
        let fifth = reading(&[(1, 0.5), (4, 0.25)]);
        named.note(&fifth);
        assert_eq!(
            seconds_by_id(&named, &fifth),
            [entry("1", 0.5), entry("4", 0.25), entry("other", 7.0)]
        );
    }
}
