// SPDX-License-Identifier: PostgreSQL
//! Locks, heavyweight and lightweight, and transactions that hold them without need.

use super::names::{
    cancel, command, end_prepared, go_on, identifier, literal, name, target, terminate,
};
use super::{bounds, clients, commits, harms, much};
use crate::advice::Advice;
use crate::case::{is_of_client, words, Case, PASSED_ON, TEXT};
use crate::diagnosis::{Confidence, Diagnosis, Kind, Rule};
use std::collections::BTreeMap;

use segment::{wait_names, ClientWaits, WaitClass};
use view::blocking::{Forest, Party, Wait};
use view::statements::{beginning, ActivityRow, StatementFigures};
use view::units::{capitalise, clause, count, duration, percent, whole};
use view::vacuum::{Condition, ConditionKind};

/// Share of the load.
const MUCH: f64 = 0.1;
/// A session that has waited this long is reported, whatever share of the time that is, seconds.
const LONG: f64 = 5.0;
/// Locks that are passed on after less time than this are held by sessions at work, seconds.
const HELD: f64 = 0.010;

/// The session for which others wait longest, in total: where most waits are short, a session for which only
/// a few others wait may be the one that does harm.
pub(super) fn worst_root<'c>(case: &Case<'c>) -> Option<&'c Party> {
    let roots = case.blocking.map_or(&[][..], |forest| &forest.roots);
    // If several are equal, the first one: most sessions wait for it.
    roots.iter().rev().max_by(|a, b| a.keeps_all_seconds().total_cmp(&b.keeps_all_seconds()))
}

/// The mode of a lock of a table that nobody else can use meanwhile.
const WHOLE: &str = "AccessExclusiveLock";

/// The name of the session; of a prepared transaction, its own if it is the only one.
fn name_of(case: &Case<'_>, root: &Party) -> String {
    let known: Vec<_> = case.conditions(ConditionKind::Prepared).collect();
    match known.as_slice() {
        [one] if root.pid == 0 => format!("prepared transaction {}", literal(&one.name)),
        _ => root.name(),
    }
}

/// A sentence about that session, and the evidence for it.
fn blocker(case: &Case<'_>) -> Option<(String, Vec<String>)> {
    let forest = case.blocking?;
    let root = worst_root(case)?;
    let stopped = match case.is_stopped(root.pid) {
        true => ", whose process is stopped (state T in ps)",
        false => "",
    };
    let queue = queue(root);
    let name = name_of(case, root);
    let statement = |party: &Party| {
        party.query.as_deref().map_or(String::new(), |query| beginning(query, TEXT))
    };
    let behind = |(middle, wait): &(&Party, &Wait)| {
        let query = statement(middle);
        format!(
            "{} of them {} behind {}, which waits for {} ({}): {query}",
            middle.waiters,
            if middle.waiters == 1 { "queues" } else { "queue" },
            middle.name(),
            wait.lock,
            wait.mode,
        )
    };
    // Without the one that waits to lock a whole table, the others would not wait.
    let (text, more) = match queue {
        Some((middle, wait)) if wait.mode == WHOLE => {
            let (others, queue) = match middle.waiters {
                1 => ("1 session".to_owned(), "queues"),
                n => (format!("{n} sessions"), "queue"),
            };
            let begin = match statement(middle).as_str() {
                "" => capitalise(&middle.name()),
                query => format!("\"{query}\" by {}", middle.name()),
            };
            let root = root.described(&name);
            (format!("{begin} waits for {root}{stopped}; {others} {queue} behind it."), None)
        }
        queue => (format!("{}{stopped}.", root.sentence_about(&name)), queue),
    };
    let mut evidence = Vec::new();
    if let Some(past) = case.blocker {
        evidence.push(format!(
            "As of {} before the end of this time. It {}.",
            duration(case.whole.time - past.time),
            past.harm(),
        ));
    }
    if let Some(query) = &root.query {
        let which =
            if root.state == Some("active") { "Its statement" } else { "Its last statement" };
        evidence.push(format!("{which}: {}", beginning(query, TEXT)));
    }
    if let Some((waiter, wait)) =
        root.longest().and_then(|party| Some((party, party.wait.as_ref()?)))
    {
        evidence.push(format!(
            "Longest: {} waits for {} ({}) for {}.",
            waiter.name(),
            wait.lock,
            wait.mode,
            duration(wait.seconds)
        ));
    }
    evidence.extend(more.as_ref().map(behind));
    if let Some(pids) = circle(forest, root) {
        evidence.push(format!(
            "Sessions {} wait for each other: each has locked what another one needs. The server cancels one of them after \
             deadlock_timeout.",
            pids.iter().map(i32::to_string).collect::<Vec<_>>().join(" and ")
        ));
    }
    match forest.roots.len() {
        0 | 1 => {}
        2 => evidence.push("Another session blocks others, too.".to_owned()),
        n => evidence.push(format!("{} other sessions block others, too.", n - 1)),
    }
    Some((text, evidence))
}

