// SPDX-License-Identifier: PostgreSQL
//! The findings of a report, one sentence each.

mod change;
mod finding;
mod log;
mod storage;
mod times;
mod verdict;

use segment::interval::{AccountRow, Interval, Timing};
use segment::Level;

use super::histories::quoted;
use super::load::OTHERS;
use super::material::Material;
use super::point::{Figures, Point};
use super::tables::checkpoints;
use change::{step, Sample, Step};
use diagnose::{Case, Diagnoses, Diagnosis, Rule};
use finding::{note, warning};
use jiff::tz::TimeZone;
use verdict::RECORDING;
use view::blocking::Blocker;
use view::deadlocks::Deadlock;
use view::document::time;
use view::document::{Finding, Remedy, Verdict, Weight};
use view::headline;
use view::locks;
use view::measured::{behind, Measured};
use view::units::{capitalise, count, duration, percent, two};

/// Number of activities that are searched for a step.
const LOOKS: usize = 12;
/// CPUs are full only if more than this share of them is in use.
const FULL: f64 = 0.95;
/// A step that is smaller than this share of all busy time is not worth a sentence.
const WORTH: f64 = 0.01;

/// The sentence for a time without figures.
const UNMEASURED: &str = "Nothing was measured: the level was off.";

/// The findings, in the order of the page, and what follows from all of them: the sentence at the top.
pub fn findings(material: &Material, zone: &TimeZone) -> (Verdict, Vec<Finding>) {
    let interval = &material.whole;
    let found = diagnosed(material, zone);
    let mut findings = diagnoses(&found, material, zone);
    findings.extend(material.problems.iter().map(|text| warning(RECORDING, text.clone())));
    findings.extend(missing(interval).into_iter().map(|text| warning(RECORDING, text)));
    findings.extend(gaps(material));
    findings.extend(largest_account(interval).map(|text| note("ledger", text)));
    findings.extend(largest_waits(interval).map(|text| note("waits", text)));
    findings.extend(saturation(&material.points, interval).map(|finding| {
        let times = times::over_demand(material);
        Finding { times, ..finding }
    }));
    findings.extend(changed(&material.points, zone));
    findings.extend(throughput_changed(material, zone));
    findings.extend(locks_note(interval));
    findings.extend(statement(material));
    findings.extend(super::client::finding(material));
    findings.extend(super::client::pool_size(material));
    findings.extend(storage::findings(material, zone));
    findings.extend(log::finding(material));
    let verdict = verdict::verdict(&found, &findings);
    if verdict.weight == Weight::Note {
        findings.insert(0, note("ledger", found.no_problem().into()));
    }
    if let Some(all) = &material.statements {
        for finding in &mut findings {
            let sentences = std::iter::once(&finding.text).chain(&finding.details);
            finding.statement = quoted(all, sentences.map(String::as_str));
        }
    }
    (verdict, findings)
}

/// What is wrong, and what bounds the load.
pub fn diagnosed(material: &Material, zone: &TimeZone) -> Diagnoses {
    let checkpoints = checkpoints(&material.events, material.measured.from);
    let deadlocks: Vec<Deadlock> =
        material.events.iter().filter_map(Deadlock::from_event).collect();
    let statements = material.statements.as_ref();
    let (blocking, blocker) = material.blocking();
    let mut found = Diagnoses::from_case(&Case {
        sampled: material.sessions.as_ref().map_or(&[], |sessions| &sessions.sessions),
        whole: &material.whole,
        statements,
        checkpoints: &checkpoints,
        known_deadlocks: &deadlocks,
        blocking,
        // The sentence below says when, by the clock.
        blocker: None,
        plans: statements.map_or(&[], |statements| &statements.plans),
        vacuum: material.vacuum.as_ref(),
    });
    let locks = found.diagnoses.iter_mut().filter(|diagnosis| diagnosis.rule == Rule::Locks);
    for (diagnosis, blocker) in locks.zip(blocker) {
        let table = if material.sessions.is_some() { " (table blockers)" } else { "" };
        diagnosis.evidence.insert(0, format!("{}{table}.", when(blocker, zone)));
    }
    let (damage, others): (Vec<_>, Vec<_>) =
        log::problems(material, zone).into_iter().partition(|problem| problem.damage);
    let of_log =
        |problems: Vec<log::LogProblem>| problems.into_iter().map(|problem| problem.diagnosis);
    found.add_problems(
        of_log(damage).collect(),
        of_log(others).chain(storage::failed(material)).collect(),
    );
    found
}

