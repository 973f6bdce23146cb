// SPDX-License-Identifier: PostgreSQL
//! Who blocks whom, as a forest. A session that blocks others and is not blocked itself is a root; below each
//! root are the sessions that wait for it, directly or behind others.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use segment::clock::Clock;
use segment::interval::SessionRow;
use segment::{Blocked, LockTag, SessionStatement, StatementsReading, WaitClass};
use serde::Serialize;

use crate::json_id::id_or_null;
use crate::rows::{accepts, left, right, text, RowOptions};
use crate::table::{Cell, Column, Row, Table, Tone, Unit};
use crate::units::duration;

mod blockers;
mod recorded;

pub use blockers::{Blocker, Blockers};

/// Names of relations by (database, relation).
pub type Names = HashMap<(u32, u32), String>;

/// A process that blocks others, or is blocked.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Party {
    /// The process; for a parallel query, its leader; 0 for a prepared transaction.
    pub pid: i32,
    /// Its application_name; `None` if it is not measured.
    pub application: Option<String>,
    /// Its user; `None` if unknown.
    pub user: Option<String>,
    /// Its database; `None` if unknown.
    pub database: Option<String>,
    /// The address of its client; "local" for a Unix-domain socket; `None` if unknown.
    pub client_address: Option<String>,
    /// Age of its transaction; `None` if unknown.
    pub transaction_seconds: Option<f64>,
    /// "active", "idle in transaction", ...; `None` if it is not measured.
    pub state: Option<&'static str>,
    /// Its phase.
    pub phase: Option<String>,
    /// "cpu", or the wait event as `Type:Event`.
    pub activity: Option<String>,
    /// Time since that started.
    pub since_seconds: Option<f64>,
    /// Time since its statement started, while it executes one.
    pub statement_seconds: Option<f64>,
    /// The statement that it is executing, otherwise its last one; `None` if unknown.
    #[serde(serialize_with = "id_or_null")]
    pub queryid: Option<i64>,
    /// Its text.
    pub query: Option<String>,
    /// Number of sessions that wait for it, directly or indirectly.
    pub waiters: usize,
    /// What it waits for itself; `None` for a root.
    pub wait: Option<Wait>,
    /// The sessions that wait for it. A session that waits for several is listed with one of them.
    pub blocks: Vec<Party>,
}

/// A wait for a lock.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Wait {
    /// The waiting process; for a parallel query, this may be a worker.
    pub pid: i32,
    /// The lock in words.
    pub lock: String,
    /// Its type, as in pg_locks.
    pub lock_type: &'static str,
    /// The requested mode.
    pub mode: &'static str,
    /// How long it has waited.
    pub seconds: f64,
    /// All processes that block it.
    pub blockers: Vec<i32>,
    /// Number of blockers, which may be more than are listed.
    pub blocker_count: u16,
}

/// A deadlock that the server has not resolved yet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct UnresolvedDeadlock {
    /// Each process waits for the next one, and the last one for the first.
    pub pids: Vec<i32>,
}

/// All sessions that block others or are blocked.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Forest {
    /// Number of waiting sessions.
    pub blocked: usize,
    /// The session for which most others wait comes first. The first session of a deadlock counts as a root.
    pub roots: Vec<Party>,
    /// Sessions that wait for each other.
    pub deadlocks: Vec<UnresolvedDeadlock>,
}

/// What is known at one instant.
#[derive(Debug)]
pub struct Sources<'s> {
    /// The blockers that waiting sessions have looked up, read before the rest.
    pub blocked: &'s [Blocked],
    /// The sessions.
    pub sessions: &'s [SessionRow],
    /// When these were read, in ticks.
    pub tick: u64,
    /// The clock of these ticks.
    pub clock: &'s Clock,
    /// The current or last statement of a slot.
    pub last: &'s HashMap<u32, SessionStatement>,
    /// Their texts.
    pub statements: Option<&'s StatementsReading>,
    /// Names of relations.
    pub names: &'s Names,
}

/// The statement that a session is executing, otherwise its last one.
struct LastStatement {
    queryid: Option<i64>,
    text: Option<String>,
    /// Its age, while it is being executed.
    seconds: Option<f64>,
}

/// The sessions and their statements.
struct SessionLookup<'k> {
    sessions: &'k [SessionRow],
    last: &'k dyn Fn(&SessionRow) -> Option<LastStatement>,
}

/// The sessions that wait for a lock, by slot and generation.
#[derive(Debug)]
pub struct Waiting<'s>(HashMap<(u32, u32), &'s SessionRow>);

impl<'s> Waiting<'s> {
    /// The waiting sessions among `sessions`.
    pub fn from_sessions(sessions: &'s [SessionRow]) -> Waiting<'s> {
        let waits = |row: &&SessionRow| row.class == WaitClass::Lock && row.state != "dead";
        let waiting = sessions.iter().filter(waits);
        Waiting(waiting.map(|row| ((row.slot, row.generation), row)).collect())
    }

    /// The session that was blocked, if it still waits.
    pub fn row(&self, blocked: &Blocked) -> Option<&'s SessionRow> {
        self.0.get(&(blocked.slot, blocked.generation)).copied()
    }
}

/// Lock types, as in pg_locks (lockfuncs.c).
const TYPES: [&str; 12] = [
    "relation",
    "extend",
    "frozenid",
    "page",
    "tuple",
    "transactionid",
    "virtualxid",
    "spectoken",
    "object",
    "userlock",
    "advisory",
    "applytransaction",
];

