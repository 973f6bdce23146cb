// SPDX-License-Identifier: PostgreSQL
//! Conditions that the server's own views show, and waits do not: replication slots, prepared transactions,
//! transaction IDs, autovacuum that sleeps, bloated catalogs, missing statistics.

use segment::WaitClass;
use view::health::{
    ACTIVE_SLOT_BYTES, INACTIVE_SLOT_BYTES, LITTLE_SPACE_BYTES, LITTLE_SPACE_PART,
    OLD_PREPARED_SECONDS, OLD_TRANSACTIONS, WAITING_WAL_BYTES, WRAPAROUND,
};
use view::units::{bytes, capitalise, duration, percent, whole};
use view::vacuum::{Condition, ConditionKind, Holder, INACTIVE, LOST};

use super::names::{command, end_prepared, identifier, literal, major};
use super::{harms, locks, vacuum};
use crate::advice::{Advice, RELOAD};
use crate::case::{words, Case};
use crate::diagnosis::{Confidence, Diagnosis, Kind, Rule};

/// A problem that takes no time of sessions at the moment.
fn standing(rule: Rule, text: String, evidence: Vec<String>, advice: Advice) -> Diagnosis {
    Diagnosis {
        rule,
        kind: Kind::Problem,
        text,
        seconds: 0.0,
        share: None,
        evidence,
        advice,
        confidence: Confidence::Certain,
        section: "ledger",
        consequence_of: None,
    }
}

fn database(condition: &Condition) -> String {
    condition.database.as_ref().map_or(String::new(), |name| format!(" of database {name}"))
}

/// A file system on which the server writes is nearly full: without space for WAL, the server stops.
pub fn full_disk(case: &Case<'_>) -> Vec<Diagnosis> {
    let is_full = |disk: &&Condition| {
        disk.count < LITTLE_SPACE_BYTES
            && (disk.count as f64) < LITTLE_SPACE_PART * disk.bytes as f64
    };
    let disks: Vec<&Condition> = case.conditions(ConditionKind::Disk).filter(is_full).collect();
    let Some(worst) = disks.iter().min_by_key(|disk| disk.count) else { return Vec::new() };
    // One file system, or two of the same size and space.
    let same = disks.iter().all(|disk| (disk.count, disk.bytes) == (worst.count, worst.bytes));
    let what = match (same, disks.len()) {
        (true, 2..) => "data directory and WAL",
        _ => worst.name.as_str(),
    };
    let evidence = "If there is no space for WAL, the server stops; if there is none for a table, its statements fail.";
    vec![standing(
        Rule::FullDisk,
        format!(
            "The file system of the {what} is nearly full: {} of {} are free.",
            bytes(worst.count as f64),
            bytes(worst.bytes as f64)
        ),
        vec![evidence.to_owned()],
        Advice::from("Make it larger, or find out what fills it: slots that retain WAL, temporary files, logs, or tables: ")
            .run(
                "SELECT datname, pg_size_pretty(pg_database_size(oid)) FROM pg_database ORDER BY pg_database_size(oid) DESC",
            )
            .say(". Never delete files in pg_wal by hand."),
    )]
}

/// A slot whose WAL was removed, so its consumer cannot continue.
pub fn lost_slots(case: &Case<'_>) -> Vec<Diagnosis> {
    let is_lost = |slot: &&Condition| slot.state.ends_with(LOST);
    let lost: Vec<&Condition> = case.conditions(ConditionKind::Slot).filter(is_lost).collect();
    let Some(first) = lost.first() else { return Vec::new() };
    let mut advice = Advice::from("Drop it, and build its standby or subscription again: ");
    for (place, slot) in lost.iter().enumerate() {
        if place > 0 {
            advice = advice.say("; ");
        }
        advice = advice.run(drop_slot(slot));
    }
    vec![standing(
        Rule::Slot,
        format!(
            "The server has removed WAL that replication slot {} ({}){} needs: its consumer cannot continue.",
            first.name,
            first.state,
            database(first)
        ),
        lost.iter().skip(1).take(3).map(|slot| format!("The same: slot {} ({}).", slot.name, slot.state)).collect(),
        advice.say(". max_slot_wal_keep_size limits what slots retain."),
    )]
}

fn drop_slot(slot: &Condition) -> String {
    format!("SELECT pg_drop_replication_slot({})", literal(&slot.name))
}

