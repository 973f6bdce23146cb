// SPDX-License-Identifier: PostgreSQL
//! Diagnoses from the kernel's figures: processors, and time that nothing explains.

use super::names::go_on;
use super::{bounds, harms, much};
use crate::case::Case;
use crate::diagnosis::{Confidence, Diagnosis, Kind, Rule};
use view::measured::Measured;
use view::statements::ActivityRow;
use view::units::{percent, two};

/// More sessions are ready to run than there are processors.
pub fn processors(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Share of the load.
    const MUCH: f64 = 0.3;

    let kernel = case.kernel();
    let length = kernel.of_seconds.unwrap_or(case.whole.interval_seconds).max(1e-9);
    // The kernel's figures may cover another time than the ledger.
    let queued = kernel.run_queue_seconds / length * case.length();
    let wanted = kernel.cpu_account_seconds / length;
    let cores = case.whole.cores as f64;
    if !kernel.available || wanted <= cores || !bounds(case, queued, MUCH) {
        return Vec::new();
    }
    let cpu = case.seconds_of(|a| &*a.activity == "cpu");
    let of_statement = |a: &ActivityRow| &*a.activity == "cpu";
    let processors = match case.whole.cores {
        1 => "the only processor".to_owned(),
        n => format!("{n} processors"),
    };
    vec![Diagnosis {
        rule: Rule::Processors,
        kind: Kind::Limit,
        text: format!(
            "on average, {} sessions compete for {processors}, and wait for one {} % of the sessions' time.",
            two(wanted),
            percent(case.share(queued))
        ),
        seconds: queued,
        share: Some(case.share(queued)),
        evidence: case
            .whose(cpu, of_statement)
            .map(|text| format!("Of the processor time: {text}"))
            .into_iter()
            .collect(),
        advice: "Make the statements that take most processor time cheaper (tally statements --sort cpu), or let fewer \
                 sessions work at a time (a connection pool)."
            .into(),
        confidence: Confidence::Certain,
        section: "processors",
        consequence_of: None,
    }]
}

/// Sessions wait until the server's log takes their messages: each is written to a pipe, which is full.
pub fn log_pipe(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Part of the load.
    const MUCH: f64 = 0.1;

    let seconds = case.seconds_of(|a| &*a.activity == "Call:log_pipe");
    if !harms(case, seconds, MUCH) {
        return Vec::new();
    }
    let logger = case.stopped_logger();
    let why = match logger {
        Some(found) => {
            format!("the log collector (process {}) is stopped (state T in ps)", found.count)
        }
        None => "its reader does not keep up".to_owned(),
    };
    vec![Diagnosis {
        rule: Rule::LogPipe,
        kind: Kind::Problem,
        text: format!(
            "Sessions wait {} % of their time to write messages to the server's log: {why}.",
            percent(case.share(seconds))
        ),
        seconds,
        share: Some(case.share(seconds)),
        evidence: case
            .whose(seconds, |a: &ActivityRow| &*a.activity == "Call:log_pipe")
            .into_iter()
            .collect(),
        advice: match logger {
            Some(found) => go_on(found.count),
            None => "Check the log collector (process \"logger\"; stopped processes have state T in ps) and the device and free \
                     space of log_directory, or the program that reads the server's standard error. Log less: \
                     log_min_duration_statement, log_statement."
                .into(),
        },
        confidence: Confidence::Certain,
        section: "ledger",
        consequence_of: None,
    }]
}

/// The kernel saw sessions waiting in places that the ledger does not know.
pub fn unexplained(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Part of the busy time, beyond its error.
    const MUCH: f64 = 0.01;

    let kernel = case.kernel();
    // A process that a signal has stopped is a diagnosis of its own.
    let stopped = case.live_sessions().filter(|row| case.is_stopped(row.pid));
    let stopped: f64 = stopped.map(|row| row.busy_seconds).sum();
    let seconds = (kernel.unexplained_seconds - stopped).max(0.0);
    let part = kernel.unexplained_share * seconds / kernel.unexplained_seconds.max(1e-9);
    let share = part - kernel.unexplained_error;
    if kernel.samples == 0 || share <= MUCH || !much(case, case.load()) {
        return Vec::new();
    }
    let calls: Vec<String> = kernel
        .blocked_in
        .iter()
        .take(3)
        .map(|blocked| match blocked.syscall {
            Some(number) => format!("system call {number} ({} samples)", blocked.samples),
            None => format!("no system call ({} samples)", blocked.samples),
        })
        .collect();
    vec![Diagnosis {
        rule: Rule::Unexplained,
        kind: Kind::Problem,
        text: format!(
            "{} of the busy time is unexplained: sessions slept where no probe saw them.",
            Measured::new(part, kernel.unexplained_error).share()
        ),
        seconds,
        share: Some(case.share(seconds)),
        evidence: match calls.is_empty() {
            true => Vec::new(),
            false => vec![format!("They slept in {}.", calls.join(", "))],
        },
        advice: "Page faults on a slow device cause this, and libraries that sleep. tally status lists missing probes."
            .into(),
        confidence: Confidence::Certain,
        section: "processors",
        consequence_of: None,
    }]
}
