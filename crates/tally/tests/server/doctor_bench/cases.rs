// SPDX-License-Identifier: PostgreSQL
//! The generator: kind x severity x background x length, each case from a seed of its own.

use super::kinds::{Kind, KINDS};
use super::servers::Background;
use crate::support::synthetic::Dice;

/// Pairs of cases of a kind: of each pair, one is for development, and one is held out.
const PAIRS: u64 = 2;

/// A case of the bench.
#[derive(Clone, Copy)]
pub struct Case {
    pub kind: &'static Kind,
    pub number: u64,
    /// Names of objects follow from it.
    pub seed: u64,
    pub background: Background,
    pub severe: bool,
    /// Length of the watch, seconds.
    pub seconds: u64,
    /// Whether it is not looked at while rules are written.
    pub held_out: bool,
}

impl Case {
    pub fn name(&self) -> String {
        format!("{}-{}", self.kind.name, self.number)
    }
}

/// A number that depends on nothing but these (FNV-1a): another kind in the list changes no other case.
fn seed_of(seed: u64, name: &str, number: u64) -> u64 {
    let bytes = seed.to_le_bytes().into_iter().chain(name.bytes()).chain(number.to_le_bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3)
    })
}

/// All cases of a seed.
pub fn cases(seed: u64) -> Vec<Case> {
    KINDS.iter().flat_map(|kind| of_kind(kind, seed)).collect()
}

/// A mild case of each kind on a server that does nothing else: a small recording of it.
pub fn fixture_cases(seed: u64) -> Vec<Case> {
    let case = |kind: &'static Kind| Case {
        kind,
        number: 0,
        seed: seed_of(seed, kind.name, 0),
        background: Background::Idle,
        severe: false,
        seconds: 8,
        held_out: false,
    };
    KINDS.iter().map(case).collect()
}

fn of_kind(kind: &'static Kind, seed: u64) -> Vec<Case> {
    let drawn = |number: u64, from: u64| -> usize {
        let mut dice = Dice(seed_of(seed, kind.name, number));
        for _ in 0..8 {
            dice.throw();
        }
        (dice.throw() * from as f64) as usize
    };
    // Each kind is planted beside four of the backgrounds.
    let first = drawn(100, Background::ALL.len() as u64);
    (0..2 * PAIRS)
        .map(|number| {
            let pair = number / 2;
            let (second, is_swapped) = (number % 2 == 1, drawn(200 + pair, 2) == 1);
            Case {
                kind,
                number,
                seed: seed_of(seed, kind.name, number),
                background: Background::ALL[(first + number as usize) % Background::ALL.len()],
                // Both halves have a mild and a severe one.
                severe: pair % 2 == 1,
                seconds: [10, 12, 15][drawn(400 + number, 3)],
                held_out: second != is_swapped,
            }
        })
        .collect()
}

#[test]
fn half_of_the_cases_of_each_kind_are_held_out() {
    for seed in 0..20 {
        let cases = cases(seed);
        assert_eq!(cases.len(), KINDS.len() * 2 * PAIRS as usize);
        for kind in KINDS {
            let of_kind: Vec<_> = cases.iter().filter(|case| case.kind.name == kind.name).collect();
            let held_out = of_kind.iter().filter(|case| case.held_out).count();
            assert_eq!(held_out, PAIRS as usize, "{}", kind.name);
        }
    }
}

#[test]
fn a_seed_always_makes_the_same_cases() {
    let of = |seed| {
        let text = cases(seed).into_iter().map(|case| {
            format!(
                "{} {} {:?} {} {}",
                case.name(),
                case.seed,
                case.background,
                case.severe,
                case.seconds
            )
        });
        text.collect::<Vec<_>>()
    };
    assert_eq!(of(39), of(39));
    assert_ne!(of(39), of(40));
}
