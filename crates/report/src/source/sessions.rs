// SPDX-License-Identifier: PostgreSQL
//! Active session history: which sessions were active, who blocked whom, and who kept a transaction open.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use segment::interval::{SessionAccount, SessionRow};
use segment::WaitClass;

use recording::{FrameRow, Range, Recording, SessionHistoryRow, StatementTexts as Texts};
use view::blocking::{Blockers, Forest};
use view::statements::{ActivityRow, CurrentRow, Split};

use super::columns::Columns;
use super::seconds;
use crate::material::{Active, Open, SessionHistory};
use crate::rankings::{session_name, SessionTimes};
use error::Error;

/// Maximum number of rows of a table.
const ROWS: usize = 100;

/// The activity of the sessions; `None` if it was not recorded.
pub fn sessions(
    recording: &Recording,
    range: Range,
    heads: &[FrameRow],
    columns: &Columns,
) -> Result<Option<(SessionHistory, SessionTimes)>, Error> {
    let lengths: HashMap<u64, (u64, bool)> =
        heads.iter().map(|row| (row.frame, (row.interval_ns, row.detail))).collect();
    let points: HashMap<u64, usize> =
        heads.iter().filter_map(|row| Some((row.frame, columns.place(row)?))).collect();
    let mut sums = Sums::default();
    let mut texts: Option<Texts> = None;
    let mut problem = None;
    recording.each_session_history(range, |rows| {
        let Some((frame, (length, detail))) =
            rows.first().and_then(|row| Some((row.frame, lengths.get(&row.frame)?)))
        else {
            return;
        };
        if texts.is_none() {
            texts = match recording.statement_texts(range) {
                Ok(texts) => Some(texts),
                Err(error) => {
                    problem = Some(error);
                    Some(Texts::new())
                }
            };
        }
        let point = rows.first().and_then(|row| points.get(&row.frame));
        sums.add(rows, (*length, point.copied()), texts.as_ref().unwrap_or(&Texts::new()));
        if *detail {
            sums.running = (frame, CurrentRow::recorded(rows, &[], texts.as_ref()));
        }
        if let Some(point) = point {
            sums.add_times(rows, *length, *point);
        }
    })?;
    // Those that were running at the end.
    let last = heads.iter().filter(|row| row.detail).map(|row| row.frame).max();
    if Some(sums.running.0) != last {
        sums.running.1.clear();
    }
    match problem {
        Some(error) => Err(error.into()),
        None => Ok(texts.map(|_| {
            let times = std::mem::take(&mut sums.times);
            (sums.history(), times)
        })),
    }
}

#[derive(Debug, Default)]
struct Sums {
    /// The interval of the last details, and the statements that sessions had been executing for long then.
    running: (u64, Vec<CurrentRow>),
    active: BTreeMap<Who, (Active, BTreeSet<i64>)>,
    blockers: Blockers,
    open: BTreeMap<(i64, String), Open>,
    sessions: BTreeMap<(i64, String), SessionRow>,
    times: SessionTimes,
}

/// Kind of process, application, user, database.
type Who = (String, String, Option<String>, Option<String>);

/// What a session did while it was not idle, by samples.
fn sampled_activities(session: &SessionRow) -> Vec<ActivityRow> {
    let busy = session.accounts.iter().filter(|account| !account.idle);
    let row = |account: &SessionAccount| ActivityRow {
        phase: account.phase.clone(),
        activity: account.activity.clone(),
        class: WaitClass::of_name(&account.activity),
        count: account.count,
        seconds: account.seconds,
    };
    let mut rows: Vec<ActivityRow> = busy.map(row).collect();
    rows.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    rows
}

impl Active {
    /// Adds times in a point of the charts.
    fn add_times(&mut self, point: usize, times: [f64; 4]) {
        match self.times.last_mut() {
            Some((at, sums)) if *at == point => {
                sums.iter_mut().zip(times).for_each(|(sum, time)| *sum += time);
            }
            _ => self.times.push((point, times)),
        }
    }
}

