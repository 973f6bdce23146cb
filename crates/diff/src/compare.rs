// SPDX-License-Identifier: PostgreSQL
//! Compares two sides and separates changes from noise.
//!
//! Each side's noise is estimated from its own blocks ([`stats::Ratio`]). The totals are tested by themselves,
//! all rows as one family and all calls of statements as another, at one half and two quarters of [`FALSE`]. If
//! nothing has changed, the comparison reports nothing in 99 of 100 cases, and on average fewer than 1 % of the
//! rows reported as changed are so by chance. If units come unevenly, time per second is tested too ([`change`]).
//! Blocks that are far apart are a change however much they vary ([`separation`]). Statements that the blocks of
//! a short recording do not decide may be decided by their executions ([`calls`]).

use std::collections::BTreeSet;

use recording::StatTotals;

use super::calls::{self, CallCourse};
use super::comparison::{
    Change, ChangeVerdict, ComparisonRow, DiffUnit, PerSecond, Rows, Subject, Total,
};
use super::key::{Key, COUNTED, EXCLUSIVE, INCLUSIVE};
use super::samples::SampledError;
use super::side::ComparedSide;
use super::statements::{SideStatements, StatementBlocks};
use stats::calls::FALSE_ALARMS;
use stats::{discoveries, separation, Difference, Precision, Ratio};

/// Probability that a comparison of equal sides reports a change, and maximum share of rows reported as changed
/// that are so by chance.
pub const FALSE: f64 = 0.01;

/// Its shares for totals, for rows and for calls of statements.
const OF_TOTALS: f64 = FALSE / 2.0;
const OF_ROWS: f64 = FALSE / 4.0;
const OF_CALLS: f64 = FALSE / 4.0;

/// Units are uneven if the relative standard error of units per second is at least this.
const UNEVEN: f64 = 0.1;
/// A side without time in a row counts as evidence only if it has at least this many units relative to the other
/// side.
const ENOUGH: f64 = 0.5;

/// Time is counted by commits if there is at least one commit in this many commands.
const COMMANDS_A_COMMIT: u64 = 50;

/// What both sides measured that not every level measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredByBoth {
    pub locks: bool,
    pub functions: bool,
}

/// Two sides, and the unit by which their time is counted.
#[derive(Debug, Clone, Copy)]
pub struct Pair<'s> {
    pub a: &'s ComparedSide,
    pub b: &'s ComparedSide,
    pub per: DiffUnit,
}

/// The units of work by which both sides can be counted, the one closest to a transaction first.
pub fn units(a: &ComparedSide, b: &ComparedSide) -> Vec<DiffUnit> {
    let both = |per| [a, b].iter().all(|side| side.count(&Key::Unit(per)) > 0);
    let often = [a, b].iter().all(|side| {
        let count = |per| side.count(&Key::Unit(per));
        count(DiffUnit::Commit).saturating_mul(COMMANDS_A_COMMIT) >= count(DiffUnit::Command)
    });
    let all = if often {
        [DiffUnit::Commit, DiffUnit::Command]
    } else {
        [DiffUnit::Command, DiffUnit::Commit]
    };
    all.into_iter().filter(|per| both(*per)).collect()
}

/// Number of units in each compared column.
fn number(side: &ComparedSide, per: DiffUnit) -> Vec<f64> {
    match per {
        DiffUnit::Second => side.column_seconds(),
        _ => side.line(&Key::Unit(per), |amount| amount.count),
    }
}

/// Series that belong to one row.
type RowSeries<'k> = Vec<&'k Key>;

