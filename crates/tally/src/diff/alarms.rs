// SPDX-License-Identifier: PostgreSQL
//! Simulates how often a comparison of equal recordings finds a change.

use super::compare::change;
use super::comparison::{Per, Row, Rows, Total, What};
use stats::simulation::Normal;

/// Simulates a row's time in `n` blocks.
type Course = fn(&mut Normal, usize) -> Vec<f64>;

/// Rows that are compared, in addition to their total.
const ROWS: usize = 20;

fn independent(dice: &mut Normal, n: usize) -> Vec<f64> {
    (0..n).map(|_| 10.0 + dice.normal()).collect()
}

/// Rare and large, as checkpoints.
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

/// Another program that runs, stops and runs again on the same machine.
fn neighbour(dice: &mut Normal, n: usize) -> Vec<f64> {
    let mut there = dice.uniform() < 0.3;
    (0..n)
        .map(|_| {
            there ^= dice.uniform() < if there { 0.2 } else { 0.2 * 0.3 / 0.7 };
            10.0 + if there { 3.0 } else { 0.0 } + 0.5 * dice.normal()
        })
        .collect()
}

/// Units that come in bursts: commits that wait for each other, nightly jobs.
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
    /// The halves of one course, which do differ if it drifts.
    One,
}

/// Whether a comparison of equal sides with `blocks` blocks each, counted by these units, finds a change.
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
    // What comes in bursts is not for each unit.
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
        let what = What::Account { phase: "execute".into(), activity: "cpu".into() };
        let change = compare(&sides);
        rows.accounts.push(Row { a_count: 1.0, b_count: 1.0, ..Row::of(what, change) });
    }
    let change = compare(&total);
    rows.totals.push(Total { per: Per::Commit, change, a_per_second: 1.0, b_per_second: 1.0 });
    rows.judge();
    let verdicts = rows.accounts.iter().map(|row| row.change.verdict);
    verdicts.chain(rows.totals.iter().map(|total| total.change.verdict)).any(|it| it.is_real())
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
