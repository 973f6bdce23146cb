// SPDX-License-Identifier: PostgreSQL
//! The server's load, one line for each aspect: the first figures of a report.

use segment::interval::Interval;
use view::document::Fact;
use view::measured::Measured;
use view::units::{count, duration, percent, two};

use super::material::Material;

/// Other processes are named if they use this share of the CPUs.
pub(crate) const OTHERS: f64 = 0.1;

/// Sessions, commands, commits, CPUs; those that did not occur are left out.
pub fn load(material: &Material) -> Vec<Fact> {
    let interval = &material.whole;
    let fact = |name, text: Option<String>| text.map(|text| Fact { name, text });
    [
        fact("Active sessions", Some(sessions(interval))),
        fact("Commands", commands(interval)),
        fact("Commits", commits(interval)),
        fact("Processors", processors(material)),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// The time in which something was measured.
fn length(interval: &Interval) -> f64 {
    interval.instrumented_seconds.max(1e-9)
}

/// "5.30 on 2 cores"; of samples "~5.30 ± 0.40 on 2 cores".
fn sessions(interval: &Interval) -> String {
    let half_width = interval.busy_half_width().map(|half| half / length(interval));
    let busy = Measured::new(interval.busy_seconds / length(interval), half_width).number();
    let busy = if half_width.is_some() { format!("~{busy}") } else { busy };
    match interval.cores {
        0 => busy,
        1 => format!("{busy} on 1 core"),
        n => format!("{busy} on {n} cores"),
    }
}

/// ", 386 us each, 99 % within 6.87 ms".
fn latency(mean: Option<f64>, p99: Option<f64>) -> String {
    let mean = mean.map_or(String::new(), |mean| format!(", {} each", duration(mean)));
    p99.map_or(mean.clone(), |p99| format!("{mean}, 99 % within {}", duration(p99)))
}

/// The rate of all commands, and rate and duration of the kind that takes the most time.
fn commands(interval: &Interval) -> Option<String> {
    let rate = interval.commands_handled as f64 / length(interval);
    let seconds = |at: usize| interval.commands[at].handle.seconds;
    let most = (0..interval.commands.len()).max_by(|&a, &b| seconds(a).total_cmp(&seconds(b)));
    let Some(most) = most else {
        return (interval.own_commands > 0).then(|| format!("0/s{}", own(interval)));
    };
    let row = &interval.commands[most];
    let of = match interval.commands.iter().filter(|row| row.handle.count > 0).count() {
        0 => return None,
        1 => String::new(),
        _ => {
            let rate = row.handle.count as f64 / length(interval);
            format!("; {} {}/s", row.kind, count(rate))
        }
    };
    let latency = latency(row.handle.mean_seconds, row.handle.p99_seconds);
    Some(format!("{}/s{of}{latency}{}", count(rate), own(interval)))
}

/// " (tally itself 9.91/s)", if tally queried the server.
fn own(interval: &Interval) -> String {
    match interval.own_commands {
        0 => String::new(),
        own => format!(" (tally itself {}/s)", count(own as f64 / length(interval))),
    }
}

/// Commits that wrote WAL.
fn commits(interval: &Interval) -> Option<String> {
    let all = &interval.commits;
    let parts = [&all.leader, &all.group_committed, &all.asynchronous];
    let seconds: f64 = parts.iter().map(|part| part.seconds).sum();
    let mean = seconds / parts.iter().map(|part| part.count).sum::<u64>().max(1) as f64;
    let longest = parts
        .iter()
        .filter_map(|part| part.p99_seconds)
        .fold(None, |a: Option<f64>, b| Some(a.map_or(b, |a| a.max(b))));
    let p99 = longest.filter(|_| parts.iter().filter(|part| part.count > 0).count() == 1);
    let rate = all.count as f64 / length(interval);
    (all.count > 0).then(|| format!("{}/s{}", count(rate), latency(Some(mean), p99)))
}

/// "sessions need 1.29 of 2 (64.5 %), other processes use at least 0.40".
fn processors(material: &Material) -> Option<String> {
    let interval = &material.whole;
    if interval.cores == 0 || interval.sampling.is_some() {
        return None;
    }
    let cpu = interval.activities_where(|account| &*account.activity == "cpu");
    let wanted = cpu.iter().map(|account| account.timing.seconds).sum::<f64>() / length(interval);
    let share = wanted / (interval.cores.max(1)) as f64;
    let sessions =
        format!("sessions need {} of {} ({} %)", two(wanted), interval.cores, percent(share));
    Some(sessions + &other_processes(material, wanted))
}

/// ", other processes use at least 0.40": what the machine uses beyond the need of the sessions, where that is much.
fn other_processes(material: &Material, wanted: f64) -> String {
    let cores = material.whole.cores as f64;
    let measured = material.points.iter().filter_map(|point| {
        let host = point.figures.as_ref()?.host?;
        Some((point.seconds, host.busy))
    });
    let (seconds, used) =
        measured.fold((0.0, 0.0), |sum, (seconds, busy)| (sum.0 + seconds, sum.1 + seconds * busy));
    let others = used / f64::max(seconds, 1e-9) - wanted.min(cores);
    match others >= OTHERS * cores {
        true => format!(", other processes use at least {}", two(others)),
        false => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use segment::delta::{Change, Total};
    use segment::directory::{Stat, StatKind};
    use segment::frame::{FrameStat, ServerInfo};
    use segment::interval::ClockInfo;
    use segment::{own, Frame, Level};

    use super::*;

    #[test]
    fn what_the_machine_uses_beyond_the_need_of_the_sessions_is_of_other_processes() {
        let mut material = crate::sample::material();
        let mut with = |busy: f64, wanted: f64| {
            for host in
                material.points.iter_mut().filter_map(|point| point.figures.as_mut()?.host.as_mut())
            {
                host.busy = busy;
            }
            other_processes(&material, wanted)
        };
        assert_eq!(with(1.99, 0.59), ", other processes use at least 1.40");
        // The need includes the run queue, so it may exceed the CPUs.
        assert_eq!([with(1.99, 1.9), with(0.5, 0.6), with(2.0, 5.0)], ["", "", ""]);
    }

    /// An idle server that is watched through a connection has no commands; `tally diff` of its recording counts
    /// none either.
    #[test]
    fn what_tally_asks_is_no_command_of_the_load() {
        let of = |process: &str, count| FrameStat {
            process: process.into(),
            stat: Arc::new(Stat::new(
                "command::Query::handle".into(),
                StatKind::Timer,
                "ticks".into(),
            )),
            total: Total {
                change: Change { count, total: count * 1000, ..Change::default() },
                ..Total::default()
            },
        };
        let commands = |statistics| {
            let clock = ClockInfo { kind: "monotonic", ticks_per_second: 1e9 };
            let empty = Frame::empty(clock, Level::Waits, ServerInfo::default());
            let length = 2_000_000_000;
            let frame = Frame { ticks: length, wall: length, statistics, ..empty };
            commands(&Interval::from_frame(&frame))
        };
        assert_eq!(commands(vec![]), None);
        let idle = commands(vec![of(own::PROCESS, 20)]).unwrap();
        assert!(idle.starts_with("0/s (tally itself 10"), "{idle}");
        let busy = commands(vec![of(own::PROCESS, 20), of(own::CLIENT, 40)]).unwrap();
        assert!(busy.starts_with("20") && busy.contains("each (tally itself 10"), "{busy}");
    }
}