impl Pair<'_> {
    /// The change of time, whose noise is wider if only one side was measured.
    fn change(
        &self,
        seconds: &[Vec<f64>; 2],
        units: &[Vec<f64>; 2],
        lengths: &[Vec<f64>; 2],
    ) -> Option<Change> {
        let change = change(seconds, units, lengths)?;
        Some(match (self.a.sampled, self.b.sampled) {
            (Some(distance), None) => {
                SampledError::of_samples(distance, self.a.seconds()).widen(change)
            }
            (None, Some(distance)) => {
                SampledError::of_samples(distance, self.b.seconds()).widen(change)
            }
            _ => change,
        })
    }

    /// The rows of all tables, largest changes first. There is a total for each of `units`; `looked` says what
    /// can be compared.
    pub fn rows(&self, units: &[DiffUnit], looked: MeasuredByBoth) -> Rows {
        let keys: BTreeSet<&Key> = self.a.lines.keys().chain(self.b.lines.keys()).collect();
        let mut rows = Rows::default();
        for key in &keys {
            let Key::Row(what) = key else { continue };
            let table = match what {
                Subject::Account { .. } => &mut rows.accounts,
                Subject::Process { .. } => &mut rows.processes,
                Subject::Lock { .. } if looked.locks => &mut rows.locks,
                Subject::File { .. } => &mut rows.files,
                Subject::Function { part, .. }
                    if looked.functions && *part != COUNTED && !self.repeats(what) =>
                {
                    &mut rows.functions
                }
                _ => continue,
            };
            table.extend(self.row(what, key));
        }
        rows.statements = self.statements();
        // Without clients, count all processes.
        let clients = self.a.has_clients() || self.b.has_clients();
        let is_summed = |key: &Key| match key {
            Key::Row(Subject::Account { .. }) => true,
            Key::Row(Subject::Process { .. }) => !clients,
            _ => false,
        };
        let accounts: RowSeries<'_> = keys.into_iter().filter(|key| is_summed(key)).collect();
        rows.totals = units.iter().filter_map(|per| self.total(&accounts, *per)).collect();
        rows.judge();
        rows
    }

    /// Whether this exclusive time equals the inclusive time, because the function called no timed function.
    fn repeats(&self, what: &Subject) -> bool {
        let Subject::Function { process, function, part: EXCLUSIVE } = what else { return false };
        let time = |side: &ComparedSide, part| -> u64 {
            let (process, function) = (process.clone(), function.clone());
            let key = Key::Row(Subject::Function { process, function, part });
            side.lines.get(&key).map_or(0, |line| line.iter().map(|amount| amount.total).sum())
        };
        [self.a, self.b].iter().all(|side| time(side, EXCLUSIVE) == time(side, INCLUSIVE))
    }

    /// Recorded time of each compared column.
    fn lengths(&self) -> [Vec<f64>; 2] {
        [self.a.column_seconds(), self.b.column_seconds()]
    }

    fn total(&self, accounts: &RowSeries<'_>, per: DiffUnit) -> Option<Total> {
        let sum = |side: &ComparedSide| {
            let mut total = vec![0.0; side.kept.len()];
            for key in accounts {
                let line = side.line(key, |amount| amount.total);
                total.iter_mut().zip(line).for_each(|(sum, ns)| *sum += ns * 1e-9);
            }
            total
        };
        let rate =
            |side: &ComparedSide| number(side, per).iter().sum::<f64>() / side.seconds().max(1e-9);
        let change = self.change(
            &[sum(self.a), sum(self.b)],
            &[number(self.a, per), number(self.b, per)],
            &self.lengths(),
        )?;
        let waiting = |side: &ComparedSide| {
            if side.sampled.is_some() {
                return None;
            }
            let cpu = |key: &Key| matches!(key, Key::Row(Subject::Account { activity, .. }) if &**activity == "cpu");
            let accounts = side.lines.iter().filter(|(key, _)| cpu(key)).flat_map(|(_, line)| line);
            let cpu_ns: u64 = accounts.map(|amount| amount.total).sum();
            let sessions = cpu_ns as f64 * 1e-9 / side.seconds().max(1e-9);
            Some((sessions - side.processors?.sessions).max(0.0) / rate(side).max(1e-9))
        };
        Some(Total {
            a_per_second: rate(self.a),
            b_per_second: rate(self.b),
            a_waiting_seconds: waiting(self.a),
            b_waiting_seconds: waiting(self.b),
            ..Total::new(per, change)
        })
    }

    /// The row of a series; `None` if nothing happened on either side.
    fn row(&self, what: &Subject, key: &Key) -> Option<ComparisonRow> {
        let by = [number(self.a, self.per), number(self.b, self.per)];
        let seconds = |side: &ComparedSide| -> Vec<f64> {
            side.line(key, |amount| amount.total).iter().map(|ns| ns * 1e-9).collect()
        };
        let each = |figure: fn(&StatTotals) -> u64| {
            let each = |side: &ComparedSide, by: &[f64]| {
                side.line(key, figure).iter().sum::<f64>() / by.iter().sum::<f64>()
            };
            (each(self.a, &by[0]), each(self.b, &by[1]))
        };
        let ((a_count, b_count), (a_bytes, b_bytes)) =
            (each(|amount| amount.count), each(|amount| amount.amount));
        let mut change = self.change(&[seconds(self.a), seconds(self.b)], &by, &self.lengths())?;
        if what.is_without_wait() && (self.a.hides_cpu() || self.b.hides_cpu()) {
            (change.half_width_seconds, change.p, change.precision) = (None, None, None);
        }
        let what = what.clone();
        let row = ComparisonRow {
            a_count,
            b_count,
            a_bytes,
            b_bytes,
            ..ComparisonRow::new(what, change)
        };
        row.is_there().then_some(row)
    }

    fn statements(&self) -> Vec<ComparisonRow> {
        let (Some(a), Some(b)) = (&self.a.statements, &self.b.statements) else {
            return Vec::new();
        };
        let by = [a, b].map(|side| side.units(self.per).to_vec());
        let lengths = [a, b].map(|side| side.seconds.clone());
        let names: BTreeSet<&Subject> = a.lines.keys().chain(b.lines.keys()).collect();
        let none = StatementBlocks::default();
        let row = |name: &Subject| {
            let lines = [a, b].map(|side| side.lines.get(name).unwrap_or(&none));
            let seconds = [0, 1].map(|at| {
                let mut seconds = lines[at].seconds.clone();
                seconds.resize(by[at].len(), 0.0);
                seconds
            });
            let count =
                |at: usize| lines[at].calls.iter().sum::<f64>() / by[at].iter().sum::<f64>();
            let calls = |at: usize| lines[at].executions.filter(|calls| calls.count > 0);
            let mut change = self.change(&seconds, &by, &lengths)?;
            if change.half_width_seconds.is_none() {
                change.half_width_seconds =
                    calls::half_width([calls(0), calls(1)], [count(0), count(1)]);
            }
            let plans = lines[0].plan.as_ref().zip(lines[1].plan.as_ref());
            let plans = plans.filter(|(a, b)| !a.is_like(b));
            let row = ComparisonRow {
                a_plan: plans.map(|(a, b)| a.unlike(b)),
                b_plan: plans.map(|(a, b)| b.unlike(a)),
                a_count: count(0),
                b_count: count(1),
                a_mean_half_width_seconds: calls(0).map(|calls| calls.half_width()),
                b_mean_half_width_seconds: calls(1).map(|calls| calls.half_width()),
                a_mean_seconds: calls(0).map(|calls| calls.mean),
                b_mean_seconds: calls(1).map(|calls| calls.mean),
                a_calls: calls(0),
                b_calls: calls(1),
                ..ComparisonRow::new(name.clone(), change)
            };
            row.is_there().then_some(row)
        };
        let mut rows: Vec<ComparisonRow> = names.into_iter().filter_map(row).collect();
        compare_calls(&mut rows, [a, b]);
        rows
    }
}