fn diagnoses(found: &Diagnoses, material: &Material, zone: &TimeZone) -> Vec<Finding> {
    let begin = found.healthy.is_none().then(|| warning("ledger", UNMEASURED.into()));
    let problems = found.diagnoses.iter().map(|problem| Finding {
        times: times_of(problem, material, zone),
        remedy: Some(Remedy {
            text: problem.advice.to_string(),
            sql: problem.advice.entered(),
            confidence: problem.confidence.name(),
        }),
        details: problem.evidence.clone(),
        ..warning(problem.section, problem.headline())
    });
    let limits = found.limits.iter().chain(&found.notes).map(|limit| Finding {
        details: limit.evidence.clone(),
        ..note(limit.section, limit.headline())
    });
    begin.into_iter().chain(problems).chain(limits).collect()
}

/// When a problem was the case.
fn times_of(problem: &Diagnosis, material: &Material, zone: &TimeZone) -> Vec<(f64, f64)> {
    if problem.rule == Rule::ServerLog {
        let mut all = log::problems(material, zone).into_iter();
        return all
            .find(|same| same.diagnosis == *problem)
            .map_or_else(Vec::new, |same| same.times);
    }
    let sentences = std::iter::once(&problem.text).chain(&problem.evidence);
    let statements = material.statements.as_ref();
    let key = statements.and_then(|all| quoted(all, sentences.map(String::as_str)));
    times::of_rule(problem.rule, key.as_deref(), material)
}

/// When a session blocked others, and how many. The diagnosis describes the moment when they had waited longest.
fn when(blocker: &Blocker, zone: &TimeZone) -> String {
    let who = match blocker.root.pid {
        0 => "a prepared transaction".to_owned(),
        pid => format!("session {pid}"),
    };
    format!(
        "As of {}. From {} to {}, {who} {}",
        time(blocker.time, zone),
        time(blocker.from(), zone),
        time(blocker.to(), zone),
        blocker.harm()
    )
}

/// Turns a text that starts in lower case into a sentence.
fn sentence(text: &str) -> String {
    format!("{}.", capitalise(text.trim_end_matches('.')))
}

/// Reasons why the figures are incomplete.
fn missing(interval: &Interval) -> Vec<String> {
    headline::warnings(interval).iter().map(|text| sentence(text)).collect()
}

fn gaps(material: &Material) -> Option<Finding> {
    let lost: f64 = material.gaps.iter().map(|gap| gap.to - gap.from).sum();
    let longest =
        material.gaps.iter().max_by(|a, b| (a.to - a.from).total_cmp(&(b.to - b.from)))?;
    let text = match material.gaps.len() {
        1 => format!("There is a gap of {}: {}.", duration(lost), longest.reason),
        n => format!(
            "There are {n} gaps, {} in total; the longest, {}: {}.",
            duration(lost),
            duration(longest.to - longest.from),
            longest.reason
        ),
    };
    let times = material.gaps.iter().map(|gap| (gap.from, gap.to)).collect();
    Some(Finding { times, ..warning(RECORDING, text) })
}

fn busy(interval: &Interval) -> impl Iterator<Item = &AccountRow> {
    interval.ledger.iter().filter(|account| !account.idle)
}

/// A figure over this: "45.1 %", or of samples "~45.1 % ± 2.0".
fn over(timing: &Timing, all: f64, shown: fn(Measured) -> String) -> String {
    let all = all.max(1e-9);
    let figure =
        Measured::new(timing.seconds / all, timing.half_width_seconds.map(|half| half / all));
    let sign = if figure.half_width.is_some() { "~" } else { "" };
    format!("{sign}{}", shown(figure))
}

