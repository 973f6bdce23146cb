// SPDX-License-Identifier: PostgreSQL
//! The panes ledger, waits, commands and sessions, each as a table of an interval.

use std::collections::BTreeMap;

use segment::interval::{AccountRow, Interval, SessionRow, Timing};

use crate::rows::{accepts, by, left, right, sorted, text, texts, Wish};
use crate::statements::{one_line, CurrentRow, Statements};
use crate::table::{Row, Table, Tone};
use crate::units::{count, duration, maybe_duration, percent, two};
use crate::Sort;

/// The share of busy time.
fn share(seconds: f64, interval: &Interval) -> f64 {
    if interval.busy_seconds > 0.0 {
        seconds / interval.busy_seconds
    } else {
        0.0
    }
}

/// A rate per second of the time in which the level was not off.
fn per_second(n: u64, interval: &Interval) -> String {
    count(n as f64 / interval.instrumented_seconds.max(1e-9))
}

/// Seconds per second of the time in which the level was not off; for the activity
/// `off`, per second of the whole interval.
fn concurrency(seconds: f64, off: bool, interval: &Interval) -> String {
    let length = if off { interval.interval_seconds } else { interval.instrumented_seconds };
    two(seconds / length.max(1e-9))
}

/// Microseconds per handled command.
fn per_command(seconds: f64, interval: &Interval) -> String {
    match interval.commands_handled {
        0 => "-".to_string(),
        handled => count(seconds * 1e6 / handled as f64),
    }
}

/// Where the time went, by activity and, opened, by phase.
pub fn ledger(interval: &Interval, wish: &Wish) -> Table {
    let columns = vec![
        left("ACTIVITY", 0),
        left("PHASE", 6),
        right("%TIME", 0),
        right("S/S", 1),
        right("US/CMD", 2),
        right("COUNT/S", 4),
        right("MEAN", 3),
        right("P50", 8),
        right("P99", 5),
        right("MAX", 7),
    ];
    // Idle and busy accounts of an activity are separate: idle time has no bar.
    let mut groups: BTreeMap<(bool, &str), Vec<&AccountRow>> = BTreeMap::new();
    for account in &interval.ledger {
        if (wish.idle || !account.idle) && accepts(wish, &[&account.phase, &account.activity]) {
            groups.entry((account.idle, &account.activity)).or_default().push(account);
        }
    }
    let summed: Vec<_> = groups
        .into_iter()
        .map(|((idle, activity), accounts)| {
            let row = interval.activities_where(|a| accounts.iter().any(|b| std::ptr::eq(*b, a)));
            (idle, activity, row.first().map_or_else(Timing::default, |r| r.timing), accounts)
        })
        .collect();
    let mut summed = sorted(summed, wish, |a, b| by(&wish.sort, (&a.2, a.1), (&b.2, b.1)));
    // Idle accounts come last.
    summed.sort_by_key(|(idle, ..)| *idle);

    let mut rows = Vec::new();
    let line = |key: String, names: [String; 2], timing: &Timing, tone: Tone, branches: bool| {
        let idle = tone == Tone::Faint;
        let share = share(timing.seconds, interval);
        let off = key.starts_with("uninstrumented");
        let concurrency = concurrency(timing.seconds, off, interval);
        let [activity, phase] = names;
        Row {
            key,
            cells: texts(vec![
                activity,
                phase,
                if idle { "idle".to_string() } else { percent(share) },
                concurrency,
                if idle { "-".to_string() } else { per_command(timing.seconds, interval) },
                per_second(timing.count, interval),
                maybe_duration(timing.mean_seconds),
                maybe_duration(timing.p50_seconds),
                maybe_duration(timing.p99_seconds),
                maybe_duration(timing.max_seconds),
            ]),
            bar: (!idle).then_some(share),
            tone,
            branches,
            ..Row::default()
        }
    };
    for (idle, activity, timing, accounts) in &summed {
        let many = accounts.len() > 1;
        let key = format!("{activity}{}", if *idle { " idle" } else { "" });
        let phase = if many {
            format!("{} phases", accounts.len())
        } else {
            accounts.first().map_or(String::new(), |a| a.phase.to_string())
        };
        // All accounts of a row have one activity and so one class.
        let class = accounts.first().filter(|_| !idle).map(|a| a.class);
        let tone = class.map_or(Tone::Faint, Tone::of);
        rows.push(line(key.clone(), [activity.to_string(), phase], timing, tone, many));
        if many && wish.open.shows(&key) {
            let phases = sorted(accounts.clone(), wish, |a, b| {
                by(&wish.sort, (&a.timing, &a.phase), (&b.timing, &b.phase))
            });
            for account in phases {
                let key = format!("{key} {}", account.phase);
                let names = [format!("  {}", account.phase), String::new()];
                rows.push(line(key, names, &account.timing, tone, false));
            }
        }
    }
    Table { bars_after: Some(2), ..Table::of(columns, rows) }
}