/// Compares the calls of statements that clients sent and that have enough calls on both sides.
fn compare_calls(rows: &mut [ComparisonRow], sides: [&SideStatements; 2]) {
    let lines = |row: &ComparisonRow| -> Option<[&StatementBlocks; 2]> {
        let lines = sides.map(|side| side.lines.get(&row.what));
        let [Some(a), Some(b)] = lines else { return None };
        let often =
            |line: &StatementBlocks| line.calls.iter().sum::<f64>() >= stats::calls::FEWEST as f64;
        let sent = matches!(row.what, Subject::Statement { toplevel: true, .. });
        (sent && often(a) && often(b)).then_some([a, b])
    };
    let compared: Vec<(usize, [&StatementBlocks; 2])> =
        rows.iter().enumerate().filter_map(|(at, row)| Some((at, lines(row)?))).collect();
    let side = |side: usize| -> Vec<CallCourse<'_>> {
        let lines = compared.iter().map(|(_, lines)| lines[side]);
        lines
            .map(|line| CallCourse { seconds: &line.execution_seconds, calls: &line.calls })
            .collect()
    };
    let changes = calls::changes(&side(0), &side(1), OF_CALLS);
    let at: Vec<usize> = compared.into_iter().map(|(at, _)| at).collect();
    for (at, call) in at.into_iter().zip(changes) {
        rows[at].call = call;
    }
}

