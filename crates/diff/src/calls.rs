// SPDX-License-Identifier: PostgreSQL
//! Tests whether a call of a statement takes longer.
//!
//! A slower machine slows down all statements. A call is therefore compared with the calls of the other
//! statements in the same block of time ([`changes`]); the rest is the statement's own change. The median change
//! of all statements from A to B is attributed to the machine as well.
//!
//! If there are too few blocks for that, the executions may still decide ([`judge`]), because there are many of
//! them. If the mean and the median of a call at least double relative to the other statements, and the mean
//! changes by far more than its standard error, a machine that was busy during one recording does not explain it.

use super::call_change::{CallChange, Calls};
use super::comparison::{ChangeVerdict, ComparisonRow};
use stats::calls::{COMMON, FACTOR, FEWEST, LIKENESS};
use stats::{discoveries, normal_two_sided, Precision, Ratio};

/// Time and number of a statement's executions on one side, by block.
#[derive(Debug, Clone, Copy)]
pub struct CallCourse<'s> {
    /// Time, seconds.
    pub seconds: &'s [f64],
    /// Number.
    pub calls: &'s [f64],
}

/// Time of a call of one statement on both sides.
#[derive(Debug, Clone, Copy)]
struct CallDifference {
    /// Logarithm of the ratio of B's mean to A's.
    change: f64,
    precision: Precision,
}

fn sum(all: &[f64]) -> f64 {
    all.iter().sum()
}