/// The sessions that wait for each other, if the root is one of them.
fn circle<'f>(forest: &'f Forest, root: &Party) -> Option<&'f [i32]> {
    let circle = forest.deadlocks.iter().find(|deadlock| deadlock.pids.contains(&root.pid))?;
    Some(&circle.pids)
}

/// The session right behind the root for which most others wait, too, as for DDL that waits for a reader.
fn queue(root: &Party) -> Option<(&Party, &Wait)> {
    let middle =
        root.blocks.iter().filter(|block| block.waiters > 0).max_by_key(|party| party.waiters)?;
    Some((middle, middle.wait.as_ref()?))
}

/// The longest wait of an activity, among those that have ended and those that have not. `None`: none is
/// known.
fn longest_wait(case: &Case<'_>, activity: &str, ended: Option<f64>) -> Option<f64> {
    let lock_type = activity.strip_prefix("Lock:");
    let everybody = case.blocking.map_or_else(Vec::new, Forest::everybody);
    let blocked = everybody.iter().filter_map(|(_, party)| party.wait.as_ref());
    let blocked = blocked.filter(|wait| Some(wait.lock_type) == lock_type).map(|wait| wait.seconds);
    let sessions = case.sessions().filter(|row| &*row.activity == activity);
    let waiting = sessions.map(|row| row.since_seconds);
    ended.into_iter().chain(blocked).chain(waiting).reduce(f64::max)
}

/// For how long locks of this kind are held until the next session gets one, by the number of waits that ended, their time
/// and the length of the interval, seconds.
///
/// A hot row is passed on each time that a transaction ends: its sessions wait long only because they are many, or because
/// commits are slow. A session that thinks, or works for long, while it holds a lock passes it on rarely. `first` sessions wait
/// for one that does not wait itself; `None`: not known, but they are seldom many.
fn held(activity: &str, ended: u64, seconds: f64, length: f64, first: Option<usize>) -> f64 {
    /// Sessions that are woken together, if it is not known.
    const FEW: usize = 3;

    let n = ended as f64;
    match ended {
        0 => f64::INFINITY,
        // Those who wait for one that itself queues for another row wait for longer than anybody holds a row. Of the others, each
        // wait is as long as a hold.
        _ if wait_names::is(activity, "Lock:transactionid") => {
            (seconds / n).min(length / n * first.unwrap_or(FEW) as f64)
        }
        // Others get the lock one after the other. If each wait is short, nobody waits most of the time.
        _ => (seconds / n).min(length / n),
    }
}

/// Whether a lock was held through several samples: of samples, it is not known how often locks were passed on.
fn held_through_samples(forest: &Forest) -> bool {
    /// Seconds.
    const SEVERAL: f64 = 0.5;

    let works = |root: &Party| root.statement_seconds.is_some_and(|seconds| seconds >= SEVERAL);
    let idles = |root: &Party| {
        root.state == Some("idle in transaction")
            && root.since_seconds.is_some_and(|seconds| seconds >= SEVERAL)
    };
    forest.roots.iter().any(|root| works(root) || idles(root))
}

/// Time of sessions that wait for locks which are held for longer than work and commits explain.
#[derive(Clone, Copy)]
struct HolderWaits<'c> {
    seconds: f64,
    /// User and database of the sessions that wait so long, if the sessions of others wait only
    /// briefly.
    clients: Option<(&'c str, &'c str)>,
}

/// The waits of all sessions or, if they do no harm, of one application's sessions: the many short waits of
/// others would hide them.
fn waits_for_holders<'c>(case: &Case<'c>) -> HolderWaits<'c> {
    let waits = case.interval().activities_where(|a| is_of_client(a) && a.class == WaitClass::Lock);
    let all = waits.iter().map(|row| LockWaits {
        activity: &row.activity,
        ended: row.timing.known_count(),
        seconds: row.timing.seconds,
    });
    let long_holds = HoldLimit::from_case(case);
    let of_all = HolderWaits { seconds: long_holds.sum(all), clients: None };
    if harms(case, of_all.seconds, MUCH) {
        return of_all;
    }
    let mut of_clients: BTreeMap<(&str, &str), Vec<LockWaits<'c>>> = BTreeMap::new();
    for row in case.statement_rows() {
        let waits = of_clients.entry((row.user.as_str(), row.database.as_str())).or_default();
        for account in row.activities.iter().filter(|account| account.class == WaitClass::Lock) {
            match waits.iter_mut().find(|known| known.activity == &*account.activity) {
                Some(known) => {
                    known.ended = known.ended.map(|ended| ended + account.count);
                    known.seconds += account.seconds;
                }
                None => waits.push(LockWaits {
                    activity: &account.activity,
                    ended: case.known(account.count),
                    seconds: account.seconds,
                }),
            }
        }
    }
    let of_clients = of_clients.into_iter().map(|(clients, waits)| HolderWaits {
        seconds: long_holds.sum(waits.into_iter()),
        clients: Some(clients),
    });
    let worst = of_clients.max_by(|a, b| a.seconds.total_cmp(&b.seconds));
    worst.filter(|waits| harms(case, waits.seconds, MUCH)).unwrap_or(of_all)
}