/// A slot that nobody uses, or that lags far behind, retains WAL until the device is full.
pub fn slots(case: &Case<'_>) -> Vec<Diagnosis> {
    let retains = |slot: &&Condition| {
        let may_retain = match slot.state.ends_with(INACTIVE) {
            true => INACTIVE_SLOT_BYTES,
            false => ACTIVE_SLOT_BYTES,
        };
        !slot.state.ends_with(LOST) && slot.bytes >= may_retain
    };
    let mut found: Vec<&Condition> = case.conditions(ConditionKind::Slot).filter(retains).collect();
    found.sort_by_key(|slot| std::cmp::Reverse(slot.bytes));
    let Some(worst) = found.first() else { return Vec::new() };
    let rate = case.wal_rate();
    let full = (worst.count > 0 && rate > 0.0).then(|| worst.count as f64 / rate);
    let mut evidence = Vec::new();
    if worst.count > 0 {
        evidence.push(match full {
            Some(seconds) => format!(
                "The WAL's file system has {} free, enough for {} at the present {}/s.",
                bytes(worst.count as f64),
                duration(seconds),
                bytes(rate)
            ),
            None => format!("The WAL's file system has {} free.", bytes(worst.count as f64)),
        });
    }
    evidence.extend(found.iter().skip(1).take(3).map(|slot| {
        format!("Slot {} ({}) retains {}.", slot.name, slot.state, bytes(slot.bytes as f64))
    }));
    let drop = drop_slot(worst);
    // A slot that already retains more would be lost at once.
    let most = 2 * worst.bytes / (1 << 30) + 1;
    let limit =
        Advice::from(" To limit the WAL that slots retain (one that needs more is invalidated): ")
            .set("max_slot_wal_keep_size", &format!("'{}GB'", most.max(10)))
            .say(".");
    let advice = match worst.state.ends_with(INACTIVE) {
        true => Advice::from("Start its consumer, or drop it if nobody needs it: ").run(drop),
        false => Advice::from("Find out why its consumer is slow: ")
            .run("SELECT * FROM pg_stat_replication")
            .say(". To drop it after its consumer has stopped: ")
            .run(drop),
    };
    let advice = advice.say(".").and(limit);
    vec![standing(
        Rule::Slot,
        format!(
            "Replication slot {} ({}{}){} retains {} of WAL.",
            worst.name,
            worst.state,
            if worst.state.ends_with(INACTIVE) { "" } else { ", active" },
            database(worst),
            bytes(worst.bytes as f64)
        ),
        evidence,
        advice,
    )]
}

/// A prepared transaction that nobody has ended.
pub fn prepared_transactions(case: &Case<'_>) -> Vec<Diagnosis> {
    let age = |transaction: &Condition| transaction.seconds.unwrap_or(0.0);
    // One that others wait for need not be old.
    let blocks = case
        .blocking
        .is_some_and(|forest| forest.roots.iter().any(|root| root.pid == 0 && root.waiters > 0));
    // It is at least as old as the longest wait for it, which may be known from a later time.
    let waited = locks::worst_root(case).filter(|root| root.pid == 0);
    let waited =
        waited.and_then(|root| root.longest()?.wait.as_ref()).map_or(0.0, |wait| wait.seconds);
    let only = case.conditions(ConditionKind::Prepared).count() == 1;
    let age = |transaction: &Condition| age(transaction).max(if only { waited } else { 0.0 });
    let mut found: Vec<&Condition> = case
        .conditions(ConditionKind::Prepared)
        .filter(|transaction| age(transaction) >= OLD_PREPARED_SECONDS || blocks)
        .collect();
    found.sort_by(|a, b| age(b).total_cmp(&age(a)));
    let Some(oldest) = found.first() else { return Vec::new() };
    let others = match found.len() {
        1 => String::new(),
        n => format!(", and {} more", n - 1),
    };
    vec![standing(
        Rule::PreparedTransaction,
        format!(
            "Prepared transaction {}{} (owner {}) has been open for {}{others}.",
            literal(&oldest.name),
            database(oldest),
            oldest.state,
            duration(age(oldest))
        ),
        vec!["It holds its locks, and vacuum cannot remove rows that it can still see, even across restarts.".to_owned()],
        end_prepared(oldest),
    )]
}