/// The waits, over all phases.
pub fn waits(interval: &Interval, wish: &Wish) -> Table {
    let columns = vec![
        left("WAIT", 0),
        right("%TIME", 2),
        right("COUNT", 0),
        right("COUNT/S", 5),
        right("TOTAL", 0),
        right("MEAN", 0),
        right("MIN", 6),
        right("P50", 3),
        right("P99", 1),
        right("MAX", 0),
    ];
    let waits = interval
        .waits
        .iter()
        .filter(|w| (wish.idle || !w.idle) && accepts(wish, &[&w.activity]))
        .collect::<Vec<_>>();
    let mut waits = sorted(waits, wish, |a, b| {
        by(&wish.sort, (&a.timing, &a.activity), (&b.timing, &b.activity))
    });
    waits.sort_by_key(|w| w.idle);
    let rows = waits
        .iter()
        .map(|wait| {
            let t = &wait.timing;
            let busy = interval
                .ledger
                .iter()
                .filter(|a| a.activity == wait.activity && !a.idle)
                .map(|a| a.timing.seconds)
                .sum();
            Row {
                key: wait.activity.to_string(),
                cells: texts(vec![
                    wait.activity.to_string(),
                    if wait.idle { "idle".to_string() } else { percent(share(busy, interval)) },
                    count(t.count as f64),
                    per_second(t.count, interval),
                    duration(t.seconds),
                    maybe_duration(t.mean_seconds),
                    maybe_duration(t.min_seconds),
                    maybe_duration(t.p50_seconds),
                    maybe_duration(t.p99_seconds),
                    maybe_duration(t.max_seconds),
                ]),
                tone: if wait.idle { Tone::Faint } else { Tone::of(wait.class) },
                ..Row::default()
            }
        })
        .collect();
    Table::of(columns, rows)
}

/// The commands: times to read and to handle them.
pub fn commands(interval: &Interval, wish: &Wish) -> Table {
    let columns = vec![
        left("COMMAND", 0),
        right("READ COUNT", 4),
        right("TOTAL", 5),
        right("AVERAGE", 3),
        right("MAX", 6),
        right("HANDLE COUNT", 0),
        right("COUNT/S", 8),
        right("TOTAL", 0),
        right("AVERAGE", 0),
        right("P50", 9),
        right("P99", 2),
        right("MAX", 0),
    ];
    let commands: Vec<_> = interval.commands.iter().filter(|c| accepts(wish, &[&c.kind])).collect();
    let commands =
        sorted(commands, wish, |a, b| by(&wish.sort, (&a.handle, &a.kind), (&b.handle, &b.kind)));
    let rows = commands
        .iter()
        .map(|command| {
            let (read, handle) = (&command.read, &command.handle);
            Row {
                key: command.kind.clone(),
                cells: texts(vec![
                    command.kind.clone(),
                    count(read.count as f64),
                    duration(read.seconds),
                    maybe_duration(read.mean_seconds),
                    maybe_duration(read.max_seconds),
                    count(handle.count as f64),
                    per_second(handle.count, interval),
                    duration(handle.seconds),
                    maybe_duration(handle.mean_seconds),
                    maybe_duration(handle.p50_seconds),
                    maybe_duration(handle.p99_seconds),
                    maybe_duration(handle.max_seconds),
                ]),
                tone: Tone::Plain,
                ..Row::default()
            }
        })
        .collect();
    Table::of(columns, rows)
}