/// Waits for locks of one kind.
struct LockWaits<'n> {
    activity: &'n str,
    /// How many ended; `None`: not known.
    ended: Option<u64>,
    seconds: f64,
}

/// For how long a lock has to be held so that it is for longer than work and commits explain.
struct HoldLimit {
    /// Seconds.
    limit: f64,
    /// The length of the interval, seconds.
    length: f64,
    /// Sessions that wait for one that does not wait itself.
    first: Option<usize>,
    /// Whether a lock was held through several samples.
    through_samples: bool,
}

/// Whether the sessions that wait for locks most have clients that think for a long time within transactions:
/// then neither work nor commits explain how long the locks are held.
fn clients_think(case: &Case<'_>) -> bool {
    /// Mean of a session's waits, seconds: others are as short as a round trip on a busy machine.
    const LONG: f64 = 0.008;
    /// Such sessions on average.
    const SESSIONS: f64 = 0.3;

    // If most of all waits within transactions are long, those are, too: recordings do not list all sessions.
    let (number, seconds) = clients::waits_in(case, clients::IN_TRANSACTION);
    if number > 0 && seconds >= (LONG * number as f64).max(SESSIONS * case.length()) {
        return true;
    }
    let Some((waiting, _)) = case.statement(|a| a.class == WaitClass::Lock) else { return false };
    let thinks = |waits: &&ClientWaits| {
        waits.user.as_ref() == Some(&waiting.user)
            && waits.database.as_ref() == Some(&waiting.database)
            && waits.in_transaction > 0
            && waits.in_transaction_seconds >= LONG * waits.in_transaction as f64
    };
    let thinking = case.whole.client_waits.iter().filter(thinks);
    thinking.map(|waits| waits.in_transaction_seconds).sum::<f64>() >= SESSIONS * case.length()
}

impl HoldLimit {
    fn from_case(case: &Case<'_>) -> HoldLimit {
        /// Commits during which a row may be held: those that last long make many wait.
        const COMMITS: f64 = 3.0;
        /// The same where clients think, and the least, seconds. Many short waits, of those who are woken and find the row
        /// taken again, make the mean of the long ones smaller.
        const COMMITS_OF_THINKERS: f64 = 1.5;
        const HELD_BY_THINKERS: f64 = 0.007;

        let commits = &case.interval().commits;
        let each = match commits.count {
            0 => 0.0,
            n => {
                let parts = [commits.write, commits.sync, commits.queue, commits.replication];
                parts.iter().map(|part| part.seconds).sum::<f64>() / n as f64
            }
        };
        let first = |forest: &Forest| forest.roots.iter().map(|root| root.blocks.len()).sum();
        let thinkers = clients_think(case);
        HoldLimit {
            limit: match thinkers {
                true => HELD_BY_THINKERS.max(COMMITS_OF_THINKERS * each),
                false => HELD.max(COMMITS * each),
            },
            length: case.length(),
            // Then the holds are known, whatever queues there are.
            first: match thinkers {
                true => Some(usize::MAX),
                false => case.blocking.map(first).filter(|first| *first > 0),
            },
            through_samples: case.blocking.is_some_and(held_through_samples),
        }
    }

    /// The time of those waits that are long.
    fn sum<'n>(&self, waits: impl Iterator<Item = LockWaits<'n>>) -> f64 {
        let long = waits.filter(|waits| match waits.ended {
            None => self.through_samples,
            Some(ended) => {
                held(waits.activity, ended, waits.seconds, self.length, self.first) >= self.limit
            }
        });
        long.map(|waits| waits.seconds).sum()
    }
}

