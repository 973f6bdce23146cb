// SPDX-License-Identifier: PostgreSQL
//! The order of diagnoses, and thresholds that a real server would not meet on demand; each rule by itself is in `rules`.

mod causes;
mod edges;
mod indexes;
mod rules;
mod settings;

use super::*;
use segment::event_payload::Checkpoint;
use segment::Interval;
use view::vacuum::{Holder, Table, Vacuum};

/// The problems.
fn diagnose(case: &Case<'_>) -> Vec<Diagnosis> {
    crate::diagnose(case).problems
}

/// The rules whose limits are found.
fn limits(case: &Case<'_>) -> Vec<Rule> {
    rules::rules(&crate::diagnose(case).limits)
}

/// An interval of a busy server whose commits wait for slow syncs.
fn slow_commits() -> Interval {
    let mut interval = view::sample::interval();
    let load = Case {
        sampled: &[],
        whole: &interval,
        statements: None,
        checkpoints: &[],
        known_deadlocks: &[],
        blocking: None,
        blocker: None,
        plans: &[],
        vacuum: None,
    }
    .load();
    interval.commits.sync.seconds = 0.5 * load;
    let sync = &mut interval.commits.sync;
    (sync.mean_seconds, sync.p50_seconds) = (Some(0.060), Some(0.060));
    interval
}

fn found(interval: &Interval, checkpoints: &[Checkpoint]) -> Vec<(Rule, Option<Rule>)> {
    let case = Case {
        whole: interval,
        sampled: &[],
        statements: None,
        checkpoints,
        known_deadlocks: &[],
        blocking: None,
        blocker: None,
        plans: &[],
        vacuum: None,
    };
    diagnose(&case).into_iter().map(|found| (found.rule, found.consequence_of)).collect()
}

fn checkpoint(reason: &str, apart: f64) -> Checkpoint {
    Checkpoint { reason: reason.into(), interval_seconds: Some(apart), ..Checkpoint::default() }
}

/// It ended with the interval.
fn ended(interval: &Interval, checkpoint: Checkpoint) -> Checkpoint {
    Checkpoint { ended: Some(interval.time), ..checkpoint }
}

#[test]
fn an_interval_in_which_nothing_happened_has_no_diagnosis() {
    let mut interval = view::sample::interval();
    interval.ledger.clear();
    interval.sessions.clear();
    interval.kernel = segment::kernel::KernelView::default();
    assert_eq!(found(&interval, &[]), []);
}

#[test]
fn a_consequence_comes_right_behind_its_cause() {
    let interval = slow_commits();
    let alone = found(&interval, &[]);
    assert!(alone.contains(&(Rule::Commits, None)), "{alone:?}");
    let apart = interval.interval_seconds / 2.0;
    let with = found(&interval, &[ended(&interval, checkpoint("wal", apart))]);
    let cause = with.iter().position(|found| *found == (Rule::Checkpoints, None)).unwrap();
    let effects = &with[cause + 1..];
    assert!(effects.contains(&(Rule::Commits, Some(Rule::Checkpoints))), "{with:?}");
    let of_others = effects.iter().position(|effect| effect.1.is_none()).unwrap_or(effects.len());
    assert!(
        effects[of_others..].iter().all(|effect| effect.1 != Some(Rule::Checkpoints)),
        "{with:?}"
    );
}

#[test]
fn checkpoints_on_time_or_far_apart_are_no_problem() {
    let interval = slow_commits();
    for checkpoint in
        [checkpoint("time", 10.0), checkpoint("wal", 300.0), checkpoint("request", 1.0)]
    {
        let found = found(&interval, &[ended(&interval, checkpoint)]);
        assert!(!found.iter().any(|found| found.0 == Rule::Checkpoints));
    }
}

fn table(vacuumed_seconds_ago: Option<f64>) -> Table {
    Table {
        database: "shop".into(),
        name: "orders".into(),
        live_rows: 60_000,
        dead_rows: 40_000,
        threshold: 5_000.0,
        autovacuum_off: false,
        vacuumed_seconds_ago,
    }
}

