// SPDX-License-Identifier: PostgreSQL
//! The lines above the tables: the server, its sessions, and whether the figures are complete.

use segment::interval::Interval;
use segment::{Level, Producer, ProducerLimit, Sampling};

use crate::measured::Measured;
use crate::units::{count, duration, percent, two, whole};

/// The severity of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// Background information.
    Plain,
    /// The figures below are incomplete.
    Warning,
}

/// A line above the tables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeadlineText {
    /// Its text.
    pub text: String,
    /// The same for a screen of 80 columns and few lines: without what matters least.
    pub short: String,
    /// Its severity.
    pub weight: Weight,
}

fn plain(text: String) -> HeadlineText {
    HeadlineText { short: text.clone(), text, weight: Weight::Plain }
}

fn warning(text: String) -> HeadlineText {
    HeadlineText { short: text.clone(), text, weight: Weight::Warning }
}

/// All lines, in order.
pub fn lines(interval: &Interval) -> Vec<HeadlineText> {
    let server = HeadlineText { short: server_in_short(interval), ..plain(server(interval)) };
    let mut lines = vec![server, plain(sessions(interval)), plain(load(interval))];
    // Without the ledger, there is nothing to compare with the kernel's figures.
    if interval.sampling.is_none() {
        lines.push(kernel(interval));
    }
    lines.extend(warnings(interval).into_iter().map(warning));
    lines
}

fn server(interval: &Interval) -> String {
    let server = server_named(interval, &interval.server.name, &level(interval));
    match interval.sampling {
        None => format!("{server}  clock {}", interval.clock.kind),
        Some(_) => server,
    }
}

/// Without the packager's version, as in "PostgreSQL 15.20 (Debian 15.20-0+deb12u1)", when the level reverts, and the clock.
fn server_in_short(interval: &Interval) -> String {
    let name = &interval.server.name;
    let name = name.split_once(" (").map_or(&**name, |(name, _)| name);
    server_named(interval, name, &interval.level.to_string())
}

fn server_named(interval: &Interval, name: &str, level: &str) -> String {
    let server = &interval.server;
    let port = server.port.map_or(String::new(), |port| format!(", port {port}"));
    let up = duration((interval.time - server.created).max(0.0).round());
    let text = format!("{name}  {}{port}  up {up}", server.host);
    match interval.sampling {
        None => format!("{text}  level {level}"),
        // Only pg_tally has levels.
        Some(_) => text,
    }
}

/// The level, and when it reverts.
fn level(interval: &Interval) -> String {
    match (interval.level_left_seconds, interval.level_then) {
        (Some(left), Some(then)) => {
            format!("{} (for {}, then {then})", interval.level, duration(left.round()))
        }
        _ => interval.level.to_string(),
    }
}

fn sessions(interval: &Interval) -> String {
    // For a recorded interval, only the number of processes is known.
    let recorded = |state: &str| -> usize {
        let those = interval.population.iter().filter(|p| p.state == state);
        those.map(|p| p.sessions as usize).sum()
    };
    let number = |state: &str| match interval.sessions.is_empty() {
        true => recorded(state),
        false => interval.sessions.iter().filter(|s| s.state == state).count(),
    };
    let mut parts = Vec::new();
    let mut all = 0;
    for state in ["active", "idle", "idle in transaction", "background", "dead"] {
        let n = number(state);
        all += n;
        if n > 0 || state == "active" {
            parts.push(format!("{n} {state}"));
        }
    }
    let mut text = format!("processes {all}: {}", parts.join(", "));
    if interval.ended.sessions > 0 {
        text.push_str(&format!("; {} ended", whole(interval.ended.sessions)));
    }
    text
}

/// That the figures are estimates, how good they are, and what sampling costs.
fn sampled(interval: &Interval, sampling: &Sampling) -> String {
    let rate = (sampling.per_second * 10.0).round() / 10.0;
    // A budget, or a server that answers slowly.
    let nominal = segment::sampling::distance_of(&interval.server.producer).map(|gap| 1.0 / gap);
    let fewer = nominal.filter(|nominal| sampling.per_second < 0.8 * nominal);
    format!(
        "sampled {}/s{}: figures with ~ are estimates, ± is half of a 95 % interval, cpu is time without a wait event; \
         install pg_tally for exact figures (a sample takes the server {}, together {} % of a CPU, and is {} late)",
        count(rate),
        fewer.map_or_else(String::new, |nominal| format!(" of {}", count(nominal.round()))),
        duration(sampling.read_seconds),
        percent(sampling.cost_share),
        duration(sampling.late_seconds),
    )
}

/// That a machine without free CPUs hides what its sessions do on them.
fn refused(sampling: &Sampling) -> Option<String> {
    (sampling.untold_seconds > 0.0).then(|| {
        let part = match sampling.untold_seconds < 0.99 * sampling.sampled_seconds {
            true => format!(
                "in {} of {}",
                duration(sampling.untold_seconds),
                duration(sampling.sampled_seconds)
            ),
            false => "here".to_string(),
        };
        format!(
            "CPU time is unknown {part}: samples are {} late, because the machine has no free CPU, so they see sessions just \
             when they do not run; short waits are overestimated",
            duration(sampling.late_seconds)
        )
    })
}

