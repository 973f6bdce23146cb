// SPDX-License-Identifier: PostgreSQL
//! The page of one session: who it is, what it executes, what it did, whom it blocks, and who blocks it.

use segment::interval::{Interval, SessionAccount, SessionRow};

pub use super::session_id::{Opened, SessionId};
use crate::blocking::{session_name, Forest, Party};
use crate::measured::Measured;
use crate::rows::{left, right};
use crate::table::{Cell, Column, PaneSection, Row, Table, Tone, Unit};
use crate::timing;
use crate::units::{duration, percent, whole};
use crate::Reading;
use segment::WaitClass;

/// The page of a session; empty if the interval does not contain it.
pub fn page(reading: &Reading, id: SessionId) -> Vec<PaneSection> {
    let Some(row) = id.row_of(&reading.interval.sessions) else { return Vec::new() };
    let opened = reading.opened.as_ref().filter(|opened| opened.id == id);
    let length = duration(reading.interval.interval_seconds);
    let mut sections = vec![who(&reading.interval, row, &length)];
    sections.push(statement(reading, row, opened));
    if let Some(forest) = &reading.blocking {
        sections.extend(blocking(forest, row));
    }
    let accounts = opened.map_or(&[][..], |opened| &opened.accounts);
    for (title, accounts) in [
        (format!("Activity in {length}"), &row.accounts[..]),
        ("Activity since it started, or since the last reset".to_string(), accounts),
    ] {
        let lines = match (accounts.is_empty(), &reading.recorded) {
            (false, _) => Vec::new(),
            (true, Some(_)) => continue,
            (true, None) => {
                vec!["Available with the next interval; past intervals do not store it.".to_string()]
            }
        };
        let table = (!accounts.is_empty()).then(|| activities(&reading.interval, row, accounts));
        sections.push(PaneSection { title, lines, table });
    }
    if reading.recorded.is_some() {
        let lines =
            vec!["A recording does not contain the accounts of individual sessions.".to_string()];
        sections.push(PaneSection { title: format!("Activity in {length}"), lines, table: None });
    }
    sections
}

fn who(interval: &Interval, row: &SessionRow, length: &str) -> PaneSection {
    let mut lines = Vec::new();
    let from = row.client_address.as_ref().map(|client| format!(", client {client}"));
    let age = row.age_seconds.map(|age| format!(", started {} ago", duration(age)));
    let leader = row.leader_pid.map(|leader| format!(", leader {leader}"));
    let parts = [from, age, leader].into_iter().flatten().collect::<String>();
    lines.push(format!("{}{parts}", row.kind));
    let doing = match row.state {
        "active" | "background" => {
            format!("{}, phase {}, {} for", row.state, row.phase, row.activity)
        }
        state => format!("{state} for"),
    };
    let transaction = row.transaction_seconds.map_or_else(String::new, |seconds| {
        format!("; transaction open for {}", duration(seconds))
    });
    lines.push(format!("{doing} {}{transaction}", duration(row.since_seconds)));
    let share = |seconds: f64| {
        let of_life = |seconds: f64| if seconds > 0.0 { seconds / row.lived_seconds } else { 0.0 };
        match interval.session_half_width(row, seconds) {
            Some(half) => format!("~{}", Measured::new(of_life(seconds), of_life(half)).share()),
            None => format!("{} %", percent(of_life(seconds))),
        }
    };
    let cpu = row.cpu_seconds.map_or_else(|| format!("{} %", timing::UNKNOWN), share);
    let commands = match interval.sampling {
        None => format!(", {} commands", whole(row.commands)),
        // Samples do not count them.
        Some(_) => String::new(),
    };
    lines.push(format!("In {length}: {} busy, {cpu} on CPU{commands}", share(row.busy_seconds)));
    for hold in &row.holding {
        lines.push(format!("holds {} {} for {}", hold.lock, hold.mode, duration(hold.seconds)));
    }
    let name = session_name(row);
    PaneSection { title: format!("S{}", &name[1..]), lines, table: None }
}