/// Names of lock modes by number; 0 means none (lock.c).
pub const MODES: [&str; 9] = [
    "INVALID",
    "AccessShareLock",
    "RowShareLock",
    "RowExclusiveLock",
    "ShareUpdateExclusiveLock",
    "ShareLock",
    "ShareRowExclusiveLock",
    "ExclusiveLock",
    "AccessExclusiveLock",
];

/// The type of the lock that a session waits for, as in pg_locks.
pub fn lock_type(blocked: &Blocked) -> &'static str {
    TYPES.get(usize::from(blocked.lock.kind)).copied().unwrap_or("unknown")
}

/// The numbers of a lock type and a lock mode, both as in pg_locks; 0 for a mode that is not known.
pub fn lock_numbers(lock_type: &str, mode: &str) -> (u8, u16) {
    let number = |names: &[&str], name: &str| names.iter().position(|known| *known == name);
    let kind = number(&TYPES, lock_type).map_or(u8::MAX, |at| at as u8);
    (kind, number(&MODES, mode).unwrap_or(0) as u16)
}

/// The requested mode.
pub fn mode(blocked: &Blocked) -> &'static str {
    MODES.get(usize::from(blocked.mode)).copied().unwrap_or("unknown")
}

/// Describes a lock: "row (0,1) of orders", "transaction 742", "advisory lock 1, 2".
pub fn lock_in_words(lock: &LockTag, names: &Names) -> String {
    let [one, two, three] = lock.fields;
    let relation = || match names.get(&(one, two)) {
        Some(name) => format!("relation {name}"),
        None => format!("relation {two} in database {one}"),
    };
    match lock.kind {
        0 => relation(),
        1 => format!("extension of {}", relation()),
        2 => format!("frozen XIDs of database {one}"),
        3 => format!("page {three} of {}", relation()),
        4 => format!("row ({three},{}) of {}", lock.field4, relation()),
        5 => format!("transaction {one}"),
        6 => format!("virtual transaction {one}/{two}"),
        7 => format!("speculative insertion {two} of transaction {one}"),
        8 => format!("object {three} of class {two} in database {one}"),
        // 1: one key of 64 bits; 2: two keys of 32 bits.
        10 if lock.field4 == 1 => {
            format!("advisory lock {}", (u64::from(two) << 32 | u64::from(three)) as i64)
        }
        10 => format!("advisory lock {}, {}", two as i32, three as i32),
        _ => format!("lock {one}, {two}, {three}, {} of type {}", lock.field4, lock.kind),
    }
}

/// A session and what it waits for, by the PID under which others see it.
type Waits = BTreeMap<i32, Wait>;

fn waits(sources: &Sources<'_>) -> Waits {
    let mut waits = Waits::new();
    let waiting = Waiting::from_sessions(sources.sessions);
    for blocked in sources.blocked {
        let Some(row) = waiting.row(blocked) else { continue };
        let wait = Wait {
            pid: blocked.pid,
            lock: lock_in_words(&blocked.lock, sources.names),
            lock_type: lock_type(blocked),
            mode: mode(blocked),
            seconds: sources.clock.seconds(sources.tick.saturating_sub(blocked.since)),
            blockers: blocked.blockers.clone(),
            blocker_count: blocked.count,
        };
        join(&mut waits, row.leader_pid.unwrap_or(blocked.pid), wait);
    }
    waits
}

/// Adds a wait. Of several processes of a parallel query, the one that has waited longest counts, with the
/// blockers of all.
fn join(waits: &mut Waits, pid: i32, wait: Wait) {
    match waits.entry(pid) {
        std::collections::btree_map::Entry::Vacant(new) => {
            new.insert(wait);
        }
        std::collections::btree_map::Entry::Occupied(mut known) => {
            let known = known.get_mut();
            let (mut longer, other) = match wait.seconds > known.seconds {
                true => (wait, known.clone()),
                false => (known.clone(), wait),
            };
            for pid in other.blockers {
                if !longer.blockers.contains(&pid) {
                    longer.blockers.push(pid);
                    longer.blocker_count = longer.blocker_count.saturating_add(1);
                }
            }
            *known = longer;
        }
    }
}

/// Who waits for whom, by the position of each in `pids`.
struct Graph {
    /// All processes, in ascending order.
    pids: Vec<i32>,
    /// The processes that wait for each one, and those for which each one waits, in ascending order.
    behind: Vec<Vec<usize>>,
    ahead: Vec<Vec<usize>>,
}

impl Graph {
    fn from_waits(waits: &Waits) -> Graph {
        let blockers = waits.values().flat_map(|wait| &wait.blockers);
        let pids: BTreeSet<i32> = waits.keys().chain(blockers).copied().collect();
        let pids: Vec<i32> = pids.into_iter().collect();
        let mut behind = vec![Vec::new(); pids.len()];
        let mut ahead = vec![Vec::new(); pids.len()];
        for (waiter, pid) in pids.iter().enumerate() {
            let blockers = waits.get(pid).into_iter().flat_map(|wait| &wait.blockers);
            let blockers: BTreeSet<usize> =
                blockers.filter_map(|blocker| pids.binary_search(blocker).ok()).collect();
            for blocker in blockers {
                behind[blocker].push(waiter);
                ahead[waiter].push(blocker);
            }
        }
        Graph { pids, behind, ahead }
    }