/// The load of the sessions: average active sessions, commands, and their mean time.
pub fn load(interval: &Interval) -> String {
    let length = interval.instrumented_seconds.max(1e-9);
    let cores = match interval.cores {
        0 => String::new(),
        1 => " on 1 core".to_string(),
        n => format!(" on {n} cores"),
    };
    if interval.sampling.is_some() {
        let half_width = interval.busy_half_width().map(|half| half / length);
        let active = Measured::new(interval.busy_seconds / length, half_width);
        return format!("active on average ~{}{cores}", active.number());
    }
    let handled = interval.commands_handled;
    let each = if handled == 0 {
        String::new()
    } else {
        let seconds: f64 = interval.commands.iter().map(|c| c.handle.seconds).sum();
        format!(", {} each", duration(seconds / handled as f64))
    };
    format!(
        "active on average {}{cores}  commands {}/s{each}",
        two(interval.busy_seconds / length),
        count(handled as f64 / length),
    )
}

fn kernel(interval: &Interval) -> HeadlineText {
    let kernel = &interval.kernel;
    let length = kernel.of_seconds.unwrap_or(interval.interval_seconds).max(1e-9);
    let cpu = interval.ledger.iter().filter(|a| &*a.activity == "cpu").map(|a| a.timing.seconds);
    // The sum of nothing is -0.
    let cpu = cpu.sum::<f64>() + 0.0;
    if !kernel.available {
        let reason = kernel.reason.as_deref().unwrap_or("not read");
        return plain(format!("cpu {} s/s  kernel: not available: {reason}", two(cpu / length)));
    }
    let longer = kernel.of_seconds.map(|seconds| format!(", {} together", duration(seconds)));
    let is_longer = longer.is_some();
    let account = format!("cpu {} s/s", two(kernel.cpu_account_seconds / length));
    let figures = format!(
        "on CPU {} + run queue {}",
        two(kernel.on_cpu_seconds / length),
        two(kernel.run_queue_seconds / length),
    );
    let (unexplained, of) = match &kernel.sampling_reason {
        Some(reason) => (
            format!("unexplained {} %", percent(kernel.unexplained_share)),
            format!(" of busy time (not sampled: {reason})"),
        ),
        None if kernel.samples == 0 => ("unexplained not sampled yet".to_string(), String::new()),
        None => (
            format!(
                "unexplained {}",
                Measured::new(kernel.unexplained_share, kernel.unexplained_error).share()
            ),
            format!(" of {} samples", whole(kernel.samples)),
        ),
    };
    let text = format!(
        "{account}  kernel{}: {figures}, {} inside waits  {unexplained}{of}",
        longer.unwrap_or_default(),
        two(kernel.runnable_inside_waits_seconds / length),
    );
    let short = match is_longer {
        true => format!("{account}  {unexplained}{of}"),
        false => format!("{account}  kernel: {figures}  {unexplained}"),
    };
    // Beyond the sampling error, the ledger promises to be exact within 1 %.
    let is_beyond = kernel.unexplained_share - kernel.unexplained_error > 0.01;
    let weight = if is_beyond { Weight::Warning } else { Weight::Plain };
    HeadlineText { text, short, weight }
}

