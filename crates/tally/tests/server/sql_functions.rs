// SPDX-License-Identifier: PostgreSQL
//! The functions that SQL can call: who may call them, that each can be interrupted, and how much memory they
//! take.

use std::collections::BTreeMap;
use std::path::Path;

use postgres::error::SqlState;
use postgres::{Client, NoTls};

use crate::support;
use crate::support::stepping::Stepped;

/// Functions of the library by their calls, with arguments by their types.
fn calls(client: &mut Client) -> Vec<(String, String)> {
    let sql = "select prosrc, format('select * from tally.%I(%s)', proname, (select string_agg(case t \
               when 'boolean'::regtype then 'true' when 'text'::regtype then quote_literal('*') \
               when 'integer'::regtype then case proname when 'last_statement' then 'pg_backend_pid()' else '7' end \
               else '0' end, ', ' order by n) from unnest(proargtypes::oid[]) with ordinality as a(t, n))) \
               from pg_proc where pronamespace = 'tally'::regnamespace and prolang <> 14 order by proname";
    client.query(sql, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// A cancellation that arrives when a function starts ends it before its second row.
#[test]
fn each_can_be_interrupted() {
    let cluster = support::shared();
    support::create_views(&cluster);
    let mut client = cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);
    let all = calls(&mut client);
    assert!(all.len() > 10, "{all:?}");
    client.batch_execute("checkpoint").unwrap();
    for (_, sql) in &all {
        client.batch_execute(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
    }
    let Some(mut stepped) = Stepped::attach(pid, "pg_tally.so") else { return };
    let address = |stepped: &Stepped, name: &str| {
        stepped.functions(|function| function.name == name)[0].address
    };
    let row = address(&stepped, "rows_end");
    for (function, sql) in all {
        // It returns no rows, and waits for 20 ms at most.
        if function == "pg_tally_reset_0_3" {
            continue;
        }
        let begin = address(&stepped, &function);
        stepped.stop_at([begin, row]);
        let mut rows = 0;
        let ended = stepped.during(
            || client.batch_execute(&sql),
            |_, at| {
                if at == begin {
                    // SAFETY: no memory is involved; the process is traced, so the pid is still its own.
                    unsafe { libc::kill(pid, libc::SIGINT) };
                } else {
                    rows += 1;
                }
            },
        );
        let error = ended.expect_err(&sql);
        assert_eq!(error.code(), Some(&SqlState::QUERY_CANCELED), "{sql}: {error}");
        assert!(rows <= 1, "{sql}: {rows} rows after it was cancelled");
    }
}

#[test]
fn what_walks_over_all_functions_is_bounded_and_for_superusers() {
    let cluster = support::shared();
    support::create_views(&cluster);
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create role poor login").unwrap();
    let mut poor = cluster.config().user("poor").connect(NoTls).unwrap();
    let denied = poor.query("select tally.probeable('*')", &[]).unwrap_err();
    assert_eq!(denied.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{denied}");
    let long = client.query("select tally.probeable(repeat('*a', 2500000))", &[]).unwrap_err();
    assert_eq!(long.code(), Some(&SqlState::PROGRAM_LIMIT_EXCEEDED), "{long}");
    // fnmatch would try each way to divide a name among the asterisks.
    let glob = format!("{}!", "*[a-zA-Z_]".repeat(12));
    let found = "select count(*) from tally.probeable($1)";
    assert_eq!(client.query_one(found, &[&glob]).unwrap().get::<_, i64>(0), 0);
    // The same where the setting is assigned: it neither fails nor takes forever.
    client.batch_execute(&format!("set pg_tally.functions = '{glob}'")).unwrap();
    let names = vec!["no_such_function"; 100_000].join(",");
    client.batch_execute(&format!("set pg_tally.functions = '{names},heap_insert'")).unwrap();
    client.batch_execute(&format!("set pg_tally.functions = '{}'", "x".repeat(5 << 20))).unwrap();
    client.batch_execute("set pg_tally.functions = 'heap_insert'").unwrap();
    let sql = "select installed from tally.probes where name = 'function heap_insert'";
    assert!(client.query_one(sql, &[]).unwrap().get::<_, bool>(0));
}

/// A session that reads the segment for a remote reader takes memory for the data that was sent, whatever the
/// segment's size.
#[test]
fn a_remote_reading_takes_what_it_sends() {
    let settings = [
        ("shared_preload_libraries", "pg_tally"),
        ("pg_tally.max_slots", "2000"),
        ("pg_tally.max_statements", "100000"),
    ];
    let cluster = support::start(support::plain().settings(settings));
    support::create_views(&cluster);
    let size = std::fs::metadata(support::segment(&cluster)).unwrap().len();
    assert!(size > 500 << 20, "{size}");
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create role poor login").unwrap();
    for role in ["poor", "postgres"] {
        let mut client = cluster.config().user(role).connect(NoTls).unwrap();
        let pid = support::pid_of(&mut client);
        let before = private_bytes(pid);
        client.query("select from tally.segment_changes()", &[]).unwrap();
        let taken = private_bytes(pid) - before;
        assert!(taken < 32 << 20, "{role}: {taken} of {size}");
        let sql = "select sum(total_bytes)::bigint from pg_backend_memory_contexts where name = 'pg_tally remote reader'";
        if role == "postgres" {
            let counted: i64 = client.query_one(sql, &[]).unwrap().get(0);
            assert!((1..32 << 20).contains(&counted), "{counted}");
        }
    }
}

/// The memory that only this process can write to, and that the kernel therefore commits to.
fn private_bytes(pid: i32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
}

/// The text of a role's own statement is sent to a role that sees no others; more of them than it may have in
/// memory are refused.
#[test]
fn a_role_without_rights_takes_a_limited_amount_of_memory() {
    let settings = [
        ("shared_preload_libraries", "pg_tally"),
        ("pg_tally.max_statements", "1000000"),
        ("pg_tally.max_statement_text", "1MB"),
    ];
    let cluster = support::start(support::plain().settings(settings));
    support::create_views(&cluster);
    cluster.psql("create role poor login").unwrap();
    let connect = |role| cluster.config().user(role).connect(NoTls).unwrap();
    let mut poor = connect("poor");
    let read = "select coalesce(sum(length(s::text)), 0)::bigint from tally.segment_changes() s";
    // 40 MiB of texts are within the limit of 64 MiB, 80 MiB are not.
    let text = "t".repeat((1 << 20) - 200);
    let mut executed = 0..80;
    let mut execute = |count: usize| {
        for number in executed.by_ref().take(count) {
            let sql = format!("select {} /* {text} */", support::distinct(number));
            connect("poor").batch_execute(&sql).unwrap();
        }
    };
    execute(40);
    assert!(poor.query_one(read, &[]).unwrap().get::<_, i64>(0) > 0);
    execute(40);
    let refused = connect("poor").query_one(read, &[]).unwrap_err();
    let message = refused.as_db_error().unwrap().message();
    assert_eq!(message, "the segment's image for a remote reader exceeds 64 MB of memory");
    // The same session continues, and may read without texts.
    assert!(poor.query_one(read, &[]).is_err());
    let without = "select count(*) from tally.segment_changes(0, 0)";
    assert!(poor.query_one(without, &[]).unwrap().get::<_, i64>(0) > 0);
    assert!(connect("postgres").query_one(read, &[]).unwrap().get::<_, i64>(0) > 0);
}

/// docs/security.md has each function and each view, with the roles that may use it.
#[test]
fn the_manual_says_who_may_use_each() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/security.md");
    let text = std::fs::read_to_string(path).unwrap();
    let (_, table) = text.split_once("| function or view | may be used by |").expect("the table");
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut manual = BTreeMap::new();
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        for name in cells[1].split(", ") {
            let name = name.trim_matches('`').to_string();
            assert!(manual.insert(name.clone(), cells[2].to_string()).is_none(), "{name} twice");
        }
    }
    let cluster = support::shared();
    support::create_views(&cluster);
    let sql = "select name, coalesce(string_agg(case grantee when 0 then 'everybody' else '`' || grantee::regrole::text || '`' end, \
                      ', ' order by grantee) filter (where grantee <> owner), 'superusers') \
               from (select oid::regprocedure::text as name, proowner as owner, \
                            coalesce(proacl, acldefault('f', proowner)) as acl \
                     from pg_proc where pronamespace = 'tally'::regnamespace \
                     union all select oid::regclass::text, relowner, coalesce(relacl, acldefault('r', relowner)) \
                     from pg_class where relnamespace = 'tally'::regnamespace and relkind = 'v') o, \
                    aclexplode(acl) as a group by name, owner";
    let mut client = cluster.connect().unwrap();
    let server: BTreeMap<String, String> =
        client.query(sql, &[]).unwrap().iter().map(|row| (row.get(0), row.get(1))).collect();
    assert_eq!(manual, server);
}
