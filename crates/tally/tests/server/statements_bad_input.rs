// SPDX-License-Identifier: PostgreSQL
//! Unusual and malicious statements: the server works, the views can be read, everything that is not stored is
//! counted, and no time is lost.

use crate::support;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::support::shared_server::Profile;
use crate::support::workload::distinct_statement;
use postgres::{Client, NoTls};
use scratch::Cluster;
use segment::layout;
use std::os::unix::fs::FileExt;

/// The default limit of a statement's text, in bytes.
const TEXT_LIMIT: usize = 8192;

fn server(settings: &[(&str, &str)]) -> Cluster {
    let cluster = support::start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .settings(settings.iter().copied()),
    );
    support::create_views(&cluster);
    cluster
}

/// A row of tally.statements: text, bytes of the uncut text, calls.
struct Shown {
    query: String,
    whole: i64,
    calls: i64,
}

/// All statements whose texts contain this, as a session sees them.
fn shown_with(client: &mut Client, part: &str) -> Vec<Shown> {
    let sql = "select query, query_bytes::bigint, calls from tally.statements
               where strpos(query, $1) > 0 and strpos(query, 'tally.statements') = 0 order by 1";
    let rows = client.query(sql, &[&part]).unwrap();
    rows.iter()
        .map(|row| Shown { query: row.get(0), whole: row.get(1), calls: row.get(2) })
        .collect()
}

fn shown(client: &mut Client, part: &str) -> Shown {
    let mut all = shown_with(client, part);
    assert_eq!(all.len(), 1, "statements with {part:?}");
    all.remove(0)
}

/// Seconds of all statements, and of those without an id.
fn statement_seconds(client: &mut Client) -> (f64, f64) {
    let sql = "select coalesce(sum(seconds), 0),
                      coalesce(sum(seconds) filter (where coalesce(queryid, 0) = 0), 0)
               from tally.statement_activities where toplevel and phase <> 'terminate'";
    let row = client.query_one(sql, &[]).unwrap();
    (row.get(0), row.get(1))
}

/// Seconds of the phases in which clients' messages are handled, except the last one: sessions that end now have
/// it only in the ledger.
fn ledger_seconds(client: &mut Client) -> f64 {
    let sql = "select coalesce(sum(seconds), 0) from tally.ledger
               where kind in ('client backend', 'parallel worker') and phase in
               ('simple query', 'parse', 'bind', 'describe', 'execute', 'close', 'sync', 'flush',
                'function call', 'copy')";
    client.query_one(sql, &[]).unwrap().get(0)
}

/// Checks that the statements' time equals the ledger's.
fn assert_conserved(client: &mut Client) {
    let min = ledger_seconds(client);
    let (all, _) = statement_seconds(client);
    let max = ledger_seconds(client);
    assert!(
        all >= min * 0.999 - 0.0005 && all <= max * 1.001 + 0.0005,
        "statements {all} s, ledger {min} to {max} s"
    );
}