    /// Marks all processes that wait for `from`, directly or behind others, with `mark`; in a deadlock, also
    /// `from` itself. Returns how many had a different mark before.
    fn mark_behind(&self, from: usize, mark: usize, marks: &mut [usize]) -> usize {
        let mut next = vec![from];
        let mut count = 0;
        while let Some(at) = next.pop() {
            for &waiter in &self.behind[at] {
                if marks[waiter] != mark {
                    marks[waiter] = mark;
                    count += 1;
                    next.push(waiter);
                }
            }
        }
        count
    }

    /// The number of processes that wait for each one, directly or behind others.
    fn waiters(&self) -> Vec<usize> {
        let mut marks = vec![usize::MAX; self.pids.len()];
        let all = (0..self.pids.len()).map(|at| {
            let count = self.mark_behind(at, at, &mut marks);
            count - usize::from(marks[at] == at)
        });
        all.collect()
    }

    /// The processes in a cycle, and those between two cycles.
    fn circular(&self) -> Vec<usize> {
        let mut left = vec![true; self.pids.len()];
        peel(&mut left, &self.ahead, &self.behind);
        peel(&mut left, &self.behind, &self.ahead);
        (0..left.len()).filter(|at| left[*at]).collect()
    }
}

/// Repeatedly removes the processes that have nobody left on one side.
fn peel(left: &mut [bool], side: &[Vec<usize>], other: &[Vec<usize>]) {
    let mut degrees: Vec<usize> =
        side.iter().map(|those| those.iter().filter(|other| left[**other]).count()).collect();
    let mut next: Vec<usize> =
        (0..left.len()).filter(|at| left[*at] && degrees[*at] == 0).collect();
    while let Some(at) = next.pop() {
        left[at] = false;
        for &neighbour in &other[at] {
            degrees[neighbour] = degrees[neighbour].saturating_sub(1);
            if degrees[neighbour] == 0 && left[neighbour] {
                next.push(neighbour);
            }
        }
    }
}

/// A shortest cycle of waits from `pid` back to itself.
fn circle(pid: i32, waits: &Waits) -> Option<Vec<i32>> {
    let mut from: BTreeMap<i32, i32> = BTreeMap::new();
    let mut next = VecDeque::from([pid]);
    while let Some(at) = next.pop_front() {
        for blocker in waits.get(&at).into_iter().flat_map(|wait| &wait.blockers) {
            if *blocker == pid {
                let mut pids = vec![at];
                while let Some(before) = from.get(&pids[pids.len() - 1]) {
                    pids.push(*before);
                }
                pids.reverse();
                return Some(pids);
            }
            if let std::collections::btree_map::Entry::Vacant(new) = from.entry(*blocker) {
                new.insert(at);
                next.push_back(*blocker);
            }
        }
    }
    None
}

impl Forest {
    /// Builds the forest from these sources.
    pub fn build(sources: &Sources<'_>) -> Forest {
        let last = |row: &SessionRow| {
            let last = sources.last.get(&row.slot)?;
            let key = last.key();
            let known =
                |all: &'_ StatementsReading| Some(all.get(&key?)?.text.as_ref()?.shown.to_string());
            let message = last.message().map(|text| text.shown.to_string());
            let flight = |all: &StatementsReading| {
                Some(all.in_flight_of(row.slot, row.generation)?.age_seconds)
            };
            Some(LastStatement {
                queryid: key.map(|key| key.query_id()),
                text: message.or_else(|| sources.statements.and_then(known)),
                seconds: sources.statements.and_then(flight).filter(|_| row.state == "active"),
            })
        };
        Forest::arranged(
            &waits(sources),
            &SessionLookup { sessions: sources.sessions, last: &last },
        )
    }

    /// The forest of these waits.
    fn arranged(waits: &Waits, known: &SessionLookup<'_>) -> Forest {
        let graph = Graph::from_waits(waits);
        let mut roots: Vec<usize> =
            (0..graph.pids.len()).filter(|at| !waits.contains_key(&graph.pids[*at])).collect();
        // A mark for each process that has a root above it.
        let mut reached = vec![1; graph.pids.len()];
        for root in &roots {
            graph.mark_behind(*root, 0, &mut reached);
        }
        let mut deadlocks = Vec::new();
        let mut in_circle = BTreeSet::new();
        for at in graph.circular() {
            let pid = graph.pids[at];
            if in_circle.contains(&pid) {
                continue;
            }
            let Some(pids) = circle(pid, waits) else { continue };
            in_circle.extend(pids.iter().copied());
            deadlocks.push(UnresolvedDeadlock { pids });
            // It has no root above it.
            if reached[at] != 0 {
                roots.push(at);
                graph.mark_behind(at, 0, &mut reached);
            }
        }
        let waiters = graph.waiters();
        roots.sort_by_key(|at| (std::cmp::Reverse(waiters[*at]), graph.pids[*at]));
        let mut placed = vec![false; graph.pids.len()];
        roots.iter().for_each(|root| placed[*root] = true);
        let mut rows: HashMap<i32, &SessionRow> = HashMap::new();
        for row in known.sessions.iter().filter(|row| row.state != "dead") {
            rows.entry(row.pid).or_insert(row);
        }
        let party = |at: usize, blocks: Vec<Party>| {
            let pid = graph.pids[at];
            let wait = waits.get(&pid).cloned();
            let party = Party { pid, waiters: waiters[at], wait, blocks, ..Party::default() };
            match rows.get(&pid) {
                Some(row) => party.with_session(row, (known.last)(row)),
                None => party,
            }
        };
        let roots = roots.into_iter().map(|root| tree(root, &graph, &mut placed, &party)).collect();
        Forest { blocked: waits.len(), roots, deadlocks }
    }
}

