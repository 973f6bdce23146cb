// SPDX-License-Identifier: PostgreSQL
//! Time that clients take, and how they use their sessions.

use std::collections::BTreeMap;

use super::names::{cancel, command, name, name_of_client, parts};
use super::{bounds, harms, much};
use crate::advice::Advice;
use crate::case::{some_of, words, Case, ALL};
use crate::diagnosis::{Confidence, Diagnosis, Kind, Rule};
use segment::interval::{AccountRow, SessionRow};
use segment::{ClientWaits, WaitClass};
use view::statements::{ActivityRow, SessionCalls, StatementFigures};
use view::units::{capitalise, count, duration, percent, whole};

/// Waits for the client within a transaction: one between two commands.
pub(super) const IN_TRANSACTION: &str = "idle in transaction";

/// Number and time of all waits for clients in a phase.
pub(super) fn waits_in(case: &Case<'_>, phase: &str) -> (u64, f64) {
    let of_phase = |a: &&AccountRow| &*a.phase == phase && a.class == WaitClass::Client;
    let accounts = case.interval().ledger.iter().filter(of_phase);
    accounts.fold((0, 0.0), |(n, seconds), a| (n + a.timing.count, seconds + a.timing.seconds))
}

/// A client sends hundreds of small statements in one transaction and waits for each.
pub fn many_small_statements(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Commands in a transaction.
    const MANY: f64 = 50.0;
    /// Fewer in the interval are no sign of a habit.
    const FEWEST: u64 = 100;
    /// Part of the client's time that it waits by itself.
    const WAITING: f64 = 0.5;
    /// Part of all calls that execute one statement, if it is not known who sent them.
    const SAME: f64 = 0.8;
    /// Calls of one statement for each of the session's commands: if Parse has its own round trip, a call has
    /// two commands. A session that sends many statements once each (pg_dump) has no habit that could be
    /// changed.
    const SAME_OF_SESSION: f64 = 0.4;
    /// Part of the commands that one session sent.
    const MOST: f64 = 0.8;

    // Of one session if sessions are known, else of all of them.
    let of_session = |waits: &ClientWaits| {
        let between = (waits.in_transaction, waits.in_transaction_seconds);
        (between, waits.between_transactions, waits.busy_seconds)
    };
    let is_chatty = |((between, waited), ended, busy): ((u64, f64), u64, f64)| {
        let per_transaction = between as f64 / ended.max(1) as f64;
        let waits = much(case, waited) && waited >= WAITING * (waited + busy);
        between >= FEWEST && per_transaction >= MANY && waits
    };
    let clients = &case.whole.client_waits;
    // Others may send more commands, a few in each transaction.
    let chatty = clients.iter().filter(|waits| is_chatty(of_session(waits)));
    let worst = chatty.max_by_key(|waits| waits.in_transaction);
    let figures = match worst {
        Some(waits) => of_session(waits),
        None => (waits_in(case, IN_TRANSACTION), waits_in(case, "idle").0, case.load()),
    };
    let is_live = case.live_sessions().any(|session| session.kind == "client backend");
    let is_known = is_live || !clients.is_empty();
    if worst.is_none() && (is_known || !is_chatty(figures)) {
        return Vec::new();
    }
    let ((between, waited), ended, busy) = figures;
    let all: u64 = case.statement_rows().map(|row| row.calls).sum();
    let fewest = match worst {
        Some(_) => SAME_OF_SESSION * between as f64,
        None => SAME * all as f64,
    };
    let who = match worst {
        Some(waits) => Some(Sender::from_waits(waits)),
        None => most_commands(case, MOST).map(Sender::from_session),
    };
    let own = worst.and_then(|waits| most_called(case, waits, fewest));
    let own = own.map(|(statement, _)| (statement, true));
    let Some((statement, own)) = own.or_else(|| repeated(case, who.as_ref(), fewest)) else {
        return Vec::new();
    };
    let calls = whole(statement.calls);
    let evidence = match own {
        true => format!("{calls} calls of {} in that time.", words(statement)),
        false => format!(
            "The statement that it most likely repeats: {} ({calls} calls, those of other sessions included).",
            words(statement)
        ),
    };
    let (who, send, its) = match who {
        Some(sender) => (capitalise(&sender.name), "sends", "its"),
        None => ("Clients".to_owned(), "send", "their"),
    };
    let most = match own {
        true => format!(", most often {}", words(statement)),
        false => String::new(),
    };
    let text = format!(
        "{who} {send} small statements one by one{most}: {} commands of {} in {}; {} % of the time, the server waits for {its} next command.",
        whole(between),
        duration(busy / between as f64),
        match ended {
            0 | 1 => "one transaction".to_string(),
            n => format!("{} transactions", whole(n)),
        },
        percent(waited / (waited + busy).max(1e-9))
    );
    vec![small_statements(text, waited, vec![evidence])]
}