/// Sessions wait for rows, tables or transactions of others.
pub fn heavyweight(case: &Case<'_>) -> Vec<Diagnosis> {
    let longest = case.blocking.map_or(0.0, Forest::longest_seconds);
    let held = waits_for_holders(case);
    let is_problem = harms(case, held.seconds, MUCH) || longest >= LONG;
    // A session that has waited for long may be anybody's.
    let clients = held.clients.filter(|_| longest < LONG);
    if let (Some(clients), true) = (clients, is_problem) {
        return vec![of_clients(case, clients, held.seconds)];
    }
    let seconds = case.seconds_of(|a| a.class == WaitClass::Lock);
    if !is_problem && !bounds(case, seconds, MUCH) {
        return Vec::new();
    }
    let root = worst_root(case);
    let waits = case.interval().activities_where(|a| a.class == WaitClass::Lock);
    let ended = case.known(waits.iter().map(|row| row.timing.count).sum());
    let kinds: Vec<String> = waits
        .iter()
        .take(3)
        .map(|row| {
            // Waits in progress are in the total, but not in the number. The longest may have begun before this time.
            let ended = match row.timing.known_count() {
                None => String::new(),
                Some(0) => "none has ended, ".to_owned(),
                Some(1) => "1 wait ended, ".to_owned(),
                Some(n) => format!("{} waits ended, ", whole(n)),
            };
            let (activity, seconds) = (&row.activity, row.timing.seconds);
            let longest = longest_wait(case, activity, row.timing.max_seconds);
            let all = duration(seconds);
            match longest.is_some_and(|longest| longest > seconds) {
                true => format!(
                    "{activity} ({ended}{all} in this time{})",
                    clause("; the longest lasts ", longest, "")
                ),
                false => format!(
                    "{activity} ({ended}{all} in total{})",
                    clause(", longest ", longest, "")
                ),
            }
        })
        .collect();
    let of_statement = |a: &ActivityRow| a.class == WaitClass::Lock;
    let first = waits.first().map_or("", |row| &*row.activity);
    let share = |locks: &str| {
        let share = percent(case.share(seconds));
        format!("Sessions spend {share} % of their time waiting for {locks} of other sessions")
    };
    let kinds = kinds.join(", ");
    // If nobody has waited for longer, the lock is passed on all the time, and whoever holds it now says nothing.
    let stays = root.filter(|root| root.keeps_seconds() >= PASSED_ON);
    let (text, evidence) = match blocker(case).filter(|_| stays.is_some()) {
        Some((text, mut evidence)) => {
            // A wait that began in the last instant is not in the interval yet.
            if !kinds.is_empty() {
                evidence.push(format!("{}: {kinds}.", share("locks")));
            }
            evidence.extend(case.whose(seconds, of_statement));
            (text, evidence)
        }
        None => {
            let whose = case.in_statement(seconds, of_statement);
            (format!("{}{whose}.", share(locked(first))), vec![format!("They wait for {kinds}.")])
        }
    };
    let (kind, text, advice) = match is_problem {
        true => (Kind::Problem, text, stays.map_or_else(|| HOT.into(), |root| advice(case, root))),
        false => {
            let what = match locked(first) {
                ROW_LOCKS => "rows that others change",
                _ => first,
            };
            let each =
                ended.map(|ended| format!(", {} each", duration(seconds / ended.max(1) as f64)));
            let text = format!(
                "sessions spend {} % of their time waiting for {what}{}{}.",
                percent(case.share(seconds)),
                each.unwrap_or_default(),
                case.in_statement(seconds, of_statement)
            );
            (Kind::Limit, text, HOT.into())
        }
    };
    vec![Diagnosis {
        rule: Rule::Locks,
        kind,
        text,
        seconds,
        share: Some(case.share(seconds)),
        evidence,
        advice,
        confidence: Confidence::Certain,
        section: "locks",
        consequence_of: root.and_then(held_up_by),
    }]
}

const ROW_LOCKS: &str = "row locks";

/// The locks for which sessions wait in this activity.
fn locked(activity: &str) -> &'static str {
    let is_one_of = |names: &[&str]| names.iter().any(|name| wait_names::is(activity, name));
    match activity {
        _ if is_one_of(&["Lock:transactionid", "Lock:tuple"]) => ROW_LOCKS,
        _ if is_one_of(&["Lock:relation"]) => "table locks",
        _ if is_one_of(&["Lock:advisory", "Lock:userlock"]) => "advisory locks",
        _ => "locks",
    }
}

/// The diagnosis that explains why the session at the root does not continue, if there is one.
fn held_up_by(root: &Party) -> Option<Rule> {
    match root.activity.as_deref()? {
        activity if wait_names::is(activity, "IPC:SyncRep") => Some(Rule::Replication),
        "Call:log_pipe" => Some(Rule::LogPipe),
        _ => None,
    }
}