/// Maximum number of levels below a root. Sessions behind the last level are shown at that level too, because
/// anyone with enough sessions can make a chain of any length, and readers of JSON follow 128 levels.
const DEEPEST: usize = 50;

/// A root and the sessions below it. Breadth first, so that each session is below the nearest one that blocks it.
fn tree(
    root: usize,
    graph: &Graph,
    placed: &mut [bool],
    party: &impl Fn(usize, Vec<Party>) -> Party,
) -> Party {
    // Each with the position of the one above it, and its depth.
    let mut order = vec![(root, 0, 0)];
    let mut next = 0;
    while let Some(&(at, above, depth)) = order.get(next) {
        let (under, depth) = if depth < DEEPEST { (next, depth + 1) } else { (above, depth) };
        for &waiter in &graph.behind[at] {
            if !std::mem::replace(&mut placed[waiter], true) {
                order.push((waiter, under, depth));
            }
        }
        next += 1;
    }
    let waited = |party: &Party| party.wait.as_ref().map_or(0.0, |wait| wait.seconds);
    let mut blocks: Vec<Vec<Party>> = order.iter().map(|_| Vec::new()).collect();
    while let Some((at, above, _)) = order.pop() {
        let mut below = blocks.pop().unwrap_or_default();
        below.reverse();
        below.sort_by(|a, b| waited(b).total_cmp(&waited(a)));
        let made = party(at, below);
        match blocks.get_mut(above) {
            Some(blocks) => blocks.push(made),
            None => return made,
        }
    }
    party(root, Vec::new())
}

impl Party {
    fn with_session(self, row: &SessionRow, last: Option<LastStatement>) -> Party {
        Party {
            application: Some(row.application.clone()),
            user: row.user.clone(),
            database: row.database.clone(),
            client_address: row.client_address.clone(),
            transaction_seconds: row.transaction_seconds,
            state: Some(row.state),
            phase: Some(row.phase.to_string()),
            activity: Some(row.activity.to_string()),
            since_seconds: Some(row.since_seconds),
            statement_seconds: last.as_ref().and_then(|last| last.seconds),
            queryid: last.as_ref().and_then(|last| last.queryid),
            query: last.and_then(|last| last.text),
            ..self
        }
    }
}

/// "shop, alice@orders"; empty if nothing is known.
fn owner(application: Option<&str>, user: Option<&str>, database: Option<&str>) -> String {
    let account = match (user, database) {
        (Some(user), Some(database)) => format!("{user}@{database}"),
        (one, other) => one.or(other).unwrap_or_default().to_string(),
    };
    let parts = [application.unwrap_or_default(), &account];
    let parts: Vec<&str> = parts.into_iter().filter(|part| !part.is_empty()).collect();
    parts.join(", ")
}

fn name(pid: i32, owner: String) -> String {
    match owner.is_empty() {
        true => format!("session {pid}"),
        false => format!("session {pid} ({owner})"),
    }
}

/// "session 4711 (shop, alice@orders)".
pub fn session_name(row: &SessionRow) -> String {
    let application = Some(&*row.application);
    name(row.pid, owner(application, row.user.as_deref(), row.database.as_deref()))
}

/// Puts a text on one line.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What a prepared transaction does.
const HOLDS: &str = "holds its locks until COMMIT PREPARED or ROLLBACK PREPARED";

impl Party {
    /// "session 4711 (shop, alice@orders)", "a prepared transaction".
    pub fn name(&self) -> String {
        if self.pid == 0 {
            return "a prepared transaction (see pg_prepared_xacts)".into();
        }
        let application = self.application.as_deref();
        name(self.pid, owner(application, self.user.as_deref(), self.database.as_deref()))
    }

    /// "idle in transaction for 41 s", "active for 12 s, in IO:DataFileRead". For a session that works, the time
    /// since its current activity started says nothing.
    pub fn doing(&self) -> String {
        let since = duration(self.since_seconds.unwrap_or(0.0));
        let work = match self.statement_seconds {
            Some(seconds) => format!(" for {}", duration(seconds)),
            None => String::new(),
        };
        match (self.state, self.activity.as_deref()) {
            _ if self.pid == 0 => format!("it {HOLDS}"),
            (None, _) => "not measured".into(),
            (Some(state), _) if state.starts_with("idle") => format!("{state} for {since}"),
            (Some(state), Some("cpu")) => format!("{state}{work}, on CPU"),
            (Some(state), Some(activity)) => format!("{state}{work}, in {activity}"),
            (Some(state), None) => format!("{state}{work}"),
        }
    }

    /// "8 sessions wait for session 4711 (shop, alice@orders), idle in transaction for 41 s".
    pub fn sentence(&self) -> String {
        self.sentence_about(&self.name())
    }

    /// The same with another name for it.
    pub fn sentence_about(&self, name: &str) -> String {
        let wait = match self.waiters {
            1 => "1 session waits".to_string(),
            n => format!("{n} sessions wait"),
        };
        format!("{wait} for {}", self.described(name))
    }

