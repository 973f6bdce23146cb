// SPDX-License-Identifier: PostgreSQL
//! The growth of statements between two readings.

use super::account_ticks::AccountTicks;
use super::figures::Statement;
use super::reading::Statements;

/// The figures of an interval.
#[derive(Debug, Clone)]
pub struct StatementsDelta {
    seconds: f64,
    statements: Vec<Statement>,
    evicted: u64,
    dropped: u64,
}

getters! {
    StatementsDelta:
    seconds: f64, "The length of the interval; 0 without an earlier reading.";
    evicted: u64, "Statements that were evicted.";
    dropped: u64, "Counts that could not be flushed into the table.";
}

impl StatementsDelta {
    /// The growth since `earlier`; without one, since the start of the figures.
    ///
    /// A statement that was reset or evicted in between started again at zero, so all its counts are of
    /// the interval.
    pub fn between(earlier: Option<&Statements>, later: &Statements) -> StatementsDelta {
        let statements = later.statements.iter().map(|now| {
            match earlier.and_then(|earlier| earlier.get(&now.key)) {
                Some(then) if continues(now, then) => since(now, then),
                _ => now.clone(),
            }
        });
        let ticks = earlier.map_or(0, |earlier| later.tick.saturating_sub(earlier.tick));
        let more =
            |now: u64, then: fn(&Statements) -> u64| now.saturating_sub(earlier.map_or(0, then));
        StatementsDelta {
            seconds: later.clock.seconds(ticks),
            statements: statements.filter(|statement| !statement.is_zero()).collect(),
            evicted: more(later.evicted, Statements::evicted),
            dropped: more(later.dropped, Statements::dropped),
        }
    }

    /// The statements that changed, in no order.
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }
}

/// Whether `now` contains all counts of `then`. Moving from sessions into the table loses nothing.
fn continues(now: &Statement, then: &Statement) -> bool {
    let ticks = |s: &Statement| s.parts.iter().fold(0u64, |sum, p| sum.saturating_add(p.ticks));
    (now.born == then.born || then.born == 0)
        && now.sums.continues(&then.sums)
        && ticks(now) >= ticks(then)
}

fn since(now: &Statement, then: &Statement) -> Statement {
    let parts = now.parts.iter().map(|part| {
        let then = then.parts.iter().find(|t| t.stat == part.stat);
        AccountTicks {
            stat: part.stat,
            count: part.count.saturating_sub(then.map_or(0, |t| t.count)),
            ticks: part.ticks.saturating_sub(then.map_or(0, |t| t.ticks)),
        }
    });
    Statement {
        key: now.key,
        text: now.text.clone(),
        born: now.born,
        parts: parts.filter(|part| part.count > 0 || part.ticks > 0).collect(),
        sums: now.sums.since(&then.sums),
        second: now.second,
    }
}