/// The sessions of this user in this database wait for each other's locks for long, those of others for short.
fn of_clients(case: &Case<'_>, clients: (&str, &str), seconds: f64) -> Diagnosis {
    let (user, database) = clients;
    let waits = |row: &'_ StatementFigures| -> (u64, f64) {
        let of_locks = row.activities.iter().filter(|account| account.class == WaitClass::Lock);
        of_locks
            .fold((0, 0.0), |(n, seconds), account| (n + account.count, seconds + account.seconds))
    };
    let rows =
        case.statement_rows().filter(|row| (row.user.as_str(), row.database.as_str()) == clients);
    let worst = rows.max_by(|a, b| waits(a).1.total_cmp(&waits(b).1));
    let evidence = worst.map(|row| {
        let (ended, seconds) = waits(row);
        let each = case.known(ended).map(|ended| match ended {
            0 => ": none has ended".to_owned(),
            n => format!(": {} waits ended, {} each", whole(n), duration(seconds / n as f64)),
        });
        format!("Most of them wait in {}{}.", words(row), each.unwrap_or_default())
    });
    Diagnosis {
        rule: Rule::Locks,
        kind: Kind::Problem,
        text: format!(
            "Sessions of user {user} in database {database} wait for each other's locks, which are held for longer than their work \
             takes: {} % of the sessions' time.",
            percent(case.share(seconds))
        ),
        seconds,
        share: Some(case.share(seconds)),
        evidence: evidence.into_iter().collect(),
        advice: HOT.into(),
        confidence: Confidence::Certain,
        section: "locks",
        consequence_of: None,
    }
}

/// The advice if no session should be terminated.
const HOT: &str = "The locks pass from session to session, so ending one does not help. Keep transactions short, change contended rows \
                   last in a transaction, and in the same order everywhere. To see who holds the locks: tally blocking.";
/// The same if it is known who holds them.
const HABITS: &str = "Keep transactions short, change contended rows last in a transaction, and in the same order everywhere.";
/// How to keep a session's advisory locks from lasting.
const ADVISORY: &str = "Advisory locks of a session outlast its transactions: use pg_advisory_xact_lock, or unlock them on every path of \
                        the code.";

/// The advice about the session at the root; it depends on what the session does and what others
/// wait for.
fn advice(case: &Case<'_>, root: &Party) -> Advice {
    let lock = root.longest().and_then(|party| party.wait.as_ref()).map(|wait| wait.lock_type);
    if root.pid == 0 {
        let known: Vec<_> = case.conditions(ConditionKind::Prepared).collect();
        return match known.as_slice() {
            [one] => end_prepared(one),
            _ => Advice::from("End the prepared transaction: ")
                .run("SELECT gid, prepared, owner, database FROM pg_prepared_xacts ORDER BY prepared")
                .say("; then COMMIT PREPARED or ROLLBACK PREPARED with its gid, in its database."),
        };
    }
    if case.is_stopped(root.pid) {
        return go_on(i64::from(root.pid))
            .say(" Or end its session, which takes effect once it is resumed: ")
            .run(terminate(root.pid))
            .say(".");
    }
    if case.blocking.is_some_and(|forest| circle(forest, root).is_some()) {
        return Advice::from("To end it now: ").run(cancel(root.pid)).say(
            ". Lock rows and tables in the same order everywhere, and keep deadlock_timeout at a second or so.",
        );
    }
    if let Some((middle, wait)) = queue(root) {
        if wait.mode == WHOLE {
            let what = middle.query.as_deref().map(command).filter(|command| !command.is_empty());
            let what = what.unwrap_or_else(|| "statement".to_owned());
            return Advice::from(format!(
                "To clear the queue, cancel the {what} of session {}: ",
                middle.pid
            ))
            .run(cancel(middle.pid))
            .say(". To let it finish instead, end the session that it waits for: ")
            .run(terminate(root.pid))
            .say(". Run such statements with ")
            .run("SET lock_timeout = '2s'")
            .say(", and retry them.");
        }
    }
    let is_advisory = matches!(lock, Some("advisory" | "userlock"));
    let later = if is_advisory { ADVISORY } else { HABITS };
    match root.state {
        Some(state) if state.starts_with("idle") => {
            let timeout = match state {
                "idle in transaction" => timeout(root.user.as_deref()),
                _ => Advice::default(),
            };
            let end = Advice::from("If its client has abandoned it, end it: ")
                .run(terminate(root.pid))
                .say(".")
                .and(timeout);
            match is_advisory {
                true => end.say(" ").say(later),
                false => end,
            }
        }
        Some("active") if root.statement_seconds.is_some_and(|age| age >= LONG) => {
            Advice::from("Cancel its statement if it is not needed: ")
                .run(cancel(root.pid))
                .say(". ")
                .say(later)
        }
        _ => later.into(),
    }
}

