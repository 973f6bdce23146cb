// SPDX-License-Identifier: PostgreSQL
//! Where the time went: accounts, waits, commands.

use segment::interval::{AccountRow, Interval};

use super::{each, rate, share, timing, SECONDS, TIMING};
use view::document::{Cell, Column, Table, Tone, Unit};

const ACTIVITY: Column = Column::new("activity", "Activity", Unit::Text);
const PHASE: Column = Column::new("phase", "Phase", Unit::Text);
const SHARE: Column = Column::new("share", "Of busy time", Unit::Share)
    .help("of the time in which sessions were not idle");
const SESSIONS: Column =
    Column::new("sessions", "Sessions", Unit::Sessions).help("average number: seconds per second");

/// The accounts that are not idle.
pub fn ledger(interval: &Interval) -> Table {
    let mut columns = vec![ACTIVITY, PHASE, SECONDS, SHARE, SESSIONS];
    columns.extend([
        Column::new("per_command_seconds", "Per command", Unit::Seconds)
            .help("of the clients' commands: messages of the protocol that were handled"),
        Column::new("per_commit_seconds", "Per commit", Unit::Seconds)
            .help("of the commits that wrote WAL")
            .expendable(6),
    ]);
    columns.extend(TIMING);
    let mut table =
        Table::new("ledger", "Time by activity and phase", columns).sorted("seconds").noted(Some(
            "Rows add up to the busy time. A command is a handled protocol message; a commit is \
             one that wrote WAL. cpu has no histogram."
                .to_string(),
        ));
    for account in interval.ledger.iter().filter(|account| !account.idle) {
        let seconds = account.timing.seconds;
        let mut row = vec![
            (&account.activity).into(),
            (&account.phase).into(),
            seconds.into(),
            share(seconds, interval).into(),
            rate(seconds, interval).into(),
            each(seconds, interval.commands_handled).into(),
            each(seconds, interval.commits.count).into(),
        ];
        row.extend(timing(&account.timing, interval));
        table.push(Tone::Class(account.class), row);
    }
    table
}

/// Sessions on average: what fell while the level was off goes by all of the time.
fn sessions(account: &AccountRow, interval: &Interval) -> f64 {
    match &*account.phase {
        "off" => account.timing.seconds / interval.interval_seconds.max(1e-9),
        _ => rate(account.timing.seconds, interval),
    }
}

/// The idle accounts.
pub fn idle(interval: &Interval) -> Table {
    let columns = vec![ACTIVITY, PHASE, SECONDS, SESSIONS, super::COUNT];
    let mut table = Table::new("idle", "Idle", columns)
        .sorted("seconds")
        .noted(Some("Together with the table above: all time of all sessions.".to_string()));
    for account in interval.ledger.iter().filter(|account| account.idle) {
        let row = vec![
            (&account.activity).into(),
            (&account.phase).into(),
            account.timing.seconds.into(),
            sessions(account, interval).into(),
            account.timing.count.into(),
        ];
        table.push(Tone::Plain, row);
    }
    table
}

/// The waits that are not idle, all phases together.
pub fn waits(interval: &Interval) -> Table {
    let mut columns = vec![Column::new("activity", "Wait", Unit::Text), SECONDS, SHARE, SESSIONS];
    columns.extend(TIMING);
    let mut table = Table::new("waits", "Waits, all phases together", columns).sorted("seconds");
    let is_wait = |account: &AccountRow| !account.idle && &*account.activity != "cpu";
    for wait in interval.activities_where(is_wait) {
        let seconds = wait.timing.seconds;
        let mut row: Vec<Cell> = vec![
            (&wait.activity).into(),
            seconds.into(),
            share(seconds, interval).into(),
            rate(seconds, interval).into(),
        ];
        row.extend(timing(&wait.timing, interval));
        table.push(Tone::Class(wait.class), row);
    }
    table
}

/// Reading and handling the clients' commands.
pub fn commands(interval: &Interval) -> Table {
    let columns = vec![
        Column::new("kind", "Command", Unit::Text),
        Column::new("handle_count", "Handled", Unit::Count),
        super::RATE,
        Column::new("handle_seconds", "Handling", Unit::Seconds),
        Column::new("handle_mean_seconds", "Mean", Unit::Seconds),
        Column::new("handle_p50_seconds", "p50", Unit::Seconds).expendable(7),
        Column::new("handle_p99_seconds", "p99", Unit::Seconds).expendable(2),
        Column::new("handle_max_seconds", "Max", Unit::Seconds).expendable(3),
        Column::new("read_count", "Read", Unit::Count).expendable(6),
        Column::new("read_seconds", "Reading", Unit::Seconds)
            .help("waiting for the command since the previous one was handled")
            .expendable(4),
        Column::new("read_mean_seconds", "Mean reading", Unit::Seconds).expendable(1),
    ];
    let mut table =
        Table::new("commands", "Commands of the clients", columns).sorted("handle_seconds");
    for command in &interval.commands {
        let (read, handle) = (&command.read, &command.handle);
        let row = vec![
            command.kind.as_str().into(),
            handle.count.into(),
            rate(handle.count as f64, interval).into(),
            handle.seconds.into(),
            handle.mean_seconds.into(),
            handle.p50_seconds.into(),
            handle.p99_seconds.into(),
            handle.max_seconds.into(),
            read.count.into(),
            read.seconds.into(),
            read.mean_seconds.into(),
        ];
        table.push(Tone::Plain, row);
    }
    table
}