/// WAL files that cannot be archived, or not as fast as they come, fill the device.
pub fn archiver(case: &Case<'_>) -> Vec<Diagnosis> {
    let Some(archiver) = case.conditions(ConditionKind::Archiver).next() else { return Vec::new() };
    let failing = archiver.failing_file();
    let tries_nothing = archiver.archives_nothing();
    if failing.is_none() && !tries_nothing && archiver.bytes < WAITING_WAL_BYTES {
        return Vec::new();
    }
    let text = match failing {
        _ if tries_nothing => {
            "WAL archiving is on, but neither archive_command nor archive_library is set: the server archives nothing and keeps \
             all WAL."
                .to_owned()
        }
        Some(file) => format!("The archiver fails on WAL file {file} and keeps retrying."),
        None => format!(
            "The archiver is falling behind: {} of WAL are waiting.",
            bytes(archiver.bytes as f64)
        ),
    };
    let mut evidence = Vec::new();
    if (failing.is_some() || tries_nothing) && archiver.bytes > 0 {
        evidence.push(format!(
            "{} of WAL are waiting; the server keeps them until they are archived.",
            bytes(archiver.bytes as f64)
        ));
    }
    match archiver.seconds {
        Some(ago) => {
            evidence.push(format!("It archived {} last, {} ago.", archiver.name, duration(ago)))
        }
        None => {
            evidence.push("It has archived no file since its statistics were reset.".to_owned())
        }
    }
    let rate = case.wal_rate();
    let disk = case.conditions(ConditionKind::Disk).min_by_key(|disk| disk.count);
    if let Some(disk) = disk.filter(|_| rate > 0.0) {
        evidence.push(format!(
            "{} are free on the file system of the {}: enough for {} at the present {}/s of WAL.",
            bytes(disk.count as f64),
            disk.name,
            duration(disk.count as f64 / rate),
            bytes(rate)
        ));
    }
    let advice = match tries_nothing {
        true => Advice::from("Set one of them, and reload the configuration: ").run(RELOAD).say(
            ". If you do not need point-in-time recovery, turn archiving off (needs a restart): ",
        )
        .run("ALTER SYSTEM SET archive_mode = off")
        .say("."),
        false => Advice::from("The server's log has the message of archive_command or archive_library. See also: ")
            .run("SELECT * FROM pg_stat_archiver")
            .say(". Fix the archive destination. Do not turn archiving off: backups could then not be restored to a later time."),
    };
    vec![standing(Rule::Archiver, text, evidence, advice)]
}

/// Transaction IDs that vacuum has not frozen for long.
pub fn wraparound(case: &Case<'_>) -> Vec<Diagnosis> {
    let age = |database: &Condition| database.count.max(database.bytes);
    let oldest = case.conditions(ConditionKind::Age).max_by_key(|database| age(database));
    let Some(oldest) = oldest.filter(|database| age(database) >= OLD_TRANSACTIONS) else {
        return Vec::new();
    };
    let name = oldest.database.clone().unwrap_or_default();
    let (what, unit) = match oldest.count >= oldest.bytes {
        true => ("transaction ID", "transactions"),
        false => ("multixact", "multixacts"),
    };
    // What began at most half as many transactions ago explains little of the age.
    let holders = case.vacuum.map_or(&[][..], |answer| &answer.holders);
    let holder = holders.iter().find(|holder| holder.transactions >= age(oldest) / 2);
    let left = WRAPAROUND - age(oldest);
    // A commit that writes WAL has a transaction ID.
    let rate = case.interval().commits.count as f64 / case.length();
    vec![standing(
        Rule::Wraparound,
        format!(
            "Vacuum does not freeze database {name}: its oldest {what} is {} {unit} old, {} % of the age at which the server stops accepting \
             writes.",
            millions(age(oldest)),
            percent(age(oldest) as f64 / WRAPAROUND as f64)
        ),
        vec![match rate > 0.0 && oldest.count >= oldest.bytes {
            true => format!(
                "{} are left, enough for {} at the present {} transactions/s that write.",
                millions(left),
                duration(left.max(0) as f64 / rate),
                view::units::count(rate)
            ),
            false => format!("{} are left.", millions(left)),
        }],
        freeze(&name, holder),
    )]
}

/// "650 million"; never rounded up.
fn millions(n: i64) -> String {
    format!("{} million", whole(u64::try_from(n / 1_000_000).unwrap_or(0)))
}

/// How to freeze a database; first, who holds it back.
fn freeze(name: &str, holder: Option<&Holder>) -> Advice {
    let name_in_sql = identifier(name);
    let first = holder.map_or_else(Advice::default, |holder| {
        let holds = format!("{} keeps rows from being frozen. ", capitalise(&holder.name));
        Advice::from(holds).and(vacuum::end_of(holder)).say(" Then ")
    });
    let advice = match name {
        // No session may connect to it.
        "template0" => Advice::default()
            .run("ALTER DATABASE template0 ALLOW_CONNECTIONS true")
            .say("; in it: ")
            .run("VACUUM FREEZE")
            .say("; then: ")
            .run("ALTER DATABASE template0 ALLOW_CONNECTIONS false"),
        _ => {
            let place = if holder.is_some() { "in" } else { "In" };
            Advice::from(format!("{place} database {name_in_sql}: ")).run("VACUUM FREEZE")
        }
    };
    let advice = first.and(advice);
    if holder.is_some() {
        return advice.say(".");
    }
    advice.say(
        ". Find out what stops autovacuum from doing so: an old transaction, a slot, a prepared transaction, too few \
         autovacuum_max_workers, or its cost limits.",
    )
}