/// The mean time of a call of each statement of a side, and its relative error: by itself, and relative to the
/// time that calls of the other statements took in the same block compared with their average.
fn means(side: &[CallCourse<'_>]) -> Vec<Option<(f64, [Option<Precision>; 2])>> {
    let means: Vec<f64> =
        side.iter().map(|course| sum(course.seconds) / sum(course.calls).max(1.0)).collect();
    let blocks = side.first().map_or(0, |course| course.seconds.len());
    let (mut spent, mut usual) = (vec![0.0; blocks], vec![0.0; blocks]);
    for (course, mean) in side.iter().zip(&means) {
        let figures = course.seconds.iter().zip(course.calls);
        for ((spent, usual), (seconds, calls)) in spent.iter_mut().zip(&mut usual).zip(figures) {
            *spent += seconds;
            *usual += calls * mean;
        }
    }
    let relative = |ratio: Option<Ratio>| {
        let ratio = ratio.filter(|ratio| ratio.value > 0.0)?;
        Some(ratio.known?.precision().scaled(1.0 / ratio.value))
    };
    let one = |(course, mean): (&CallCourse<'_>, &f64)| {
        let expected = |at: usize| {
            let (spent, usual) =
                (spent[at] - course.seconds[at], usual[at] - course.calls[at] * mean);
            // Differences of sums are not exactly zero.
            let none = usual <= ROUNDING * (usual + course.calls[at] * mean) || spent <= 0.0;
            course.calls[at] * if none { 1.0 } else { spent / usual }
        };
        let expected: Vec<f64> = (0..blocks).map(expected).collect();
        let plain = relative(Ratio::estimate(course.seconds, course.calls));
        let against = relative(Ratio::estimate(course.seconds, &expected));
        (*mean > 0.0).then_some((*mean, [plain, against]))
    };
    side.iter().zip(&means).map(one).collect()
}

/// Relative rounding error of a sum of many figures.
const ROUNDING: f64 = 1e-9;

/// How a call of each statement changed from A to B; `None` if there are too few blocks or calls to tell. `alpha`
/// is the probability that any of them is reported as changed by chance.
pub fn changes(a: &[CallCourse<'_>], b: &[CallCourse<'_>], alpha: f64) -> Vec<Option<CallChange>> {
    let calls: Vec<Option<CallDifference>> = means(a)
        .into_iter()
        .zip(means(b))
        .map(|(a, b)| {
            let ((a_mean, a), (b_mean, b)) = (a?, b?);
            let both = |at: usize| Some((a[at]?, b[at]?));
            let (plain, against) = (both(0)?, both(1)?);
            // Not the smaller one of each side, because both sides must have the same kind of noise.
            let less = against.0.error <= plain.0.error && against.1.error <= plain.1.error;
            let (a, b) = if less { against } else { plain };
            let precision = Precision::both(a, b);
            (precision.error > 0.0)
                .then_some(CallDifference { change: (b_mean / a_mean).ln(), precision })
        })
        .collect();
    let each = alpha / calls.iter().flatten().count().max(1) as f64;
    let mut changes: Vec<Option<CallChange>> = (0..calls.len())
        .map(|at| {
            let CallDifference { change, precision } = calls[at]?;
            let others = calls.iter().enumerate().filter(|(other, _)| *other != at);
            let others: Vec<CallDifference> = others.filter_map(|(_, call)| *call).collect();
            let (common, error) = common(&others);
            let error = stats::joint_error(precision.error, error);
            let precision = Precision { error, ..precision };
            let change = change - common;
            Some(CallChange {
                relative: change.exp_m1(),
                common: common.exp_m1(),
                half_width: change.exp() * precision.half_width().sinh(),
                p: precision.p(change),
                detectable: precision.detectable(each).exp_m1(),
                verdict: ChangeVerdict::Noise,
            })
        })
        .collect();
    let p: Vec<f64> = changes.iter().flatten().map(|change| change.p).collect();
    for (call, found) in changes.iter_mut().flatten().zip(discoveries(&p, alpha)) {
        if found {
            call.verdict =
                if call.relative < 0.0 { ChangeVerdict::Less } else { ChangeVerdict::More };
        }
    }
    changes
}

/// The median change of these statements, and its standard error; zero for fewer than two statements.
fn common(others: &[CallDifference]) -> (f64, f64) {
    let n = others.len();
    if n + 1 < COMMON {
        return (0.0, 0.0);
    }
    let middle = |mut all: Vec<f64>| {
        all.sort_by(f64::total_cmp);
        (all[(n - 1) / 2] + all[n / 2]) / 2.0
    };
    let median = middle(others.iter().map(|other| other.change).collect());
    // The variance of a median is pi / 2 times that of a mean. For figures with different errors it lies between
    // that of the most precise ones (by the sum of their densities) and that of a typical one.
    let factor = std::f64::consts::FRAC_PI_2;
    let densities: f64 = others.iter().map(|other| 1.0 / other.precision.error).sum();
    let best = factor * n as f64 / densities.powi(2);
    let usual = middle(others.iter().map(|other| other.precision.error.powi(2)).collect());
    (median, best.max(factor * usual / n as f64).sqrt())
}

/// The half-width of the change of a statement's time per unit, from its executions on each side and their number
/// per unit; `None` if a side has none.
pub fn half_width(calls: [Option<Calls>; 2], per_unit: [f64; 2]) -> Option<f64> {
    let [a, b] = calls;
    Some(stats::joint_error(per_unit[0] * a?.half_width(), per_unit[1] * b?.half_width()))
}

/// By which factor a call takes longer in B.
struct Factor {
    mean: f64,
    median: f64,
    p: f64,
}

fn factor(a: &Calls, b: &Calls) -> Option<Factor> {
    if a.count < FEWEST || b.count < FEWEST || a.mean <= 0.0 || b.mean <= 0.0 || a.median <= 0.0 {
        return None;
    }
    let error =
        |calls: &Calls| calls.deviation / calls.mean / (calls.count as f64).sqrt() * LIKENESS;
    let z = (b.mean / a.mean).ln() / stats::joint_error(error(a), error(b)).max(1e-9);
    Some(Factor { mean: b.mean / a.mean, median: b.median / a.median, p: normal_two_sided(z) })
}

/// Sets the verdict of those statements that the blocks did not decide, and whether they stand out from their own
/// noise regardless of the machine. `whole` is the probability that any of them is reported as changed by chance.
pub fn judge(rows: &mut [ComparisonRow], whole: f64) {
    let factors: Vec<Option<Factor>> =
        rows.iter().map(|row| factor(row.a_calls.as_ref()?, row.b_calls.as_ref()?)).collect();
    let mut means: Vec<f64> = factors.iter().flatten().map(|factor| factor.mean).collect();
    let each = whole / means.len().max(1) as f64;
    means.sort_by(f64::total_cmp);
    let common = if means.len() < COMMON { 1.0 } else { means[means.len() / 2] };
    for (row, factor) in rows.iter_mut().zip(factors) {
        let Some(Factor { mean, median, p }) = factor else { continue };
        row.stands_out = p <= each;
        if row.is_real() {
            continue;
        }
        row.change.verdict = ChangeVerdict::Noise;
        if !row.stands_out {
            continue;
        }
        let at_least =
            |factor: f64| [mean, median].iter().all(|change| change / common.max(1.0) >= factor);
        let at_most =
            |factor: f64| [mean, median].iter().all(|change| change / common.min(1.0) <= factor);
        if at_least(FACTOR) {
            row.change.verdict = ChangeVerdict::More;
        } else if at_most(1.0 / FACTOR) {
            row.change.verdict = ChangeVerdict::Less;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::comparison::{Change, Subject};
    use super::*;
    use stats::simulation::Normal;

    /// A statement whose calls take these times on average in each block.
    struct MadeStatement {
        seconds: Vec<f64>,
        calls: Vec<f64>,
    }

    /// `n` calls in each block, whose times `each` returns.
    fn made(blocks: usize, n: f64, each: impl FnMut(usize) -> f64) -> MadeStatement {
        let seconds: Vec<f64> = (0..blocks).map(each).map(|seconds| seconds * n).collect();
        MadeStatement { calls: vec![n; blocks], seconds }
    }

    fn courses(all: &[MadeStatement]) -> Vec<CallCourse<'_>> {
        all.iter().map(|made| CallCourse { seconds: &made.seconds, calls: &made.calls }).collect()
    }

    fn found(a: &[MadeStatement], b: &[MadeStatement]) -> Vec<Option<CallChange>> {
        changes(&courses(a), &courses(b), 0.0025)
    }

    /// Five statements on a machine whose speed varies and that is `times` as slow in B; the first statement
    /// takes `first` times as long.
    fn side(dice: &mut Normal, times: f64, first: f64) -> Vec<MadeStatement> {
        let machine: Vec<f64> = (0..20).map(|_| times * (0.25 * dice.normal()).exp()).collect();
        let one = |n: usize| {
            let mean = 1e-3 * (1 + n) as f64 * if n == 0 { first } else { 1.0 };
            made(20, 100.0, |at| mean * machine[at] * (0.01 * dice.normal()).exp())
        };
        (0..5).map(one).collect()
    }

    #[test]
    fn a_slower_machine_is_no_change_and_hides_none() {
        let mut dice = Normal(17);
        let (a, b) = (side(&mut dice, 1.0, 1.0), side(&mut dice, 1.3, 1.15));
        let all: Vec<CallChange> = found(&a, &b).into_iter().flatten().collect();
        assert_eq!(all[0].verdict, ChangeVerdict::More, "{:?}", all[0]);
        assert!((all[0].relative - 0.15).abs() < all[0].half_width, "{:?}", all[0]);
        assert!(all[0].half_width < 0.05 && all[0].detectable < 0.15, "{:?}", all[0]);
        for other in &all[1..] {
            assert_eq!(other.verdict, ChangeVerdict::Noise, "{other:?}");
            assert!(other.relative.abs() < other.half_width, "{other:?}");
        }
        let back = found(&b, &a);
        assert_eq!(back[0].unwrap().verdict, ChangeVerdict::Less);
    }

    #[test]
    fn without_others_a_call_is_compared_by_itself() {
        let mut dice = Normal(19);
        let one = |dice: &mut Normal, mean: f64| {
            vec![made(20, 50.0, |_| mean * (0.05 * dice.normal()).exp())]
        };
        let (a, b) = (one(&mut dice, 1.0), one(&mut dice, 1.3));
        assert_eq!(found(&a, &b)[0].unwrap().verdict, ChangeVerdict::More);
        // One other is not enough for the machine's part.
        let two = |dice: &mut Normal, by: f64| {
            [one(dice, by), one(dice, by)].into_iter().flatten().collect::<Vec<_>>()
        };
        let (a, b) = (two(&mut dice, 1.0), two(&mut dice, 1.3));
        assert!(found(&a, &b).iter().all(|change| change.unwrap().verdict == ChangeVerdict::More));
    }

    #[test]
    fn too_few_blocks_or_no_calls_tell_nothing() {
        let seven = || vec![made(7, 10.0, |at| 1.0 + 0.01 * (at % 3) as f64)];
        assert_eq!(found(&seven(), &seven()), [None]);
        let none = || vec![made(20, 0.0, |_| 0.0)];
        let some = || vec![made(20, 10.0, |at| 1.0 + 0.01 * (at % 3) as f64)];
        assert_eq!(found(&none(), &some()), [None]);
        // A block without calls is one without a statement about them.
        let mut rare = some();
        (rare[0].calls[3], rare[0].seconds[3]) = (0.0, 0.0);
        assert!(found(&rare, &some())[0].unwrap().relative.abs() < 0.01);
    }

    #[test]
    fn the_common_part_is_the_median_of_the_others_and_as_uncertain_as_a_usual_one() {
        let call = |change: f64, error: f64| CallDifference {
            change,
            precision: Precision { error, freedom: 5.0 },
        };
        assert_eq!(common(&[]), (0.0, 0.0));
        assert_eq!(common(&[call(1.0, 0.1)]), (0.0, 0.0), "one other");
        let (median, error) = common(&[call(0.1, 0.1), call(0.2, 0.1), call(9.0, 0.1)]);
        let of_mean = 0.1 / 3f64.sqrt();
        assert!((median - 0.2).abs() < 1e-12);
        assert!((error / of_mean - std::f64::consts::FRAC_PI_2.sqrt()).abs() < 1e-9);
        let (_, wide) = common(&[call(0.1, 0.1), call(0.2, 10.0), call(9.0, 10.0)]);
        assert!(wide > 5.0, "{wide}");
    }

    fn row(a: (u64, f64), b: (u64, f64)) -> ComparisonRow {
        let calls =
            |(count, mean)| Some(Calls { count, mean, deviation: mean, median: mean / 2.0 });
        let statement = Subject::Statement {
            query: "select".into(),
            database: String::new(),
            user: String::new(),
            toplevel: true,
        };
        ComparisonRow {
            a_calls: calls(a),
            b_calls: calls(b),
            ..ComparisonRow::new(statement, Change::default())
        }
    }

    /// Count and mean in A and in B.
    type SidesCalls = ((u64, f64), (u64, f64));

    fn verdicts(rows: &[SidesCalls]) -> Vec<ChangeVerdict> {
        let mut rows: Vec<ComparisonRow> = rows.iter().map(|(a, b)| row(*a, *b)).collect();
        judge(&mut rows, 0.005);
        rows.iter().map(|row| row.change.verdict).collect()
    }

    #[test]
    fn a_statement_that_lost_its_index_is_seen_without_blocks() {
        let others = ((1000, 1e-4), (1000, 1.1e-4));
        let found = verdicts(&[((900, 3e-5), (40, 6e-2)), others, others, others]);
        assert_eq!(found[0], ChangeVerdict::More);
        assert!(found[1..].iter().all(|verdict| *verdict == ChangeVerdict::Noise));
        assert_eq!(verdicts(&[((40, 6e-2), (900, 3e-5)), others, others])[0], ChangeVerdict::Less);
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
        assert!(verdicts(&[twice, twice, twice, twice]).iter().all(|verdict| !verdict.is_real()));
        let still = ((1000, 1e-4), (1000, 1e-4));
        assert!(!verdicts(&[((5, 1e-4), (5, 1.0)), still, still])[0].is_real());
        assert!(!verdicts(&[((1000, 1e-4), (1000, 1.9e-4)), still, still])[0].is_real());
        assert!(!verdicts(&[((12, 1e-4), (12, 3e-4)), still, still])[0].is_real());
    }
}