/// The setting that keeps sessions of this user from staying idle in a transaction.
fn timeout(user: Option<&str>) -> Advice {
    user.map_or_else(Advice::default, |user| {
        let set = "SET idle_in_transaction_session_timeout = '1min'";
        Advice::from(" To prevent it: ")
            .run(format!("ALTER ROLE {} {set}", identifier(user)))
            .say(".")
    })
}

/// A session has a transaction open and does nothing.
pub fn idle_in_transaction(case: &Case<'_>) -> Vec<Diagnosis> {
    /// A transaction may wait for its client that long, seconds.
    const LONG: f64 = 60.0;

    // One that blocks others is the locks' diagnosis.
    let roots = case.blocking.map_or(&[][..], |forest| &forest.roots);
    let blocks = |pid: i32| roots.iter().any(|root| root.pid == pid && root.waiters > 0);
    let idle = |s: &&segment::interval::SessionRow| {
        s.state == "idle in transaction" && s.since_seconds >= LONG && !blocks(s.pid)
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
    let timeout = timeout(oldest.user.as_deref());
    vec![Diagnosis {
        rule: Rule::IdleInTransaction,
        kind: Kind::Problem,
        text: format!(
            "Idle in a transaction for {}: {}{others}.",
            duration(oldest.since_seconds),
            name(oldest)
        ),
        seconds: 0.0,
        share: None,
        evidence: vec![
            "It holds its locks, and vacuum cannot remove rows that it can still see.".to_string()
        ],
        advice: Advice::from("End it: ")
            .run(terminate(oldest.pid))
            .say(". Find out why its client left the transaction open.")
            .and(timeout),
        confidence: Confidence::Certain,
        section: "locks",
        consequence_of: None,
    }]
}

/// What is known to help against contention for a lightweight lock, by tranche.
fn remedy(tranche: &str) -> &'static str {
    match tranche {
        "WALInsert" => {
            "Many sessions write WAL at once: write less of it (fewer indexes, fewer full-page images by \
             rarer checkpoints), or in larger statements."
        }
        "ProcArray" => {
            "Many sessions take snapshots and end transactions at once: let fewer sessions work at the same time (a connection pool), or use larger transactions."
        }
        "XactSLRU" | "XidGen" => {
            "Transaction IDs and their status are looked up all the time: use larger transactions and fewer subtransactions."
        }
        "SubtransSLRU" | "SubtransBuffer" => {
            "Subtransactions beyond 64 in a session, or a long transaction in another session: avoid savepoints \
             and exception blocks in loops, and end long transactions."
        }
        "MultiXactOffsetSLRU" | "MultiXactMemberSLRU" | "MultiXactOffsetBuffer"
        | "MultiXactMemberBuffer" | "MultiXactGen" => {
            "Rows are locked by several transactions at once (foreign keys to hot rows, FOR SHARE): \
             use shorter transactions, FOR NO KEY UPDATE, or fewer sessions on one parent row."
        }
        "LockManager" => {
            "More locks than a session's sixteen fast-path slots: let each statement use fewer partitions and \
             indexes (partition pruning), or prepare statements; from 18 on, max_locks_per_transaction \
             gives more slots."
        }
        "BufferMapping" => {
            "Blocks come and go in the buffers all the time: raise shared_buffers, or make statements \
             read less."
        }
        "BufferContent" => {
            "Sessions change or read the same block: a hot row, the last page of an index on an ascending \
             key, a small hot table; spread them (fillfactor, hash partitions), or change them less."
        }
        "BufferIO" | "BufferStrategy" => {
            "Sessions wait for blocks that others read: raise shared_buffers, or make statements read less."
        }
        "RelationMapping" | "RelCacheInit" => "The catalogs change all the time: use fewer temporary tables and less DDL.",
        "pg_stat_statements" => {
            "Query it less often, or without texts (pg_stat_statements(false)): while it is read, no statement can be added. If \
             entries are evicted all the time (pg_stat_statements_info), raise pg_stat_statements.max."
        }
        _ => "Fewer sessions that work at the same time (a connection pool) reduce any contention.",
    }
}

/// The tranche of the locks of pages in the buffers.
const CONTENT: &str = "BufferContent";