impl Sums {
    /// Adds the rows of an interval of this length, ns, in a point of the charts; in a rolled-up hour they are a sample.
    fn add(
        &mut self,
        rows: &[SessionHistoryRow],
        (length_ns, point): (u64, Option<usize>),
        texts: &Texts,
    ) {
        let s = |ns: u64| ns as f64 * 1e-9;
        let text = |text: &Option<std::sync::Arc<str>>| text.as_deref().map(str::to_string);
        for row in rows {
            let weight = length_ns as f64 / row.interval_ns.max(1) as f64;
            self.add_session(row.session(), weight, s(length_ns));
            let who = (
                row.process.to_string(),
                row.application.to_string(),
                text(&row.user),
                text(&row.database),
            );
            let none = || (Active { cpu_seconds: Some(0.0), ..Active::default() }, BTreeSet::new());
            let (sum, pids) = self.active.entry(who.clone()).or_insert_with(none);
            pids.insert(row.pid);
            let busy = s(row.busy_ns) * weight;
            let cpu = (!row.cpu_unknown).then(|| s(row.cpu_ns) * weight);
            let blocked = if row.is_blocked() { s(length_ns) } else { 0.0 };
            let is_open = &*row.state == "idle in transaction";
            let idle = if is_open { s(length_ns) } else { 0.0 };
            sum.busy_seconds += busy;
            sum.cpu_seconds = sum.cpu_seconds.zip(cpu).map(|(sum, cpu)| sum + cpu);
            sum.blocked_seconds += blocked;
            sum.idle_in_transaction_seconds += idle;
            if let Some(point) = point {
                sum.add_times(point, [busy, cpu.unwrap_or(0.0), blocked, idle]);
            }
            if !is_open {
                continue;
            }
            let open = self.open.entry((row.pid, who.1.clone())).or_default();
            if s(row.since_ns) >= open.seconds {
                *open = Open {
                    pid: row.pid,
                    application: who.1,
                    user: who.2,
                    database: who.3,
                    seconds: s(row.since_ns),
                    until: seconds(row.time_us),
                    query: row
                        .statement()
                        .and_then(|key| texts.get(&key))
                        .map(|text| text.text.to_string()),
                };
            }
        }
        if rows.iter().any(SessionHistoryRow::is_blocked) {
            let time = rows.first().map_or(0.0, |row| seconds(row.time_us));
            self.blockers.add(&Forest::recorded(rows, texts), time, s(length_ns));
        }
    }

    /// Adds the busy time of an interval of this length, ns, to a point of the charts.
    fn add_times(&mut self, rows: &[SessionHistoryRow], length_ns: u64, point: usize) {
        for row in rows {
            let weight = length_ns as f64 / row.interval_ns.max(1) as f64;
            let busy = row.busy_ns as f64 * 1e-9 * weight;
            let (user, database) = (row.user.as_deref(), row.database.as_deref());
            let name = || session_name(&row.application, &row.process, row.pid, user, database);
            self.times.add((row.pid, &row.application), name, point, busy);
        }
    }

    /// Adds a session's figures in an interval, and counts its activity at the end of the interval for the whole
    /// of it.
    fn add_session(&mut self, mut now: SessionRow, weight: f64, length: f64) {
        const IDLE: &str = "idle in transaction";
        now.busy_seconds *= weight;
        now.cpu_seconds = now.cpu_seconds.map(|cpu| cpu * weight);
        now.commands = (now.commands as f64 * weight).round() as u64;
        now.lived_seconds = length;
        now.accounts = vec![SessionAccount {
            phase: now.phase.clone(),
            activity: now.activity.clone(),
            count: 0,
            seconds: length,
            idle: now.state.starts_with("idle"),
        }];
        let mut sum = match self.sessions.entry((i64::from(now.pid), now.application.clone())) {
            Entry::Vacant(entry) => {
                entry.insert(now);
                return;
            }
            Entry::Occupied(entry) => entry,
        };
        let before = sum.get_mut();
        for account in &before.accounts {
            let same = |other: &&mut SessionAccount| {
                (&other.phase, &other.activity) == (&account.phase, &account.activity)
            };
            match now.accounts.iter_mut().find(same) {
                Some(other) => other.seconds += account.seconds,
                None => now.accounts.push(account.clone()),
            }
        }
        now.busy_seconds += before.busy_seconds;
        now.cpu_seconds = now.cpu_seconds.zip(before.cpu_seconds).map(|(a, b)| a + b);
        now.commands += before.commands;
        now.lived_seconds += before.lived_seconds;
        // Keeps the longest time that it was idle in a transaction.
        if before.state == IDLE && (now.state != IDLE || now.since_seconds < before.since_seconds) {
            (now.state, now.since_seconds) = (before.state, before.since_seconds);
        }
        *before = now;
    }