/// The lightweight lock held longest by a session, and how many more it holds.
fn holds(session: &SessionRow) -> String {
    let longest = session.holding.iter().max_by(|a, b| a.seconds.total_cmp(&b.seconds));
    longest.map_or_else(String::new, |held| {
        let more = match session.holding_count.saturating_sub(1) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        format!("{} {} {}{more}", held.lock, held.mode, duration(held.seconds))
    })
}

/// The statement a session works for: how long, on what, query ID and text.
fn query(current: &CurrentRow) -> [String; 4] {
    [
        duration(current.seconds),
        current.shares(),
        current.queryid.map_or_else(String::new, |id| id.to_string()),
        current.query.as_deref().map_or_else(String::new, one_line),
    ]
}

/// The sessions and their current activities.
pub fn sessions(interval: &Interval, statements: Option<&Statements>, wish: &Wish) -> Table {
    let mut columns = vec![
        right("PID", 0),
        left("KIND", 6),
        left("USER", 5),
        left("DATABASE", 4),
        left("PHASE", 2),
        left("ACTIVITY", 0),
        right("SINCE", 0),
        right("%BUSY", 0),
        right("%CPU", 2),
        right("CMD/S", 3),
        left("APPLICATION", 7),
    ];
    let holding = interval.sessions.iter().any(|s| !s.holding.is_empty());
    if holding {
        columns.push(left("HOLDS", 8));
    }
    let current = |s: &SessionRow| statements.and_then(|it| it.current_of(s.slot, s.generation));
    let working = interval.sessions.iter().any(|s| current(s).is_some());
    if working {
        columns.extend([right("QUERY FOR", 1), left("ON, %", 3), right("QUERY ID", 10)]);
        columns.push(text("QUERY"));
    }
    let shown = |s: &SessionRow| {
        let query = current(s).and_then(|it| it.query.as_deref()).unwrap_or_default();
        let text = |o: &Option<String>| o.clone().unwrap_or_default();
        (wish.idle || s.state != "idle" && s.state != "background" || s.busy_seconds > 0.0)
            && accepts(
                wish,
                &[
                    &s.pid.to_string(),
                    &s.kind,
                    &text(&s.user),
                    &text(&s.database),
                    &s.phase,
                    &s.activity,
                    &s.application,
                    s.state,
                    query,
                ],
            )
    };
    let sessions: Vec<_> = interval.sessions.iter().filter(|s| shown(s)).collect();
    let sessions = sorted(sessions, wish, |a, b| {
        let order = match &wish.sort {
            Sort::Count => b.commands.cmp(&a.commands),
            Sort::Cpu => b.cpu_seconds.total_cmp(&a.cpu_seconds),
            Sort::Max => b.since_seconds.total_cmp(&a.since_seconds),
            Sort::Name => (&a.kind, &a.user, &a.database).cmp(&(&b.kind, &b.user, &b.database)),
            _ => b.busy_seconds.total_cmp(&a.busy_seconds),
        };
        order.then_with(|| a.pid.cmp(&b.pid))
    });
    let rows = sessions
        .iter()
        .map(|s| {
            let of_life = |seconds: f64| {
                percent(if s.lived_seconds > 0.0 { seconds / s.lived_seconds } else { 0.0 })
            };
            let dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_string());
            let dead = s.state == "dead";
            let mut row = Row {
                key: format!("{} {}", s.slot, s.generation),
                cells: texts(vec![
                    s.pid.to_string(),
                    s.kind.clone(),
                    dash(&s.user),
                    dash(&s.database),
                    if dead { "dead".to_string() } else { s.phase.to_string() },
                    s.activity.to_string(),
                    duration(s.since_seconds),
                    of_life(s.busy_seconds),
                    of_life(s.cpu_seconds),
                    per_second(s.commands, interval),
                    s.application.clone(),
                ]),
                tone: match s.state {
                    "active" => Tone::of(s.class),
                    _ => Tone::Faint,
                },
                ..Row::default()
            };
            if holding {
                row.cells.push(holds(s).into());
            }
            if working {
                row.cells.extend(texts(current(s).map_or_else(Default::default, query).into()));
            }
            row
        })
        .collect();
    Table::of(columns, rows)
}