/// The sequence from which the calls of a statement take their numbers, one at a time.
fn hot_sequence<'c>(case: &Case<'c>, row: &StatementFigures) -> Option<&'c Condition> {
    /// Part of the statement's calls that may be missing from the server's statistics, which sessions report once a second.
    const REPORTED: f64 = 0.5;

    let text = row.text();
    let uses = |sequence: &&Condition| {
        // The sequence's name is a constant, which the text does not have.
        let by_call = text.to_ascii_lowercase().contains("nextval(");
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        let names_table = text.split(|c: char| !is_part(c)).any(|word| word == sequence.state);
        let by_default = !sequence.state.is_empty() && command(text) == "INSERT" && names_table;
        sequence.database.as_ref() == Some(&row.database)
            && sequence.count as f64 >= REPORTED * row.calls as f64
            && (by_call || by_default)
    };
    case.conditions(ConditionKind::Sequence).filter(uses).max_by_key(|sequence| sequence.count)
}

/// The index whose last page all inserts of a statement go to: its first column ascends.
fn ascending_index<'c>(case: &Case<'c>, row: &StatementFigures) -> Option<&'c Condition> {
    let text = row.text();
    let table = target(text).filter(|_| command(text) == "INSERT")?;
    let of_table =
        |index: &&Condition| index.database.as_ref() == Some(&row.database) && index.state == table;
    case.conditions(ConditionKind::AscendingIndex).find(of_table)
}

/// What sessions queue for.
enum HotPage<'c> {
    /// The page of a sequence, and the index into whose last page the numbers go.
    Sequence(&'c Condition, Option<&'c Condition>),
    /// The last page of an index.
    Index(&'c Condition),
    /// Pages of this table of a database.
    Table(&'c str, &'c str),
}

impl<'c> HotPage<'c> {
    /// By the statement that waits most for the locks of pages.
    fn from_statement(case: &Case<'c>, row: &'c StatementFigures) -> Option<HotPage<'c>> {
        let index = ascending_index(case, row);
        if let Some(sequence) = hot_sequence(case, row) {
            return Some(HotPage::Sequence(sequence, index));
        }
        match index {
            Some(index) => Some(HotPage::Index(index)),
            None => Some(HotPage::Table(target(row.text())?, &row.database)),
        }
    }

    fn name(&self) -> String {
        let database = |object: &Condition| object.database.clone().unwrap_or_default();
        match self {
            HotPage::Sequence(sequence, _) => {
                format!("the page of sequence {} of database {}", sequence.name, database(sequence))
            }
            HotPage::Index(index) => format!(
                "the last page of index {} on table {} of database {}",
                index.name,
                index.state,
                database(index)
            ),
            HotPage::Table(table, database) => {
                format!("pages of table {table} of database {database} and its indexes")
            }
        }
    }

    fn advice(&self) -> Advice {
        match self {
            HotPage::Sequence(sequence, index) => {
                let advice = Advice::default()
                    .run(format!("ALTER SEQUENCE {} CACHE 100", sequence.name))
                    .say(&format!(
                        " (in database {}): each session then takes 100 numbers at a time, and those that it does not use are lost.",
                        sequence.database.as_deref().unwrap_or_default()
                    ));
                match (index, sequence.state.as_str()) {
                    (Some(index), _) => advice.say(&format!(
                        " All insert into the last page of index {}, too.",
                        index.name
                    )),
                    (None, "") => advice,
                    (None, table) => advice.say(&format!(
                        " If an index on {table} is in ascending order, all insert into its last page, too."
                    )),
                }
            }
            HotPage::Index(index) => format!(
                "Its first column ascends, so all new rows go there: insert many rows with each statement, partition {} by hash, or \
                 use keys that do not ascend.",
                index.state
            )
            .into(),
            HotPage::Table(..) => remedy(CONTENT).into(),
        }
    }
}

/// Sessions of a user and database that wait for a lightweight lock for much of their own time, while others
/// make up most of the load.
struct ClientQueue<'c> {
    activity: &'c str,
    seconds: f64,
    /// Part of their own time.
    share: f64,
    user: &'c str,
    database: &'c str,
}

impl<'c> ClientQueue<'c> {
    fn find(case: &Case<'c>) -> Option<ClientQueue<'c>> {
        /// Sessions that wait on average.
        const SESSIONS: f64 = 0.2;
        /// Part of the load that is theirs: with more, they are the load.
        const MOST: f64 = 0.8;

        #[derive(Default)]
        struct ClientTimes<'n> {
            all: f64,
            waits: BTreeMap<&'n str, f64>,
        }
        let mut clients: BTreeMap<(&str, &str), ClientTimes<'_>> = BTreeMap::new();
        for row in case.statement_rows() {
            let times = clients.entry((row.user.as_str(), row.database.as_str())).or_default();
            times.all += row.seconds;
            for account in row.activities.iter().filter(|account| is_lightweight(account)) {
                *times.waits.entry(&*account.activity).or_default() += account.seconds;
            }
        }
        let queues = clients.into_iter().filter_map(|((user, database), times)| {
            let ClientTimes { all, waits } = times;
            let (activity, seconds) = waits.into_iter().max_by(|a, b| a.1.total_cmp(&b.1))?;
            let share = seconds / all.max(1e-9);
            let is_harm = seconds >= SESSIONS * case.length() && share >= MUCH;
            let is_part = all < MOST * case.load();
            let queue = ClientQueue { activity, seconds, share, user, database };
            (is_harm && is_part).then_some(queue)
        });
        queues.max_by(|a, b| a.seconds.total_cmp(&b.seconds))
    }
}

