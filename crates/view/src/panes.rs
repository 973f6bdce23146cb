// SPDX-License-Identifier: PostgreSQL
//! The panes ledger, waits, commands and sessions, each as a table of an interval.

use crate::choose;
use std::collections::BTreeMap;

use segment::interval::{AccountRow, Interval, SessionRow, Timing};

use crate::measured::Measured;
use crate::rows::{accepts, by, left, right, sorted, text, RowOptions};
use crate::session_id::SessionId;
use crate::statements::{one_line, CurrentRow, StatementsTable};
use crate::table::field::{per, rate, Field, Picked};
use crate::table::{Cell, Column, Row, Table, Tone, Unit};
use crate::timing;
use crate::units::duration;
use crate::Sort;

/// Share of the busy time.
fn share(seconds: f64, interval: &Interval) -> f64 {
    if interval.busy_seconds > 0.0 {
        seconds / interval.busy_seconds
    } else {
        0.0
    }
}

/// The share of a time in the busy time: of samples, an estimate; "?" if they cannot tell it apart.
fn share_of(timing: &Timing, share: f64, interval: &Interval) -> Cell {
    match timing.half_width_seconds {
        _ if timing.refused => timing::refused(),
        Some(half) => {
            let half_width = half / interval.busy_seconds.max(1e-9);
            Cell::Estimate(Measured::new(share, half_width.min(1.0)))
        }
        None => share.into(),
    }
}

/// Seconds per second of the time in which the level was not off; for the activity `off`, per second of the whole
/// interval.
fn concurrency(seconds: f64, off: bool, interval: &Interval) -> Cell {
    per(seconds, if off { interval.interval_seconds } else { interval.instrumented_seconds })
}

/// Microseconds per handled command.
fn per_command(seconds: f64, interval: &Interval) -> Cell {
    let handled = interval.commands_handled;
    (handled > 0).then(|| seconds * 1e6 / handled as f64).into()
}

/// Where the time went, by activity and, when opened, by phase.
pub fn ledger(interval: &Interval, wish: &RowOptions) -> Table {
    let figures = Picked::of_pane(choose!(
        timing::FIELDS,
        "per_second:4, mean_seconds:3, p50_seconds:8, p99_seconds:5, max_seconds:7"
    ));
    // Idle and busy accounts of an activity are separate, because idle time has no bar.
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
        let sampled = timing.half_width_seconds.is_some() || timing.refused;
        let off = key.starts_with("uninstrumented");
        let mut cells = names.map(Cell::from).to_vec();
        cells.extend([
            if idle { "idle".into() } else { share_of(timing, share, interval) },
            match sampled {
                true => timing::sessions(timing, interval.instrumented_seconds),
                false => concurrency(timing.seconds, off, interval),
            },
            if idle { Cell::Empty } else { per_command(timing.seconds, interval) },
        ]);
        cells.extend(figures.cells(timing, interval.instrumented_seconds));
        let bar = (!idle && !timing.refused).then_some(share);
        Row { bar, tone, branches, ..Row::new(key, cells) }
    };
    for (idle, activity, timing, accounts) in &summed {
        let many = accounts.len() > 1;
        let key = format!("{activity}{}", if *idle { " idle" } else { "" });
        let phase = if many {
            format!("{} phases", accounts.len())
        } else {
            accounts.first().map_or(String::new(), |a| a.phase.to_string())
        };
        // All accounts of a row have the same activity, and therefore the same class.
        let class = accounts.first().filter(|_| !idle).map(|a| a.class);
        let tone = class.map_or(Tone::Faint, Tone::from_class);
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
    let columns = figures.columns_after([
        left("ACTIVITY", 0),
        left("PHASE", 6),
        Column::new("share", "%TIME", Unit::Share),
        Column::new("sessions", "S/S", Unit::Sessions).expendable(1),
        right("US/CMD", 2),
    ]);
    Table { bars_after: Some(2), ..Table::from_rows(columns, rows) }
}

