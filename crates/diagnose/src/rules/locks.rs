// SPDX-License-Identifier: PostgreSQL
//! Locks, heavyweight and lightweight, and transactions that hold them without need.

use super::matters;
use crate::case::Case;
use crate::diagnosis::{Confidence, Diagnosis, Rule};
use segment::WaitClass;
use view::blocking::{Forest, Party, Wait};
use view::statements::{beginning, ActivityRow};
use view::units::{clause, count, duration, percent, whole};

/// Part of the load.
const MUCH: f64 = 0.1;
/// Somebody who has waited this long is reported, however little of the time that is, seconds.
const LONG: f64 = 5.0;
/// Characters of a statement.
const TEXT: usize = 70;

/// The session for which most others wait, and how that goes on: what is wrong, and what shows it.
fn blocker(forest: &Forest) -> Option<(String, Vec<String>)> {
    let root = forest.roots.first()?;
    let text = format!("{}.", root.sentence());
    let mut evidence = Vec::new();
    if let Some(query) = &root.query {
        let which =
            if root.state == Some("active") { "Its statement" } else { "Its last statement" };
        evidence.push(format!("{which}: {}", beginning(query, TEXT)));
    }
    if let Some((waiter, wait)) = root.longest().and_then(|it| Some((it, it.wait.as_ref()?))) {
        evidence.push(format!(
            "Longest: {} waits for {} ({}) for {}.",
            waiter.name(),
            wait.lock,
            wait.mode,
            duration(wait.seconds)
        ));
    }
    if let Some((middle, wait)) = queue(root) {
        let query = middle.query.as_deref().map_or(String::new(), |it| beginning(it, TEXT));
        evidence.push(format!(
            "{} of them {} behind {}, which waits for {} ({}): {query}",
            middle.waiters,
            if middle.waiters == 1 { "queues" } else { "queue" },
            middle.name(),
            wait.lock,
            wait.mode,
        ));
    }
    if forest.roots.len() > 1 {
        evidence.push(format!("{} other sessions block others, too.", forest.roots.len() - 1));
    }
    Some((text, evidence))
}

/// The session right behind the root for which most others wait, too, as for DDL that waits for a reader.
fn queue(root: &Party) -> Option<(&Party, &Wait)> {
    let middle =
        root.blocks.iter().filter(|block| block.waiters > 0).max_by_key(|it| it.waiters)?;
    Some((middle, middle.wait.as_ref()?))
}

/// The longest wait of an activity: of those that ended, and of those that go on. `None`: none is known.
fn longest_wait(case: &Case<'_>, activity: &str, ended: Option<f64>) -> Option<f64> {
    let lock_type = activity.strip_prefix("Lock:");
    let everybody = case.blocking.map_or_else(Vec::new, Forest::everybody);
    let blocked = everybody.iter().filter_map(|(_, party)| party.wait.as_ref());
    let blocked = blocked.filter(|wait| Some(wait.lock_type) == lock_type).map(|wait| wait.seconds);
    let sessions = case.sessions().filter(|row| &*row.activity == activity);
    let waiting = sessions.map(|row| row.since_seconds);
    ended.into_iter().chain(blocked).chain(waiting).reduce(f64::max)
}

