// SPDX-License-Identifier: PostgreSQL
//! The running and the last checkpoint in a few lines, and which processes write at the same time.

use std::collections::BTreeMap;

use segment::clients::ClientActivity;
use segment::interval::Interval;

use super::files::rate;
use super::tablespaces::Tablespaces;
use super::Io;
use crate::units::{clause, count, duration, percent, whole};
use segment::event_payload::Checkpoint;

/// The name of a checkpoint's reason.
fn why(reason: &str) -> &str {
    match reason {
        "time" => "scheduled",
        "wal" => "WAL volume",
        "request" => "on request",
        "shutdown" => "for a shutdown",
        other => other,
    }
}

/// The running checkpoint and the last one.
pub fn lines(io: &Io, interval: &Interval) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(running) = &io.checkpoint_running {
        let length =
            running.seconds.map_or(String::new(), |seconds| format!(" for {}", duration(seconds)));
        lines.push(format!("running{length}, {}", why(&running.reason)));
        lines.extend(clients(&[("before", running.before), ("so far", running.during)]));
    }
    if let Some(last) = &io.checkpoint {
        lines.push(ended(last, interval.time));
        lines.extend(written(last, &io.tablespaces));
        let parts = [("before", last.before), ("during", last.during), ("after", last.after)];
        lines.extend(clients(&parts));
    }
    if lines.is_empty() {
        lines.push("none among the stored events".to_string());
    }
    lines.extend(writers(interval));
    lines
}

fn ended(last: &Checkpoint, now: f64) -> String {
    let ago = last
        .ended
        .map_or(String::new(), |at| format!(" {} ago", duration((now - at).max(0.0).round())));
    let mut text = format!(
        "the last one ended{ago}, {}, took {}: write {} ({} buffers), sync {}",
        why(&last.reason),
        duration(last.seconds),
        duration(last.write_seconds),
        whole(last.buffers),
        duration(last.sync_seconds),
    );
    let mut files = format!("{} files", whole(last.files_synced));
    if last.longest_sync_seconds > 0.0 {
        let file = last.longest_sync_file.as_deref().unwrap_or("");
        files.push_str(&format!(", longest {} {file}", duration(last.longest_sync_seconds)));
    }
    text.push_str(&format!(" ({})", files.trim_end()));
    text.push_str(&format!(
        ", SLRUs {}; WAL files: {} added, {} removed, {} recycled",
        duration(last.slru_seconds),
        last.wal_added,
        last.wal_removed,
        last.wal_recycled
    ));
    text
}

/// "buffers: pg_default 1,200, fast 30, SLRUs 4; written in 89.4 % of checkpoint_timeout, target 90.0 %"
fn written(last: &Checkpoint, names: &Tablespaces) -> Option<String> {
    const MOST: usize = 6;
    let all = &last.buffers_by_tablespace;
    let mut places: Vec<String> = all
        .iter()
        .take(MOST)
        .map(|written| {
            let name = match written.tablespace.as_str() {
                "slru" => "SLRUs",
                number => names.name(number),
            };
            format!("{name} {}", whole(written.buffers))
        })
        .collect();
    if all.len() > MOST {
        places.push(format!("+{}", all.len() - MOST));
    }
    let mut text = match places.is_empty() {
        true => String::new(),
        false => format!("buffers: {}", places.join(", ")),
    };
    if let (Some(spread), Some(target)) = (last.spread, last.target) {
        if !text.is_empty() {
            text.push_str("; ");
        }
        let (spread, target) = (percent(spread), percent(target));
        text.push_str(&format!("written in {spread} % of checkpoint_timeout, target {target} %"));
    }
    (!text.is_empty()).then(|| format!("  {text}"))
}

/// "client commands: before 1k/s of 500 us each, during 500/s of 1 ms each"
fn clients(parts: &[(&str, Option<ClientActivity>)]) -> Option<String> {
    let parts: Vec<String> = parts
        .iter()
        .filter_map(|(when, activity)| {
            let activity = activity.as_ref()?;
            let per_second = count(activity.commands_per_second?);
            let mean = clause(" of ", activity.mean_handle_seconds, " each");
            Some(format!("{when} {per_second}/s{mean}"))
        })
        .collect();
    (!parts.is_empty()).then(|| format!("  client commands: {}", parts.join(", ")))
}

/// Which kinds of process write blocks of relations in this interval.
fn writers(interval: &Interval) -> Option<String> {
    let mut by: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
    let relations = |row: &&segment::files::ProcessFileRow| {
        matches!(&*row.file, "main" | "fsm" | "vm" | "init")
    };
    for row in interval.file_processes.iter().filter(relations) {
        let (written, extended) = by.entry(&row.process).or_default();
        match &*row.operation {
            "write" => *written += row.count,
            "extend" => *extended += row.count,
            _ => {}
        }
    }
    let mut by: Vec<_> = by.into_iter().filter(|(_, (w, e))| w + e > 0).collect();
    by.sort_by_key(|(_, (written, extended))| std::cmp::Reverse(written + extended));
    let parts: Vec<String> = by
        .into_iter()
        .map(|(process, (written, extended))| {
            let per_second = |n: u64| count(rate(n as f64, interval));
            match (written, extended) {
                (n, 0) => format!("{process} {}", per_second(n)),
                (0, n) => format!("{process} {} (extensions)", per_second(n)),
                (n, m) => format!("{process} {} and {} extensions", per_second(n), per_second(m)),
            }
        })
        .collect();
    (!parts.is_empty()).then(|| format!("blocks written per second: {}", parts.join(", ")))
}

#[cfg(test)]
mod tests {
    use segment::{EventKind, Payload};

    use super::*;
    use crate::sample;

    const ENDED: &str = "checkpoint ends: reason=time total=26.951 slru=0.002 write=26.810 \
        sync=0.120 buffers=1234 files=32 longest=0.080 added=1 removed=2 recycled=3 \
        file=base/5/a b=c";
    const WROTE: &str = "checkpoint wrote: target=0.900 spread=0.894 interval=30.001 slru=4 \
        pg_default=1200 16385=30";
    const CLIENTS: &str = "checkpoint clients: before=3.000 before_commands=3000 \
        before_handle=1.500000 during=27.000 during_commands=13500 during_handle=13.500000";

    #[test]
    fn the_last_checkpoint_is_printed_in_a_few_lines() {
        let [completed, wrote, clients] = [ENDED, WROTE, CLIENTS]
            .map(|text| Payload::of_text(EventKind::Checkpoint, text).unwrap());
        let mut last = Checkpoint::from_payload(&completed, Some(1000.0)).unwrap();
        assert_eq!(
            ended(&last, 1012.0),
            "the last one ended 12 s ago, scheduled, took 27.0 s: write 26.8 s (1,234 \
             buffers), sync 120 ms (32 files, longest 80 ms base/5/a b=c), SLRUs 2 ms; WAL files: \
             1 added, 2 removed, 3 recycled"
        );
        last.add(&wrote);
        last.add(&clients);
        let io = Io { checkpoint: Some(last), ..Io::default() };
        assert_eq!(
            lines(&io, &sample::interval())[1..],
            [
                "  buffers: SLRUs 4, pg_default 1,200, 16385 30; written in 89.4 % of \
                 checkpoint_timeout, target 90.0 %",
                "  client commands: before 1k/s of 500 us each, during 500/s of 1 ms each",
                "blocks written per second: checkpointer 900, client backend 64 (extensions)",
            ]
        );
    }
}