/// A session sends one statement dozens of times in a burst, each time as a separate transaction.
pub fn bursts(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Bursts in the interval, and commands in each.
    const BURSTS: u64 = 3;
    const EACH: u64 = 30;
    /// Part of the idle time that the client pauses between bursts: one that never does has no bursts ...
    const PAUSING: f64 = 0.3;
    /// ... or this part, if it pauses every second, and for this long on average, seconds: a busy machine makes shorter pauses.
    const PAUSING_LONG: f64 = 0.2;
    const LONG: f64 = 0.15;
    /// Part of the bursts' time that is round trips, which one statement would save.
    const ROUND_TRIPS: f64 = 0.3;
    /// Waits in the middle for each short one. Commands at random times that make three long waits in ten seconds make at least
    /// one; a busy machine delays some.
    const MIDDLE: f64 = 0.75;
    /// Calls of the statement for each of the session's commands, as above.
    const SAME: f64 = 0.4;

    let suspect = |waits: &ClientWaits| {
        let pauses = waits.pauses;
        let part = pauses.long_seconds / (pauses.long_seconds + pauses.short_seconds).max(1e-9);
        let each = pauses.long_seconds / pauses.long.max(1) as f64;
        let every_second = pauses.long as f64 >= case.length();
        let in_bursts = pauses.long >= BURSTS
            && pauses.short >= EACH * pauses.long
            && pauses.middle as f64 <= MIDDLE * pauses.short as f64
            && (part >= PAUSING || part >= PAUSING_LONG && each >= LONG && every_second);
        // The waits within the bursts are round trips.
        let seconds = pauses.short_seconds + waits.busy_seconds;
        let waits = pauses.short_seconds >= ROUND_TRIPS * seconds;
        (in_bursts && waits && much(case, seconds)).then_some((pauses, seconds))
    };
    let mut found: Vec<_> = case
        .whole
        .client_waits
        .iter()
        .filter_map(|waits| {
            let (pauses, seconds) = suspect(waits)?;
            let (row, calls) = most_called(case, waits, SAME * waits.commands as f64)?;
            let command = command(row.text());
            let reads = ["SELECT", "WITH", "INSERT", "UPDATE", "DELETE", "MERGE"];
            reads.contains(&command.as_str()).then_some((waits, pauses, seconds, row, calls))
        })
        .collect();
    found.sort_by(|a, b| b.2.total_cmp(&a.2));
    let Some((waits, pauses, _, row, calls)) = found.first() else { return Vec::new() };
    let seconds = found.iter().map(|(_, _, seconds, ..)| seconds).sum();
    let mut evidence = vec![format!(
        "Within the bursts, the server waited {} for the client, {} for each command, and worked {}.",
        duration(pauses.short_seconds),
        duration(pauses.short_seconds / pauses.short.max(1) as f64),
        duration(waits.busy_seconds)
    )];
    match found.len() {
        1 => {}
        2 => evidence.push("Another session does the same.".to_owned()),
        n => evidence.push(format!("{} other sessions do the same.", n - 1)),
    }
    let text = format!(
        "{} sends one statement again and again, {} times in {}, in bursts of {} commands, each a transaction of its own: {}.",
        capitalise(&name_of_client(waits)),
        whole(*calls),
        duration(case.length()),
        whole(pauses.short / pauses.long),
        words(row)
    );
    vec![small_statements(text, seconds, evidence)]
}

fn small_statements(text: String, seconds: f64, evidence: Vec<String>) -> Diagnosis {
    Diagnosis {
        rule: Rule::ManySmallStatements,
        kind: Kind::Problem,
        text,
        seconds,
        share: None,
        evidence,
        advice: "Fetch all rows with one statement (a join, or = ANY of an array), or send the statements in a batch or \
                 pipeline: each one costs a round trip."
            .into(),
        confidence: Confidence::Likely,
        section: "throughput",
        consequence_of: None,
    }
}

/// Who sent commands.
struct Sender<'c> {
    name: String,
    user: Option<&'c String>,
    database: Option<&'c String>,
    commands: u64,
}

impl Sender<'_> {
    fn from_waits(waits: &ClientWaits) -> Sender<'_> {
        Sender {
            name: name_of_client(waits),
            user: waits.user.as_ref(),
            database: waits.database.as_ref(),
            commands: waits.commands,
        }
    }

    fn from_session(session: &SessionRow) -> Sender<'_> {
        Sender {
            name: name(session),
            user: session.user.as_ref(),
            database: session.database.as_ref(),
            commands: session.commands,
        }
    }
}