/// How many more seconds per unit there are on the second side. Both sides are given by blocks, whose recorded
/// time is `lengths`. The verdict is still missing, because all rows are judged together. `None` if a side has no
/// units.
///
/// If units come unevenly, such as commits that are all released at once, their own scatter hides any time per
/// unit. Then time per second is tested as well, relative to what units per second explain; each of the two tests
/// counts half.
pub fn change(
    seconds: &[Vec<f64>; 2],
    units: &[Vec<f64>; 2],
    lengths: &[Vec<f64>; 2],
) -> Option<Change> {
    let [a, b] = [0, 1].map(|at| Ratio::estimate(&seconds[at], &units[at]));
    let (a, b) = (a?, b?);
    let difference = Difference::between(&a, &b);
    // With few blocks it says nothing.
    let apart =
        separation([&seconds[0], &seconds[1]], [&units[0], &units[1]]).filter(|p| *p < FALSE);
    let by_unit = difference.p.into_iter().chain(apart).reduce(f64::min);
    let (p, per_second) = match by_second(seconds, units, lengths) {
        None => (by_unit, None),
        Some((by_second, figures)) => {
            let smaller = by_unit.map_or(by_second, |p| p.min(by_second));
            let decides = by_unit.is_none_or(|p| by_second < p);
            (Some((2.0 * smaller).min(1.0)), decides.then_some(figures))
        }
    };
    Some(Change {
        a_seconds: a.value,
        b_seconds: b.value,
        change_seconds: difference.change,
        half_width_seconds: difference.half_width,
        p,
        detectable_seconds: None,
        per_second,
        verdict: ChangeVerdict::Unknown,
        precision: difference.precision,
    })
}

/// The p-value of the change of time per second beyond that of units per second; `None` if units are even, or if
/// it cannot be computed.
fn by_second(
    seconds: &[Vec<f64>; 2],
    units: &[Vec<f64>; 2],
    lengths: &[Vec<f64>; 2],
) -> Option<(f64, PerSecond)> {
    let ratios = |what: &[Vec<f64>; 2]| -> Option<[Ratio; 2]> {
        Some([Ratio::estimate(&what[0], &lengths[0])?, Ratio::estimate(&what[1], &lengths[1])?])
    };
    let relative = |ratio: &Ratio| Some(ratio.known?.precision().scaled(1.0 / ratio.value));
    let ([a, b], [a_rate, b_rate]) = (ratios(seconds)?, ratios(units)?);
    let rates = [relative(&a_rate)?, relative(&b_rate)?];
    if rates.iter().all(|rate| rate.error < UNEVEN) {
        return None;
    }
    let difference = Difference::between(&a, &b);
    let p = match (a.value > 0.0, b.value > 0.0) {
        (true, true) => {
            let change = (b.value / a.value).ln() - (b_rate.value / a_rate.value).ln();
            let time = Precision::both(relative(&a)?, relative(&b)?);
            Precision::both(time, Precision::both(rates[0], rates[1])).p(change)
        }
        // No time per second means no time per unit.
        (false, true) if a_rate.value >= ENOUGH * b_rate.value => difference.p?,
        (true, false) if b_rate.value >= ENOUGH * a_rate.value => difference.p?,
        _ => return None,
    };
    let figures = PerSecond {
        a_sessions: a.value,
        b_sessions: b.value,
        half_width_sessions: difference.half_width,
    };
    Some((p, figures))
}

impl Change {
    /// `alpha`: the level at which the change was tested.
    fn judge(&mut self, found: bool, alpha: f64) {
        self.detectable_seconds = self.precision.map(|precision| precision.detectable(alpha));
        self.per_second = self.per_second.filter(|_| found);
        self.verdict = match (self.p, found) {
            (None, _) => ChangeVerdict::Unknown,
            (_, false) => ChangeVerdict::Noise,
            (_, true) if self.a_seconds == 0.0 => ChangeVerdict::New,
            (_, true) if self.b_seconds == 0.0 => ChangeVerdict::Absent,
            (_, true) if self.change_seconds < 0.0 => ChangeVerdict::Less,
            (_, true) => ChangeVerdict::More,
        };
    }
}

impl ComparisonRow {
    /// If a call takes more or less time, that explains a change of the time per unit in the same direction.
    fn judge_call(&mut self) {
        let Some(call) = self.call.filter(|call| call.verdict.is_real()) else { return };
        let agrees = call.relative * self.change.change_seconds > 0.0;
        if agrees && !self.change.verdict.is_real() {
            self.change.verdict = call.verdict;
        }
    }

    fn is_there(&self) -> bool {
        let Change { a_seconds, b_seconds, .. } = self.change;
        [a_seconds, b_seconds, self.a_count, self.b_count].iter().any(|n| *n != 0.0)
    }
}

impl Rows {
    fn tables(&mut self) -> [&mut Vec<ComparisonRow>; 6] {
        let Rows { accounts, processes, locks, files, functions, statements, .. } = self;
        [accounts, processes, locks, files, functions, statements]
    }