/// Sends raw bytes to a database; Rust's strings cannot hold them.
fn raw(cluster: &Cluster, database: &str, bytes: &[u8]) -> String {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let psql = cluster.binaries().program("psql");
    let output = cluster
        .os_user()
        .command(&psql)
        .args(["-X", "-q", "-U", "postgres", "-p", &cluster.port().to_string(), "-d", database])
        .arg("-h")
        .arg(cluster.host())
        .stdin(std::fs::File::open(file.path()).unwrap())
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn long_statements_are_counted_and_their_texts_cut() {
    let cluster = server(&[]);
    let mut client = cluster.connect().unwrap();
    let filler = "x".repeat(10 << 20);
    for _ in 0..3 {
        client.batch_execute(&format!("select length('{filler}') as long_constant")).unwrap();
        client
            .batch_execute(&format!("select /* {filler} */ 1, 2 as long_comment_within"))
            .unwrap();
        client
            .batch_execute(&format!("select 1, 2, 3 as long_comment_behind /* {filler} */"))
            .unwrap();
    }
    let constant = shown(&mut client, "long_constant");
    assert_eq!(constant.query, "select length($1) as long_constant");
    assert_eq!((constant.calls, constant.whole), (3, constant.query.len() as i64));

    let within = shown(&mut client, "select /* xxx");
    assert_eq!(within.calls, 3);
    assert!(within.whole > 10 << 20, "{} bytes", within.whole);
    assert!(within.query.ends_with("..."), "no mark");
    assert_eq!(within.query.len(), TEXT_LIMIT + 3);

    let behind = shown(&mut client, "long_comment_behind");
    assert_eq!(behind.calls, 3);
    assert!(behind.query.len() <= TEXT_LIMIT + 3);

    // Thousands of constants in a statement, and of statements in a string.
    let list: Vec<String> = (0..20_000).map(|n| n.to_string()).collect();
    let list = list.join(", ");
    for _ in 0..2 {
        client.batch_execute(&format!("select 5 in ({list}) as thousands")).unwrap();
    }
    // From 18 on, the server joins a list's constants.
    if support::major() >= 18 {
        let thousands = shown(&mut client, "as thousands");
        assert_eq!(thousands.query, "select $1 in ($2 /*, ... */) as thousands");
        assert_eq!(thousands.calls, 2);
    } else {
        let thousands = shown(&mut client, "select $1 in ($2, $3, $4");
        assert_eq!(thousands.calls, 2);
        assert!(
            thousands.whole > 100_000 && thousands.query.ends_with("..."),
            "{}",
            thousands.whole
        );
    }
    client.batch_execute(&"select 7 as one_of_many; ".repeat(3000)).unwrap();
    assert_eq!(shown(&mut client, "one_of_many").calls, 3000);
    assert_conserved(&mut client);
}

#[test]
fn a_text_is_cut_between_characters() {
    let cluster = server(&[("pg_tally.max_statement_text", "100")]);
    let sql =
        "create database japan encoding 'EUC_JP' lc_collate 'C' lc_ctype 'C' template template0";
    cluster.psql(sql).unwrap();
    let mut japan = cluster.config().dbname("japan").connect(NoTls).unwrap();
    let mut client = cluster.connect().unwrap();
    let limit: i64 = client
        .query_one(
            "select setting::bigint from pg_settings where name = 'pg_tally.max_statement_text'",
            &[],
        )
        .unwrap()
        .get(0);
    let limit = limit as usize;
    // Each starts one byte later, so that the limit falls on every byte of a character.
    let mut more = String::new();
    for blanks in 0..4 {
        for (sign, name) in [("é", "two"), ("漢", "three"), ("😀", "four")] {
            // Statements differ in the number of columns, not in their names.
            more += ", null";
            let sql = format!(
                "select {}1 as {name}{blanks}, 2 as \"{}\"{more}",
                " ".repeat(blanks),
                sign.repeat(15) + "\", 3 as \"" + &sign.repeat(limit)
            );
            let normal =
                sql.replace("1 as", "$1 as").replace("2 as", "$2 as").replace("3 as", "$3 as");
            client.batch_execute(&sql).unwrap();
            let row = shown(&mut client, &format!("{name}{blanks}"));
            let kept = row.query.strip_suffix("...").expect("cut, with a mark");
            assert!(normal.starts_with(kept), "{kept:?} is no beginning of {normal:?}");
            assert!(kept.len() <= limit && kept.len() + sign.len() > limit, "{} bytes", kept.len());
            assert!(row.whole > limit as i64, "{} bytes", row.whole);
        }
        // Two bytes in EUC, three in UTF-8: the limit is on the stored text, in the database's encoding.
        let sql =
            format!("select {}1 as euc{blanks}, 2 as \"{}\"", " ".repeat(blanks), "漢".repeat(15));
        japan.batch_execute(&(sql + ", 3 as \"" + &"字".repeat(limit) + "\"" + &more)).unwrap();
        let row = shown(&mut client, &format!("euc{blanks}"));
        let kept = row.query.strip_suffix("...").expect("cut, with a mark");
        assert!(kept.ends_with('字') && !kept.contains('\u{FFFD}'), "{kept:?}");
    }
}

#[test]
fn texts_of_other_encodings_can_be_read_in_every_database() {
    let cluster = server(&[]);
    for (name, encoding) in [("latin", "LATIN1"), ("ascii", "SQL_ASCII"), ("japan", "EUC_JP")] {
        cluster
            .psql(&format!(
                "create database {name} encoding '{encoding}' lc_collate 'C' lc_ctype 'C' template template0"
            ))
            .unwrap();
        let mut client = cluster.config().dbname(name).connect(NoTls).unwrap();
        support::create_views_in(&mut client);
    }
    let mut here = cluster.connect().unwrap();
    here.batch_execute("select 1 as \"漢字 of utf8\"").unwrap();
    let mut latin = cluster.config().dbname("latin").connect(NoTls).unwrap();
    latin.batch_execute("select 1 as \"é of latin1\"").unwrap();
    let mut japan = cluster.config().dbname("japan").connect(NoTls).unwrap();
    japan.batch_execute("select 1 as \"漢字 of euc\"").unwrap();
    raw(&cluster, "ascii", b"select 1 as \"\xff\xfe\x80 of ascii\";\n");

    // A UTF-8 database can show all; invalid bytes are replaced.
    assert!(shown(&mut here, "of utf8").query.contains("漢字 of utf8"));
    assert!(shown(&mut here, "of latin1").query.contains("é of latin1"));
    assert!(shown(&mut here, "of euc").query.contains("漢字 of euc"));
    assert_eq!(shown(&mut here, " of ascii").calls, 1);
    // Others cannot show all, but the view works.
    for name in ["latin", "japan", "ascii"] {
        let out =
            raw(&cluster, name, b"select count(*), max(length(query)) from tally.statements;\n");
        assert_eq!(out, "", "in {name}");
    }
    assert_eq!(shown(&mut latin, "of latin1").calls, 1);
    assert_eq!(shown(&mut latin, " of utf8").calls, 1);
    assert_eq!(shown(&mut japan, "of euc").calls, 1);
}

#[test]
fn input_that_is_not_a_statement_adds_only_time() {
    let cluster = server(&[]);
    let mut client = cluster.connect().unwrap();
    let (_, before) = statement_seconds(&mut client);
    for sql in ["", ";", ";;; ;", " ", "-- nothing", "/* nothing */", "/* a */ ; -- b\n;"] {
        for _ in 0..20 {
            client.batch_execute(sql).unwrap();
        }
        let _ = client.query(sql, &[]);
    }
    for sql in [
        "select 'unterminated",
        "select \"unterminated",
        "select /* unterminated",
        "select $$ unterminated",
        "select '\\u00' U&'\\zzzz'",
        "selec",
        "select (((((",
        "\u{FEFF}select 1",
    ] {
        assert!(client.batch_execute(sql).is_err(), "{sql:?}");
        assert!(client.query(sql, &[]).is_err(), "{sql:?}");
    }
    let deep = format!("select {}1{}", "(".repeat(100_000), ")".repeat(100_000));
    assert!(client.batch_execute(&deep).is_err(), "the parser's stack is deeper than thought");
    let message = raw(
        &cluster,
        "postgres",
        b"select 1 as \"\xff\xfe\";\nselect '\xc3';\nselect 1 \xe2\x82;\n",
    );
    assert_eq!(message.matches("invalid byte sequence").count(), 3, "{message}");
    let (_, after) = statement_seconds(&mut client);
    assert!(after > before, "{after} s after it, {before} s before");

    // Names longer than the limit.
    let name = "n".repeat(10_000);
    client.batch_execute(&format!("create table {name} (n int); select 1 as {name}")).unwrap();
    client.batch_execute("/* before */ select 11, 12 as commented -- behind").unwrap();
    client.batch_execute("-- before\nselect 12, 13, 14 as in_lines /* behind */;").unwrap();
    assert_eq!(shown(&mut client, "commented").calls, 1);
    assert_eq!(shown(&mut client, "in_lines").calls, 1);
    assert_conserved(&mut client);
}

#[test]
fn without_query_ids_the_time_adds_up_and_the_status_shows_why() {
    let cluster = server(&[("compute_query_id", "off")]);
    cluster.pgbench_init(1).unwrap();
    let mut client = cluster.connect().unwrap();
    let run = cluster.pgbench().clients(4).transactions(100).protocol("extended");
    assert_eq!(run.run().unwrap().transactions, 400);
    client.batch_execute("do $$ begin perform count(*) from pgbench_accounts; end $$").unwrap();
    let message = support::status_of(&mut client, "query ids");
    assert!(message.contains("compute_query_id"), "{message}");
    let count = "select count(*) from tally.statements where calls > 0";
    assert_eq!(client.query_one(count, &[]).unwrap().get::<_, i64>(0), 0);
    // The end of a session is not a client's message.
    support::eventually("this session is the only one", || {
        let sql = "select count(*) from tally.sessions where kind = 'client backend'";
        client.query_one(sql, &[]).unwrap().get::<_, i64>(0) == 1
    });
    let (all, unnamed) = statement_seconds(&mut client);
    assert_eq!(all, unnamed);
    assert_conserved(&mut client);

    // A session may enable them for itself.
    client.batch_execute("set compute_query_id = on").unwrap();
    client.batch_execute("select 1 as named_now").unwrap();
    assert_eq!(shown(&mut client, "named_now").calls, 1);
    assert!(support::status_of(&mut client, "query ids").starts_with("computed"));
}

#[test]
fn with_max_statements_zero_the_server_works_and_the_views_are_empty() {
    let cluster = server(&[("pg_tally.max_statements", "0")]);
    cluster.pgbench_init(1).unwrap();
    let mut client = cluster.connect().unwrap();
    assert_eq!(cluster.pgbench().clients(2).transactions(50).run().unwrap().transactions, 100);
    for view in ["tally.statements", "tally.statement_activities"] {
        let sql = format!("select count(*) from {view}");
        assert_eq!(client.query_one(&sql, &[]).unwrap().get::<_, i64>(0), 0, "{view}");
    }
    client.batch_execute("select tally.reset(); select * from tally.sessions").unwrap();
    assert!(!support::status_of(&mut client, "statements").is_empty());
}

/// Runs sessions with many different statements each; returns when all have ended.
fn many_statements(cluster: &Cluster, sessions: u32, each: u32) {
    std::thread::scope(|scope| {
        for session in 0..sessions {
            let mut client = cluster.connect().unwrap();
            scope.spawn(move || {
                for done in 0..each {
                    let sql = distinct_statement((session * 7919 + done * 31) % 60_000, session);
                    if done % 2 == 0 {
                        client.batch_execute(&sql).unwrap();
                    } else {
                        client.query(&sql, &[]).unwrap();
                    }
                }
            });
        }
    });
}

#[test]
fn a_full_table_evicts_while_sessions_run_and_one_resets() {
    let smallest: i64 = {
        let database = Profile::Preloaded.database();
        let sql = "select greatest(min_val::bigint, 1) from pg_settings where name = 'pg_tally.max_statements'";
        database.connect().query_one(sql, &[]).unwrap().get(0)
    };
    for most in [smallest, 100] {
        let cluster = server(&[("pg_tally.max_statements", &most.to_string())]);
        let mut client = cluster.connect().unwrap();
        std::thread::scope(|scope| {
            let load = scope.spawn(|| many_statements(&cluster, 8, 1000));
            while !load.is_finished() {
                client.batch_execute("select tally.reset()").unwrap();
                let rows = client.query("select * from tally.statements", &[]).unwrap().len();
                // The table is set-associative, and local entries come in addition.
                assert!(rows < 100 + most as usize * 2 + 8 * 64, "{rows} rows of {most}");
                client.query("select * from tally.statement_activities", &[]).unwrap();
            }
        });
        // Without a reset most of these have to go.
        let evicted = |client: &mut Client| -> u64 {
            support::status_of(client, "statements evicted").parse().unwrap()
        };
        let before = evicted(&mut client);
        many_statements(&cluster, 1, 1000);
        let after = evicted(&mut client);
        println!("limit {most}: {before} evicted, and {} of 1000", after - before);
        assert!(after - before > 500, "{} evicted of 1000", after - before);
        assert_eq!(support::status_of(&mut client, "statements lost"), "0");

        // It still counts exactly.
        client.batch_execute("select tally.reset()").unwrap();
        let mut other = cluster.connect().unwrap();
        for _ in 0..100 {
            client.batch_execute("select 1 as after_all").unwrap();
            other.batch_execute("select 2 as after_all").unwrap();
        }
        drop(other);
        assert_eq!(shown(&mut client, "after_all").calls, 200);
    }
}

/// A full table, and twenty statements that each session executes once between others that occur once. The
/// witness can hold as many.
#[test]
fn statements_that_run_now_and_then_outlive_a_flood_of_those_that_run_once() {
    if !support::has_module("pg_stat_statements") {
        println!("not tested: this server has no pg_stat_statements");
        return;
    }
    const ROUNDS: u32 = 12;
    const HOT: std::ops::Range<u32> = 60_000..60_020;
    let cluster = support::start(
        support::plain()
            .setting("shared_preload_libraries", "pg_stat_statements,pg_tally")
            .setting("pg_stat_statements.max", "100")
            .setting("pg_tally.max_statements", "100"),
    );
    support::create_views(&cluster);
    let mut observer = cluster.connect().unwrap();
    observer.batch_execute("create extension pg_stat_statements").unwrap();
    let execute = |numbers: std::ops::Range<u32>| {
        let mut session = cluster.connect().unwrap();
        for number in numbers {
            session.batch_execute(&distinct_statement(number, 1)).unwrap();
        }
    };
    let ids: Vec<i64> = {
        let mut session = cluster.connect().unwrap();
        let pid = support::pid_of(&mut session);
        HOT.map(|number| {
            session.batch_execute(&distinct_statement(number, 1)).unwrap();
            let id = "select query_id from pg_stat_activity where pid = $1";
            observer.query_one(id, &[&pid]).unwrap().get(0)
        })
        .collect()
    };
    observer.batch_execute("select tally.reset(), pg_stat_statements_reset()").unwrap();
    execute(0..150);
    for round in 0..ROUNDS {
        execute(HOT);
        execute(1000 + round * 20..1020 + round * 20);
    }
    let mut calls = |view: &str| -> i64 {
        let sql =
            format!("select coalesce(sum(calls), 0)::bigint from {view} where queryid = any ($1)");
        observer.query_one(&sql, &[&ids]).unwrap().get(0)
    };
    let (ours, theirs) = (calls("tally.statements"), calls("pg_stat_statements"));
    println!("of {} calls, pg_stat_statements has {theirs}", ROUNDS * 20);
    assert_eq!(ours, i64::from(ROUNDS) * 20);
    assert!(ours >= theirs);

    let shown = support::output(support::tally().arg("statements").arg(support::segment(&cluster)));
    assert!(shown.contains("SELECT that ran only once (see tally doctor)"), "{shown}");
    // `tally doctor` reports it while it continues.
    let done = std::sync::atomic::AtomicBool::new(false);
    let found = std::thread::scope(|scope| {
        scope.spawn(|| {
            for first in (2000..50_000).step_by(20) {
                if !done.load(Ordering::Relaxed) {
                    execute(first..first + 20);
                }
            }
        });
        let mut doctor = support::tally();
        doctor.args(["doctor", "--json", "--for", "1"]).arg(support::segment(&cluster));
        let found = doctor.output().unwrap();
        done.store(true, Ordering::Relaxed);
        String::from_utf8(found.stdout).unwrap()
    });
    assert!(
        found.contains("statement-flood") && found.contains("pass a list as one parameter"),
        "{found}"
    );
}

/// A kill at each step of a flush is covered by the stepper of libtally's tests.
#[test]
fn a_session_killed_among_flushes_leaves_no_lock_held() {
    let cluster = server(&[("pg_tally.max_statements", "100"), ("restart_after_crash", "on")]);
    let config = cluster.config();
    for kill in 0..4 {
        let done = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for session in 0..6u32 {
                let (config, done) = (config.clone(), &done);
                scope.spawn(move || {
                    // Until the server ends all sessions, since one was killed.
                    let Ok(mut client) = config.connect(NoTls) else { return };
                    let mut number = session * 1000;
                    while client.batch_execute(&distinct_statement(number % 60_000, 1)).is_ok() {
                        number += 1;
                        done.fetch_add(1, Ordering::Relaxed);
                    }
                });
            }
            let pids = support::eventually("the sessions flush", || {
                let pids = cluster.backend_pids().unwrap();
                let busy = done.load(Ordering::Relaxed) > 1000 + 337 * kill;
                (busy && !pids.is_empty()).then_some(pids)
            });
            cluster.kill9(pids[kill % pids.len()]).unwrap();
        });
        let mut client = None;
        support::eventually("the server accepts sessions again", || {
            client = cluster.connect().ok().filter(|_| cluster.connect().is_ok());
            client.as_mut().is_some_and(|client| client.batch_execute("select 1").is_ok())
        });
        let mut client = client.unwrap();
        client.batch_execute("select tally.reset()").unwrap();
        // The sessions before the kill may have dropped counts while another one was not scheduled within its flush.
        let dropped = |client: &mut Client| support::status_of(client, "statement counts dropped");
        let before = dropped(&mut client);
        // Every set is used: a count that finds a lock held is dropped and counted as dropped.
        for number in 0..3000 {
            client.batch_execute(&distinct_statement(number, 1)).unwrap();
        }
        for _ in 0..50 {
            client.batch_execute("select 1 as after_the_kill").unwrap();
        }
        assert_eq!(shown(&mut client, "after_the_kill").calls, 50, "kill {kill}");
        assert_eq!(dropped(&mut client), before, "kill {kill}");
    }
    assert!(!cluster.log().contains("PANIC"), "{}", cluster.log_tail(50));
}