    fn history(self) -> SessionHistory {
        let active =
            self.active.into_iter().map(|((process, application, user, database), (sum, pids))| {
                Active { process, application, user, database, sessions: pids.len() as u64, ..sum }
            });
        let mut active: Vec<Active> = active.collect();
        active.sort_by(|a, b| b.busy_seconds.total_cmp(&a.busy_seconds));
        let blockers = self.blockers.most(ROWS);
        let mut open: Vec<Open> = self.open.into_values().collect();
        open.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        active.truncate(ROWS);
        open.truncate(ROWS);
        let (_, mut running) = self.running;
        for row in &mut running {
            let of_row = |session: &&SessionRow| session.pid == row.pid;
            let session = self
                .sessions
                .values()
                .filter(of_row)
                .max_by(|a, b| a.lived_seconds.total_cmp(&b.lived_seconds));
            row.activities = session.map_or_else(Vec::new, sampled_activities);
            row.split = Split::from_activities(&row.activities);
        }
        let mut sessions: Vec<SessionRow> = self.sessions.into_values().collect();
        sessions.sort_by(|a, b| b.lived_seconds.total_cmp(&a.lived_seconds));
        sessions.truncate(ROWS);
        SessionHistory { active, blockers, open, sessions, running }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(pid: i64, state: &str, blockers: &[u64]) -> SessionHistoryRow {
        SessionHistoryRow {
            time_us: 7_000_000,
            interval_ns: 1_000_000_000,
            pid,
            process: "client backend".into(),
            application: "shop".into(),
            state: state.into(),
            activity: "cpu".into(),
            since_ns: 5_000_000_000,
            busy_ns: 500_000_000,
            cpu_ns: 250_000_000,
            lock_wait_ns: (!blockers.is_empty()).then_some(1),
            blockers: blockers.to_vec(),
            ..SessionHistoryRow::default()
        }
    }

    #[test]
    fn samples_stand_for_their_interval_and_the_root_gets_all_that_wait() {
        let rows =
            [row(1, "idle in transaction", &[]), row(2, "active", &[1]), row(3, "active", &[2])];
        let mut sums = Sums::default();
        sums.add(&rows, (1_000_000_000, None), &Texts::new());
        sums.add(&rows, (10_000_000_000, None), &Texts::new());
        let history = sums.history();
        let all = &history.active[0];
        assert_eq!((history.active.len(), all.sessions), (1, 3));
        let cpu = all.cpu_seconds.unwrap();
        assert!((all.busy_seconds - 16.5).abs() < 1e-9 && (cpu - 8.25).abs() < 1e-9);
        assert_eq!((all.blocked_seconds, all.idle_in_transaction_seconds), (22.0, 11.0));
        let blocker = &history.blockers[0];
        assert_eq!((history.blockers.len(), blocker.root.pid, blocker.waiters), (1, 1, 2));
        assert_eq!((blocker.seconds, blocker.waiting_seconds), (11.0, 22.0));
        assert_eq!(
            (history.open.len(), history.open[0].seconds, history.open[0].until),
            (1, 5.0, 7.0)
        );
    }
}