fn share_of_busy(timing: &Timing, interval: &Interval) -> String {
    over(timing, interval.busy_seconds, Measured::share)
}

fn per_second(timing: &Timing, interval: &Interval) -> String {
    over(timing, interval.instrumented_seconds, Measured::number)
}

fn largest_account(interval: &Interval) -> Option<String> {
    let account = busy(interval).find(|account| !account.timing.refused)?;
    let seconds = account.timing.seconds;
    let mut text = format!(
        "Most time went to {} in phase {}: {} of the busy time, {} active sessions",
        account.activity,
        account.phase,
        share_of_busy(&account.timing, interval),
        per_second(&account.timing, interval),
    );
    if interval.commands_handled > 0 {
        let each = seconds / interval.commands_handled as f64;
        text.push_str(&format!(", {} per command", duration(each)));
    }
    Some(text + ".")
}

fn largest_waits(interval: &Interval) -> Option<String> {
    let waits =
        interval.activities_where(|a| !a.idle && !a.timing.refused && &*a.activity != "cpu");
    let parts: Vec<String> = waits
        .iter()
        .take(3)
        .filter(|wait| wait.timing.seconds > WORTH * interval.busy_seconds)
        .map(|wait| {
            let mut text = format!("{} ({}", wait.activity, share_of_busy(&wait.timing, interval));
            if let Some(mean) = wait.timing.mean_seconds {
                text.push_str(&format!(", mean {}", duration(mean)));
            }
            if let Some(p99) = wait.timing.p99_seconds {
                text.push_str(&format!(", p99 {}", duration(p99)));
            }
            text + ")"
        })
        .collect();
    match parts.as_slice() {
        [] => None,
        [one] => Some(format!("Largest wait (share of busy time): {one}.")),
        many => Some(format!("Largest waits (share of busy time): {}.", many.join(", "))),
    }
}

/// The demand for CPUs compared with their number. A server that is merely busy is healthy, as rule `processors` says.
fn saturation(points: &[Point], interval: &Interval) -> Option<Finding> {
    if interval.cores == 0 || interval.sampling.is_some() {
        return None;
    }
    let cores = interval.cores as f64;
    let measured: Vec<(f64, f64, &Figures)> = points
        .iter()
        .filter(|p| p.seconds > 0.0)
        .filter_map(|p| {
            let figures = p.figures.as_ref()?;
            let cpu = figures.activities.iter().filter(|a| &*a.0 == "cpu").map(|a| a.1);
            Some((p.seconds, cpu.sum::<f64>() / p.seconds, figures))
        })
        .collect();
    let all: f64 = measured.iter().map(|m| m.0).sum();
    if all <= 0.0 {
        return None;
    }
    let mean = measured.iter().map(|(seconds, wanted, _)| seconds * wanted).sum::<f64>() / all;
    let most = measured.iter().map(|m| m.1).fold(0.0, f64::max);
    let over: f64 = measured.iter().filter(|m| m.1 > cores).map(|m| m.0).sum::<f64>() / all;
    let machine = || {
        let host = |f: &Figures| f.host.map(|h| h.busy);
        let busy: Vec<(f64, f64)> =
            measured.iter().filter_map(|(s, _, f)| Some((*s, host(f)?))).collect();
        let seconds: f64 = busy.iter().map(|b| b.0).sum();
        (seconds > 0.0).then(|| busy.iter().map(|(s, b)| s * b).sum::<f64>() / seconds)
    };
    let full = measured.iter().filter(|m| m.2.host.is_some_and(|h| h.busy > FULL * cores));
    let full = full.map(|m| m.0).sum::<f64>() / all;
    let machine = machine().map_or(String::new(), |busy| {
        let full = match full {
            share if share >= WORTH => {
                format!(", all of them for {} % of the time", percent(share))
            }
            _ => String::new(),
        };
        format!(
            "; the machine used {} CPUs{full}{}",
            two(busy.min(cores)),
            others(busy, mean, cores)
        )
    });
    let cores_text = if interval.cores == 1 { "the only core" } else { "cores" };
    let of = if interval.cores == 1 {
        cores_text.to_string()
    } else {
        format!("the {} {cores_text}", interval.cores)
    };
    if over >= WORTH {
        let text = format!(
            "CPU demand exceeded {of} for {} % of the time (mean {}, max {}){machine}.",
            percent(over),
            two(mean),
            two(most)
        );
        return Some(note("processors", text));
    }
    let text =
        format!("CPU demand of sessions: mean {} of {of}, max {}{machine}.", two(mean), two(most));
    Some(note("processors", text))
}

