// SPDX-License-Identifier: PostgreSQL
//! What the server did, in a line each: the first figures of a report.

use segment::interval::Interval;
use view::document::Fact;
use view::units::{count, duration, percent, two};

use super::material::Material;

/// Sessions, commands, commits, processors; what there was none of is left out.
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

/// Time in which something was measured.
fn length(interval: &Interval) -> f64 {
    interval.instrumented_seconds.max(1e-9)
}

/// "5.30 on 2 cores".
fn sessions(interval: &Interval) -> String {
    let cores = if interval.cores == 1 { "core" } else { "cores" };
    format!("{} on {} {cores}", two(interval.busy_seconds / length(interval)), interval.cores)
}

/// ", 386 us each, 99 % within 6.87 ms".
fn latency(mean: Option<f64>, p99: Option<f64>) -> String {
    let mean = mean.map_or(String::new(), |it| format!(", {} each", duration(it)));
    p99.map_or(mean.clone(), |it| format!("{mean}, 99 % within {}", duration(it)))
}

/// All commands, and how long those of the kind take that most time goes to.
fn commands(interval: &Interval) -> Option<String> {
    let rate = interval.commands_handled as f64 / length(interval);
    let seconds = |at: usize| interval.commands[at].handle.seconds;
    let most = (0..interval.commands.len()).max_by(|&a, &b| seconds(a).total_cmp(&seconds(b)))?;
    let row = &interval.commands[most];
    let of = match interval.commands.iter().filter(|row| row.handle.count > 0).count() {
        0 => return None,
        1 => String::new(),
        _ => format!(" ({})", row.kind),
    };
    let latency = latency(row.handle.mean_seconds, row.handle.p99_seconds);
    Some(format!("{}/s{latency}{of}", count(rate)))
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

/// "1.29 of 2 busy with sessions (64.5 %)".
fn processors(material: &Material) -> Option<String> {
    let interval = &material.whole;
    let cpu = interval.activities_where(|it| &*it.activity == "cpu");
    let wanted = cpu.iter().map(|it| it.timing.seconds).sum::<f64>() / length(interval);
    let share = wanted / (interval.cores.max(1)) as f64;
    Some(format!("sessions want {} of {} ({} %)", two(wanted), interval.cores, percent(share)))
}
