// SPDX-License-Identifier: PostgreSQL
//! Whole studies on simulated cells with known effects.

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::study::cell::{Machine, Proof};
use crate::study::file::Study;
use crate::study::plan::StudyPlan;

fn plan(repeats: usize) -> StudyPlan {
    let text = format!(
        "name = \"a\"\ntitle = \"A\"\nquestion = \"?\"\n[[arm]]\nname = \"base\"\n[[arm]]\nname = \"one\"\n\
         [[arm]]\nname = \"two\"\n[workload]\nbuiltin = \"select-only\"\nclients = [1, 8]\n\
         [[read]]\nname = \"tps\"\nof = \"throughput\"\n[[read]]\nname = \"more\"\nover_base = \"tps\"\n\
         [[read]]\nname = \"twice\"\nvalue = \"2 * more\"\n[compare]\nreads = [\"tps\"]\n\
         [measure]\nrepeats = {repeats}\n"
    );
    StudyPlan::new(Study::parse(&text).unwrap(), false, &[]).unwrap()
}

/// Cells of a drifting machine with heavy-tailed noise; the arm "one" has this effect.
fn cells(plan: &StudyPlan, seed: u64, effect: f64) -> Vec<Cell> {
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
        .filter(|comparison| comparison.verdict == ArmVerdict::Resolved)
        .map(|comparison| comparison.arm)
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
    for comparison in comparisons(&plan, &cells(&plan, 3, 0.05)) {
        assert_eq!(comparison.verdict == ArmVerdict::Placebo, comparison.arm == "base-again");
        assert!(comparison.again_half_width.is_some() && comparison.detectable > 0.0);
    }
}

#[test]
fn five_blocks_resolve_nothing() {
    let plan = plan(5);
    let all = comparisons(&plan, &cells(&plan, 3, 0.5));
    assert!(all.iter().all(|comparison| comparison.verdict != ArmVerdict::Resolved));
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

/// The comparison of the arm "one". By block, its values are the base's times the exponential of `own`, and those of
/// the control the base's times the exponential of `again`.
fn compared(own: fn(f64) -> f64, again: fn(f64) -> f64) -> (StudyPlan, Vec<Cell>, ArmComparison) {
    let plan = plan(8);
    let mut all = cells(&plan, 1, 0.0);
    for cell in &mut all {
        let log = match &*cell.arm {
            "one" => own(cell.block as f64),
            "base-again" => again(cell.block as f64),
            _ => 0.0,
        };
        cell.values.insert("tps".into(), Some(1000.0 * log.exp()));
    }
    let found = comparisons(&plan, &all);
    let one = found
        .into_iter()
        .find(|comparison| comparison.arm == "one" && comparison.point == plan.points[0])
        .unwrap();
    (plan, all, one)
}

#[test]
fn a_change_is_that_of_its_logs_and_has_to_exceed_the_control() {
    let own = |block: f64| 0.05 + 0.001 * block;
    let (plan, cells, found) = compared(own, |_| 0.0);
    let logs: Vec<f64> = (0..8).map(|block| own(f64::from(block))).collect();
    let e = Estimate::of_repeats(&logs).unwrap();
    // Two arms at two points are four tests.
    for (ours, expected) in [
        (found.percent, 100.0 * e.mean.exp_m1()),
        (found.half_width, 100.0 * e.mean.exp() * e.half_width),
        (found.detectable, 100.0 * e.detectable(0.05 / 4.0, 0.8).exp_m1()),
        (found.t_p, e.t_p()),
        (widest(&plan, &cells).unwrap(), found.half_width),
    ] {
        assert!((ours / expected - 1.0).abs() < 1e-6, "{ours} is not {expected}: {found:?}");
    }
    assert_eq!(found.verdict, ArmVerdict::Resolved);
    let (.., found) = compared(own, |block| 0.2 * (block - 3.5));
    assert_eq!(found.verdict, ArmVerdict::Inconclusive, "the control changed by more: {found:?}");
    // By itself this would be an effect: its probability is 0.02.
    let (.., found) = compared(|block| if block == 7.0 { 0.05 } else { 0.01 }, |_| 0.0);
    assert!((found.holm_p / found.t_p - 4.0).abs() < 1e-6 && found.t_p < 0.05, "{found:?}");
    assert_eq!(found.verdict, ArmVerdict::Inconclusive);
}

#[test]
fn an_arm_in_percent_is_of_the_base() {
    let (plan, cells, _) = compared(|_| 0.5f64.ln(), |_| 0.0);
    let head = crate::engine::journal::RunHead::new(false, String::new());
    let host = live::host::Watch::start().host("tsc");
    let mut answer = StudyResults::compute(
        &plan,
        &cells,
        &RunRecord { head, host, left_out: Vec::new(), failed: Vec::new() },
    );
    let percent = |answer: &StudyResults| answer.percent("one", &plan.points[0], "tps").unwrap().0;
    let paired = percent(&answer);
    answer.comparisons.clear();
    for found in [paired, percent(&answer)] {
        assert!((found - 50.0).abs() < 1e-9, "{found}");
    }
}