/// Who uses the CPUs that the sessions do not: the sessions cannot have used more than they needed.
fn others(busy: f64, needed: f64, cores: f64) -> String {
    let others = busy.min(cores) - needed.min(cores);
    if others < OTHERS * cores {
        return String::new();
    }
    format!(
        ", at least {} of them for other processes (clients on this machine, or other programs)",
        two(others)
    )
}

fn step_words(step: &Step, zone: &TimeZone, unit: &str, figure: impl Fn(f64) -> String) -> String {
    let change = step.after - step.before;
    format!(
        "{} {unit} until {}, {} after that, {} {}",
        figure(step.before),
        time(step.at, zone),
        figure(step.after),
        behind(figure(change.abs()), Some(figure(step.half_width))),
        if change < 0.0 { "less" } else { "more" }
    )
}

/// The activity with the largest step.
fn changed(points: &[Point], zone: &TimeZone) -> Option<Finding> {
    let measured: Vec<(&Point, &Figures)> = points
        .iter()
        .filter(|p| p.seconds > 0.0)
        .filter_map(|p| Some((p, p.figures.as_ref()?)))
        .collect();
    let mut sums = std::collections::BTreeMap::<&str, f64>::new();
    for (activity, seconds) in measured.iter().flat_map(|(_, f)| &f.activities) {
        *sums.entry(&**activity).or_default() += seconds;
    }
    let all: f64 = sums.values().sum();
    let seconds: f64 = measured.iter().map(|(p, _)| p.seconds).sum();
    let mut names: Vec<(&str, f64)> = sums.into_iter().collect();
    names.sort_by(|a, b| b.1.total_cmp(&a.1));
    names.truncate(LOOKS);
    let steps = names.iter().filter_map(|(name, _)| {
        let samples: Vec<Sample> = measured
            .iter()
            .map(|(point, figures)| {
                let own = figures.activities.iter().filter(|a| &*a.0 == *name).map(|a| a.1);
                let value = own.sum::<f64>() / point.seconds;
                Sample { time: point.start, seconds: point.seconds, value }
            })
            .collect();
        Some((*name, step(&samples, names.len())?))
    });
    let size = |step: &Step| (step.after - step.before).abs();
    let (name, step) = steps.max_by(|a, b| size(&a.1).total_cmp(&size(&b.1)))?;
    if size(&step) < WORTH * all / seconds.max(1e-9) {
        return None;
    }
    let change = step_words(&step, zone, "sessions on average", two);
    let text = format!("{name} changed the most over time: {change}.");
    Some(Finding { times: vec![(step.at, step.at)], ..note("activity", text) })
}

fn throughput_changed(material: &Material, zone: &TimeZone) -> Option<Finding> {
    let samples: Vec<Sample> = material
        .points
        .iter()
        .filter(|p| p.seconds > 0.0)
        .filter_map(|p| {
            let value = p.figures.as_ref()?.commands as f64 / p.seconds;
            Some(Sample { time: p.start, seconds: p.seconds, value })
        })
        .collect();
    let step = step(&samples, 1)?;
    if (step.after - step.before).abs() < WORTH * step.before.max(step.after) {
        return None;
    }
    let text = format!("Throughput changed: {}.", step_words(&step, zone, "commands/s", count));
    Some(Finding { times: vec![(step.at, step.at)], ..note("throughput", text) })
}

