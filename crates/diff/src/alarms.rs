// SPDX-License-Identifier: PostgreSQL
//! Simulates how often a comparison of equal recordings reports a change, and how often it finds a real one.

use super::call_change::CallChange;
use super::calls::{changes, CallCourse as Calls};
use super::compare::change;
use super::comparison::{ComparisonRow, DiffUnit, Rows, Subject, Total};
use stats::simulation::Normal;

/// Simulates a row's time in `n` blocks.
type Course = fn(&mut Normal, usize) -> Vec<f64>;

/// Rows that are compared, besides their total.
const ROWS: usize = 20;

fn independent(dice: &mut Normal, n: usize) -> Vec<f64> {
    (0..n).map(|_| 10.0 + dice.normal()).collect()
}

/// Rare and large, like checkpoints.
fn rare(dice: &mut Normal, n: usize) -> Vec<f64> {
    let one = |dice: &mut Normal| match dice.uniform() < 0.1 {
        true => (2.0 * dice.normal()).exp(),
        false => 0.0,
    };
    (0..n).map(|_| one(dice)).collect()
}

/// Autocorrelated: `kept` is the share of a block's deviation that remains in the next block.
fn lasting(kept: f64, dice: &mut Normal, n: usize) -> Vec<f64> {
    let (mut level, new) = (dice.normal(), (1.0 - kept * kept).sqrt());
    (0..n)
        .map(|_| {
            level = kept * level + new * dice.normal();
            10.0 + level
        })
        .collect()
}

fn lasting_5(dice: &mut Normal, n: usize) -> Vec<f64> {
    lasting(0.8, dice, n)
}

fn lasting_20(dice: &mut Normal, n: usize) -> Vec<f64> {
    lasting(0.95, dice, n)
}

/// Slow variation and independent noise together.
fn both(dice: &mut Normal, n: usize) -> Vec<f64> {
    let slow = lasting(0.95, dice, n);
    slow.iter().map(|level| level + dice.normal()).collect()
}

/// A steady rise.
fn drift(dice: &mut Normal, n: usize) -> Vec<f64> {
    (0..n).map(|i| 10.0 + 3.0 * i as f64 / n as f64 + dice.normal()).collect()
}

/// Another program on the same machine that runs, stops and runs again.
fn neighbour(dice: &mut Normal, n: usize) -> Vec<f64> {
    let mut there = dice.uniform() < 0.3;
    (0..n)
        .map(|_| {
            there ^= dice.uniform() < if there { 0.2 } else { 0.2 * 0.3 / 0.7 };
            10.0 + if there { 3.0 } else { 0.0 } + 0.5 * dice.normal()
        })
        .collect()
}

/// Units that come in bursts, such as commits that wait for each other, or nightly jobs.
fn bursts(dice: &mut Normal, n: usize) -> Vec<f64> {
    let one = |dice: &mut Normal| match dice.uniform() < 0.25 {
        true => 20.0 + (180.0 * dice.uniform()).round(),
        false => 0.0,
    };
    (0..n).map(|_| one(dice)).collect()
}

fn even(dice: &mut Normal, n: usize) -> Vec<f64> {
    (0..n).map(|_| 1000.0 + 50.0 * dice.normal()).collect()
}

const KINDS: [(&str, Course); 7] = [
    ("independent", independent),
    ("rare and large", rare),
    ("lasting 5 blocks", lasting_5),
    ("lasting 20 blocks", lasting_20),
    ("lasting 20 blocks, and independent", both),
    ("a neighbour that comes and goes", neighbour),
    ("drift", drift),
];

/// Where the two sides of a comparison come from.
#[derive(Clone, Copy, PartialEq)]
enum Sides {
    /// Two separate courses.
    Two,
    /// The halves of one course, which do differ if the course drifts.
    One,
}