/// Sessions wait for rows, tables or transactions of others.
pub fn heavyweight(case: &Case<'_>) -> Vec<Diagnosis> {
    let seconds = case.seconds_of(|a| a.class == WaitClass::Lock);
    let longest = case.blocking.map_or(0.0, Forest::longest_seconds);
    if !matters(case, seconds, MUCH) && longest < LONG {
        return Vec::new();
    }
    let blocker = case.blocking.and_then(blocker);
    let middle = case.blocking.and_then(|it| queue(it.roots.first()?));
    let ddl = middle.is_some_and(|(_, wait)| wait.mode == "AccessExclusiveLock");
    let waits = case.interval().activities_where(|a| a.class == WaitClass::Lock);
    let kinds: Vec<String> = waits
        .iter()
        .take(3)
        .map(|row| {
            // Those that go on are in the total, not in the number.
            let ended = match row.timing.count {
                0 => "none has ended".to_owned(),
                1 => "1 wait ended".to_owned(),
                n => format!("{} waits ended", whole(n)),
            };
            format!(
                "{} ({ended}, {} in total{})",
                row.activity,
                duration(row.timing.seconds),
                clause(", longest ", longest_wait(case, &row.activity, row.timing.max_seconds), "")
            )
        })
        .collect();
    let of_statement = |a: &ActivityRow| a.class == WaitClass::Lock;
    let share = format!(
        "Sessions wait for locks of other sessions {} % of their time",
        percent(case.share(seconds))
    );
    let kinds = kinds.join(", ");
    let (text, mut evidence) = match blocker {
        Some((text, mut evidence)) => {
            // A wait of the last instant is in no interval yet.
            if !kinds.is_empty() {
                evidence.push(format!("{share}: {kinds}."));
            }
            (text, evidence)
        }
        None => (format!("{share}."), vec![format!("They wait for {kinds}.")]),
    };
    evidence.extend(case.whose(seconds, of_statement));
    vec![Diagnosis {
        rule: Rule::Locks,
        text,
        seconds,
        share: Some(case.share(seconds)),
        evidence,
        advice: match ddl {
            true => {
                "End the session at the root, or cancel the one that wants the table for itself. \
                     Give such statements a lock_timeout, and repeat them."
            }
            false => {
                "Look at who holds them (tally blocking): keep transactions short, change hot rows \
                     last in a transaction, and change rows in the same order everywhere."
            }
        }
        .into(),
        confidence: Confidence::Certain,
        section: "locks",
        consequence_of: None,
    }]
}

/// A session has a transaction open and does nothing.
pub fn idle_in_transaction(case: &Case<'_>) -> Vec<Diagnosis> {
    /// A transaction may wait for its client that long, seconds.
    const LONG: f64 = 60.0;

    let idle = |s: &&segment::interval::SessionRow| {
        s.state == "idle in transaction" && s.since_seconds >= LONG
    };
    let sessions: Vec<_> = case.sessions().filter(idle).collect();
    let Some(oldest) = sessions.iter().max_by(|a, b| a.since_seconds.total_cmp(&b.since_seconds))
    else {
        return Vec::new();
    };
    let others = match sessions.len() {
        1 => String::new(),
        n => format!(", and {} more for over a minute", n - 1),
    };
    vec![Diagnosis {
        rule: Rule::IdleInTransaction,
        text: format!(
            "Idle in a transaction for {}: {}{others}.",
            duration(oldest.since_seconds),
            name(oldest)
        ),
        seconds: 0.0,
        share: None,
        evidence: vec![
            "Its locks are held and vacuum keeps the rows that it could still see.".to_string()
        ],
        advice: "Find out why the client does not end its transaction; \
                 idle_in_transaction_session_timeout ends such sessions."
            .into(),
        confidence: Confidence::Certain,
        section: "locks",
        consequence_of: None,
    }]
}

/// "session 123 (application psql, user joe, database shop)".
pub(super) fn name(session: &segment::interval::SessionRow) -> String {
    let mut parts = Vec::new();
    if !session.application.is_empty() {
        parts.push(format!("application {}", session.application));
    }
    parts.extend(session.user.as_ref().map(|it| format!("user {it}")));
    parts.extend(session.database.as_ref().map(|it| format!("database {it}")));
    match parts.is_empty() {
        true => format!("session {}", session.pid),
        false => format!("session {} ({})", session.pid, parts.join(", ")),
    }
}