    /// "session 123 (psql, joe@shop), idle in transaction for 41 s", by this name.
    pub fn described(&self, name: &str) -> String {
        let doing = self.wait.is_none().then(|| match self.pid {
            0 => format!(", which {HOLDS}"),
            _ => format!(", {}", self.doing()),
        });
        format!("{name}{}", doing.unwrap_or_default())
    }

    /// Of the sessions that wait for it, directly or indirectly, the one that has waited longest.
    pub fn longest(&self) -> Option<&Party> {
        let waited = |party: &Party| party.wait.as_ref().map_or(0.0, |wait| wait.seconds);
        let all = self.blocks.iter().flat_map(|block| [Some(block), block.longest()]).flatten();
        all.max_by(|a, b| waited(a).total_cmp(&waited(b)))
    }

    /// For how long this party has waited for `root`, at most. It may have waited for others before: locks of rows and
    /// transactions end with the transaction, so nobody has waited for the root's since before that began.
    fn waited_for(&self, root: &Party) -> f64 {
        let Some(wait) = &self.wait else { return 0.0 };
        match (wait.lock_type, root.transaction_seconds) {
            ("transactionid" | "tuple" | "virtualxid", Some(age)) => age.min(wait.seconds),
            // It has just ended its transaction.
            ("transactionid" | "tuple" | "virtualxid", None) if root.state == Some("idle") => 0.0,
            _ => wait.seconds,
        }
    }

    fn waits<'p>(&'p self, root: &'p Party) -> impl Iterator<Item = f64> + 'p {
        let mut all = Vec::new();
        self.each(0, &mut all);
        all.into_iter().map(move |(_, party)| party.waited_for(root))
    }

    /// For how long it has kept a session waiting, at most, seconds.
    pub fn keeps_seconds(&self) -> f64 {
        self.waits(self).fold(0.0, f64::max)
    }

    /// The same of all sessions that wait for it, in total, seconds.
    pub fn keeps_all_seconds(&self) -> f64 {
        self.waits(self).sum()
    }

    /// The same of the last `length` seconds.
    fn keeps_all_within(&self, length: f64) -> f64 {
        self.waits(self).map(|seconds| seconds.min(length)).sum()
    }

    /// The session itself and all that wait for it, each with its depth below the root.
    fn each<'p>(&'p self, depth: usize, out: &mut Vec<(usize, &'p Party)>) {
        out.push((depth, self));
        for party in &self.blocks {
            party.each(depth + 1, out);
        }
    }

    /// "client 10.0.0.7, transaction open for 63 s"; empty if neither is known.
    pub fn origin(&self) -> String {
        let client = self.client_address.as_ref().map(|client| format!("client {client}"));
        let transaction = self
            .transaction_seconds
            .map(|seconds| format!("transaction open for {}", duration(seconds)));
        [client, transaction].into_iter().flatten().collect::<Vec<_>>().join(", ")
    }

    fn lines(&self, depth: usize, out: &mut Vec<String>) {
        let indent = "  ".repeat(depth);
        if let Some(wait) = &self.wait {
            let behind = match wait.blockers.len() {
                0 | 1 => String::new(),
                _ => {
                    let pids: Vec<String> = wait.blockers.iter().map(i32::to_string).collect();
                    let more = usize::from(wait.blocker_count) > wait.blockers.len();
                    format!(", blocked by {}{}", pids.join(", "), if more { ", ..." } else { "" })
                }
            };
            out.push(format!(
                "{indent}{} waits for {} ({}) for {}{behind}",
                self.name(),
                wait.lock,
                wait.mode,
                duration(wait.seconds),
            ));
        }
        let origin = self.origin();
        if self.wait.is_none() && !origin.is_empty() {
            out.push(format!("{indent}  {origin}"));
        }
        if let Some(query) = &self.query {
            let last =
                if self.wait.is_none() && self.state != Some("active") { "last: " } else { "" };
            out.push(format!("{indent}  {last}{}", one_line(query)));
        }
        for party in &self.blocks {
            party.lines(depth + 1, out);
        }
    }
}

/// A shorter wait is not worth a line, seconds.
const LONG: f64 = 1.0;

impl Forest {
    /// The longest wait, seconds; 0 if nobody waits.
    pub fn longest_seconds(&self) -> f64 {
        let waits = self.roots.iter().filter_map(|root| root.longest()?.wait.as_ref());
        waits.map(|wait| wait.seconds).fold(0.0, f64::max)
    }

    /// One line if any session has waited for more than a second; it names the session for which most others
    /// wait.
    pub fn headline(&self) -> Option<String> {
        let longest = self.longest_seconds();
        let root = self.roots.first().filter(|_| longest > LONG)?;
        let others = match self.roots.len() {
            1 => String::new(),
            2 => "; 1 other session blocks others".to_string(),
            n => format!("; {} other sessions block others", n - 1),
        };
        Some(format!("{}; longest {}{others}", root.sentence(), duration(longest)))
    }

    /// All sessions, each with its depth below the root, in the order of the tree.
    pub fn everybody(&self) -> Vec<(usize, &Party)> {
        let mut all = Vec::new();
        for root in &self.roots {
            root.each(0, &mut all);
        }
        all
    }