/// The statement that this session itself called most since its counts were flushed, at least `fewest` times.
fn most_called<'c>(
    case: &Case<'c>,
    session: &ClientWaits,
    fewest: f64,
) -> Option<(&'c StatementFigures, u64)> {
    let table = case.statements?;
    let (key, calls) = SessionCalls::most_of(&table.of_sessions, session.slot)?;
    // Between two readings, calls may be counted in one of them and their messages in the other.
    let is_own = calls <= session.commands + session.commands / 10 + 2;
    let row = table.row(key).filter(|row| row.queryid.is_some() && !row.own)?;
    (is_own && calls as f64 >= fewest).then_some((row, calls))
}

/// The statement that this client (`None`: all together) called most, at least `fewest` times, and whether all
/// those calls can be its own: a statement that was called more often than the session sent commands is others' too.
fn repeated<'c>(
    case: &Case<'c>,
    sender: Option<&Sender<'_>>,
    fewest: f64,
) -> Option<(&'c StatementFigures, bool)> {
    /// Between two readings, a call may be counted in one of them and its message in the other.
    const SLACK: u64 = 2;

    let of_sender = |row: &&StatementFigures| {
        sender.is_none_or(|sender| {
            sender.user.is_none_or(|user| *user == row.user)
                && sender.database.is_none_or(|database| *database == row.database)
        })
    };
    let may_be_own =
        |row: &&StatementFigures| sender.is_none_or(|sender| row.calls <= sender.commands + SLACK);
    let often = || case.statement_rows().filter(|row| row.calls as f64 >= fewest).filter(of_sender);
    let own = often().filter(may_be_own).max_by_key(|row| row.calls);
    match own {
        Some(row) => Some((row, true)),
        None => often().min_by_key(|row| row.calls).map(|row| (row, false)),
    }
}

/// The session that sent at least this share of all commands in a recording.
fn most_commands<'c>(case: &Case<'c>, part: f64) -> Option<&'c SessionRow> {
    let all: u64 = case.recorded_sessions().map(|s| s.commands).sum();
    let most = case.recorded_sessions().max_by_key(|s| s.commands)?;
    (most.commands as f64 >= part * all as f64).then_some(most)
}

/// The application_name of a dump.
const DUMP: &str = "pg_dump";

/// Whether this is how pg_dump reads a table (dumpTableData_copy, pg_dump.c).
fn is_of_dump(text: &str) -> bool {
    text.starts_with("COPY ") && text.trim_end_matches(';').ends_with(") TO stdout")
}

/// What to look at if a client does not read its results.
const LOOK: &str = "Look at the client (what it does between rows, its garbage collection) and at the network. Fetch fewer rows, or \
                    fewer at a time.";

/// Sessions wait until clients read their results.
pub fn slow(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Part of the load.
    const MUCH: f64 = 0.2;
    const WRITE: &str = "Client:ClientWrite";

    let wait = |s: &SessionRow| -> f64 {
        s.accounts.iter().filter(|a| &*a.activity == WRITE).map(|a| a.seconds).sum()
    };
    // A dump goes as fast as its file. Its sessions are known while they last, its statements afterwards.
    let dumping =
        case.sessions().filter(|session| session.application == DUMP).map(wait).sum::<f64>();
    let dumped = case.statement_rows().filter(|row| is_of_dump(row.text())).map(|row| {
        row.activities.iter().filter(|a| &*a.activity == WRITE).map(|a| a.seconds).sum::<f64>()
    });
    let dumps = dumping.max(dumped.sum());
    let seconds = case.seconds_of(|a| &*a.activity == WRITE) - dumps;
    if !harms(case, seconds, MUCH) {
        return Vec::new();
    }
    let of_statement = |a: &ActivityRow| &*a.activity == WRITE;
    let longest =
        case.sessions().max_by(|a, b| wait(a).total_cmp(&wait(b))).filter(|s| wait(s) > 0.0);
    let whose = || case.whose(seconds, of_statement);
    // A session that waits for much of the time comes before the statement. Each is named once, here or in the evidence.
    let much = longest.and_then(|session| Some((session, some_of(wait(session), seconds)?)));
    let (who, evidence) = match (&much, longest) {
        (Some((session, share)), _) => {
            (format!(", {share} of it by {}", name(session)), whose().into_iter().collect())
        }
        (None, Some(session)) => {
            let longest =
                format!("Longest wait: {}, by {}.", duration(wait(session)), name(session));
            (case.in_statement(seconds, of_statement), vec![longest])
        }
        (None, None) => (case.in_statement(seconds, of_statement), Vec::new()),
    };
    vec![Diagnosis {
        rule: Rule::SlowClients,
        kind: Kind::Problem,
        text: match &much {
            Some((session, share)) if share == ALL => format!(
                "A client reads its results too slowly: {} waits to send them, {} % of the sessions' time.",
                name(session),
                percent(case.share(seconds))
            ),
            _ => format!(
                "Clients read their results too slowly: sessions spend {} % of their time waiting to send them{who}.",
                percent(case.share(seconds))
            ),
        },
        seconds,
        share: Some(case.share(seconds)),
        evidence,
        advice: match much {
            Some((session, _)) => {
                Advice::from(LOOK).say(" If nobody needs the result: ").run(cancel(session.pid)).say(".")
            }
            None => LOOK.into(),
        },
        confidence: Confidence::Certain,
        section: "ledger",
        consequence_of: None,
    }]
}