/// The waits, over all phases.
pub fn waits(interval: &Interval, wish: &RowOptions) -> Table {
    let figures = Picked::of_pane(choose!(
        timing::FIELDS,
        "count, per_second:5, seconds, mean_seconds, min_seconds:6, p50_seconds:3, \
         p99_seconds:1, max_seconds"
    ));
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
            let busy = interval
                .ledger
                .iter()
                .filter(|a| a.activity == wait.activity && !a.idle)
                .map(|a| a.timing.seconds)
                .sum();
            let share = share(busy, interval);
            let share = match wait.idle {
                true => "idle".into(),
                false => share_of(&wait.timing, share, interval),
            };
            let names = [(&wait.activity).into(), share];
            let cells = figures.cells_after(names, &wait.timing, interval.instrumented_seconds);
            let tone = if wait.idle { Tone::Faint } else { Tone::from_class(wait.class) };
            Row { tone, ..Row::new(&*wait.activity, cells) }
        })
        .collect();
    let names = [left("WAIT", 0), Column::new("share", "%TIME", Unit::Share).expendable(2)];
    Table::from_rows(figures.columns_after(names), rows)
}

/// The commands: time to read and to handle them.
pub fn commands(interval: &Interval, wish: &RowOptions) -> Table {
    let read = Picked::of_pane(choose!(timing::FIELDS, "count=READ COUNT:4, seconds=READ TOTAL:5, mean_seconds=READ AVERAGE:3, max_seconds=READ MAX:6"));
    let handle = Picked::of_pane(choose!(
        timing::FIELDS,
        "count=HANDLE COUNT, per_second:8, seconds, mean_seconds=AVERAGE, p50_seconds:9, \
         p99_seconds:2, max_seconds"
    ));
    let commands: Vec<_> = interval.commands.iter().filter(|c| accepts(wish, &[&c.kind])).collect();
    let commands =
        sorted(commands, wish, |a, b| by(&wish.sort, (&a.handle, &a.kind), (&b.handle, &b.kind)));
    let rows = commands
        .iter()
        .map(|command| {
            let seconds = interval.instrumented_seconds;
            let mut cells = vec![command.kind.as_str().into()];
            cells.extend(read.cells(&command.read, seconds));
            cells.extend(handle.cells(&command.handle, seconds));
            Row::new(&*command.kind, cells)
        })
        .collect();
    let mut columns = vec![left("COMMAND", 0)];
    columns.extend(read.columns);
    columns.extend(handle.columns);
    Table::from_rows(columns, rows)
}

/// The lightweight lock that a session has held longest, and how many more it holds.
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

/// The statement that a session works for: how long, on what, query ID and text.
fn query(current: &CurrentRow) -> [Cell; 4] {
    [
        duration(current.seconds).into(),
        current.shares().into(),
        current.queryid.map_or_else(String::new, |id| id.to_string()).into(),
        current.query.as_deref().map_or_else(String::new, one_line).into(),
    ]
}

type F = Field<SessionRow>;

/// The columns of sessions.
const SESSIONS: &[F] = &[
    F::new("pid", "PID", Unit::Number, |row, _| row.pid.to_string().into()),
    F::new("kind", "KIND", Unit::Text, |row, _| row.kind.as_str().into()).expendable(6),
    F::new("user", "USER", Unit::Text, |row, _| row.user.as_deref().into()).expendable(5),
    F::new("database", "DATABASE", Unit::Text, |row, _| row.database.as_deref().into())
        .expendable(4),
    F::new("phase", "PHASE", Unit::Text, |row, _| {
        if row.state == "dead" { "dead" } else { &*row.phase }.into()
    }),
    F::new("activity", "ACTIVITY", Unit::Text, |row, _| (&row.activity).into()),
    F::new("since", "SINCE", Unit::Seconds, |row, _| row.since_seconds.into()),
    F::new("transaction", "XACT", Unit::Seconds, |row, _| row.transaction_seconds.into())
        .expendable(4),
    F::new("busy_share", "%BUSY", Unit::Share, |row, _| of_life(row, row.busy_seconds)),
    F::new("cpu_share", "%CPU", Unit::Share, |row, _| {
        row.cpu_seconds.map_or_else(timing::refused, |seconds| of_life(row, seconds))
    })
    .expendable(2),
    F::new("per_second", "CMD/S", Unit::PerSecond, |row, s| rate(row.commands, s)).expendable(3),
    F::new("application", "APPLICATION", Unit::Text, |row, _| row.application.as_str().into())
        .expendable(7),
    F::new("client", "CLIENT", Unit::Text, |row, _| row.client_address.as_deref().into())
        .expendable(8),
];

