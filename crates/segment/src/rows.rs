// SPDX-License-Identifier: PostgreSQL
//! Rows of an interval: accounts, activities, commands, and the statistics without a specific kind of
//! row.

use crate::clock::ClockInfo;
use crate::directory::{Stat, StatKind};
use crate::frame::Frame;
use crate::frame_totals::FrameTotals;
use crate::sampling::{Sampling, Spread};
use crate::timing::{most_first, Timing};
use crate::total::Total;
use crate::wait_class::WaitClass;
use crate::{commits, files, functions, locks, own, sampling, wal};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

/// The sessions that ended within the interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct EndedRow {
    /// Number of sessions.
    pub sessions: u64,
    /// Their lifetime in the interval.
    pub seconds: f64,
}

/// An account of the ledger.
#[derive(Debug, Clone, Serialize)]
pub struct AccountRow {
    /// The phase.
    pub phase: Arc<str>,
    /// "cpu", or the wait event as `Type:Event`.
    pub activity: Arc<str>,
    /// The class of the activity.
    #[serde(skip)]
    pub class: WaitClass,
    /// Number and time.
    #[serde(flatten)]
    pub timing: Timing,
    /// Whether this is idle time: waiting for the client between commands, the main loop of a background
    /// process, or uninstrumented time.
    pub idle: bool,
    #[serde(skip)]
    pub(crate) total: Total,
    /// If it was estimated from samples: how uncertain its time is.
    #[serde(skip)]
    pub(crate) spread: Option<Spread>,
}

impl AccountRow {
    /// The row of the account `stat` with this total.
    pub fn from_total(stat: &Stat, total: Total, clock: &ClockInfo) -> AccountRow {
        AccountRow {
            phase: stat.phase().clone(),
            activity: stat.activity().clone(),
            class: stat.class(),
            timing: Timing::from_total(&total, clock),
            idle: stat.is_idle(),
            total,
            spread: None,
        }
    }

    /// The same as an estimate from samples.
    pub(crate) fn with_spread(self, spread: Spread, sampling: &Sampling) -> AccountRow {
        AccountRow {
            timing: self.timing.with_spread(spread, sampling),
            spread: Some(spread),
            ..self
        }
    }

    /// Makes the time without a wait event one account for each phase, whose activity and length are not known.
    pub(crate) fn hide_cpu(ledger: &mut Vec<AccountRow>, clock: &ClockInfo) {
        let rows = std::mem::take(ledger);
        let is_hidden =
            |row: &AccountRow| row.class == WaitClass::Cpu || *row.activity == *sampling::UNKNOWN;
        let (hidden, shown): (Vec<_>, Vec<_>) = rows.into_iter().partition(is_hidden);
        *ledger = shown;
        let from = ledger.len();
        for row in hidden {
            match ledger[from..].iter_mut().find(|known| known.phase == row.phase) {
                Some(known) => known.total.merge(&row.total),
                None => ledger.push(row),
            }
        }
        for row in &mut ledger[from..] {
            (row.activity, row.class) = (sampling::UNKNOWN.into(), WaitClass::Other);
            row.timing = Timing::from_total(&row.total, clock).refuse();
        }
    }
}

/// An activity, added up over all phases.
#[derive(Debug, Clone, Serialize)]
pub struct ActivityRow {
    /// "cpu", or the wait event as `Type:Event`.
    pub activity: Arc<str>,
    /// The class of the activity.
    #[serde(skip)]
    pub class: WaitClass,
    /// Number and time.
    #[serde(flatten)]
    pub timing: Timing,
    /// Whether all of it is idle time.
    pub idle: bool,
}

/// The commands of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CommandRow {
    /// "Query", "Execute", ...
    pub kind: String,
    /// Time waiting for the command, since the previous one was handled.
    pub read: Timing,
    /// Time handling the command, from its arrival until the wait for the next one.
    pub handle: Timing,
}

/// Any other statistic.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StatisticRow {
    /// Its name.
    pub name: String,
    /// "seconds" for times, otherwise the unit of the statistic.
    pub unit: String,
    /// Number of events.
    pub count: u64,
    /// Their sum.
    pub total: f64,
    /// Their minimum.
    pub min: Option<f64>,
    /// Their maximum.
    pub max: Option<f64>,
    /// The median, accurate to 6.25 %.
    pub p50: Option<f64>,
    /// The 99th percentile, accurate to 6.25 %.
    pub p99: Option<f64>,
}

/// Number of messages that tally's own sessions handled.
pub(crate) fn own_commands(frame: &Frame) -> u64 {
    let own = frame.statistics.iter().filter(|statistic| own::is_process(&statistic.process));
    let handled = own.filter(|statistic| matches!(statistic.stat.command(), Some((_, true))));
    handled.fold(0, |sum, statistic| sum.saturating_add(statistic.total.change.count))
}

/// The clients' commands by kind, longest time first.
pub(crate) fn command_rows(frame: &Frame) -> Vec<CommandRow> {
    let sums = FrameTotals::of_those(frame, |statistic| statistic.command().is_some());
    let mut rows: HashMap<&str, CommandRow> = HashMap::new();
    for (stat, total) in sums.changed() {
        let Some((kind, is_handle)) = stat.command() else {
            continue;
        };
        let row = rows.entry(kind).or_insert_with(|| CommandRow {
            kind: kind.to_string(),
            read: Timing::default(),
            handle: Timing::default(),
        });
        let timing = Timing::from_total(total, sums.clock());
        if is_handle {
            row.handle = timing;
        } else {
            row.read = timing;
        }
    }
    let mut rows: Vec<CommandRow> = rows.into_values().collect();
    most_first!(rows, handle.seconds, kind);
    rows
}

/// Statistics without a specific kind of row, by name.
pub(crate) fn statistic_rows(sums: &FrameTotals<'_>) -> Vec<StatisticRow> {
    let clock = sums.clock();
    let mut rows: Vec<StatisticRow> = sums
        .changed()
        .filter(|(stat, _)| {
            stat.kind != StatKind::Account
                && stat.command().is_none()
                && !locks::is_of_lock(stat)
                && !functions::is_of_function(stat)
                && !files::is_of_file(stat)
                && !commits::is_of_commit(stat)
                && !wal::is_of_wal(stat)
                && !sampling::is_of_sampler(stat)
        })
        .map(|(stat, total)| {
            let timed = stat.kind == StatKind::Timer;
            let number = |n: u64| if timed { clock.seconds(n) } else { n as f64 };
            StatisticRow {
                name: stat.name.clone(),
                unit: if timed { "seconds".to_string() } else { stat.unit.clone() },
                count: total.change.count,
                total: number(total.change.total),
                min: total.change.min.known().map(number),
                max: total.change.max.known().map(number),
                p50: total.quantile(0.50).map(number),
                p99: total.quantile(0.99).map(number),
            }
        })
        .collect();
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    rows
}