fn statement(reading: &Reading, row: &SessionRow, opened: Option<&Opened>) -> PaneSection {
    let statements = reading.statements.as_ref();
    let current = statements.and_then(|statements| statements.current_of(row));
    let lines = |queryid: Option<i64>, query: Option<&str>| {
        let mut lines: Vec<String> = query
            .into_iter()
            .flat_map(|query| query.lines().map(|line| line.replace('\t', "    ")))
            .collect();
        lines.extend(queryid.map(|id| format!("query ID {id}")));
        if lines.is_empty() {
            lines.push("unknown".to_string());
        }
        lines
    };
    match (current, opened) {
        (Some(current), _) => PaneSection {
            title: format!(
                "Statement, running for {}, {} % of it",
                duration(current.seconds),
                current.shares()
            ),
            lines: lines(current.queryid, current.query.as_deref()),
            table: None,
        },
        (None, opened) => PaneSection {
            title: if row.state == "active" { "Statement" } else { "Last statement" }.to_string(),
            lines: lines(
                opened.and_then(|opened| opened.queryid),
                opened.and_then(|opened| opened.query.as_deref()),
            ),
            table: None,
        },
    }
}

/// Who blocks it, and whom it blocks.
fn blocking(forest: &Forest, row: &SessionRow) -> Vec<PaneSection> {
    let everybody = forest.everybody();
    // A parallel query counts as one, under the PID of its leader.
    let pid = row.leader_pid.unwrap_or(row.pid);
    let find = |pid: i32| everybody.iter().map(|(_, party)| *party).find(|party| party.pid == pid);
    let Some(party) = find(pid) else { return Vec::new() };
    let mut sections = Vec::new();
    if let Some(wait) = &party.wait {
        let mut lines = vec![format!(
            "Waits for {} ({}) for {}.",
            wait.lock,
            wait.mode,
            duration(wait.seconds)
        )];
        let blocker = |pid: &i32| find(*pid).map_or_else(|| format!("session {pid}"), described);
        lines.extend(wait.blockers.iter().map(blocker));
        let more = usize::from(wait.blocker_count).saturating_sub(wait.blockers.len());
        if more > 0 {
            lines.push(format!("and {more} more"));
        }
        sections.push(PaneSection { title: "Blocked by".to_string(), lines, table: None });
    }
    if party.waiters > 0 {
        // All sessions that name it as a blocker, wherever they are in the tree.
        let direct = everybody.iter().map(|(_, waiter)| *waiter).filter(|waiter| {
            waiter.wait.as_ref().is_some_and(|wait| wait.blockers.contains(&party.pid))
        });
        let mut lines: Vec<String> = direct.map(described).collect();
        let behind = party.waiters.saturating_sub(lines.len());
        if behind > 0 {
            lines.push(format!("and {behind} more behind these"));
        }
        sections.push(PaneSection { title: "Blocks".to_string(), lines, table: None });
    }
    sections
}

/// "session 4711 (shop, alice@orders), waiting for row (0,1) of relation orders for 3 s".
fn described(party: &Party) -> String {
    match &party.wait {
        Some(wait) => {
            let seconds = duration(wait.seconds);
            format!("{}, waiting for {} for {seconds}", party.name(), wait.lock)
        }
        None => format!("{}, {}", party.name(), party.doing()),
    }
}

