// SPDX-License-Identifier: PostgreSQL
//! Whole studies on simulated cells with known effects.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::cell::{Machine, Proof};
use crate::file::Study;
use crate::plan::Plan;

fn plan(repeats: usize) -> Plan {
    let text = format!(
        "name = \"a\"\ntitle = \"A\"\nquestion = \"?\"\n[[arm]]\nname = \"base\"\n[[arm]]\nname = \"one\"\n\
         [[arm]]\nname = \"two\"\n[workload]\nbuiltin = \"select-only\"\nclients = [1, 8]\n\
         [[read]]\nname = \"tps\"\nof = \"throughput\"\n[[read]]\nname = \"more\"\nover_base = \"tps\"\n\
         [[read]]\nname = \"twice\"\nvalue = \"2 * more\"\n[compare]\nreads = [\"tps\"]\n\
         [measure]\nrepeats = {repeats}\n"
    );
    Plan::new(Study::parse(&text).unwrap(), false, &[]).unwrap()
}

/// Cells of a drifting machine with heavy-tailed noise; the arm "one" has this effect.
fn cells(plan: &Plan, seed: u64, effect: f64) -> Vec<Cell> {
    let mut rng = StdRng::seed_from_u64(seed);
    let mut cells = Vec::new();
    for block in 0..plan.study.measure.repeats {
        let mut order: Vec<usize> = (0..plan.arms.len()).collect();
        // The order of arms within a block is random, so that drift becomes noise.
        rand::seq::SliceRandom::shuffle(&mut order[..], &mut rng);
        let mut drift = 0.05 * (rng.random::<f64>() - 0.5);
        for arm in order {
            for point in &plan.points {
                drift += 0.004 * (rng.random::<f64>() - 0.5);
                let u = 2.0 * rng.random::<f64>() - 1.0;
                let heavy = (u * (2.0 / (1.0 - u * u)).sqrt()).clamp(-30.0, 30.0);
                let own = if plan.arms[arm].name == "one" { effect } else { 0.0 };
                let value = 1000.0 * (drift + 0.002 * heavy + own).exp();
                cells.push(Cell {
                    arm: plan.arms[arm].name.clone(),
                    point: *point,
                    block,
                    began: 0.0,
                    seconds: 1.0,
                    values: Values::from([("tps".to_string(), Some(value))]),
                    series: None,
                    machine: Machine::default(),
                    proof: Proof::default(),
                    marks: Vec::new(),
                    listings: Vec::new(),
                });
            }
        }
    }
    cells
}

fn resolved(seed: u64, effect: f64) -> Vec<String> {
    let plan = plan(8);
    comparisons(&plan, &cells(&plan, seed, effect))
        .into_iter()
        .filter(|it| it.verdict == Verdict::Resolved)
        .map(|it| it.arm)
        .collect()
}

#[test]
fn a_study_without_effects_resolves_one_in_at_most_5_percent_of_cases() {
    let runs = 400;
    let wrong = (0..runs).filter(|seed| !resolved(*seed, 0.0).is_empty()).count();
    // Four standard errors above 5 %.
    assert!(wrong as f64 <= 0.094 * runs as f64, "{wrong} of {runs}");
}

#[test]
fn an_effect_beyond_the_noise_is_found_only_in_its_arm() {
    let found: Vec<Vec<String>> = (0..50).map(|seed| resolved(seed, 0.05)).collect();
    let whole = found.iter().filter(|arms| arms.iter().filter(|arm| *arm == "one").count() == 2);
    assert!(whole.count() >= 40);
    assert!(found.iter().flatten().filter(|arm| *arm == "two").count() <= 6);
}

#[test]
fn the_control_has_figures_and_is_never_an_effect() {
    let plan = plan(8);
    for it in comparisons(&plan, &cells(&plan, 3, 0.05)) {
        assert_eq!(it.verdict == Verdict::Placebo, it.arm == "base-again");
        assert!(it.again_half_width.is_some() && it.detectable > 0.0);
    }
}

#[test]
fn five_blocks_resolve_nothing() {
    let plan = plan(5);
    let all = comparisons(&plan, &cells(&plan, 3, 0.5));
    assert!(all.iter().all(|it| it.verdict != Verdict::Resolved));
}

#[test]
fn differences_use_the_base_of_the_same_block_and_dependent_values_follow() {
    let plan = plan(2);
    let complete = complete(&plan, cells(&plan, 1, 0.1));
    let value = |cell: &Cell, read: &str| cell.values.get(read).copied().flatten();
    for cell in &complete {
        let same = |b: &&Cell| b.arm == "base" && b.block == cell.block && b.point == cell.point;
        let base = complete.iter().find(same).unwrap();
        let more = value(cell, "tps").unwrap() - value(base, "tps").unwrap();
        assert_eq!(value(cell, "more"), Some(more));
        assert_eq!(value(cell, "twice"), Some(2.0 * more));
    }
}
