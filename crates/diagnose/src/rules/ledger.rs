// SPDX-License-Identifier: PostgreSQL
//! What the kernel adds to the ledger: processors, and time that cannot be explained.

use super::{matters, much};
use crate::case::Case;
use crate::diagnosis::{Confidence, Diagnosis, Rule};
use view::statements::ActivityRow;
use view::units::{percent, two};

/// Sessions wait for a processor.
pub fn processors(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Part of the load.
    const MUCH: f64 = 0.3;

    let kernel = case.kernel();
    let length = kernel.of_seconds.unwrap_or(case.whole.interval_seconds).max(1e-9);
    // Of the kernel's figures, which may cover another time than the ledger.
    let queued = kernel.run_queue_seconds / length * case.length();
    let wanted = kernel.cpu_account_seconds / length;
    let cores = case.whole.cores as f64;
    if !kernel.available || wanted <= cores || !matters(case, queued, MUCH) {
        return Vec::new();
    }
    let cpu = case.seconds_of(|a| &*a.activity == "cpu");
    let of_statement = |a: &ActivityRow| &*a.activity == "cpu";
    vec![Diagnosis {
        rule: Rule::Processors,
        text: format!(
            "The processors are full: on average {} sessions wanted one of {}.",
            two(wanted),
            case.whole.cores
        ),
        seconds: queued,
        share: Some(case.share(queued)),
        evidence: [
            Some(format!(
                "{} % of the sessions' time they were ready to run and waited for a processor.",
                percent(case.share(queued))
            )),
            case.whose(cpu, of_statement).map(|text| format!("Of the processor time: {text}")),
        ]
        .into_iter()
        .flatten()
        .collect(),
        advice: "Make the statements that take most processor time cheaper, or let fewer sessions work at \
                 a time (a connection pool); more processors help as long as no lock is contended."
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
    if !matters(case, seconds, MUCH) {
        return Vec::new();
    }
    vec![Diagnosis {
        rule: Rule::LogPipe,
        text: format!(
            "Sessions wait to write messages to the server's log, {} % of their time: whoever reads the pipe does not keep up.",
            percent(case.share(seconds))
        ),
        seconds,
        share: Some(case.share(seconds)),
        evidence: case
            .whose(seconds, |a: &ActivityRow| &*a.activity == "Call:log_pipe")
            .into_iter()
            .collect(),
        advice: "Look at the log collector (process \"logger\") and the device and free space of log_directory, or at \
                 the program that reads the server's standard error; log less (log_min_duration_statement, log_statement)."
            .into(),
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
    let share = kernel.unexplained_share - kernel.unexplained_error;
    if kernel.samples == 0 || share <= MUCH || !much(case, case.load()) {
        return Vec::new();
    }
    let calls: Vec<String> = kernel
        .blocked_in
        .iter()
        .take(3)
        .map(|it| match it.syscall {
            Some(number) => format!("system call {number} ({} samples)", it.samples),
            None => format!("no system call ({} samples)", it.samples),
        })
        .collect();
    vec![Diagnosis {
        rule: Rule::Unexplained,
        text: format!(
            "{} % ± {} of the busy time is not explained: sessions slept where no probe saw them.",
            percent(kernel.unexplained_share),
            percent(kernel.unexplained_error)
        ),
        seconds: kernel.unexplained_seconds,
        share: Some(case.share(kernel.unexplained_seconds)),
        evidence: match calls.is_empty() {
            true => Vec::new(),
            false => vec![format!("They slept in {}.", calls.join(", "))],
        },
        advice: "Page faults on a slow device and libraries that sleep by themselves look so; tally status \
                 says which probes are missing."
            .into(),
        confidence: Confidence::Certain,
        section: "processors",
        consequence_of: None,
    }]
}