    /// The forest as a table, roots first; the key of a row is its PID.
    pub fn table(&self, wish: &RowOptions) -> Table {
        let columns = vec![
            left("SESSION", 0),
            right("BEHIND", 2),
            left("STATE OR AWAITED LOCK", 0),
            left("MODE", 4),
            Column::new("seconds", "FOR", Unit::Seconds),
            Column::new("transaction", "XACT", Unit::Seconds).expendable(3),
            left("CLIENT", 5),
            text("QUERY"),
        ];
        let row = |(depth, party): (usize, &Party)| {
            let owner = owner(
                party.application.as_deref(),
                party.user.as_deref(),
                party.database.as_deref(),
            );
            let session = match party.pid {
                0 => "prepared transaction".to_string(),
                pid => format!("{:depth$}{pid} {owner}", "", depth = 2 * depth),
            };
            let behind = match party.waiters {
                0 => Cell::Empty,
                n => n.to_string().into(),
            };
            let query = party.query.as_deref().map(one_line).unwrap_or_default();
            let state = match (party.state, party.activity.as_deref()) {
                _ if party.pid == 0 => String::new(),
                (Some("active"), Some(activity)) => activity.to_string(),
                (Some(state), _) => state.to_string(),
                (None, _) => "not measured".to_string(),
            };
            let (state, mode, seconds, tone) = match &party.wait {
                Some(wait) => {
                    let tone = Tone::Class(WaitClass::Lock);
                    (wait.lock.clone(), wait.mode, Some(wait.seconds), tone)
                }
                None => {
                    let idle = party.state.is_some_and(|state| state.starts_with("idle"));
                    let seconds = if idle { party.since_seconds } else { party.statement_seconds };
                    (state, "", seconds, Tone::Bad)
                }
            };
            let cells = vec![
                session.into(),
                behind,
                state.into(),
                mode.into(),
                seconds.into(),
                party.transaction_seconds.into(),
                party.client_address.as_deref().into(),
                query.into(),
            ];
            Row { tone, ..Row::new(party.pid.to_string(), cells) }
        };
        let all = self.everybody().into_iter().map(row);
        let shown = |row: &Row| {
            let cells: Vec<String> = row.cells.iter().map(Cell::exact).collect();
            accepts(wish, &cells.iter().map(String::as_str).collect::<Vec<_>>())
        };
        Table::from_rows(columns, all.filter(shown).collect())
    }