/// Sessions are started and ended all the time.
pub fn connections(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Share of the load that starting takes.
    const MUCH: f64 = 0.3;
    /// Starting takes this many sessions on average, whatever the load.
    const HARM: f64 = 0.2;
    /// Sessions that end in a second.
    const MANY: f64 = 5.0;

    // Parallel workers end, too, but no client has sent them Terminate.
    let ends = case.interval().commands.iter().find(|command| command.kind == "Terminate");
    // Some clients just close the connection, and those that are refused never send a command.
    let clients = case.whole.ended_origins.iter().filter(|origin| origin.kind == "client backend");
    let ended = ends
        .map_or(0, |command| command.read.count)
        .max(clients.map(|origin| origin.sessions).sum());
    let rate = ended as f64 / case.length();
    if (ended as f64) < MANY {
        // In a moment, one makes a high rate.
        return Vec::new();
    }
    let seconds = case.seconds_of(|a| matches!(&*a.phase, "startup" | "terminate"));
    let harm = bounds(case, seconds, MUCH) || seconds >= HARM * case.length();
    if rate < MANY || !harm {
        return Vec::new();
    }
    let origin = most_ended(case).or_else(|| newcomers(case));
    let each = seconds / ended as f64;
    let of_others: u64 = case.sessions().map(|session| session.commands).sum();
    let commands = case.interval().commands_handled.saturating_sub(of_others) as f64 / ended as f64;
    vec![Diagnosis {
        rule: Rule::Connections,
        kind: Kind::Problem,
        text: format!(
            "{} connections/s are opened and closed, which takes {} % of the sessions' time{}.",
            count(rate),
            percent(case.share(seconds)),
            origin.as_ref().map_or_else(String::new, |origin| format!("; most of them by {origin}"))
        ),
        seconds,
        share: Some(case.share(seconds)),
        evidence: [format!(
            "A connection takes {} to open and close, and handles {}.",
            duration(each),
            if (commands - 1.0).abs() < 0.005 {
                "1 command".to_owned()
            } else {
                format!("{} commands", count(commands))
            }
        )]
        .into(),
        advice:
            "Keep connections open: use a pool in the application, or PgBouncer in front of the server (pool_mode = transaction)."
                .into(),
        confidence: Confidence::Certain,
        section: "ledger",
        consequence_of: None,
    }]
}

/// Where most of the sessions come from that ended within the interval; `None`: from nowhere in particular, or it is not known.
fn most_ended(case: &Case<'_>) -> Option<String> {
    let clients =
        || case.whole.ended_origins.iter().filter(|origin| origin.kind == "client backend");
    let all: u64 = clients().map(|origin| origin.sessions).sum();
    let most = clients().next().filter(|origin| 2 * origin.sessions > all)?;
    let user = most.user.as_ref().map(|user| format!("user {user}"));
    let database = most.database.as_ref().map(|database| format!("database {database}"));
    let application = Some(&most.application).filter(|name| !name.is_empty());
    let application = application.map(|name| format!("application {name}"));
    let parts: Vec<String> = application.into_iter().chain(user).chain(database).collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Where most of the sessions come from that began within the interval and still exist.
fn newcomers(case: &Case<'_>) -> Option<String> {
    let young = |row: &&SessionRow| {
        row.kind == "client backend" && row.age_seconds.is_some_and(|age| age < case.length())
    };
    let mut origins: BTreeMap<String, usize> = BTreeMap::new();
    for row in case.live_sessions().filter(young) {
        *origins.entry(parts(row).join(", ")).or_default() += 1;
    }
    let (origin, _) = origins.into_iter().max_by_key(|(_, sessions)| *sessions)?;
    (!origin.is_empty()).then_some(origin)
}
