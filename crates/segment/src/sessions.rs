// SPDX-License-Identifier: PostgreSQL
//! The sessions of a frame: a row for each, and their numbers by kind and state.

use crate::book::{Book, Head, Life};
use crate::clock::Clock;
use crate::delta::{Delta, SessionDelta};
use crate::directory::{Stat, StatKind};
use crate::histogram::Histogram;
use crate::layout::bucket_middle;
use crate::own;
use crate::owners::Names;
use crate::snapshot::Snapshot;
use crate::wait_class::{tells_cpu_apart, WaitClass, UNKNOWN};
use serde::Serialize;
use std::collections::HashMap;
use std::sync::Arc;

/// One session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionRow {
    /// The process.
    pub pid: i32,
    /// The leader, if this is a parallel worker.
    pub leader_pid: Option<i32>,
    /// "client backend", ...
    pub kind: String,
    /// Its database; the OID if the name is not known; `None` without a database.
    pub database: Option<String>,
    /// Its user, in the same form.
    pub user: Option<String>,
    /// application_name.
    pub application: String,
    /// The client's address, "local" for a Unix-domain socket; `None` without a client, or if not known.
    pub client_address: Option<String>,
    /// Its current phase.
    pub phase: Arc<str>,
    /// Its current activity: "cpu", or the wait event as `Type:Event`.
    pub activity: Arc<str>,
    /// The class of the activity.
    #[serde(skip)]
    pub class: WaitClass,
    /// Time since the activity began; between two messages, since the last one was handled.
    pub since_seconds: f64,
    /// Age of its transaction; `None`: it has none, or the beginning is not known.
    pub transaction_seconds: Option<f64>,
    /// Time since its process was first seen, about its start; `None`: not known.
    pub age_seconds: Option<f64>,
    /// "active", "idle", "idle in transaction", "background", or "dead" if its process has ended
    /// and its slot is not merged yet.
    pub state: &'static str,
    /// Its lifetime in the interval: the sum of its accounts.
    pub lived_seconds: f64,
    /// Part of `lived_seconds` that was not idle.
    pub busy_seconds: f64,
    /// Part of `busy_seconds` that was CPU time, including waiting for a CPU; `None`: samples could not tell it apart.
    pub cpu_seconds: Option<f64>,
    /// Commands handled.
    pub commands: u64,
    /// Its slot.
    pub slot: u32,
    /// Its ordinal among the owners of the slot.
    pub generation: u32,
    /// Number of lightweight locks held.
    pub holding_count: u32,
    /// The first of them.
    pub holding: Vec<HoldingRow>,
    /// Its accounts that changed, longest first.
    pub accounts: Vec<SessionAccount>,
    /// Distribution of its waits for the client between transactions; `None` if there were few, or it is unknown.
    #[serde(skip)]
    pub pauses: Option<Pauses>,
}

/// Distribution of a session's waits for its client between transactions. A client that sends commands in bursts makes short
/// and long waits, and few in between.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Pauses {
    /// Waits below [`Pauses::SHORT`]: a round trip, and what the client does with a reply.
    pub short: u64,
    /// Their time, seconds.
    pub short_seconds: f64,
    /// Waits of [`Pauses::LONG`] or more.
    pub long: u64,
    /// Their time, seconds.
    pub long_seconds: f64,
    /// The others.
    pub middle: u64,
}

impl Pauses {
    /// Seconds.
    pub const SHORT: f64 = 0.005;
    /// Seconds.
    pub const LONG: f64 = 0.050;

    pub(crate) fn add(&mut self, later: &Pauses) {
        self.short = self.short.saturating_add(later.short);
        self.short_seconds += later.short_seconds;
        self.long = self.long.saturating_add(later.long);
        self.long_seconds += later.long_seconds;
        self.middle = self.middle.saturating_add(later.middle);
    }

    fn from_histogram(waits: &Histogram, clock: &Clock) -> Pauses {
        let mut all = Pauses::default();
        for (bucket, n) in waits.buckets() {
            let each = clock.seconds(bucket_middle(bucket));
            if each < Pauses::SHORT {
                all.short += n;
                all.short_seconds += each * n as f64;
            } else if each >= Pauses::LONG {
                all.long += n;
                all.long_seconds += each * n as f64;
            } else {
                all.middle += n;
            }
        }
        all
    }
}