    /// The forest as text, one line for each session.
    pub fn lines(&self) -> Vec<String> {
        let mut out = Vec::new();
        if self.blocked == 0 {
            return vec!["No session is blocked.".into()];
        }
        for deadlock in &self.deadlocks {
            let pids: Vec<String> = deadlock.pids.iter().map(i32::to_string).collect();
            out.push(format!(
                "Deadlock: {} wait for each other; the server resolves it after deadlock_timeout",
                pids.join(", ")
            ));
        }
        for root in &self.roots {
            out.push(root.sentence());
            root.lines(0, &mut out);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(pid: i32, blockers: &[i32]) -> (i32, Wait) {
        (pid, Wait { pid, blockers: blockers.to_vec(), ..Wait::default() })
    }

    #[test]
    fn locks_have_words() {
        let names = Names::from([((5, 16384), "orders".to_string())]);
        let words = |kind, fields, field4| {
            lock_in_words(&LockTag { fields, field4, kind, method: 1 }, &names)
        };
        assert_eq!(words(4, [5, 16384, 7], 3), "row (7,3) of relation orders");
        assert_eq!(words(0, [5, 99, 0], 0), "relation 99 in database 5");
        assert_eq!(words(5, [742, 0, 0], 0), "transaction 742");
        assert_eq!(words(10, [5, 1, 2], 2), "advisory lock 1, 2");
        assert_eq!(words(10, [5, u32::MAX, u32::MAX], 1), "advisory lock -1");
        assert_eq!(words(200, [1, 2, 3], 4), "lock 1, 2, 3, 4 of type 200");
        assert_eq!(words(1, [5, 16384, 0], 0), "extension of relation orders");
        assert_eq!(words(2, [5, 0, 0], 0), "frozen XIDs of database 5");
        assert_eq!(words(3, [5, 16384, 7], 0), "page 7 of relation orders");
        assert_eq!(words(6, [3, 41, 0], 0), "virtual transaction 3/41");
        assert_eq!(words(7, [742, 6, 0], 0), "speculative insertion 6 of transaction 742");
        assert_eq!(words(8, [5, 1259, 9], 0), "object 9 of class 1259 in database 5");
    }

    #[test]
    fn a_line_names_the_root_if_somebody_has_waited_for_long() {
        let mut forest = crate::sample::blocking();
        let line =
            "8 sessions wait for session 4304 (psql, joe@shop), idle in transaction for 41 s; \
                    longest 41 s";
        assert_eq!(forest.headline().unwrap(), line);
        forest.roots.push(Party { pid: 7, ..Party::default() });
        assert_eq!(forest.headline().unwrap(), format!("{line}; 1 other session blocks others"));
        let short = &mut forest.roots[0].blocks[0];
        short.blocks.clear();
        short.wait.iter_mut().for_each(|wait| wait.seconds = 0.9);
        assert_eq!(forest.headline(), None);
        assert_eq!(Forest::default().headline(), None);
    }

    #[test]
    fn nobody_has_waited_for_rows_of_a_transaction_for_longer_than_it_lasts() {
        let mut root = crate::sample::blocking().roots.remove(0);
        assert_eq!((root.keeps_seconds(), root.keeps_all_seconds()), (41.0, 293.0));
        root.transaction_seconds = Some(0.25);
        assert_eq!((root.keeps_seconds(), root.keeps_all_seconds()), (0.25, 2.0));
        // An advisory lock may be that of the session.
        root.blocks[0].wait.as_mut().unwrap().lock_type = "advisory";
        assert_eq!((root.keeps_seconds(), root.keeps_all_seconds()), (41.0, 42.75));
        root.blocks[0].wait.as_mut().unwrap().lock_type = "tuple";
        (root.state, root.transaction_seconds) = (Some("idle"), None);
        assert_eq!((root.keeps_seconds(), root.keeps_all_seconds()), (0.0, 0.0));
        // A prepared transaction.
        (root.pid, root.state) = (0, None);
        assert_eq!((root.keeps_seconds(), root.keeps_all_within(1.0)), (41.0, 8.0));
        assert_eq!(Party::default().keeps_seconds(), 0.0);
    }

    #[test]
    fn the_table_has_the_root_first_and_each_below_those_it_waits_for() {
        let forest = crate::sample::blocking();
        let table = forest.table(&RowOptions::default());
        let cells =
            |row: usize| -> Vec<String> { table.rows[row].cells.iter().map(Cell::exact).collect() };
        assert_eq!(table.rows.len(), 9);
        assert_eq!(cells(0)[..3], ["4304 psql, joe@shop", "8", "idle in transaction"]);
        assert_eq!(cells(1)[..3], ["  4310 shop", "7", "row (0,7) of relation accounts"]);
        assert_eq!(cells(2)[..2], ["    4311 shop", ""]);
        assert_eq!(table.rows[2].key, "4311");
        let wish = RowOptions { filter: "idle in".into(), ..RowOptions::default() };
        assert_eq!(forest.table(&wish).rows.len(), 1);
    }

    #[test]
    fn a_circle_of_waits_is_found() {
        let waits = Waits::from([wait(1, &[2]), wait(2, &[9, 3]), wait(3, &[1]), wait(4, &[1])]);
        assert_eq!(circle(1, &waits), Some(vec![1, 2, 3]));
        assert_eq!(circle(4, &waits), None);
    }

    fn waits_for(pid: i32, blockers: &[i32], seconds: f64) -> (i32, Wait) {
        (pid, Wait { seconds, blocker_count: blockers.len() as u16, ..wait(pid, blockers).1 })
    }

    fn arranged(waits: &[(i32, Wait)], sessions: &[SessionRow]) -> Forest {
        let waits = waits.iter().cloned().collect();
        Forest::arranged(&waits, &SessionLookup { sessions, last: &|_| None })
    }

    #[test]
    fn a_forest_has_all_once_those_for_whom_most_wait_and_who_wait_longest_first() {
        let waits = [
            waits_for(2, &[1], 1.0),
            waits_for(3, &[1], 5.0),
            waits_for(4, &[2, 3], 9.0),
            waits_for(5, &[6], 1.0),
            waits_for(6, &[5], 2.0),
            waits_for(8, &[9], 2.0),
        ];
        let forest = arranged(&waits, &[]);
        // Depth, process and number of waiters; 5 and 6 wait for each other.
        let shape: Vec<_> = forest
            .everybody()
            .iter()
            .map(|(at, session)| (*at, session.pid, session.waiters))
            .collect();
        let expected = [
            (0, 1, 3),
            (1, 3, 1),
            (1, 2, 1),
            (2, 4, 0),
            (0, 5, 1),
            (1, 6, 1),
            (0, 9, 1),
            (1, 8, 0),
        ];
        assert_eq!(shape, expected);
        assert_eq!((forest.blocked, forest.longest_seconds()), (6, 9.0));
        assert_eq!(forest.deadlocks, [UnresolvedDeadlock { pids: vec![5, 6] }]);
        // Another session blocks one of a cycle, so the cycle has no root of its own.
        let below = arranged(&[waits_for(5, &[6, 1], 1.0), waits_for(6, &[5], 1.0)], &[]);
        assert_eq!(below.roots.iter().map(|root| root.pid).collect::<Vec<_>>(), [1]);
        assert_eq!(below.deadlocks.len(), 1);
    }

    /// A hostile role can have as many sessions as the server, each waiting for the one before.
    #[test]
    fn a_long_chain_is_no_deeper_than_readers_can_follow() {
        const LONG: i32 = 5_000;
        let waits: Vec<_> = (2..=LONG).map(|pid| waits_for(pid, &[pid - 1], 1.0)).collect();
        let forest = arranged(&waits, &[]);
        let all = forest.everybody();
        assert_eq!(all.len(), LONG as usize);
        let counts =
            all.iter().all(|(_, session)| session.waiters == (LONG - session.pid) as usize);
        assert!(counts, "each has all that are behind it");
        assert_eq!(all.iter().map(|(depth, _)| *depth).max(), Some(DEEPEST));
        assert_eq!(all.iter().filter(|(depth, _)| *depth < DEEPEST).count(), DEEPEST);
        let text = serde_json::to_string(&forest).unwrap();
        serde_json::from_str::<serde_json::Value>(&text).unwrap();
    }

    /// Against the definitions, by pairs.
    #[test]
    fn graphs_at_random_have_each_once_below_one_that_blocks_it() {
        let mut state = 20_261_129u64;
        let mut number = move |below: u64| {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            (state % below) as i32
        };
        for round in 0..2_000 {
            let count = 2 + number(12);
            let mut waits = Waits::new();
            for pid in 1..=count {
                if number(3) > 0 {
                    let blockers: Vec<i32> =
                        (0..1 + number(3)).map(|_| 1 + number(count as u64)).collect();
                    let blockers: Vec<i32> =
                        blockers.into_iter().filter(|blocker| *blocker != pid).collect();
                    if !blockers.is_empty() {
                        waits.insert(pid, waits_for(pid, &blockers, f64::from(number(9))).1);
                    }
                }
            }
            let blocks = |one: i32, other: i32| {
                waits.get(&other).is_some_and(|wait| wait.blockers.contains(&one))
            };
            // Who waits for whom, directly or indirectly: repeated until no step adds a pair.
            let mut reach: BTreeSet<(i32, i32)> = waits
                .iter()
                .flat_map(|(pid, wait)| wait.blockers.iter().map(|blocker| (*blocker, *pid)))
                .collect();
            loop {
                let steps = |(from, via): &(i32, i32)| {
                    let (from, via) = (*from, *via);
                    reach.range((via, i32::MIN)..=(via, i32::MAX)).map(move |(_, to)| (from, *to))
                };
                let more: Vec<_> =
                    reach.iter().flat_map(steps).filter(|pair| !reach.contains(pair)).collect();
                if more.is_empty() {
                    break;
                }
                reach.extend(more);
            }
            let forest =
                Forest::arranged(&waits, &SessionLookup { sessions: &[], last: &|_| None });
            let mut seen: Vec<i32> =
                forest.everybody().iter().map(|(_, session)| session.pid).collect();
            seen.sort_unstable();
            let all: BTreeSet<i32> = waits
                .keys()
                .chain(waits.values().flat_map(|wait| &wait.blockers))
                .copied()
                .collect();
            assert_eq!(seen, all.into_iter().collect::<Vec<_>>(), "round {round}");
            for (_, party) in forest.everybody() {
                let pid = party.pid;
                let behind = reach.iter().filter(|(from, to)| *from == pid && *to != pid).count();
                assert_eq!(party.waiters, behind, "round {round}, {pid}");
                assert!(
                    party.blocks.iter().all(|block| blocks(party.pid, block.pid)),
                    "round {round}"
                );
            }
            for deadlock in &forest.deadlocks {
                let pids = &deadlock.pids;
                let next = pids.iter().cycle().skip(1);
                assert!(
                    pids.iter().zip(next).all(|(one, other)| blocks(*other, *one)),
                    "round {round}"
                );
            }
            for pid in 1..=count {
                let dead = forest.deadlocks.iter().any(|deadlock| deadlock.pids.contains(&pid));
                assert_eq!(dead, reach.contains(&(pid, pid)), "round {round}, {pid}");
            }
        }
    }

    #[test]
    fn processes_of_one_query_wait_as_one_and_blockers_that_do_not_fit_are_hinted_at() {
        let mut waits = Waits::new();
        for (_, wait) in
            [waits_for(7, &[1, 2], 3.0), waits_for(8, &[2, 4], 5.0), waits_for(9, &[6], 1.0)]
        {
            join(&mut waits, 7, wait);
        }
        let all = &waits[&7];
        assert_eq!((all.pid, all.seconds), (8, 5.0), "the longest");
        assert_eq!((&all.blockers[..], all.blocker_count), (&[2, 4, 1, 6][..], 4));
        let mut wait = waits_for(7, &[1, 2], 3.0);
        for (count, hint) in [(2, "blocked by 1, 2"), (3, "blocked by 1, 2, ...")] {
            wait.1.blocker_count = count;
            let lines = arranged(&[wait.clone()], &[]).lines();
            assert!(lines[1].ends_with(hint), "{lines:?}");
        }
    }

    #[test]
    fn a_session_is_known_by_its_owner_of_the_slot_and_the_dead_are_left_out() {
        let row = |state, user: &str| SessionRow {
            pid: 1,
            state,
            user: Some(user.into()),
            class: WaitClass::Lock,
            ..crate::sample::interval().sessions[0].clone()
        };
        let rows = [row("dead", "eve"), row("active", "joe")];
        let forest = arranged(&[waits_for(2, &[1], 1.0)], &rows);
        assert_eq!(forest.roots[0].user.as_deref(), Some("joe"));
        let blocked = |generation, mode| Blocked {
            slot: rows[1].slot,
            generation,
            pid: 1,
            since: 0,
            lock: LockTag { fields: [0; 3], field4: 0, kind: 10, method: 1 },
            mode,
            blockers: Vec::new(),
            count: 0,
        };
        let owner = rows[1].generation;
        assert!(Waiting::from_sessions(&rows[1..]).row(&blocked(owner, 1)).is_some());
        assert!(Waiting::from_sessions(&rows[1..]).row(&blocked(owner + 1, 1)).is_none());
        assert!(Waiting::from_sessions(&rows[..1]).row(&blocked(owner, 1)).is_none(), "it is dead");
        let idle = SessionRow { class: WaitClass::Client, ..rows[1].clone() };
        assert!(
            Waiting::from_sessions(&[idle]).row(&blocked(owner, 1)).is_none(),
            "it has the lock"
        );
        assert_eq!(
            [1, 8, 9].map(|number| mode(&blocked(0, number))),
            ["AccessShareLock", "AccessExclusiveLock", "unknown"]
        );
        assert_eq!(
            (lock_type(&blocked(0, 1)), one_line("a\n\t b")),
            ("advisory", "a b".to_string())
        );
    }
}
