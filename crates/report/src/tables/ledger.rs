// SPDX-License-Identifier: PostgreSQL
//! Where the time went: accounts, waits, commands.

use segment::interval::{AccountRow, CommandRow, Interval, Timing};

use super::{each, share, timing, SECONDS};
use view::document::{Cell, Column, Table, Tone, Unit};
use view::measured::Measured;
use view::table::field::{per, rate, Field, Picked};

const ACTIVITY: Column = Column::new("activity", "Activity", Unit::Text);
const PHASE: Column = Column::new("phase", "Phase", Unit::Text);
const SHARE: Column = Column::new("share", "Of busy time", Unit::Share)
    .help("share of the time in which sessions were not idle");
const SESSIONS: Column =
    Column::new("sessions", "Sessions", Unit::Sessions).help("average number: seconds per second");

/// The share of a time in the busy time; of samples, an estimate.
fn share_of(timing: &Timing, interval: &Interval) -> Cell {
    let Some(part) = share(timing.seconds, interval).filter(|_| !timing.refused) else {
        return Cell::Empty;
    };
    timing.half_width_seconds.map_or(part.into(), |half| {
        Cell::Estimate(Measured::new(part, (half / interval.busy_seconds).min(1.0)))
    })
}

/// The accounts that are not idle.
pub fn ledger(interval: &Interval) -> Table {
    let figures = timing();
    let columns = figures.columns_after([
        ACTIVITY,
        PHASE,
        SECONDS,
        SHARE,
        SESSIONS,
        Column::new("per_command_seconds", "Per command", Unit::Seconds)
            .help("time per client command, that is, per handled protocol message"),
        Column::new("per_commit_seconds", "Per commit", Unit::Seconds)
            .help("time per commit that wrote WAL")
            .expendable(6),
    ]);
    let mut table =
        Table::new("ledger", "Time by activity and phase", columns).sorted("seconds").noted(Some(
            "Rows add up to the busy time. A command is a handled protocol message; commits are \
             those that wrote WAL. cpu has no histogram."
                .to_string(),
        ));
    for account in interval.ledger.iter().filter(|account| !account.idle) {
        let (timing, length) = (&account.timing, interval.instrumented_seconds);
        // Samples could not tell it apart.
        let seconds = (!timing.refused).then_some(timing.seconds);
        let names = [
            (&account.activity).into(),
            (&account.phase).into(),
            view::timing::seconds(timing),
            share_of(timing, interval),
            view::timing::sessions(timing, length),
            seconds.and_then(|seconds| each(seconds, interval.commands_handled)).into(),
            seconds.and_then(|seconds| each(seconds, interval.commits.count)).into(),
        ];
        let cells = figures.cells_after(names, &account.timing, interval.instrumented_seconds);
        table.push(Tone::Class(account.class), cells);
    }
    table
}

/// Average number of sessions. Time that passed while the level was off is divided by the whole time.
fn sessions(account: &AccountRow, interval: &Interval) -> Cell {
    let off = &*account.phase == "off";
    let length = if off { interval.interval_seconds } else { interval.instrumented_seconds };
    match account.timing.half_width_seconds {
        Some(_) => view::timing::sessions(&account.timing, length),
        None => per(account.timing.seconds, length),
    }
}

/// The idle accounts.
pub fn idle(interval: &Interval) -> Table {
    let count = Column::new("count", "Count", Unit::Count).expendable(4);
    let columns = vec![ACTIVITY, PHASE, SECONDS, SESSIONS, count];
    let mut table = Table::new("idle", "Idle", columns).sorted("seconds").noted(Some(
        "Together with the table above, this is all time of all sessions.".to_string(),
    ));
    for account in interval.ledger.iter().filter(|account| account.idle) {
        let row = vec![
            (&account.activity).into(),
            (&account.phase).into(),
            view::timing::seconds(&account.timing),
            sessions(account, interval),
            account.timing.known_count().into(),
        ];
        table.push(Tone::Plain, row);
    }
    table
}

/// The waits that are not idle, over all phases.
pub fn waits(interval: &Interval) -> Table {
    let figures = timing();
    let wait = Column::new("activity", "Wait", Unit::Text);
    let columns = figures.columns_after([wait, SECONDS, SHARE, SESSIONS]);
    let mut table = Table::new("waits", "Waits, over all phases", columns).sorted("seconds");
    let is_wait = |account: &AccountRow| {
        !account.idle && !account.timing.refused && &*account.activity != "cpu"
    };
    for wait in interval.activities_where(is_wait) {
        let names = [
            (&wait.activity).into(),
            view::timing::seconds(&wait.timing),
            share_of(&wait.timing, interval),
            view::timing::sessions(&wait.timing, interval.instrumented_seconds),
        ];
        let cells = figures.cells_after(names, &wait.timing, interval.instrumented_seconds);
        table.push(Tone::Class(wait.class), cells);
    }
    table
}

/// Time to read and handle client commands.
pub fn commands(interval: &Interval) -> Table {
    type F = Field<CommandRow>;
    const FIELDS: &[F] = &[
        F::new("kind", "Command", Unit::Text, |row, _| row.kind.as_str().into()),
        F::new("handle_count", "Handled", Unit::Count, |row, _| row.handle.count.into()),
        F::new("per_second", "Rate", Unit::PerSecond, |row, s| rate(row.handle.count, s))
            .expendable(5),
        F::new("handle_seconds", "Handling", Unit::Seconds, |row, _| row.handle.seconds.into()),
        F::new("handle_mean_seconds", "Mean", Unit::Seconds, |row, _| {
            row.handle.mean_seconds.into()
        }),
        F::new("handle_p50_seconds", "p50", Unit::Seconds, |row, _| row.handle.p50_seconds.into())
            .expendable(7),
        F::new("handle_p99_seconds", "p99", Unit::Seconds, |row, _| row.handle.p99_seconds.into())
            .expendable(2),
        F::new("handle_max_seconds", "Max", Unit::Seconds, |row, _| row.handle.max_seconds.into())
            .expendable(3),
        F::new("read_count", "Read", Unit::Count, |row, _| row.read.count.into()).expendable(6),
        F::new("read_seconds", "Reading", Unit::Seconds, |row, _| row.read.seconds.into())
            .help("time to wait for the command since the previous one was handled")
            .expendable(4),
        F::new("read_mean_seconds", "Mean reading", Unit::Seconds, |row, _| {
            row.read.mean_seconds.into()
        })
        .expendable(1),
    ];
    let name = ("commands", "Client commands");
    Picked::all(FIELDS)
        .table(name, &interval.commands, interval.instrumented_seconds, Tone::Plain)
        .sorted("handle_seconds")
}
