// SPDX-License-Identifier: PostgreSQL
//! Timed functions in an interval: calls, inclusive and exclusive time, and callers.
//!
//! Names are `function::<name>::<part>::<phase>` and `edge::<caller>::<callee>`. Methods of a Java client have similar
//! names, with the package in place of the phase; in edges, the package precedes each name: `<package>::<name>`.

use crate::directory::{Stat, StatKind};
use crate::frame_totals::FrameTotals;
use crate::stat_names;
use crate::timing::{most_first, Timing};
use crate::total::Total;
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

pub use crate::probes::PROBE_PREFIX;

/// The calls of one function in one phase.
#[derive(Debug, Clone, Serialize)]
pub struct FunctionRow {
    /// Its symbol.
    pub name: Arc<str>,
    /// The session's phase. Empty in a sum.
    pub phase: Arc<str>,
    /// Calls that ended, whether timed or only counted.
    pub calls: u64,
    /// Calls that were only counted, because the function is called too often to be timed.
    pub counted: u64,
    /// The timed calls, including the functions that they called. Recursive calls are counted, but their
    /// time is not added again.
    pub inclusive: Timing,
    /// Time of the timed calls, minus the time in timed functions that they called.
    pub exclusive_seconds: f64,
    /// `exclusive_seconds` per timed call; `None` without timed calls.
    pub exclusive_mean_seconds: Option<f64>,
    /// For a client's methods: calls that ended with an exception or an error.
    pub thrown: u64,
    /// For a client's functions: bytes sent and received. Bytes of recursive calls count for the outermost call.
    #[serde(skip)]
    pub bytes: u64,
    /// CPU time of the timed calls; `None` if it is not measured.
    pub cpu_inclusive_seconds: Option<f64>,
    /// The same, minus the CPU time of timed functions that they called.
    pub cpu_exclusive_seconds: Option<f64>,
    #[serde(skip)]
    totals: Box<FunctionTotals>,
}

/// The sums of one function, in ticks.
#[derive(Debug, Clone, Default)]
pub struct FunctionTotals {
    /// See [`FunctionRow::inclusive`].
    pub inclusive: Total,
    /// Ticks of [`FunctionRow::exclusive_seconds`].
    pub exclusive: u64,
    /// See [`FunctionRow::counted`].
    pub counted: u64,
    /// See [`FunctionRow::thrown`].
    pub thrown: u64,
    /// Ticks of [`FunctionRow::cpu_inclusive_seconds`] and [`FunctionRow::cpu_exclusive_seconds`].
    pub cpu: [Option<u64>; 2],
}

impl FunctionRow {
    /// The row of these totals, for the names of function and phase.
    pub fn from_totals(
        [name, phase]: [&str; 2],
        totals: FunctionTotals,
        ticks_per_second: f64,
    ) -> Self {
        let seconds = |ticks| ticks as f64 / ticks_per_second;
        let inclusive = Timing::with(&totals.inclusive, seconds);
        let exclusive_seconds = seconds(totals.exclusive);
        Self {
            name: name.into(),
            phase: phase.into(),
            calls: inclusive.count.saturating_add(totals.counted),
            counted: totals.counted,
            inclusive,
            exclusive_seconds,
            exclusive_mean_seconds: (inclusive.count > 0)
                .then(|| exclusive_seconds / inclusive.count as f64),
            thrown: totals.thrown,
            bytes: totals.inclusive.change.amount,
            cpu_inclusive_seconds: totals.cpu[0].map(seconds),
            cpu_exclusive_seconds: totals.cpu[1].map(seconds),
            totals: Box::new(totals),
        }
    }

    /// The sum of these rows of one function.
    pub fn sum(rows: &[&FunctionRow], ticks_per_second: f64) -> Self {
        let mut totals = FunctionTotals::default();
        for row in rows {
            totals.inclusive.merge(&row.totals.inclusive);
            totals.exclusive = totals.exclusive.saturating_add(row.totals.exclusive);
            totals.counted = totals.counted.saturating_add(row.counted);
            totals.thrown = totals.thrown.saturating_add(row.thrown);
            for (sum, cpu) in totals.cpu.iter_mut().zip(row.totals.cpu) {
                *sum = match (*sum, cpu) {
                    (Some(a), Some(b)) => Some(a.saturating_add(b)),
                    (one, other) => one.or(other),
                };
            }
        }
        let name = rows.first().map_or("", |row| &row.name);
        Self::from_totals([name, ""], totals, ticks_per_second)
    }
}

