// SPDX-License-Identifier: PostgreSQL
//! Whether a call of a statement takes longer, by its own executions.
//!
//! Blocks of time tell a change from noise, but a short recording has few of them in which statements were
//! read. The executions of one statement are many: if mean and median of a call at least double, against
//! those of the other statements, and the mean by far more than its standard error, no machine that is busy
//! in one of the recordings explains it.

use super::comparison::{Row, Verdict};
use stats::calls::{COMMON, FACTOR, FEWEST, LIKENESS};
use stats::normal_two_sided;

/// Executions of a statement, seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Calls {
    /// How many there were.
    pub count: u64,
    /// Their mean.
    pub mean: f64,
    /// Their standard deviation.
    pub deviation: f64,
    /// Their median.
    pub median: f64,
}

/// Half a 95 % confidence interval, in standard errors.
const HALF_WIDTH: f64 = 1.96;

impl Calls {
    /// Half of the 95 % confidence interval of the mean, seconds.
    pub fn half_width(&self) -> f64 {
        HALF_WIDTH * LIKENESS * self.deviation / (self.count.max(1) as f64).sqrt()
    }
}

/// The half-width of the change of a statement's time per unit, by its executions on each side and how many
/// there are per unit; `None` if there are none on one.
pub fn half_width(calls: [Option<Calls>; 2], per_unit: [f64; 2]) -> Option<f64> {
    let [a, b] = calls;
    Some((per_unit[0] * a?.half_width()).hypot(per_unit[1] * b?.half_width()))
}

/// How many times as long a call takes in B.
struct Factor {
    mean: f64,
    median: f64,
    p: f64,
}

fn factor(a: &Calls, b: &Calls) -> Option<Factor> {
    if a.count < FEWEST || b.count < FEWEST || a.mean <= 0.0 || b.mean <= 0.0 || a.median <= 0.0 {
        return None;
    }
    let error = |it: &Calls| it.deviation / it.mean / (it.count as f64).sqrt() * LIKENESS;
    let z = (b.mean / a.mean).ln() / error(a).hypot(error(b)).max(1e-9);
    Some(Factor { mean: b.mean / a.mean, median: b.median / a.median, p: normal_two_sided(z) })
}

/// Sets the verdict of rows of statements that the blocks did not decide, and whether they stand out from their
/// own noise, whatever the machine did; `whole`: the probability that one of them is called changed by chance.
pub fn judge(rows: &mut [Row], whole: f64) {
    let factors: Vec<Option<Factor>> =
        rows.iter().map(|row| factor(row.a_calls.as_ref()?, row.b_calls.as_ref()?)).collect();
    let mut means: Vec<f64> = factors.iter().flatten().map(|it| it.mean).collect();
    let each = whole / means.len().max(1) as f64;
    means.sort_by(f64::total_cmp);
    let common = if means.len() < COMMON { 1.0 } else { means[means.len() / 2] };
    for (row, factor) in rows.iter_mut().zip(factors) {
        let Some(Factor { mean, median, p }) = factor else { continue };
        row.stands_out = p <= each;
        if row.change.verdict.is_real() {
            continue;
        }
        row.change.verdict = Verdict::Noise;
        if !row.stands_out {
            continue;
        }
        let at_least = |factor: f64| [mean, median].iter().all(|it| it / common.max(1.0) >= factor);
        let at_most = |factor: f64| [mean, median].iter().all(|it| it / common.min(1.0) <= factor);
        if at_least(FACTOR) {
            row.change.verdict = Verdict::More;
        } else if at_most(1.0 / FACTOR) {
            row.change.verdict = Verdict::Less;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::comparison::{Change, What};
    use super::*;

    fn row(a: (u64, f64), b: (u64, f64)) -> Row {
        let calls =
            |(count, mean)| Some(Calls { count, mean, deviation: mean, median: mean / 2.0 });
        let statement = What::Statement {
            query: "select".into(),
            database: String::new(),
            user: String::new(),
            toplevel: true,
        };
        Row { a_calls: calls(a), b_calls: calls(b), ..Row::of(statement, Change::default()) }
    }

    /// Count and mean in A and in B.
    type Both = ((u64, f64), (u64, f64));

    fn verdicts(rows: &[Both]) -> Vec<Verdict> {
        let mut rows: Vec<Row> = rows.iter().map(|(a, b)| row(*a, *b)).collect();
        judge(&mut rows, 0.005);
        rows.iter().map(|row| row.change.verdict).collect()
    }

    #[test]
    fn a_statement_that_lost_its_index_is_seen_without_blocks() {
        let others = ((1000, 1e-4), (1000, 1.1e-4));
        let found = verdicts(&[((900, 3e-5), (40, 6e-2)), others, others, others]);
        assert_eq!(found[0], Verdict::More);
        assert!(found[1..].iter().all(|it| *it == Verdict::Noise));
        assert_eq!(verdicts(&[((40, 6e-2), (900, 3e-5)), others, others])[0], Verdict::Less);
    }

    #[test]
    fn a_change_beyond_its_own_noise_stands_out_even_if_the_machine_may_explain_it() {
        let mut rows =
            [(1000, 1.0), (1000, 1.9), (1000, 1.05), (5, 9.0)].map(|b| row((1000, 1.0), b));
        judge(&mut rows, 0.005);
        assert_eq!(rows.map(|row| row.stands_out), [false, true, false, false]);
    }

    #[test]
    fn the_half_width_of_a_change_is_that_of_both_means() {
        let calls = |count, deviation| Some(Calls { count, mean: 1.0, deviation, median: 1.0 });
        let each = 1.96 * LIKENESS;
        assert!((calls(100, 1.0).unwrap().half_width() / each - 0.1).abs() < 1e-12);
        let both = half_width([calls(100, 3.0), calls(400, 8.0)], [1.0, 1.0]).unwrap();
        assert!((both / each - 0.5).abs() < 1e-12);
        assert_eq!(half_width([calls(100, 1.0), None], [1.0, 0.0]), None);
    }

    #[test]
    fn a_slower_machine_few_calls_and_small_changes_are_no_change() {
        let twice = ((1000, 1e-4), (1000, 2.5e-4));
        assert!(verdicts(&[twice, twice, twice, twice]).iter().all(|it| !it.is_real()));
        let still = ((1000, 1e-4), (1000, 1e-4));
        assert!(!verdicts(&[((5, 1e-4), (5, 1.0)), still, still])[0].is_real());
        assert!(!verdicts(&[((1000, 1e-4), (1000, 1.9e-4)), still, still])[0].is_real());
        assert!(!verdicts(&[((12, 1e-4), (12, 3e-4)), still, still])[0].is_real());
    }
}
