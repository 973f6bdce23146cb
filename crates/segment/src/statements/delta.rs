// SPDX-License-Identifier: PostgreSQL
//! The growth of statements between two readings.

use crate::directory::Directory;

use super::account_ticks::AccountTicks;
use super::figures::Statement;
use super::reading::StatementsReading;

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
    dropped: u64, "Statement counts that could not be flushed into the table.";
}

impl StatementsDelta {
    /// All figures since the statements began to count.
    pub fn total(reading: &StatementsReading) -> StatementsDelta {
        StatementsDelta {
            seconds: 0.0,
            statements: reading
                .statements
                .iter()
                .filter(|statement| !statement.is_zero())
                .cloned()
                .collect(),
            evicted: reading.evicted,
            dropped: reading.dropped,
        }
    }

    /// The growth between two readings. If the later one does not continue the earlier one, the growth is not known,
    /// and the result is empty.
    ///
    /// A statement that was reset or evicted in between started again at zero, so all its counts belong to
    /// the interval.
    pub fn between(earlier: &StatementsReading, later: &StatementsReading) -> StatementsDelta {
        let same_segment = later.is_of_segment_of(earlier);
        let known = later.continues(earlier);
        // Each segment's directory numbers the accounts in the order in which they were met.
        let names = (!same_segment).then_some([&*later.directory, &*earlier.directory]);
        let statements = later.statements.iter().filter(|_| known).map(|now| {
            match earlier.get(&now.key).filter(|then| continues(now, then, same_segment)) {
                Some(then) => since(now, then, names),
                None => now.clone(),
            }
        });
        let seconds = match same_segment {
            true => later.seconds_since(earlier),
            false => later.realtime_ns.saturating_sub(earlier.realtime_ns) as f64 * 1e-9,
        };
        StatementsDelta {
            seconds,
            statements: statements.filter(|statement| !statement.is_zero()).collect(),
            evicted: later.evicted_since(earlier),
            // It is not handed on.
            dropped: match same_segment {
                true => later.dropped.saturating_sub(earlier.dropped),
                false => later.dropped,
            },
        }
    }

    /// The statements that changed, in no particular order.
    pub fn statements(&self) -> &[Statement] {
        &self.statements
    }
}

/// Whether `now` contains all counts of `then`. Moving counts from sessions into the table loses nothing. In a segment
/// to which statements were handed on, instants differ and ticks were converted, so only counts and the first execution
/// are compared.
fn continues(now: &Statement, then: &Statement, same_segment: bool) -> bool {
    let ticks = |s: &Statement| s.parts.iter().fold(0u64, |sum, p| sum.saturating_add(p.ticks));
    match same_segment {
        true => {
            (now.born == then.born || then.born == 0)
                && now.sums.continues(&then.sums)
                && ticks(now) >= ticks(then)
        }
        false => now.sums.continues_counts(&then.sums),
    }
}

/// The growth. Accounts have equal numbers, unless both directories are given, that of `now` first.
fn since(now: &Statement, then: &Statement, names: Option<[&Directory; 2]>) -> Statement {
    let name = |directory: &Directory, stat| directory.get(stat).map(|stat| stat.name.clone());
    let is_same = |now, then| match names {
        None => now == then,
        Some([of_now, of_then]) => name(of_now, now) == name(of_then, then),
    };
    let parts = now.parts.iter().map(|part| {
        let then = then.parts.iter().find(|then| is_same(part.stat, then.stat));
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
        since_us: now.since_us,
        parts: parts.filter(|part| part.count > 0 || part.ticks > 0).collect(),
        sums: now.sums.since(&then.sums),
        second: now.second,
    }
}