/// The calls of one timed function by another.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EdgeRow {
    /// The calling function.
    pub caller: Arc<str>,
    /// The called function.
    pub callee: Arc<str>,
    /// Number and inclusive time.
    #[serde(flatten)]
    pub timing: Timing,
}

/// The meaning of a statistic of timed functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Name<'n> {
    /// A function's calls.
    Function {
        /// The function and the phase.
        key: [&'n str; 2],
        /// The figure of the calls.
        figure: CallFigure,
    },
    /// The calls of one function by another.
    Edge {
        /// The calling function.
        caller: &'n str,
        /// The called function.
        callee: &'n str,
    },
}

/// One figure of a function's calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallFigure {
    /// Their time, including the functions that they called.
    Inclusive,
    /// Their time, minus that of timed functions that they called.
    Exclusive,
    /// Calls that were only counted.
    Counted,
    /// The time of calls that ended with an exception, which is also in the other figures.
    Thrown,
    /// Their CPU time, including the functions that they called.
    CpuInclusive,
    /// Their CPU time, minus that of timed functions that they called.
    CpuExclusive,
}

/// The parts of a statistic's name; `None` if it is not about functions.
pub fn parse(stat: &Stat) -> Option<Name<'_>> {
    if stat.kind != StatKind::Timer {
        return None;
    }
    parts(&stat.name)
}

/// The parts of a timer's name.
pub(crate) fn parts(name: &str) -> Option<Name<'_>> {
    if let Some(pair) = name.strip_prefix(stat_names::EDGE) {
        return edge(pair);
    }
    let mut tags = name.strip_prefix(stat_names::FUNCTION)?.rsplitn(3, "::");
    let (phase, figure, name) = (tags.next()?, tags.next()?, tags.next()?);
    let figure = match figure {
        stat_names::FUNCTION_INCLUSIVE => CallFigure::Inclusive,
        stat_names::FUNCTION_EXCLUSIVE => CallFigure::Exclusive,
        stat_names::FUNCTION_COUNTED => CallFigure::Counted,
        stat_names::FUNCTION_THROWN => CallFigure::Thrown,
        stat_names::FUNCTION_CPU_INCLUSIVE => CallFigure::CpuInclusive,
        stat_names::FUNCTION_CPU_EXCLUSIVE => CallFigure::CpuExclusive,
        _ => return None,
    };
    Some(Name::Function { key: [name, phase], figure })
}

/// Parses two functions, or two methods with their packages.
fn edge(rest: &str) -> Option<Name<'_>> {
    let mut separators = rest.match_indices("::").map(|(at, _)| at);
    let at = match (separators.next(), separators.next(), separators.next()) {
        (_, Some(second), Some(_)) => second,
        (first, ..) => first?,
    };
    Some(Name::Edge { caller: &rest[..at], callee: &rest[at + 2..] })
}

/// Whether this statistic is shown among the functions.
pub(crate) fn is_of_function(stat: &Stat) -> bool {
    parse(stat).is_some()
}

/// The functions and the edges between them, longest time first.
pub(crate) fn rows(sums: &FrameTotals<'_>) -> (Vec<FunctionRow>, Vec<EdgeRow>) {
    let clock = sums.clock();
    let mut functions: HashMap<[&str; 2], FunctionTotals> = HashMap::new();
    let mut edges = Vec::new();
    for (stat, total) in sums.changed() {
        match parse(stat) {
            Some(Name::Function { key, figure }) => {
                let totals = functions.entry(key).or_default();
                match figure {
                    CallFigure::Inclusive => totals.inclusive = total.clone(),
                    CallFigure::Exclusive => totals.exclusive = total.change.total,
                    CallFigure::Counted => totals.counted = total.change.count,
                    CallFigure::Thrown => totals.thrown = total.change.count,
                    CallFigure::CpuInclusive => totals.cpu[0] = Some(total.change.total),
                    CallFigure::CpuExclusive => totals.cpu[1] = Some(total.change.total),
                }
            }
            Some(Name::Edge { caller, callee }) => edges.push(EdgeRow {
                caller: caller.into(),
                callee: callee.into(),
                timing: Timing::from_total(total, clock),
            }),
            None => {}
        }
    }
    let mut functions: Vec<FunctionRow> = functions
        .into_iter()
        .map(|(key, totals)| FunctionRow::from_totals(key, totals, clock.ticks_per_second))
        .collect();
    most_first!(functions, inclusive.seconds, name, phase);
    most_first!(edges, timing.seconds, caller, callee);
    (functions, edges)
}