/// Kilobytes of private memory of a session.
fn memory(client: &mut Client) -> u64 {
    let pid = support::pid_of(client);
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
fn errors_caught_in_one_transaction_do_not_accumulate_memory() {
    let cluster = server(&[("pg_tally.statements", "all")]);
    let mut client = cluster.connect().unwrap();
    let fail = |client: &mut Client, times: u32| {
        let sql = format!(
            "do $$ declare zero int := 0; begin for i in 1..{times} loop
             begin perform 1 / zero from pg_class limit 1;
             exception when division_by_zero then null; end; end loop; end $$"
        );
        client.batch_execute(&sql).unwrap();
    };
    fail(&mut client, 1000);
    let before = memory(&mut client);
    fail(&mut client, 100_000);
    let after = memory(&mut client);
    println!("{before} kB before, {after} kB after");
    assert!(after < before + 8192, "{before} kB before, {after} kB after");
    // Each was counted, in the function and in the client's statements.
    let sql = "select errors from tally.statements where strpos(query, '/ zero from pg_class') > 0
               and not toplevel";
    assert_eq!(client.query_one(sql, &[]).unwrap().get::<_, i64>(0), 101_000);
}

/// Locks of all sets of statements, held by a process that is stopped. Freed when dropped.
struct LockedSets {
    file: std::fs::File,
    offsets: Vec<u64>,
    holder: std::process::Child,
}

impl LockedSets {
    fn new(cluster: &Cluster) -> LockedSets {
        use layout::{header, region, set};
        let mut holder = std::process::Command::new("sleep");
        let holder = holder.arg("infinity").spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&holder);
        rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
        let path = support::segment(cluster);
        let file = std::fs::File::options().read(true).write(true).open(path).unwrap();
        let mut sets = [0; region::SIZE];
        file.read_exact_at(&mut sets, header::SETS as u64).unwrap();
        let [count, stride] = [region::COUNT, region::STRIDE].map(|at| layout::u32_at(&sets, at));
        let first = layout::u64_at(&sets, region::OFFSET);
        let offsets = (0..count).map(|n| first + u64::from(n) * u64::from(stride)).collect();
        let locked = LockedSets { file, offsets, holder };
        // It was alive later than it was started.
        locked.write(u64::from(locked.holder.id()), u64::MAX / 2);
        assert_eq!(set::LOCK, 0);
        locked
    }

    fn write(&self, pid: u64, alive: u64) {
        for at in &self.offsets {
            let at = |member: usize| at + member as u64;
            let alive = alive.to_ne_bytes();
            self.file.write_all_at(&alive, at(layout::set::LOCK_BOOT_NS)).unwrap();
            let pid = (pid as u32).to_ne_bytes();
            self.file.write_all_at(&pid, at(layout::set::LOCK)).unwrap();
        }
    }
}