/// Whether a comparison of equal sides with `blocks` blocks each, counted by these units, reports a change.
fn alarms(
    dice: &mut Normal,
    (course, units): (Course, Course),
    blocks: usize,
    from: Sides,
) -> bool {
    let by = [(); 2].map(|()| units(dice, blocks));
    if by.iter().any(|units| units.iter().sum::<f64>() == 0.0) {
        return false;
    }
    // Time that comes in bursts does not scale with the units.
    let each_unit = by.iter().flatten().all(|units| *units > 0.0);
    let mut total = [vec![0.0; blocks], vec![0.0; blocks]];
    let mut rows = Rows::default();
    let lengths = [vec![1.0; blocks], vec![1.0; blocks]];
    let compare = |what: &[Vec<f64>; 2]| change(what, &by, &lengths).unwrap();
    for _ in 0..ROWS {
        let each: Vec<f64> = match from {
            Sides::One => course(dice, 2 * blocks),
            Sides::Two => [course(dice, blocks), course(dice, blocks)].concat(),
        };
        let side = |at: usize| -> Vec<f64> {
            let unit = |number: f64| if each_unit { number } else { 1000.0 };
            each[at * blocks..].iter().zip(&by[at]).map(|(each, n)| each * unit(*n)).collect()
        };
        let sides = [side(0), side(1)];
        for (total, side) in total.iter_mut().zip(&sides) {
            total.iter_mut().zip(side).for_each(|(total, one)| *total += one);
        }
        let what = Subject::Account { phase: "execute".into(), activity: "cpu".into() };
        let change = compare(&sides);
        rows.accounts.push(ComparisonRow {
            a_count: 1.0,
            b_count: 1.0,
            ..ComparisonRow::new(what, change)
        });
    }
    let change = compare(&total);
    rows.totals.push(Total::new(DiffUnit::Commit, change));
    rows.judge();
    let verdicts = rows.accounts.iter().map(|row| row.change.verdict);
    verdicts
        .chain(rows.totals.iter().map(|total| total.change.verdict))
        .any(|verdict| verdict.is_real())
}

fn share(course: Course, blocks: usize, from: Sides, runs: usize) -> f64 {
    share_by((course, even), blocks, from, runs)
}

fn share_by(courses: (Course, Course), blocks: usize, from: Sides, runs: usize) -> f64 {
    let mut dice = Normal(5);
    let found = (0..runs).filter(|_| alarms(&mut dice, courses, blocks, from)).count();
    found as f64 / runs as f64
}

#[test]
fn bursts_of_units_make_no_changes() {
    for (name, course) in KINDS.into_iter().filter(|(name, _)| !name.contains("20")) {
        let share = share_by((course, bursts), 20, Sides::Two, 100);
        assert!(share <= 0.04, "{name}: {share}");
    }
}

/// Statements on a machine whose speed varies.
#[derive(Clone, Copy)]
struct Load {
    /// Seconds, and by up to how many more they vary at random.
    seconds: usize,
    more: usize,
    /// How much longer a call of the first of the five statements takes in B.
    planted: f64,
    /// Calls of a statement in a second.
    calls: f64,
    /// Standard deviations: of a call, of a statement's own noise in a second, of the machine in a second, and of
    /// the machine from one recording to the next.
    call: f64,
    own: f64,
    machine: f64,
    lasting: f64,
}

/// The share of the machine's deviation in one second that remains in the next one, and the same for a
/// statement's own.
const KEPT: (f64, f64) = (0.6, 0.3);
const STATEMENTS: usize = 5;

/// Time and calls of each statement in each block that a recorder reads: one second long, later two.
type Blocks = Vec<(Vec<f64>, Vec<f64>)>;

fn recorded(dice: &mut Normal, load: &Load, means: &[f64]) -> Blocks {
    let seconds = load.seconds + (load.more as f64 * dice.uniform()) as usize;
    let faster = (load.lasting * dice.normal()).exp();
    let next = |kept: f64, level: f64, deviation: f64, dice: &mut Normal| {
        kept * level + (1.0 - kept * kept).sqrt() * deviation * dice.normal()
    };
    let mut machine = load.machine * dice.normal();
    let mut own: Vec<f64> = means.iter().map(|_| load.own * dice.normal()).collect();
    let mut blocks: Blocks = vec![(Vec::new(), Vec::new()); means.len()];
    for second in 0..seconds {
        machine = next(KEPT.0, machine, load.machine, dice);
        for ((mean, own), (time, calls)) in means.iter().zip(&mut own).zip(&mut blocks) {
            *own = next(KEPT.1, *own, load.own, dice);
            let n = (load.calls + 1.5 * load.calls.sqrt() * dice.normal()).round().max(1.0);
            let spread = 1.0 + load.call / n.sqrt() * dice.normal();
            let all = n * mean * faster * (machine + *own).exp() * spread.max(0.2);
            match calls.last_mut().zip(time.last_mut()) {
                Some((calls, time)) if second >= 32 && second % 2 == 1 => {
                    *calls += n;
                    *time += all;
                }
                _ => {
                    calls.push(n);
                    time.push(all);
                }
            }
        }
    }
    blocks
}