/// What is known to help against contention for a lightweight lock, by tranche.
fn remedy(tranche: &str) -> &'static str {
    match tranche {
        "WALInsert" => {
            "Many sessions write WAL at once: write less of it (fewer indexes, fewer full-page images by \
             rarer checkpoints), or in larger statements."
        }
        "WALWrite" => {
            "Sessions queue for the flush of the WAL: a faster device for pg_wal, larger transactions, or \
             synchronous_commit = off where a crash may lose the last of them."
        }
        "ProcArray" => {
            "Many sessions take snapshots and end transactions at once: fewer sessions that work at a time \
             (a connection pool), larger transactions."
        }
        "XactSLRU" | "XidGen" => {
            "Transaction numbers and their states are asked for all the time: larger transactions; fewer \
             subtransactions."
        }
        "SubtransSLRU" | "SubtransBuffer" => {
            "Subtransactions beyond 64 in a session, or a long transaction in another session: avoid savepoints \
             and exception blocks in loops, and end long transactions."
        }
        "MultiXactOffsetSLRU" | "MultiXactMemberSLRU" | "MultiXactOffsetBuffer"
        | "MultiXactMemberBuffer" | "MultiXactGen" => {
            "Rows are locked by several transactions at once (foreign keys to hot rows, FOR SHARE): \
             shorter transactions; FOR NO KEY UPDATE; fewer sessions on one parent row."
        }
        "LockManager" => {
            "More locks than a session's sixteen fast-path slots: fewer partitions and indexes for each \
             statement (partition pruning), prepared statements; from 18 on max_locks_per_transaction \
             gives more slots."
        }
        "BufferMapping" => {
            "Blocks come and go in the buffers all the time: larger shared_buffers, or statements that \
             read less."
        }
        "BufferContent" => {
            "Sessions change or read the same block: a hot row, the last page of an index on an ascending \
             key, a small hot table; spread them (fillfactor, hash partitions), or change them less."
        }
        "BufferIO" | "BufferStrategy" => {
            "Sessions wait for blocks that others read: larger shared_buffers, or statements that read less."
        }
        "RelationMapping" | "RelCacheInit" => "Catalogues change all the time: fewer temporary tables and DDL.",
        "pg_stat_statements" => {
            "Who reads pg_stat_statements keeps new statements out of it: ask less often, or without texts \
             (pg_stat_statements(false)); raise pg_stat_statements.max where statements evict each other."
        }
        _ => "Fewer sessions that work at a time (a connection pool) lessen any contention.",
    }
}

/// Sessions queue for a lightweight lock.
pub fn lightweight(case: &Case<'_>) -> Vec<Diagnosis> {
    let waits = case
        .interval()
        .activities_where(|a| a.class == WaitClass::Lwlock && !a.idle && &*a.phase != "background");
    let Some(worst) = waits.first() else { return Vec::new() };
    let seconds = worst.timing.seconds;
    if !matters(case, seconds, MUCH) {
        return Vec::new();
    }
    let tranche = worst.activity.split_once(':').map_or(&*worst.activity, |(_, name)| name);
    let mut evidence = vec![format!(
        "{} waits/s{}{}.",
        count(worst.timing.count as f64 / case.length()),
        clause(" of ", worst.timing.mean_seconds, ""),
        clause(", p99 ", worst.timing.p99_seconds, "")
    )];
    let of_statement = |a: &ActivityRow| a.activity == worst.activity;
    evidence.extend(case.whose(seconds, of_statement));
    let held = case.interval().lwlocks.iter().filter(|row| &*row.lock == tranche);
    if let Some(row) = held.max_by(|a, b| a.held.seconds.total_cmp(&b.held.seconds)) {
        evidence.push(format!(
            "It is held longest in phase {} ({}): {} in total{}.",
            row.phase,
            row.mode,
            duration(row.held.seconds),
            clause(", ", row.held.mean_seconds, " each")
        ));
    }
    vec![Diagnosis {
        rule: Rule::LightweightLocks,
        text: format!(
            "Sessions queue for the lightweight lock {tranche} {} % of their time.",
            percent(case.share(seconds))
        ),
        seconds,
        share: Some(case.share(seconds)),
        evidence,
        advice: remedy(tranche).into(),
        confidence: Confidence::Likely,
        section: "locks",
        consequence_of: None,
    }]
}