/// An autovacuum worker sleeps most of the time while its table has too many dead rows.
pub fn throttled_vacuum(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Part of a worker's time.
    const MOST: f64 = 0.5;
    /// Every vacuum sleeps a little: one that lasts this long is held up, seconds ...
    const LONG: f64 = 60.0;
    /// ... and this long, where its own time is not known.
    const VERY_LONG: f64 = 600.0;
    /// Its table has this many times the dead rows at which it should come.
    const BEHIND: f64 = 5.0;

    let Some(answer) = case.vacuum else { return Vec::new() };
    let worker = case.conditions(ConditionKind::Throttled).find_map(|worker| {
        let name = worker.name.trim();
        let short = name.strip_prefix("public.").unwrap_or(name);
        let of_worker = |table: &&view::vacuum::Table| {
            // Earlier recordings have the worker's table without quotation marks.
            (table.name == short || table.name.replace('"', "") == short)
                && worker.database.as_ref().is_none_or(|database| *database == table.database)
        };
        let table = answer.tables.iter().find(of_worker)?;
        let lasts = worker.seconds.unwrap_or(0.0);
        if lasts < LONG || (table.dead_rows as f64) < BEHIND * table.threshold {
            return None;
        }
        // Of a recording, its activity at the end of each interval is known.
        let session = case.sessions().find(|row| i64::from(row.pid) == worker.count);
        let asleep = session.map(|row| {
            let slept = row.accounts.iter().filter(|a| &*a.activity == "Timeout:VacuumDelay");
            slept.map(|a| a.seconds).sum::<f64>() / row.lived_seconds.max(1e-9)
        });
        let is_held_up = asleep.map_or(lasts >= VERY_LONG, |part| part >= MOST);
        is_held_up.then_some((worker, table, asleep))
    });
    let Some((worker, table, asleep)) = worker else { return Vec::new() };
    let since =
        worker.seconds.map_or(String::new(), |seconds| format!(" for {}", duration(seconds)));
    let part =
        asleep.map_or(String::new(), |part| format!(", asleep {} % of the time", percent(part)));
    // Until 15, a worker keeps the settings with which it has begun its table.
    let again = match major(&case.whole.server.name) {
        0..=15 => Advice::from("; ")
            .run(format!("SELECT pg_cancel_backend({})", worker.count))
            .say(
            " (the running worker keeps its old settings; the next one starts with the new ones)",
        ),
        _ => Advice::default(),
    };
    vec![standing(
        Rule::VacuumThrottled,
        format!(
            "Autovacuum is throttled: process {} has been vacuuming {} of database {}{since}{part}, while {} rows are dead.",
            worker.count,
            table.name,
            table.database,
            whole(u64::try_from(table.dead_rows).unwrap_or(0))
        ),
        vec![format!("It sleeps on purpose: {}.", worker.state)],
        match worker.state.contains(" of the table") {
            // The server's settings do not count for it.
            true => Advice::from("Its table has settings of its own: ")
                .run(format!(
                    "ALTER TABLE {} RESET (autovacuum_vacuum_cost_delay, autovacuum_vacuum_cost_limit)",
                    table.name
                ))
                .say(&format!(" (in database {}).", table.database)),
            false => Advice::from("Speed it up: ")
                .run("ALTER SYSTEM SET autovacuum_vacuum_cost_limit = 2000")
                .say("; ")
                .set("autovacuum_vacuum_cost_delay", "'2ms'")
                .and(again)
                .say(". For this table alone: ")
                .run(format!(
                    "ALTER TABLE {} SET (autovacuum_vacuum_cost_delay = 0)",
                    table.name
                ))
                .say(&format!(" (in database {}).", table.database)),
        },
    )]
}