fn locks_note(interval: &Interval) -> Option<Finding> {
    let worst = interval.lwlocks.iter().max_by(|a, b| a.wait.seconds.total_cmp(&b.wait.seconds))?;
    if worst.wait.seconds < WORTH * interval.busy_seconds {
        return None;
    }
    let partly = match locks::note(interval) {
        Some(_) if interval.level != Level::Off => {
            format!(" in the {} at level locks", duration(interval.locks_seconds))
        }
        _ => String::new(),
    };
    let text = format!(
        "The most contended lightweight lock is {} ({}, in {}): waits of {}{partly}, {} each; held \
         for {} on average.",
        worst.lock,
        worst.mode,
        worst.phase,
        duration(worst.wait.seconds),
        duration(worst.wait.mean_seconds.unwrap_or(0.0)),
        duration(worst.held.mean_seconds.unwrap_or(0.0)),
    );
    Some(note("locks", text))
}

fn statement(material: &Material) -> Option<Finding> {
    let all = material.statements.as_ref()?;
    let row = all.rows.iter().find(|row| !row.own && row.queryid.is_some() && row.seconds > 0.0)?;
    let shown = view::statements::beginning(row.text(), 80);
    let sign = |is_estimate: bool| if is_estimate { "~" } else { "" };
    let mean = match row.calls {
        0 => String::new(),
        calls => {
            let mark = sign(row.half_width_seconds.is_some());
            let each = format!("{mark}{}", duration(row.seconds / calls as f64));
            let executing = row
                .execution
                .mean_seconds
                .map_or(String::new(), |mean| format!(" (execution alone {})", duration(mean)));
            format!(", {} calls of {each} each{executing}", count(calls as f64))
        }
    };
    let text = format!(
        "The top statement takes {}{} of the time{mean}: {shown}",
        sign(row.seconds_source.is_some()),
        Measured::new(row.share, row.share_half_width).share()
    );
    Some(note("statements", text))
}

#[cfg(test)]
mod tests {
    use view::document::Gap;

    use super::*;
    use crate::sample;

    #[test]
    fn gaps_are_summed_and_the_longest_is_named() {
        let gap = |from: f64, to: f64, reason: &str| Gap { from, to, reason: reason.into() };
        let mut material = sample::material();
        material.gaps =
            vec![gap(0.0, 10.0, "short"), gap(20.0, 50.0, "long"), gap(60.0, 70.0, "other")];
        let text = "There are 3 gaps, 50 s in total; the longest, 30 s: long.";
        assert_eq!(gaps(&material).unwrap().text, text);
        material.gaps.clear();
        assert!(gaps(&material).is_none());
    }

    #[test]
    fn demand_is_weighted_by_time_and_waits_of_little_time_are_not_named() {
        let material = sample::material();
        let mut points: Vec<Point> = material
            .points
            .iter()
            .filter(|point| point.figures.is_some())
            .take(2)
            .cloned()
            .collect();
        for (point, (seconds, cpu)) in points.iter_mut().zip([(1.0, 1.0), (3.0, 0.0)]) {
            point.seconds = seconds;
            point.figures.as_mut().unwrap().activities = vec![("cpu".into(), cpu)];
        }
        let text = saturation(&points, &material.whole).unwrap().text;
        assert!(text.contains("mean 0.25 of"), "{text}");
        let mut interval = material.whole;
        let exact = largest_waits(&interval).unwrap() + &largest_account(&interval).unwrap();
        assert!(!exact.contains('~') && !exact.contains('±'), "{exact}");
        let mut sampled = interval.clone();
        for account in &mut sampled.ledger {
            account.timing.half_width_seconds = Some(0.1 * account.timing.seconds);
        }
        let text = largest_account(&sampled).unwrap();
        assert_eq!((text.matches('~').count(), text.matches('±').count()), (2, 2), "{text}");
        interval.busy_seconds *= 1e3;
        assert_eq!(largest_waits(&interval), None);
    }
}