/// The changes that are found in the calls of the statements of two recordings.
fn pair(dice: &mut Normal, load: &Load) -> Vec<CallChange> {
    let means: Vec<f64> = (0..STATEMENTS).map(|_| 1e-3 * dice.normal().exp()).collect();
    let mut changed = means.clone();
    changed[0] *= 1.0 + load.planted;
    let sides = [recorded(dice, load, &means), recorded(dice, load, &changed)];
    let [a, b] = sides.each_ref().map(|side| {
        side.iter().map(|(seconds, calls)| Calls { seconds, calls }).collect::<Vec<_>>()
    });
    changes(&a, &b, 0.0025).into_iter().flatten().collect()
}

/// Counts over many pairs: false verdicts, statements whose change is outside its interval, planted changes that
/// were found, the same if detectable, and how often they were detectable.
#[derive(Debug, Default)]
struct AlarmTally {
    pairs: usize,
    statements: usize,
    wrong: usize,
    outside: usize,
    found: usize,
    promised: usize,
    kept: usize,
}

fn found(seed: u64, pairs: usize, load: Load) -> AlarmTally {
    let mut dice = Normal(seed);
    let mut sum = AlarmTally { pairs, ..AlarmTally::default() };
    for _ in 0..pairs {
        for (at, call) in pair(&mut dice, &load).into_iter().enumerate() {
            let planted = if at == 0 { load.planted } else { 0.0 };
            sum.statements += 1;
            sum.outside += usize::from((call.relative - planted).abs() > call.half_width);
            let real = call.verdict.is_real();
            if planted == 0.0 {
                sum.wrong += usize::from(real);
                continue;
            }
            let promised = call.detectable <= planted;
            sum.found += usize::from(real);
            sum.promised += usize::from(promised);
            sum.kept += usize::from(promised && real);
        }
    }
    sum
}

const SEED: u64 = 36;

/// A busy server on a machine whose speed varies by a quarter from second to second and by a tenth between
/// recordings.
const BUSY: Load = Load {
    seconds: 20,
    more: 5,
    planted: 0.0,
    calls: 300.0,
    call: 0.4,
    own: 0.02,
    machine: 0.25,
    lasting: 0.1,
};

#[test]
fn pairs_of_the_same_load_have_no_changed_statement_and_intervals_that_hold() {
    for seconds in [20, 60] {
        for own in [0.01, 0.03, 0.06] {
            let sum = found(SEED, 40, Load { seconds, own, ..BUSY });
            assert_eq!(sum.wrong, 0, "seed {SEED}, {seconds} s, {own}: {sum:?}");
            let share = sum.outside as f64 / sum.statements as f64;
            assert!(share <= 0.05, "seed {SEED}, {seconds} s, {own}: {sum:?}");
        }
    }
}

#[test]
fn a_slower_statement_is_found_as_often_as_is_printed() {
    for (seconds, planted, min) in [(20, 0.1, 0.0), (20, 0.2, 0.9), (60, 0.1, 0.9), (60, 0.2, 0.95)]
    {
        let sum = found(SEED, 40, Load { seconds, planted, ..BUSY });
        let what = format!("seed {SEED}, {seconds} s, {planted}: {sum:?}");
        assert_eq!(sum.wrong, 0, "{what}");
        assert!(sum.kept as f64 >= 0.85 * sum.promised as f64, "{what}");
        assert!(sum.promised as f64 >= min * sum.pairs as f64, "{what}");
        assert!(sum.outside as f64 <= 0.05 * sum.statements as f64, "{what}");
    }
}

/// A measurement rather than a test (docs/results.md).
#[test]
#[ignore = "takes a minute in a release build"]
fn measure_changes_of_statements() {
    for (calls, call, own) in [(300.0, 0.4, 0.01), (300.0, 0.4, 0.03), (40.0, 0.8, 0.06)] {
        for seconds in [20, 60] {
            for planted in [0.0, 0.1, 0.2] {
                let sum = found(SEED, 1000, Load { seconds, planted, calls, call, own, ..BUSY });
                println!(
                    "{calls} calls a second, own noise {own}, {seconds} s, {planted}: {sum:?}"
                );
            }
        }
    }
}

#[test]
fn equal_sides_are_rarely_called_different() {
    for (name, course) in KINDS.into_iter().filter(|(name, _)| !name.contains("20")) {
        let share = share(course, 40, Sides::Two, 100);
        assert!(share <= 0.04, "{name}: {share}");
    }
}

/// A measurement rather than a test (docs/results.md).
#[test]
#[ignore = "takes a minute in a release build"]
fn measure_false_alarms() {
    const RUNS: usize = 1000;
    for (name, course) in KINDS {
        for blocks in [20, 40, 128] {
            let of = |from| share(course, blocks, from, RUNS) * 100.0;
            let (two, one) = (of(Sides::Two), of(Sides::One));
            println!("{name}, {blocks} blocks: {two:.1} % of two courses, {one:.1} % of halves");
        }
    }
}