/// A lightweight lock that a session holds at the end of the interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HoldingRow {
    /// Its tranche; the number if the name is not known.
    pub lock: String,
    /// "exclusive" or "shared".
    pub mode: &'static str,
    /// Time since the acquisition.
    pub seconds: f64,
}

/// An account of one session.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SessionAccount {
    /// The first tag of its name.
    pub phase: Arc<str>,
    /// The rest of its name.
    pub activity: Arc<str>,
    /// Number of events that ended.
    pub count: u64,
    /// Time.
    pub seconds: f64,
    /// Whether this is idle time.
    pub idle: bool,
}

/// The number of sessions of a kind in a state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Population {
    /// "client backend", ...
    pub process: Arc<str>,
    /// As in [`SessionRow::state`].
    pub state: &'static str,
    /// Number of sessions.
    pub sessions: u32,
}

/// The session's own name, otherwise the known one, otherwise the OID; `None` without an OID.
fn name(known: &HashMap<u32, String>, id: u32, own: &str) -> Option<String> {
    if !own.is_empty() {
        return Some(own.to_string());
    }
    (id != 0).then(|| known.get(&id).cloned().unwrap_or_else(|| id.to_string()))
}

/// A row for each session.
pub(crate) fn rows(delta: &Delta<'_>) -> Vec<SessionRow> {
    let mut names = Names::default();
    for book in delta.snapshot.books.iter().chain(&delta.snapshot.groups) {
        let ids = (book.database_id, book.user_id);
        names.add(ids, &book.identity.database, &book.identity.user, 0);
    }
    delta.sessions.iter().map(|s| session_row(s, delta.snapshot, &names)).collect()
}

/// The number of sessions of each kind in each state, sorted by kind, then state.
pub(crate) fn population(rows: &[SessionRow]) -> Vec<Population> {
    let mut all: Vec<Population> = Vec::new();
    for row in rows {
        match all.iter_mut().find(|p| *p.process == *row.kind && p.state == row.state) {
            Some(known) => known.sessions += 1,
            None => all.push(Population {
                process: row.kind.as_str().into(),
                state: row.state,
                sessions: 1,
            }),
        }
    }
    all.sort_by(|a, b| (&a.process, a.state).cmp(&(&b.process, b.state)));
    all
}

fn session_row(session: &SessionDelta<'_>, snapshot: &Snapshot, names: &Names) -> SessionRow {
    let clock = &snapshot.clock;
    let book = session.book;
    let mut commands = 0;
    let mut accounts = Vec::with_capacity(session.changes.len());
    for (id, change) in &session.changes {
        let Some(stat) = snapshot.directory.get(*id) else {
            continue;
        };
        match stat.kind {
            StatKind::Account => {
                accounts.push(SessionAccount::from_stat(
                    stat,
                    change.count,
                    clock.seconds(change.total),
                ));
            }
            _ if stat.command().is_some_and(|(_, handle)| handle) => commands += change.count,
            _ => {}
        }
    }
    let accounts = SessionAccount::shown(accounts);
    let sum = |f: fn(&SessionAccount) -> bool| -> f64 {
        accounts.iter().filter(|a| f(a)).map(|a| a.seconds).fold(0.0, |sum, s| sum + s)
    };
    let (cpu, unknown) = (sum(|a| &*a.activity == "cpu"), sum(SessionAccount::is_unknown));
    let running = book.run().and_then(|id| snapshot.directory.get(id));
    SessionRow {
        pid: book.pid,
        leader_pid: (book.leader_pid != 0).then_some(book.leader_pid),
        kind: book.identity.kind.clone(),
        database: name(&names.databases, book.database_id, &book.identity.database),
        user: name(&names.users, book.user_id, &book.identity.user),
        application: book.identity.application.clone(),
        client_address: Some(book.identity.client.clone()).filter(|address| !address.is_empty()),
        phase: running.map_or_else(|| "".into(), |s| s.phase().clone()),
        activity: running.map_or_else(|| "".into(), |s| s.activity().clone()),
        class: running.map_or(WaitClass::Other, Stat::class),
        since_seconds: clock.seconds(book.now.saturating_sub(book.since(running))),
        transaction_seconds: in_transaction(book, running)
            .then(|| clock.seconds(book.now.saturating_sub(book.transaction))),
        age_seconds: Some(clock.seconds(book.now.saturating_sub(book.claimed_tick))),
        state: state(book, running),
        lived_seconds: clock.seconds(session.lived),
        busy_seconds: sum(|a| !a.idle),
        cpu_seconds: tells_cpu_apart(cpu, unknown).then_some(cpu),
        commands,
        slot: book.slot,
        generation: book.generation,
        holding_count: book.holding,
        holding: book
            .holds
            .iter()
            .map(|hold| HoldingRow {
                lock: snapshot.tranches.name(hold.tranche),
                mode: if hold.shared { "shared" } else { "exclusive" },
                seconds: clock.seconds(book.now.saturating_sub(hold.since)),
            })
            .collect(),
        accounts,
        pauses: session.idle.as_ref().map(|waits| Pauses::from_histogram(waits, clock)),
    }
}

