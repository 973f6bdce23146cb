// SPDX-License-Identifier: PostgreSQL
//! Matches statements that are the same on both sides although their texts differ: PostgreSQL 16 and later keep a
//! preceding END or COMMIT, and 18 shortens lists after IN.

use std::collections::{BTreeMap, HashMap};

use recording::comparable_fingerprint;

use super::call_change::Calls;
use super::comparison::Subject;
use super::statements::{SideStatements, StatementBlocks};

/// The identity of a statement on every server: fingerprint, database, user and level.
type Identity = (String, String, String, bool);

/// Gives statements that are the same one name, whose text is that of B.
pub fn match_up(a: &mut SideStatements, b: &mut SideStatements) {
    let mut names: HashMap<Identity, Subject> = HashMap::new();
    for side in [b, a] {
        // In order, so that the same one of several texts is always shown.
        let lines: BTreeMap<Subject, StatementBlocks> =
            std::mem::take(&mut side.lines).into_iter().collect();
        for (what, line) in lines {
            let name = names.entry(identity(&what)).or_insert(what).clone();
            side.lines.entry(name).or_default().add(line);
        }
    }
}

fn identity(what: &Subject) -> Identity {
    let Subject::Statement { query, database, user, toplevel } = what else {
        return Identity::default();
    };
    // A truncated text has its query ID before it, and no fingerprint.
    let is_cut = query.starts_with(|c: char| c == '-' || c.is_ascii_digit());
    let statement = if is_cut { query.to_string() } else { comparable_fingerprint(query) };
    (statement, database.clone(), user.clone(), *toplevel)
}

impl StatementBlocks {
    /// Adds the executions of the same statement under another text.
    fn add(&mut self, other: StatementBlocks) {
        let total = |calls: &[f64]| calls.iter().sum::<f64>();
        if self.plan.is_none() || total(&other.calls) > total(&self.calls) {
            self.plan = other.plan.or_else(|| self.plan.take());
        }
        add_each(&mut self.seconds, &other.seconds);
        add_each(&mut self.calls, &other.calls);
        add_each(&mut self.execution_seconds, &other.execution_seconds);
        self.executions = match (self.executions, other.executions) {
            (Some(one), Some(other)) => Some(together(one, other)),
            (one, other) => one.or(other),
        };
    }
}

/// Adds the figures of each block.
fn add_each(sums: &mut Vec<f64>, more: &[f64]) {
    sums.resize(sums.len().max(more.len()), 0.0);
    sums.iter_mut().zip(more).for_each(|(sum, more)| *sum += more);
}

/// All of these executions. The median is that of the larger part.
fn together(a: Calls, b: Calls) -> Calls {
    let count = a.count + b.count;
    let part = |calls: Calls| calls.count as f64 / count.max(1) as f64;
    let mean = part(a) * a.mean + part(b) * b.mean;
    let square = |calls: Calls| calls.deviation.powi(2) + (calls.mean - mean).powi(2);
    Calls {
        count,
        mean,
        deviation: (part(a) * square(a) + part(b) * square(b)).sqrt(),
        median: if a.count >= b.count { a.median } else { b.median },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn statement(query: &str) -> Subject {
        Subject::Statement {
            query: query.into(),
            database: "shop".into(),
            user: "app".into(),
            toplevel: true,
        }
    }

    fn side(lines: &[(&str, f64, f64)]) -> SideStatements {
        let line = |seconds, calls| StatementBlocks {
            seconds: vec![seconds],
            calls: vec![calls],
            execution_seconds: vec![seconds / 2.0],
            ..StatementBlocks::default()
        };
        let lines =
            lines.iter().map(|(text, seconds, calls)| (statement(text), line(*seconds, *calls)));
        let mut side = SideStatements::default();
        side.lines = lines.collect();
        side
    }

    fn shown(side: &SideStatements) -> Vec<(String, f64, f64)> {
        let row = |(what, line): (&Subject, &StatementBlocks)| match what {
            Subject::Statement { query, .. } => {
                assert_eq!(line.execution_seconds[0], line.seconds[0] / 2.0);
                (query.to_string(), line.seconds[0], line.calls[0])
            }
            other => panic!("{other:?}"),
        };
        let mut rows: Vec<_> = side.lines.iter().map(row).collect();
        rows.sort_by(|a, b| a.0.cmp(&b.0));
        rows
    }

    #[test]
    fn a_statement_of_two_versions_is_one_row_under_the_text_of_b() {
        let mut a = side(&[
            ("END", 1.0, 10.0),
            ("COMMIT", 2.0, 20.0),
            ("select a from t where b in ($1, $2)", 4.0, 40.0),
            ("4711: select", 8.0, 80.0),
        ]);
        let mut b = side(&[
            ("commit", 16.0, 160.0),
            ("select a from t where b in ($1 /*, ... */)", 32.0, 320.0),
            ("4712: select", 64.0, 640.0),
        ]);
        match_up(&mut a, &mut b);
        let row = |text: &str, seconds, calls| (text.to_string(), seconds, calls);
        let list = "select a from t where b in ($1 /*, ... */)";
        let of_a = [row("4711: select", 8.0, 80.0), row("commit", 3.0, 30.0), row(list, 4.0, 40.0)];
        assert_eq!(shown(&a), of_a);
        let of_b =
            [row("4712: select", 64.0, 640.0), row("commit", 16.0, 160.0), row(list, 32.0, 320.0)];
        assert_eq!(shown(&b), of_b);
    }

    #[test]
    fn executions_under_two_texts_are_those_of_both() {
        let calls = |count, mean| Calls { count, mean, deviation: 0.0, median: mean };
        let both = together(calls(30, 1.0), calls(10, 5.0));
        assert_eq!((both.count, both.mean, both.median), (40, 2.0, 1.0));
        assert!((both.deviation - 3f64.sqrt()).abs() < 1e-12, "{both:?}");
    }
}