fn is_lightweight(account: &ActivityRow) -> bool {
    account.class == WaitClass::Lwlock && !commits::is_queue(&account.activity)
}

/// Who reads pg_stat_statements most, for the first sentence: the sessions that queue for its lock are not to blame.
fn reader(case: &Case<'_>, tranche: &str) -> String {
    let of_lock = tranche == "pg_stat_statements";
    let reads = |row: &&StatementFigures| of_lock && row.text().contains("pg_stat_statements");
    let most = case.statement_rows().filter(reads).max_by(|a, b| a.seconds.total_cmp(&b.seconds));
    most.map_or(String::new(), |row| {
        let rate = count(row.calls as f64 / case.length());
        let (user, database) = (&row.user, &row.database);
        format!(
            "; user {user} reads the view {rate} times/s in database {database}: {}",
            words(row)
        )
    })
}

/// Sessions queue for a lightweight lock.
pub fn lightweight(case: &Case<'_>) -> Vec<Diagnosis> {
    // Sessions that queue for the flush of the WAL wait for commits (`commits::slow`).
    let waits = case.interval().activities_where(|a| {
        let queue = commits::is_queue(&a.activity);
        a.class == WaitClass::Lwlock && !a.idle && &*a.phase != "background" && !queue
    });
    let Some(worst) = waits.first() else { return Vec::new() };
    let seconds = worst.timing.seconds;
    let is_harm =
        much(case, seconds) && (seconds >= MUCH * case.load() || seconds >= case.length());
    let queue = match is_harm {
        true => None,
        false => ClientQueue::find(case),
    };
    let (worst, seconds) = match &queue {
        Some(queue) => match waits.iter().find(|row| &*row.activity == queue.activity) {
            Some(row) => (row, queue.seconds),
            None => return Vec::new(),
        },
        None if is_harm => (worst, seconds),
        None => return Vec::new(),
    };
    let tranche = match worst.activity.split_once(':') {
        // Since 19, a wait event for each mode.
        Some(("Buffer", _)) => CONTENT,
        Some((_, name)) => name,
        None => &worst.activity,
    };
    let rate = |waits: u64| {
        format!(
            "{} waits/s{}{}.",
            count(waits as f64 / case.length()),
            clause(" of ", worst.timing.mean_seconds, ""),
            clause(", p99 ", worst.timing.p99_seconds, "")
        )
    };
    let mut evidence: Vec<String> = worst.timing.known_count().map(rate).into_iter().collect();
    let of_statement = |a: &ActivityRow| a.activity == worst.activity;
    let waiting = case.statement(of_statement).map(|(row, _)| row);
    let page =
        waiting.filter(|_| tranche == CONTENT).and_then(|row| HotPage::from_statement(case, row));
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
    let (who, share) = match &queue {
        Some(queue) => (
            format!("Sessions of user {} in database {} queue", queue.user, queue.database),
            percent(queue.share),
        ),
        None => ("Sessions queue".to_owned(), percent(case.share(seconds))),
    };
    let text = match &page {
        Some(page) => {
            format!(
                "{who} for {} (lightweight lock {tranche}) {share} % of their time.",
                page.name()
            )
        }
        None if queue.is_none() => {
            let whose = case.in_statement(worst.timing.seconds, of_statement);
            let reader = reader(case, tranche);
            format!(
                "{who} for the lightweight lock {tranche} {share} % of their time{whose}{reader}."
            )
        }
        None => format!("{who} for the lightweight lock {tranche} {share} % of their time."),
    };
    if page.is_some() || queue.is_some() {
        evidence.extend(case.whose(worst.timing.seconds, of_statement));
    }
    vec![Diagnosis {
        rule: Rule::LightweightLocks,
        kind: Kind::Problem,
        text,
        seconds,
        share: Some(case.share(seconds)),
        evidence,
        advice: page.map_or_else(|| remedy(tranche).into(), |page| page.advice()),
        confidence: Confidence::Likely,
        section: "locks",
        consequence_of: None,
    }]
}