/// A table of the catalog is mostly empty pages, which each look-up and each new session read.
pub fn catalog_bloat(case: &Case<'_>) -> Vec<Diagnosis> {
    let mut found: Vec<&Condition> = case.conditions(ConditionKind::Catalog).collect();
    found.sort_by_key(|table| std::cmp::Reverse(table.bytes));
    let Some(worst) = found.first() else { return Vec::new() };
    let evidence = found.iter().skip(1).take(3).map(|table| {
        format!(
            "{}{}: {} for {} rows.",
            table.name,
            database(table),
            bytes(table.bytes as f64),
            table.count
        )
    });
    vec![standing(
        Rule::CatalogBloat,
        format!(
            "The system catalog is bloated: {}{} takes {} for {} rows.",
            worst.name,
            database(worst),
            bytes(worst.bytes as f64),
            whole(u64::try_from(worst.count).unwrap_or(0))
        ),
        evidence.collect(),
        Advice::from("At a quiet time: ").run(format!("VACUUM FULL pg_catalog.{}", worst.name)).say(
            " (it locks the catalog). To prevent it: fewer temporary tables (one per session with ON COMMIT DELETE ROWS) and less \
             DDL; make sure that no old snapshot keeps autovacuum from removing rows of the catalog.",
        ),
    )]
}

/// A slow statement reads a table whose statistics are missing or older than its rows.
pub fn stale_statistics(case: &Case<'_>) -> Vec<Diagnosis> {
    /// Share of the load.
    const MUCH: f64 = 0.2;
    /// A call that takes less is not planned badly, seconds.
    const SLOW: f64 = 0.050;

    let names = |text: &str, table: &str| {
        let name = table.rsplit('.').next().unwrap_or(table).trim_matches('"');
        let is_part = |c: char| c.is_alphanumeric() || c == '_';
        text.match_indices(name).any(|(at, _)| {
            let before = text[..at].chars().next_back().is_some_and(is_part);
            let after = text[at + name.len()..].chars().next().is_some_and(is_part);
            !before && !after
        })
    };
    // What is loaded, dumped or maintained takes as long as the table is large.
    let reads = |text: &str| {
        matches!(command(text).as_str(), "SELECT" | "WITH" | "UPDATE" | "DELETE" | "MERGE")
    };
    let length = case.length();
    // Statements that are over, and those that go on.
    let done = case.all_statement_rows().filter(|row| {
        // Waits for locks say nothing about its plan.
        let locks = row.split.class(WaitClass::Lock);
        let each = (row.execution.seconds - locks) / row.calls.max(1) as f64;
        reads(row.text())
            && each >= SLOW
            && harms(case, row.seconds.max(row.execution.seconds), MUCH)
    });
    let done = done.map(|row| {
        (
            row.text().to_owned(),
            Some(row.database.clone()),
            words(row),
            row.seconds.max(row.execution.seconds),
        )
    });
    let current = case.current().iter().filter(|row| row.seconds >= 10.0);
    let current = current.filter_map(|row| {
        let text = row.query.as_deref().filter(|text| reads(text))?;
        let shown = view::statements::beginning(text, 70);
        Some((
            text.to_owned(),
            None,
            format!("session {} ({shown})", row.pid),
            row.seconds.min(length),
        ))
    });
    let slow: Vec<_> = done.chain(current).collect();
    let found = case.conditions(ConditionKind::Statistics).find_map(|table| {
        let uses = |statement: &&(String, Option<String>, String, f64)| {
            let here = statement.1.is_none() || statement.1 == table.database;
            here && names(&statement.0, &table.name)
        };
        Some((table, slow.iter().find(uses)?))
    });
    let Some((table, (_, _, statement, seconds))) = found else { return Vec::new() };
    let rows = whole(u64::try_from(table.count).unwrap_or(0));
    let name = format!("{}{}", table.name, database(table));
    let state = match table.seconds {
        None => format!("Table {name} ({rows} rows) was never analyzed"),
        Some(ago) => format!(
            "{} of the {rows} rows of table {name} changed since its last ANALYZE, {} ago",
            whole(u64::try_from(table.bytes).unwrap_or(0)),
            duration(ago)
        ),
    };
    vec![Diagnosis {
        rule: Rule::StaleStatistics,
        kind: Kind::Problem,
        text: format!("{state}, and a slow statement uses it: {statement}."),
        seconds: *seconds,
        share: Some(case.share(*seconds)),
        evidence: vec!["Without current statistics, the planner misjudges how many rows it reads and joins.".to_owned()],
        advice: Advice::default().run(format!("ANALYZE {}", table.name)).say(
            "; then look at the plan again. After large loads, run ANALYZE at once: autovacuum may take autovacuum_naptime to get to \
             the table, if it is on for it.",
        ),
        confidence: Confidence::Likely,
        section: "statements",
        consequence_of: None,
    }]
}