/// Reasons why the figures are incomplete.
pub fn warnings(interval: &Interval) -> Vec<String> {
    let mut warnings = Vec::new();
    if let Some(sampling) = &interval.sampling {
        warnings.push(sampled(interval, sampling));
        warnings.extend(refused(sampling));
    }
    if interval.level == Level::Off {
        warnings
            .push("the level is off: nothing is measured (start with tally level waits)".into());
    }
    if interval.uninstrumented_seconds > 0.0 && interval.level != Level::Off {
        warnings.push(format!(
            "the level was off for {} of the sessions' time",
            duration(interval.uninstrumented_seconds)
        ));
    }
    let over = &interval.overflow;
    let producer = Producer::from_text(&interval.server.producer);
    for (n, text, limit) in [
        (over.slots, "sessions have no slot and are not shown", ProducerLimit::Slots),
        (
            over.statistics,
            "times a process ran out of statistics entries",
            ProducerLimit::Statistics,
        ),
        (over.directory, "names did not fit into the directory", ProducerLimit::Names),
        (over.groups, "ended sessions were merged into the overflow group", ProducerLimit::Groups),
    ] {
        if n > 0 {
            let setting =
                producer.setting(limit).map_or(String::new(), |name| format!(" ({name})"));
            warnings.push(format!("{} {text}{setting}", whole(n)));
        }
    }
    let setting = match producer {
        Producer::Sampler => "",
        _ => " (pg_tally.max_statements)",
    };
    for (n, text) in [
        (
            over.memory,
            "times the segment's file system had no space for a session's statistics".to_string(),
        ),
        (over.lost_merges, "ended sessions were damaged and are lost".to_string()),
        (
            over.statements_dropped,
            format!("counts of statements were dropped because the table was full{setting}"),
        ),
        (
            over.statements_lost,
            "statements were left incomplete by a process that died".to_string(),
        ),
        (over.texts_cut, format!("statement texts were truncated for lack of space{setting}")),
    ] {
        if n > 0 {
            warnings.push(format!("{} {text}", whole(n)));
        }
    }
    let torn = interval.torn_sessions;
    if torn > 0 {
        warnings.push(format!("{torn} sessions are paused in the middle of an update; their figures may be inconsistent"));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(interval: &Interval) -> Vec<String> {
        let sign = |line: &HeadlineText| if line.weight == Weight::Warning { "! " } else { "" };
        lines(interval).iter().map(|line| format!("{}{}", sign(line), line.text)).collect()
    }

    #[test]
    fn the_lines_have_the_figures_of_the_interval() {
        let mut interval = crate::sample::interval();
        let server = "PostgreSQL 15.20  /srv/postgresql/15/main, port 5432  up 26.1 h";
        assert_eq!(
            texts(&interval),
            [
                format!("{server}  level locks (for 42 s, then waits)  clock tsc"),
                "processes 5: 2 active, 1 idle, 1 idle in transaction, 1 background; 3 ended".into(),
                "active on average 0.88 on 2 cores  commands 3.60k/s, 208 us each".into(),
                "cpu 0.48 s/s  kernel: on CPU 0.45 + run queue 0.05, 0.02 inside waits  unexplained 0.2 % ± 0.4 of 1,234 samples"
                    .into(),
            ]
        );
        interval.cores = 1;
        interval.commands_handled = 0;
        interval.ended.sessions = 0;
        interval.sessions.retain(|row| row.state != "idle");
        interval.kernel.available = false;
        (interval.level_left_seconds, interval.level_then) = (Some(90.4), Some(Level::Off));
        assert_eq!(
            texts(&interval),
            [
                format!("{server}  level locks (for 90 s, then off)  clock tsc"),
                "processes 4: 2 active, 1 idle in transaction, 1 background".into(),
                "active on average 0.88 on 1 core  commands 0/s".into(),
                "cpu 0.48 s/s  kernel: not available: not read".into(),
            ]
        );
    }

    #[test]
    fn on_eighty_columns_the_level_and_unexplained_time_remain() {
        let mut interval = crate::sample::interval();
        interval.server.name = "PostgreSQL 15.20 (Debian 15.20-0+deb12u1)".into();
        let short = |interval: &Interval| -> Vec<String> {
            lines(interval).into_iter().map(|line| line.short).collect()
        };
        let lines = short(&interval);
        let server = "PostgreSQL 15.20  /srv/postgresql/15/main, port 5432  up 26.1 h";
        assert_eq!(lines[0], format!("{server}  level locks"));
        let kernel = "kernel: on CPU 0.45 + run queue 0.05";
        assert_eq!(lines[3], format!("cpu 0.48 s/s  {kernel}  unexplained 0.2 % ± 0.4"));
        interval.kernel.of_seconds = Some(10.0);
        let last = short(&interval).pop().unwrap();
        assert!(!last.contains("kernel") && last.ends_with(" % ± 0.4 of 1,234 samples"), "{last}");
    }

    #[test]
    fn what_is_incomplete_is_a_warning() {
        let mut interval = crate::sample::interval();
        (interval.kernel.unexplained_share, interval.kernel.unexplained_error) = (0.01, 0.0);
        assert_eq!(kernel(&interval).weight, Weight::Plain);
        interval.kernel.unexplained_share = 0.0101;
        assert_eq!(kernel(&interval).weight, Weight::Warning);
        interval.kernel.samples = 0;
        assert!(kernel(&interval).text.ends_with("unexplained not sampled yet"));
        interval.uninstrumented_seconds = 0.5;
        interval.torn_sessions = 2;
        interval.overflow =
            segment::Overflows { slots: 1, lost_merges: 2000, ..segment::Overflows::default() };
        assert_eq!(
            warnings(&interval),
            [
                "the level was off for 500 ms of the sessions' time",
                "1 sessions have no slot and are not shown (pg_tally.max_slots)",
                "2,000 ended sessions were damaged and are lost",
                "2 sessions are paused in the middle of an update; their figures may be inconsistent",
            ]
        );
        interval.server.producer = "pgtally-agent 0.3.0".into();
        assert!(warnings(&interval)[1].ends_with("not shown (the agent's option threads)"));
        interval.server.producer = segment::sampling::producer(10);
        interval.overflow.statements_dropped = 3;
        interval.overflow.statistics = 1;
        let said = warnings(&interval).join("\n");
        assert!(!said.contains("pg_tally.max"), "a sampled server has no such settings: {said}");
        interval.overflow.statements_dropped = 0;
        interval.overflow.statistics = 0;
        interval.level = Level::Off;
        assert_eq!(
            warnings(&interval)[0],
            "the level is off: nothing is measured (start with tally level waits)"
        );
        assert_eq!(warnings(&interval).len(), 4);
    }
}
