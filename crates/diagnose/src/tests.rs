// SPDX-License-Identifier: PostgreSQL
//! The order of diagnoses, and thresholds that a real server would not meet on demand.

use super::*;
use segment::event_payload::Checkpoint;
use segment::Interval;

/// An interval of a busy server whose commits wait for slow syncs.
fn slow_commits() -> Interval {
    let mut interval = view::sample::interval();
    let load =
        Case { interval: &interval, statements: None, checkpoints: &[], blocking: None }.load();
    interval.commits.sync.seconds = 0.5 * load;
    interval.commits.sync.mean_seconds = Some(0.020);
    interval
}

fn rules(interval: &Interval, checkpoints: &[Checkpoint]) -> Vec<(Rule, Option<Rule>)> {
    let case = Case { interval, statements: None, checkpoints, blocking: None };
    diagnose(&case).into_iter().map(|it| (it.rule, it.consequence_of)).collect()
}

fn checkpoint(reason: &str, apart: f64) -> Checkpoint {
    Checkpoint { reason: reason.into(), interval_seconds: Some(apart), ..Checkpoint::default() }
}

#[test]
fn an_interval_in_which_nothing_happened_has_no_diagnosis() {
    let mut interval = view::sample::interval();
    interval.ledger.clear();
    interval.sessions.clear();
    interval.kernel = segment::kernel::KernelView::default();
    assert_eq!(rules(&interval, &[]), []);
}

#[test]
fn a_consequence_comes_right_behind_its_cause() {
    let interval = slow_commits();
    let alone = rules(&interval, &[]);
    assert!(alone.contains(&(Rule::Commits, None)), "{alone:?}");
    let with = rules(&interval, &[checkpoint("wal", 10.0)]);
    let cause = with.iter().position(|it| *it == (Rule::Checkpoints, None)).unwrap();
    let effects = &with[cause + 1..];
    assert!(effects.contains(&(Rule::Commits, Some(Rule::Checkpoints))), "{with:?}");
    let of_others = effects.iter().position(|it| it.1.is_none()).unwrap_or(effects.len());
    assert!(effects[of_others..].iter().all(|it| it.1 != Some(Rule::Checkpoints)), "{with:?}");
}

#[test]
fn checkpoints_on_time_or_far_apart_are_no_problem() {
    let interval = slow_commits();
    for checkpoint in
        [checkpoint("time", 10.0), checkpoint("wal", 300.0), checkpoint("request", 1.0)]
    {
        assert!(!rules(&interval, &[checkpoint]).iter().any(|it| it.0 == Rule::Checkpoints));
    }
}

#[test]
fn a_load_that_nobody_notices_has_no_problem() {
    let mut interval = slow_commits();
    interval.instrumented_seconds *= 1e6;
    interval.sessions.clear();
    interval.kernel = segment::kernel::KernelView::default();
    assert_eq!(rules(&interval, &[]), []);
}