/// The texts about vacuum.
fn of_vacuum(table: Table, holders: &[Holder]) -> Vec<String> {
    let vacuum = Vacuum { tables: vec![table], holders: holders.to_vec(), ..Vacuum::default() };
    let reading = view::sample::reading();
    let case = Case { vacuum: Some(&vacuum), ..Case::from_reading(&reading) };
    let all = diagnose(&case).into_iter();
    all.filter(|found| found.rule == Rule::Vacuum).map(|found| found.text).collect()
}

#[test]
fn who_holds_vacuum_back_is_who_began_before_it_and_in_that_database() {
    let late = "Autovacuum does not keep up: 40,000 dead rows in table orders of database shop \
                (40.0 % of its rows).";
    assert_eq!(of_vacuum(table(None), &[]), [late]);
    assert!(of_vacuum(table(Some(30.0)), &[]).is_empty(), "it has just come");
    let few = Table { dead_rows: 20_000, ..table(None) };
    assert!(of_vacuum(few, &[]).is_empty(), "it will come");

    let slot = Holder {
        name: "replication slot old".into(),
        state: "inactive".into(),
        transactions: 1_000_000,
        seconds: None,
        database: None,
    };
    let session = |database: &str, seconds| Holder {
        name: "session 7".into(),
        state: "active".into(),
        transactions: 5,
        seconds: Some(seconds),
        database: Some(database.into()),
    };
    let others = [session("other", 100.0), session("shop", 20.0)];
    assert!(of_vacuum(table(Some(30.0)), &others).is_empty());
    let holders = [others.as_slice(), &[session("shop", 40.0)]].concat();
    let text = "Session 7 has held a snapshot for 40 s, active, so vacuum could not remove 40,000 dead rows in table orders of database \
                shop (40.0 % of its rows).";
    assert_eq!(of_vacuum(table(Some(30.0)), &holders), [text]);
    let text = of_vacuum(table(Some(30.0)), &[slot]).concat();
    assert!(
        text.starts_with("Replication slot old keeps them, inactive, so vacuum could not remove "),
        "{text}"
    );
}

#[test]
fn a_load_that_nobody_notices_has_no_problem() {
    let mut interval = slow_commits();
    interval.instrumented_seconds *= 1e6;
    interval.sessions.clear();
    interval.kernel = segment::kernel::KernelView::default();
    assert_eq!(found(&interval, &[]), []);
}

#[test]
fn what_tally_itself_does_is_no_diagnosis() {
    let idle = |kind: &str| {
        let mut interval = view::sample::interval();
        let row = interval.sessions.iter_mut().find(|row| row.state == "idle in transaction");
        let row = row.unwrap();
        (row.kind, row.since_seconds) = (kind.to_owned(), 100.0);
        found(&interval, &[]).iter().any(|(rule, _)| *rule == Rule::IdleInTransaction)
    };
    assert!(idle("client backend"));
    assert!(!idle(segment::own::PROCESS));
}

/// Dead rows that vacuum cannot remove.
fn dead_rows() -> Vacuum {
    let holder = Holder {
        name: "session 7".into(),
        state: "idle in transaction".into(),
        transactions: 5,
        seconds: Some(40.0),
        database: Some("shop".into()),
    };
    Vacuum { tables: vec![table(Some(30.0))], holders: vec![holder], ..Vacuum::default() }
}

#[test]
fn what_is_certain_comes_before_what_is_possible_and_takes_little() {
    let statements = rules::full_scan(1.0);
    let mut interval = rules::interval(&[("execute::cpu", 1, 1.5)]);
    let vacuum = dead_rows();
    let order = |interval: &Interval, statements: &view::statements::StatementsTable| {
        let case =
            Case { statements: Some(statements), vacuum: Some(&vacuum), ..rules::case(interval) };
        diagnose(&case).into_iter().map(|found| found.rule).collect::<Vec<_>>()
    };
    assert_eq!(order(&interval, &statements), [Rule::Vacuum, Rule::MissingIndex]);
    let statements = rules::full_scan(9.0);
    interval.ledger[0].timing.seconds = 9.5;
    assert_eq!(order(&interval, &statements), [Rule::MissingIndex, Rule::Vacuum]);
}