impl Drop for LockedSets {
    fn drop(&mut self) {
        self.write(0, 0);
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}

/// A reset waits a moment for each set. Without looking for a cancellation, it would go through all of them.
#[test]
fn a_reset_that_waits_for_locks_can_be_cancelled() {
    let cluster = server(&[("pg_tally.max_statements", "100000")]);
    for reset in ["tally.reset(10)", "tally.reset(10, minmax_only => true)"] {
        let mut observer = cluster.connect().unwrap();
        let dropped = |observer: &mut Client| -> u64 {
            support::status_of(observer, "statement counts dropped").parse().unwrap()
        };
        let mut session = cluster.connect().unwrap();
        let pid = support::pid_of(&mut session);
        let before = dropped(&mut observer);
        let locked = LockedSets::new(&cluster);
        let error = std::thread::scope(|scope| {
            let resets = scope.spawn(|| session.batch_execute(&format!("select {reset}")));
            support::eventually("it has waited for a set", || dropped(&mut observer) > before);
            observer.execute("select pg_cancel_backend($1)", &[&pid]).unwrap();
            resets.join().unwrap().unwrap_err()
        });
        assert_eq!(error.code(), Some(&postgres::error::SqlState::QUERY_CANCELED));
        let given_up = dropped(&mut observer) - before;
        assert!(given_up < locked.offsets.len() as u64 / 2, "{reset}: {given_up} sets");
        drop(locked);
        session.batch_execute(&format!("select {reset}")).unwrap();
    }
}