impl Snapshot {
    /// The accounts of a session since its start or the last reset, longest time first; empty if it has ended.
    pub fn accounts_of(&self, slot: u32, generation: u32) -> Vec<SessionAccount> {
        let book =
            self.books.iter().find(|book| (book.slot, book.generation) == (slot, generation));
        let heads = book.into_iter().flat_map(|book| &book.heads);
        let account = |head: &Head| {
            let stat =
                self.directory.get(head.stat).filter(|stat| stat.kind == StatKind::Account)?;
            Some(SessionAccount::from_stat(stat, head.count, self.clock.seconds(head.total)))
        };
        let accounts = heads.filter_map(account).filter(|account| account.seconds > 0.0);
        SessionAccount::shown(accounts.collect())
    }
}

impl SessionAccount {
    /// Whether samples could not tell what it was.
    pub fn is_unknown(&self) -> bool {
        *self.activity == *UNKNOWN
    }

    /// Longest first; without CPU time if it cannot be distinguished.
    fn shown(mut accounts: Vec<SessionAccount>) -> Vec<SessionAccount> {
        let sum = |of: &dyn Fn(&SessionAccount) -> bool| -> f64 {
            accounts.iter().filter(|a| of(a)).map(|a| a.seconds).sum()
        };
        let is_cpu = |a: &SessionAccount| &*a.activity == "cpu";
        if !tells_cpu_apart(sum(&is_cpu), sum(&SessionAccount::is_unknown)) {
            let mut shown: Vec<SessionAccount> = Vec::with_capacity(accounts.len());
            for mut account in accounts {
                if is_cpu(&account) {
                    account.activity = UNKNOWN.into();
                }
                let same = |known: &&mut SessionAccount| {
                    (&known.phase, &known.activity) == (&account.phase, &account.activity)
                };
                match shown.iter_mut().find(same) {
                    Some(known) => known.seconds += account.seconds,
                    None => shown.push(account),
                }
            }
            accounts = shown;
        }
        accounts.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        accounts
    }

    fn from_stat(stat: &Stat, count: u64, seconds: f64) -> SessionAccount {
        SessionAccount {
            phase: stat.phase().clone(),
            activity: stat.activity().clone(),
            count,
            seconds,
            idle: stat.is_idle(),
        }
    }
}

impl SessionRow {
    /// Whether it is one of tally's own sessions, which query the server while tally watches.
    pub fn is_own(&self) -> bool {
        own::is_process(&self.kind)
    }
}

/// Whether a session is in a transaction. The tick of an ended transaction stays until the next one begins.
fn in_transaction(book: &Book, running: Option<&Stat>) -> bool {
    let phase = running.map_or("idle", |stat| &**stat.phase());
    book.transaction != 0 && book.life == Life::Alive && !matches!(phase, "idle" | "off")
}

fn state(book: &Book, running: Option<&Stat>) -> &'static str {
    let Some(stat) = running.filter(|_| book.life == Life::Alive) else {
        return if book.life == Life::Alive { "background" } else { "dead" };
    };
    match &**stat.phase() {
        "background" => "background",
        "idle" => "idle",
        "idle in transaction" => "idle in transaction",
        _ if stat.is_idle() => "idle",
        _ => "active",
    }
}
