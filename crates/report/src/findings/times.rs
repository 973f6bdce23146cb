// SPDX-License-Identifier: PostgreSQL
//! When a problem was the case, from the figures that its rule examines, in the points of the charts.

use diagnose::Rule;
use segment::{wait_names, WaitClass};
use view::deadlocks::Deadlock;
use view::document::Histories;

use crate::material::Material;
use crate::point::Figures;
use crate::tables::checkpoints;

/// Waits that take less than this share of the busy time of a point are no problem there.
const MUCH: f64 = 0.1;
/// Maximum number of stretches of a finding; the last ones are kept.
const STRETCHES: usize = 1000;

/// From when to when, seconds since 1970.
pub(super) type Times = Vec<(f64, f64)>;

/// When a rule's problem with this statement, if it is about one, was the case; empty: it is about the whole time, or it is not
/// known.
pub(super) fn of_rule(rule: Rule, statement: Option<&str>, material: &Material) -> Times {
    let waits = |is_one: fn(&str) -> bool| {
        in_points(material, |figures, _| {
            let sum = |wanted: &dyn Fn(&str) -> bool| -> f64 {
                figures.activities.iter().filter(|a| wanted(&a.0)).map(|a| a.1).sum()
            };
            let waited = sum(&is_one);
            waited > 0.0 && waited >= MUCH * sum(&|_| true)
        })
    };
    let mut times = match rule {
        Rule::Locks => match blocked(material) {
            times if times.is_empty() => waits(|name| WaitClass::of_name(name) == WaitClass::Lock),
            times => times,
        },
        Rule::LightweightLocks => waits(|name| WaitClass::of_name(name) == WaitClass::Lwlock),
        Rule::BufferMisses => waits(|name| wait_names::is(name, "IO:DataFileRead")),
        Rule::Replication => waits(|name| wait_names::is(name, "IPC:SyncRep")),
        Rule::SlowClients => waits(|name| name == "Client:ClientWrite"),
        Rule::LogPipe => waits(|name| name == "Call:log_pipe"),
        Rule::Commits => in_points(material, |figures, _| {
            let busy: f64 = figures.activities.iter().map(|a| a.1).sum();
            figures.leader.count > 0 && figures.leader.seconds >= MUCH * busy
        }),
        Rule::Processors => over_demand(material),
        Rule::Deadlocks => deadlocks(material),
        Rule::Checkpoints => checkpoints_of(material),
        Rule::IdleInTransaction => longest_open(material),
        Rule::MissingIndex
        | Rule::PlanChange
        | Rule::TemporaryFiles
        | Rule::Planning
        | Rule::Jit
        | Rule::LongStatement
        | Rule::ManySmallStatements
        | Rule::StaleStatistics => match (statement, &material.histories) {
            (Some(key), Some(histories)) => executed(key, histories, material.measured.to),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    times.drain(..times.len().saturating_sub(STRETCHES));
    times
}

/// When the sessions needed more CPUs than there are.
pub(super) fn over_demand(material: &Material) -> Times {
    let cores = material.whole.cores as f64;
    in_points(material, |figures, seconds| {
        let cpu = figures.activities.iter().filter(|a| &*a.0 == "cpu").map(|a| a.1);
        cpu.sum::<f64>() > cores * seconds
    })
}

/// Consecutive points, each with its start, its end and whether it is the case there, as stretches.
fn stretches(points: impl Iterator<Item = ((f64, f64), bool)>) -> Times {
    let mut times = Times::new();
    let mut open = false;
    for ((from, to), is_case) in points {
        match times.last_mut() {
            Some(last) if open && is_case => last.1 = to,
            _ if is_case => times.push((from, to)),
            _ => {}
        }
        open = is_case;
    }
    times
}

/// The points of the charts of whose figures and measured seconds this holds.
fn in_points(material: &Material, holds: impl Fn(&Figures, f64) -> bool) -> Times {
    let points = &material.points;
    let ends = points.iter().skip(1).map(|next| next.start).chain([material.measured.to]);
    stretches(points.iter().zip(ends).map(|(point, end)| {
        let is_case = point.seconds > 0.0
            && point.figures.as_ref().is_some_and(|figures| holds(figures, point.seconds));
        ((point.start, end), is_case)
    }))
}

/// When the server worked for a statement.
fn executed(statement: &str, histories: &Histories, end: f64) -> Times {
    let Some(history) = histories.statements.iter().find(|one| one.statement == statement) else {
        return Times::new();
    };
    let time = &histories.axis.time;
    let ends = time.iter().skip(1).copied().chain([end]);
    let worked = |at: usize| {
        let has_time = |seconds: &[f64]| seconds.get(at).is_some_and(|seconds| *seconds > 0.0);
        history.classes.iter().any(|class| has_time(&class.seconds))
            || has_time(&history.exec_seconds)
    };
    stretches(time.iter().copied().zip(ends).enumerate().map(|(at, point)| (point, worked(at))))
}

/// When the session was blocking others for which others waited longest.
fn blocked(material: &Material) -> Times {
    let (_, blocker) = material.blocking();
    blocker.map_or_else(Times::new, |blocker| blocker.stretches.clone())
}

fn deadlocks(material: &Material) -> Times {
    let events = material.events.iter().filter_map(Deadlock::from_event);
    events.filter_map(|deadlock| Some((deadlock.time?, deadlock.time?))).collect()
}

fn checkpoints_of(material: &Material) -> Times {
    let all = checkpoints(&material.events, material.measured.from).into_iter();
    all.filter_map(|one| Some((one.ended? - one.seconds, one.ended?))).collect()
}

/// When the session that was idle in a transaction for longest was so.
fn longest_open(material: &Material) -> Times {
    let open = material.sessions.as_ref().and_then(|sessions| sessions.open.first());
    open.map_or_else(Times::new, |open| vec![(open.until - open.seconds, open.until)])
}

#[cfg(test)]
mod tests {
    use view::document::{Axis, ClassTimes, StatementHistory};

    use super::*;
    use crate::point::Point;
    use crate::sample;

    /// Points of a second with these activities; an empty list is a gap.
    fn material(points: &[&[(&str, f64)]]) -> Material {
        let mut material = sample::material();
        material.points = (0..)
            .zip(points)
            .map(|(at, activities)| {
                let of = |(name, seconds): &(&str, f64)| ((*name).into(), *seconds);
                let activities: Vec<_> = activities.iter().map(of).collect();
                let measured = !activities.is_empty();
                Point {
                    start: f64::from(at),
                    seconds: if measured { 1.0 } else { 0.0 },
                    figures: measured.then(|| Figures { activities, ..Figures::default() }),
                }
            })
            .collect();
        material.measured.to = points.len() as f64;
        material.sessions = None;
        material
    }

    #[test]
    fn waits_are_a_problem_where_they_take_a_tenth_of_the_time() {
        let material = material(&[
            &[("cpu", 1.0), ("LWLock:ProcArray", 0.2)],
            &[("cpu", 1.0), ("LWLock:ProcArray", 0.2)],
            &[("cpu", 1.0), ("LWLock:ProcArray", 0.01)],
            &[],
            &[("LWLock:WALInsert", 0.3), ("Lock:tuple", 0.3)],
        ]);
        let times = |rule| of_rule(rule, None, &material);
        assert_eq!(times(Rule::LightweightLocks), [(0.0, 2.0), (4.0, 5.0)]);
        assert_eq!(times(Rule::Locks), [(4.0, 5.0)]);
        assert_eq!(times(Rule::SlowClients), []);
        assert_eq!(times(Rule::Wraparound), [], "it is about the whole time");
    }

    #[test]
    fn a_statement_is_a_problem_while_the_server_works_for_it() {
        let mut material = material(&[&[("cpu", 1.0)], &[("cpu", 1.0)], &[("cpu", 1.0)]]);
        let class = ClassTimes { class: "cpu", seconds: vec![0.0, 1.0, 0.5] };
        material.histories = Some(Histories {
            axis: Axis { time: vec![0.0, 1.0, 2.0], seconds: vec![1.0; 3] },
            statements: vec![StatementHistory {
                statement: "7.1.1".into(),
                classes: vec![class],
                ..StatementHistory::default()
            }],
        });
        let times = |statement| of_rule(Rule::MissingIndex, statement, &material);
        assert_eq!(times(Some("7.1.1")), [(1.0, 3.0)]);
        assert_eq!(times(Some("8.1.1")), []);
        assert_eq!(times(None), []);
    }

    #[test]
    fn demand_exceeds_the_cores_in_some_points() {
        let mut material = material(&[&[("cpu", 3.0)], &[("cpu", 1.0)], &[("cpu", 2.5)]]);
        material.whole.cores = 2;
        assert_eq!(over_demand(&material), [(0.0, 1.0), (2.0, 3.0)]);
    }
}