fn activities(interval: &Interval, session: &SessionRow, accounts: &[SessionAccount]) -> Table {
    let columns = vec![
        left("PHASE", 0),
        left("ACTIVITY", 0),
        Column::new("seconds", "TIME", Unit::Seconds),
        Column::new("share", "%TIME", Unit::Share),
        right("ENDED", 1),
    ];
    let sum: f64 = accounts.iter().map(|account| account.seconds).sum();
    // The time since it started is as long as its accounts together.
    let lived = SessionRow { lived_seconds: sum, ..session.clone() };
    let row = |account: &SessionAccount| {
        let half_width = interval.session_half_width(&lived, account.seconds);
        let told = |over: f64| match half_width.filter(|_| !account.is_unknown()) {
            Some(half) => Cell::Estimate(Measured::new(account.seconds / over, half / over)),
            None => timing::told(account.seconds / over, account.is_unknown()),
        };
        let count = match half_width {
            Some(_) => Cell::Empty,
            None => whole(account.count).into(),
        };
        let cells = vec![
            (&account.phase).into(),
            (&account.activity).into(),
            told(1.0),
            told(sum.max(1e-9)),
            count,
        ];
        let tone = match account.idle {
            true => Tone::Faint,
            false => Tone::from_class(WaitClass::of_name(&account.activity)),
        };
        Row { tone, ..Row::new(format!("{} {}", account.phase, account.activity), cells) }
    };
    Table::from_rows(columns, accounts.iter().map(row).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn text(sections: &[PaneSection]) -> String {
        let mut out = String::new();
        for section in sections {
            out.push_str(&format!("# {}\n", section.title));
            section.lines.iter().for_each(|line| out.push_str(&format!("{line}\n")));
            for row in section.table.iter().flat_map(|table| &table.rows) {
                let cells: Vec<String> = row.cells.iter().map(|cell| cell.exact()).collect();
                out.push_str(&format!("{}\n", cells.join(" | ")));
            }
        }
        out
    }

    fn account(phase: &str, activity: &str, seconds: f64) -> SessionAccount {
        let (phase, activity) = (phase.into(), activity.into());
        SessionAccount { phase, activity, count: 3, seconds, idle: false }
    }

    #[test]
    fn the_page_says_who_it_is_what_it_did_and_whom_it_blocks() {
        let mut reading = Reading { blocking: Some(sample::blocking()), ..sample::reading() };
        let row = &mut reading.interval.sessions[0];
        row.accounts = vec![account("execute", "cpu", 0.6), account("execute", "Lock:tuple", 0.2)];
        row.pid = 4304;
        let id = SessionId::from_row(row);
        reading.statements.as_mut().unwrap().current[0].pid = 4304;
        reading.opened = Some(Opened {
            id,
            accounts: vec![account("idle", "Client:ClientRead", 30.0)],
            queryid: Some(7),
            query: Some("update accounts\n\tset balance = 0".to_string()),
        });
        insta::assert_snapshot!(text(&page(&reading, id)));
        let waiting = SessionId { pid: 4310, ..id };
        reading.interval.sessions[0].pid = 4310;
        let shown = text(&page(&reading, waiting));
        assert!(
            shown.contains("Waits for row (0,7) of relation accounts (ExclusiveLock) for 41 s."),
            "{shown}"
        );
        assert!(
            shown.contains("session 4304 (psql, joe@shop), idle in transaction for 41 s"),
            "{shown}"
        );
        assert!(page(&reading, SessionId { pid: 1, ..id }).is_empty());
    }

    #[test]
    fn a_key_names_a_session() {
        let id = SessionId { pid: 4711, slot: 3, generation: 2 };
        assert_eq!(id.to_string().parse(), Ok(id));
        assert!("4711 x".parse::<SessionId>().is_err());
    }

    #[test]
    fn a_worker_waits_as_its_leader_does_and_what_does_not_fit_is_counted() {
        let mut forest = sample::blocking();
        let mut row = sample::interval().sessions[0].clone();
        (row.pid, row.leader_pid) = (9999, Some(4310));
        let wait = forest.roots[0].blocks[0].wait.as_mut().unwrap();
        wait.blocker_count = 3;
        forest.roots[0].blocks[0].waiters = 9;
        let shown = text(&blocking(&forest, &row));
        assert!(shown.starts_with("# Blocked by\nWaits for row (0,7)"), "{shown}");
        assert!(
            shown.contains("\nand 2 more\n") && shown.ends_with("\nand 9 more behind these\n"),
            "{shown}"
        );
        assert!(blocking(&forest, &SessionRow { leader_pid: None, ..row }).is_empty());
    }

    #[test]
    fn another_owner_of_the_slot_is_another_session() {
        let mut reading = sample::reading();
        reading.statements = None;
        let row = &mut reading.interval.sessions[0];
        (row.lived_seconds, row.busy_seconds, row.cpu_seconds) = (0.5, 0.25, Some(0.125));
        let id = SessionId::from_row(row);
        let opened =
            |id| Opened { id, accounts: Vec::new(), queryid: None, query: Some("select 7".into()) };
        reading.opened = Some(opened(id));
        let shown = text(&page(&reading, id));
        assert!(
            shown.contains("50.0 % busy, 25.0 % on CPU") && shown.contains("# Statement\nselect 7"),
            "{shown}"
        );
        let later = SessionId { generation: id.generation + 1, ..id };
        assert!(page(&reading, later).is_empty());
        reading.opened = Some(opened(later));
        assert!(!text(&page(&reading, id)).contains("select 7"));
        reading.opened = Some(opened(id));
        reading.interval.sessions[0].state = "idle";
        assert!(text(&page(&reading, id)).contains("# Last statement\nselect 7"));
    }
}