    /// Sets the verdicts, and sorts changes beyond the noise first.
    pub fn judge(&mut self) {
        let each = OF_TOTALS / self.totals.len().max(1) as f64;
        for total in &mut self.totals {
            let found = total.change.p.is_some_and(|p| p <= each);
            total.change.judge(found, each);
        }
        let whole = self.totals.first().map(|total| total.change).unwrap_or_default();
        let p: Vec<f64> = self
            .tables()
            .iter()
            .flat_map(|table| table.iter())
            .filter_map(|row| row.change.p)
            .collect();
        let each = OF_ROWS / p.len().max(1) as f64;
        let mut found = discoveries(&p, OF_ROWS).into_iter();
        for (at, table) in self.tables().into_iter().enumerate() {
            for row in table.iter_mut() {
                let is_found = row.change.p.is_some() && found.next().unwrap_or(false);
                row.change.judge(is_found, each);
                row.judge_call();
                // The accounts add up to the total.
                let part = at == 0 && whole.verdict.is_real();
                row.share = part.then(|| row.change.change_seconds / whole.change_seconds);
            }
            calls::judge(table, FALSE_ALARMS);
            let size = |row: &ComparisonRow| row.change.change_seconds.abs();
            table.sort_by(|a, b| {
                let real = ComparisonRow::is_real;
                real(b).cmp(&real(a)).then_with(|| size(b).total_cmp(&size(a)))
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(a_seconds: f64, b_seconds: f64, p: Option<f64>) -> ComparisonRow {
        let change_seconds = b_seconds - a_seconds;
        let change = Change { a_seconds, b_seconds, change_seconds, p, ..Change::default() };
        ComparisonRow::new(Subject::Account { phase: "".into(), activity: "".into() }, change)
    }

    #[test]
    fn changes_come_first_the_largest_before_others_and_have_their_share() {
        let total = |p| {
            let change = row(4.0, 6.0, Some(p)).change;
            Total::new(DiffUnit::Command, change)
        };
        let mut rows = Rows { totals: vec![total(0.004)], ..Rows::default() };
        rows.accounts = vec![
            row(1.0, 3.0, Some(0.0)),
            row(9.0, 1.0, Some(0.9)),
            row(2.0, 1.0, Some(0.0)),
            row(0.0, 0.5, Some(0.0)),
            row(0.25, 0.0, Some(0.0)),
            row(1.0, 5.0, None),
        ];
        rows.files = vec![row(1.0, 2.0, Some(0.0))];
        rows.judge();
        use ChangeVerdict::{Absent, Less, More, New, Noise};
        let found: Vec<_> =
            rows.accounts.iter().map(|account| (account.change.verdict, account.share)).collect();
        let expected = [
            (More, Some(1.0)),
            (Less, Some(-0.5)),
            (New, Some(0.25)),
            (Absent, Some(-0.125)),
            (Noise, Some(-4.0)),
            (ChangeVerdict::Unknown, Some(2.0)),
        ];
        assert_eq!(found, expected);
        assert_eq!(
            (rows.files[0].change.verdict, rows.files[0].share),
            (More, None),
            "no part of the total"
        );
        // Half of one in a hundred for all totals together.
        for (others, p, found) in
            [(0, 0.005, true), (0, 0.006, false), (1, 0.0025, true), (1, 0.003, false)]
        {
            let mut rows = Rows { totals: vec![total(p); 1 + others], ..Rows::default() };
            rows.judge();
            assert_eq!(rows.totals[0].change.verdict.is_real(), found, "{others} {p}");
        }
    }

    #[test]
    fn blocks_that_are_apart_are_a_change_though_they_vary_and_a_count_alone_is_a_row() {
        let uneven: Vec<f64> =
            (0..40).map(|at| if at == 17 { 1e6 } else { f64::from(at % 4) }).collect();
        let ones = || vec![1.0; 40];
        let lengths = [ones(), ones()];
        let found = change(&[uneven, vec![0.0; 40]], &[ones(), ones()], &lengths).unwrap();
        assert!(found.p.unwrap() < 1e-4, "{found:?}");
        assert_eq!(change(&[ones(), ones()], &[ones(), vec![0.0; 40]], &lengths), None, "no unit");
        let counted = ComparisonRow { b_count: 1.0, ..row(0.0, 0.0, None) };
        assert_eq!([counted.is_there(), row(0.0, 0.0, None).is_there()], [true, false]);
    }

    /// The verdict for 20 blocks of a second, given the waiting sessions and the commits of each
    /// block.
    fn verdict(sessions: [Vec<f64>; 2], commits: [Vec<f64>; 2]) -> (ChangeVerdict, Change) {
        let lengths = [vec![1.0; 20], vec![1.0; 20]];
        let change = change(&sessions, &commits, &lengths).unwrap();
        let mut rows = Rows::default();
        let what =
            |n: usize| Subject::Account { phase: "commit".into(), activity: format!("{n}").into() };
        rows.accounts = vec![ComparisonRow::new(what(0), change)];
        // Twenty others that have not changed.
        let still = Change { p: Some(0.6), ..change };
        rows.accounts.extend((1..=20).map(|n| ComparisonRow::new(what(n), still)));
        rows.judge();
        let row = rows.accounts.iter().find(|row| row.what == what(0)).unwrap();
        (row.change.verdict, row.change)
    }

    fn steady(each: f64) -> Vec<f64> {
        (0..20).map(|at| each * (0.9 + 0.02 * f64::from(at * 7 % 11))).collect()
    }

    fn once(each: f64) -> Vec<f64> {
        (0..20).map(|at| if at == 19 { each } else { 0.0 }).collect()
    }

    #[test]
    fn a_wait_that_is_new_is_found_however_few_commits_there_are() {
        // The standby has ended: eight sessions wait, and all commit when somebody lets them go.
        let (found, change) = verdict([vec![0.0; 20], steady(7.9)], [steady(100.0), once(160.0)]);
        assert_eq!(found, ChangeVerdict::New, "{change:?}");
        let sessions = change.per_second.unwrap();
        assert!(sessions.a_sessions == 0.0 && (sessions.b_sessions - 7.9).abs() < 0.1);
        assert!(sessions.half_width_sessions.unwrap() < 1.0);
        // The half-width of the time per commit is as large as its uncertainty.
        assert!(change.half_width_seconds.unwrap() > change.change_seconds);
        assert_eq!(change.half_width(), None);
        let back = verdict([steady(7.9), vec![0.0; 20]], [once(160.0), steady(100.0)]);
        assert_eq!(back.0, ChangeVerdict::Absent);
        let rare = verdict([steady(0.06), steady(7.9)], [steady(100.0), once(160.0)]);
        assert_eq!(
            rare.0,
            ChangeVerdict::Noise,
            "one burst of commits does not tell how many there are"
        );
        let three = [3, 9, 15].iter().fold(vec![0.0; 20], |mut all, at| {
            all[*at] = 33.0;
            all
        });
        let three = verdict([steady(0.06), steady(7.9)], [steady(100.0), three]);
        assert_eq!(three.0, ChangeVerdict::More);
    }

    #[test]
    fn more_time_of_more_units_and_none_of_few_units_are_no_change() {
        let bursts = |each: f64| -> Vec<f64> {
            (0..20).map(|at| if at % 5 == 2 { each * f64::from(1 + at % 3) } else { 0.0 }).collect()
        };
        let twice = verdict([steady(1.0), steady(2.0)], [bursts(20.0), bursts(40.0)]);
        assert_eq!(twice.0, ChangeVerdict::Noise, "{:?}", twice.1);
        // One commit without this wait says nothing about others.
        let lengths = [vec![1.0; 20], vec![1.0; 20]];
        let few = [once(1.0), steady(100.0)];
        assert_eq!(by_second(&[vec![0.0; 20], steady(7.9)], &few, &lengths), None);
        let enough = [once(60.0), steady(100.0).iter().map(|n| n / 20.0).collect()];
        assert!(by_second(&[vec![0.0; 20], steady(7.9)], &enough, &lengths).is_some());
    }

    #[test]
    fn even_units_are_tested_by_themselves_and_what_would_be_found_is_known() {
        let (found, change) = verdict([steady(1.0), steady(1.0)], [steady(100.0), steady(100.0)]);
        assert_eq!((found, change.per_second), (ChangeVerdict::Noise, None));
        let noisy: Vec<f64> = (0..20).map(|at| 1.0 + 0.2 * f64::from(at * 13 % 7 - 3)).collect();
        let (_, change) = verdict([noisy.clone(), noisy], [steady(100.0), steady(100.0)]);
        let (width, detectable) =
            (change.half_width_seconds.unwrap(), change.detectable_seconds.unwrap());
        assert!(detectable > 1.5 * width && detectable < 10.0 * width, "{width} {detectable}");
    }
}