/// Share of a session's life within the interval.
fn of_life(session: &SessionRow, seconds: f64) -> Cell {
    if session.lived_seconds > 0.0 { seconds / session.lived_seconds } else { 0.0 }.into()
}

/// Marks the shares of a session's life as estimates, and removes what samples do not show.
fn mark_estimates(
    cells: &mut [Cell],
    columns: &[Column],
    session: &SessionRow,
    interval: &Interval,
) {
    let lived = session.lived_seconds.max(1e-9);
    for (cell, column) in cells.iter_mut().zip(columns) {
        *cell = match (column.key, &*cell) {
            ("busy_share" | "cpu_share", Cell::Number(share)) => {
                let half = interval.session_half_width(session, share * lived);
                Cell::Estimate(Measured::new(*share, half.map(|half| half / lived)))
            }
            ("per_second", _) => Cell::Empty,
            _ => continue,
        };
    }
}

/// The sessions and their current activities.
pub fn sessions(
    interval: &Interval,
    statements: Option<&StatementsTable>,
    wish: &RowOptions,
) -> Table {
    let figures = Picked::all(SESSIONS);
    let mut columns = figures.columns.clone();
    let holding = interval.sessions.iter().any(|s| !s.holding.is_empty());
    if holding {
        columns.push(left("HOLDS", 8));
    }
    let current = statements.map(|statements| statements.current_by_pid()).unwrap_or_default();
    let current = |s: &SessionRow| current.get(&s.pid).copied().filter(|row| row.is_of(s));
    let working = interval.sessions.iter().any(|s| current(s).is_some());
    if working {
        columns.extend([right("QUERY FOR", 1), left("ON, %", 3), right("QUERY ID", 10)]);
        columns.push(text("QUERY"));
    }
    let shown = |s: &SessionRow| {
        let query = current(s).and_then(|current| current.query.as_deref()).unwrap_or_default();
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
            Sort::Cpu => {
                let cpu = |row: &SessionRow| row.cpu_seconds.unwrap_or(0.0);
                cpu(b).total_cmp(&cpu(a))
            }
            Sort::Max => b.since_seconds.total_cmp(&a.since_seconds),
            Sort::Name => (&a.kind, &a.user, &a.database).cmp(&(&b.kind, &b.user, &b.database)),
            _ => b.busy_seconds.total_cmp(&a.busy_seconds),
        };
        order.then_with(|| a.pid.cmp(&b.pid))
    });
    let rows = sessions
        .iter()
        .map(|s| {
            let mut cells = figures.cells(s, interval.instrumented_seconds);
            if interval.sampling.is_some() {
                mark_estimates(&mut cells, &figures.columns, s, interval);
            }
            let tone = if s.state == "active" { Tone::from_class(s.class) } else { Tone::Faint };
            let mut row = Row { tone, ..Row::new(SessionId::from_row(s).to_string(), cells) };
            if holding {
                row.cells.push(holds(s).into());
            }
            if working {
                row.cells.extend(current(s).map_or([""; 4].map(Cell::from), query));
            }
            row
        })
        .collect();
    Table::from_rows(columns, rows)
}
