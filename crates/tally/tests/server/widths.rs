// SPDX-License-Identifier: PostgreSQL
//! No line that the command prints is wider than the terminal, on 80 and on 200 columns: help of each verb, tables, events,
//! errors. What is printed to a pipe is not shortened.
//!
//! Verbs and panes are those of the command's own help: one without a case here fails.

use std::collections::BTreeSet;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::Mutex;

use super::storage::STEADY;
use super::study::SMALL;
use crate::maker::{Who, ACCOUNT};
use crate::support::fixtures::Fixture;
use crate::support::fleet::engines;
use crate::support::java::java;
use crate::support::pty::{lines, Pty};
use crate::support::{self, eventually, output, tally, CONNECTION};
use crate::waiting;
use segment::clock::monotonic_ns;

const WIDTHS: [u16; 2] = [80, 200];

/// The commands that are run for a verb.
enum Views {
    /// The command with these arguments. If they begin with `?`, it may fail: an error is a view, too. If they begin with `@`, it is
    /// interrupted after a second.
    Run(&'static [&'static str]),
    /// It prints what this verb prints.
    As(&'static str),
}
use Views::{As, Run};

/// In braces: {server} the data directory of a server with sessions that wait for locks, {uri} how to connect to it, {pid} a
/// busy session of it,
/// {recording}, {before} and {after} recordings, {bucket} the place to which two hosts have shipped theirs, {engine} DuckDB,
/// {study} and {storage} the results of studies, {client} the segment of a client, {profiles} two profiles, {folder} an empty
/// directory.
const CASES: &[(&str, Views)] = &[
    ("", Run(&["?", "?no-such-verb", "?top --no-such-option-of-any-verb-that-the-command-has-or-has-ever-had", "?top /no/such/directory/with/a/name/that/is/longer/than/a/terminal/is/wide/and/has/no/blank", "?status {folder}"])),
    ("demo", As("top")),
    ("enable", Run(&["?enable", "?enable {server}", "?enable --mode shared {server}"])),
    ("disable", Run(&["?disable {folder}"])),
    ("status", Run(&["status {server}"])),
    ("ls", Run(&["ls"])),
    // Its panes are added below.
    ("top", Run(&["top --once --interval 0.3 --view lwlocks --per-second {server}", "?top --once --parameters {server}"])),
    ("doctor", Run(&["doctor --for 1 {server}", "doctor --for 1 --samples 20 {uri}"])),
    ("blocking", Run(&["blocking {server}", "blocking --samples 20 {uri}"])),
    ("statements", Run(&["statements {server}", "statements --sort lock {server}", "statements --sort rows --interval 0.3 {server}", "statements --all {server}", "statements --samples 20 --interval 0.5 {uri}", "?statements --id 1 {server}"])),
    ("events", Run(&["events {server}"])),
    ("record", Run(&["record -o {folder}/recording --duration 1 --interval 0.3 {server}", "record -o {folder}/recording --duration 1 --interval 0.3 --parameters {server}", "?record -o {folder}/recording --parameters --texts hash {server}", "record -o {folder}/recording --duration 1 --interval 0.3 --samples 20 --budget 1% {uri}"])),
    ("report", Run(&["report {recording}", "report {before}", "?report {folder}"])),
    ("level", Run(&["level {server}", "level locks {server}"])),
    ("functions", Run(&["functions --interval 0.3 {server}", "functions --tree --interval 0.3 {server}", "?functions --list XLog* {server}"])),
    ("health", Run(&["health {uri}", "health --samples 20 {uri}", "?health {server}"])),
    ("ship", Run(&["ship --cluster again {shipped} file://{folder}/bucket", "?ship {recording} s3://no-such-bucket-of-anybody-in-the-world/with/a/long/path"])),
    ("upkeep", Run(&["upkeep file://{bucket}", "?upkeep {folder}"])),
    ("serve", Run(&["@serve --listen 127.0.0.1:0 {server}", "@serve --listen 127.0.0.1:0 --samples 20 {uri}", "@serve --listen none --alert false --alert-interval 1s {server}", "@serve --listen none --alert false --alert-interval 1s --alert-settings {server}", "?serve --listen none --alert @{folder}/no-such-file {server}"])),
    ("mcp", Run(&["?mcp {server}"])),
    ("dashboards", Run(&["?dashboards {folder}/dashboards"])),
    ("diff", Run(&["diff {before} {after}", "diff --per second {recording} {before}"])),
    ("fleet", Run(&["?fleet"])),
    ("fleet queries", Run(&["fleet queries"])),
    // SQL keeps its lines, so that it can be copied; errors fit.
    ("fleet schema", Run(&["?fleet schema"])),
    ("fleet refresh", Run(&["?fleet refresh"])),
    ("fleet sql", Run(&["?fleet sql load", "?fleet sql load --root {folder}"])),
    // Each query is added below.
    ("fleet ask", Run(&["?fleet ask load --engine duckdb --root {folder}", "?fleet ask load --engine {engine} --root {bucket} --until 2026-01-01"])),
    ("fleet doctor", Run(&["fleet doctor --since 2026-01-01 --root {bucket}", "fleet doctor --since 2026-01-01 --cluster blocked --root {bucket}", "?fleet doctor --root {folder}"])),
    ("fleet top", Run(&["fleet top --once --engine {engine} --root {bucket} --since 2026-01-01"])),
    ("cost", Run(&["?@cost --minutes 0.05 {server}", "?cost --level off"])),
    ("clock", Run(&["?clock --seconds 1"])),
    ("study", Run(&["?study"])),
    ("study list", Run(&["study list"])),
    ("study show", Run(&["study show commit-delay"])),
    ("study run", As("study report")),
    ("study report", Run(&["study report {study}", "?study report {folder}"])),
    ("storage", Run(&["?storage"])),
    ("storage list", Run(&["storage list"])),
    ("storage show", Run(&["storage show storage-victim"])),
    ("storage run", As("storage report")),
    ("storage report", Run(&["storage report {storage}", "?storage report {folder}"])),
    ("profile", Run(&["?profile --seconds 1 --rows 5 {server}"])),
    ("profile diff", Run(&["?profile diff {profiles}/a.json {profiles}/b.json"])),
    ("methods", Run(&["?methods --interval 0.3 {client}", "?methods 1", "?methods --sort cpu {folder}"])),
    ("calls", Run(&["?calls --interval 0.3 {client}", "?calls 1"])),
    ("trace", Run(&["trace --seconds 1 {pid} {server}", "trace --seconds 1 --all --nodes {pid} {server}", "trace --seconds 1 --parameters {pid} {server}"])),
];

/// Those listed in a verb's help, with their verbs.
fn verbs(of: &[&str]) -> Vec<String> {
    let help = output(tally().args(of).arg("--help"));
    let commands = help.lines().skip_while(|line| *line != "Commands:").skip(1);
    let names = commands.take_while(|line| line.starts_with("  ")).filter_map(|line| {
        let name = line.strip_prefix("  ").filter(|line| !line.starts_with(' '))?;
        name.split_whitespace().next().filter(|name| *name != "help")
    });
    let mut all = Vec::new();
    for name in names {
        let path = [of, &[name]].concat();
        all.push(path.join(" "));
        all.extend(verbs(&path));
    }
    all
}

/// The panes of `tally top`.
fn panes() -> Vec<String> {
    let help = output(tally().args(["top", "--help"]));
    let views = help.lines().skip_while(|line| !line.contains("--view <")).skip(1);
    let views = views.take_while(|line| !line.trim_start().starts_with("--"));
    views
        .filter_map(|line| Some(line.trim().strip_prefix("- ")?.split_once(':')?.0.into()))
        .collect()
}

/// An address, which is not divided between lines, so that it can be copied.
fn is_address(line: &str) -> bool {
    line.split_whitespace().count() == 1 && line.contains("://")
}

fn command<'a>(words: &[&'a str]) -> Vec<&'a str> {
    let mut all = vec!["env"];
    CONNECTION.iter().for_each(|name| all.extend(["-u", name]));
    all.extend(words);
    all
}

/// Runs the command on terminals; each line must fit. Returns what does not.
fn too_wide(arguments: &str, may_fail: bool, is_interrupted: bool) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut words: Vec<&str> =
        if is_interrupted { vec!["timeout", "-s", "INT", "1"] } else { vec![] };
    words.push(env!("CARGO_BIN_EXE_tally"));
    words.extend(arguments.split_whitespace());
    for width in WIDTHS {
        let (status, bytes) = Pty::run(width, 50, &command(&words)).end();
        let shown = lines(&bytes);
        if !may_fail && !is_interrupted && status != Some(0) {
            wrong.push(format!("tally {arguments}: exit status {status:?}\n{}", shown.join("\n")));
        }
        let is_wide =
            |line: &&String| line.chars().count() > usize::from(width) && !is_address(line);
        let wide = shown.iter().filter(is_wide);
        wrong.extend(wide.map(|line| format!("tally {arguments}, {width} columns: {line}")));
    }
    wrong
}

/// What PostgreSQL's operators consist of.
const OPERATORS: &str = "+-*/<>=~!@#%^&|`?";

/// Runs the command in a pipe, where nothing may be shortened.
fn shortened(arguments: &str) -> Vec<String> {
    let words = [env!("CARGO_BIN_EXE_tally")].into_iter().chain(arguments.split_whitespace());
    let words = command(&words.collect::<Vec<_>>());
    let found = Command::new(words[0]).args(&words[1..]).output().unwrap();
    assert_eq!(found.status.signal(), None, "{arguments}");
    let text = String::from_utf8(found.stdout).unwrap();
    // It stands at the end of what was cut. Before a number it marks an estimate, and in a statement it is an operator
    // or the end of one, such as !~ in what the command itself asks an archiving server.
    let is_cut = |line: &&str| {
        line.match_indices('~').any(|(at, _)| {
            let (before, after) = (line[..at].chars().next_back(), line[at + 1..].chars().next());
            before.is_some_and(|c| !c.is_whitespace() && !OPERATORS.contains(c))
                && after.is_none_or(char::is_whitespace)
        })
    };
    let cut = text.lines().filter(is_cut);
    cut.map(|line| format!("tally {arguments}, in a pipe: {line}")).collect()
}

#[test]
fn each_verb_has_a_case() {
    let cases: BTreeSet<&str> =
        CASES.iter().map(|(verb, _)| *verb).filter(|verb| !verb.is_empty()).collect();
    let verbs = verbs(&[]);
    assert!(verbs.len() > 40, "{verbs:?}");
    assert_eq!(
        cases,
        verbs.iter().map(String::as_str).collect(),
        "the cases, and the verbs of the help"
    );
    for (verb, views) in CASES {
        if let As(other) = views {
            assert!(cases.contains(other), "{verb} prints what {other} prints");
        }
    }
    assert!(panes().len() >= 11, "{:?}", panes());
}

#[test]
fn help_is_not_wider_than_the_terminal() {
    let verbs = verbs(&[]).into_iter().chain([String::new()]);
    let wrong: Vec<String> =
        verbs.flat_map(|verb| too_wide(&format!("{verb} --help"), false, false)).collect();
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_view_is_wider_than_the_terminal_or_shortened_in_a_pipe() {
    let cluster = support::start(
        support::plain()
            .setting("shared_preload_libraries", "pg_tally")
            .setting("pg_tally.functions", "XLogFlush, heap_insert, ExecInitNode"),
    );
    support::create_views(&cluster);
    let server = cluster.data_dir().display().to_string();
    let uri = format!(
        "postgresql://{}@/postgres?host={}&port={}",
        cluster.user(),
        cluster.host().display(),
        cluster.port()
    );
    output(tally().args(["level", "locks", &server]));
    let mut holder = cluster.connect().unwrap();
    for sql in [
        "set application_name = 'a program whose name is as long as a name may be, or longer'",
        // The doctor notes them.
        "alter system set shared_buffers = '10MB'",
        "alter system set max_connections = 333",
        "alter system set autovacuum_multixact_freeze_max_age = 300000000",
        "alter system set max_logical_replication_workers = 7",
        "select pg_reload_conf()",
        "create table a_table_with_a_long_name (a_column_with_a_long_name int primary key, other int)",
        "insert into a_table_with_a_long_name select n, n from generate_series(1, 1000) n",
        "begin",
        "update a_table_with_a_long_name set other = 0 where a_column_with_a_long_name = 1",
    ] {
        holder.batch_execute(sql).unwrap();
    }
    let waits = |_: &AtomicBool| {
        let mut session = cluster.connect().unwrap();
        let update = "update a_table_with_a_long_name set other = other + 1, \
                      a_column_with_a_long_name = a_column_with_a_long_name where a_column_with_a_long_name = 1";
        // Until the holder ends.
        let _ = session.batch_execute(update);
    };
    let mut busy = cluster.connect().unwrap();
    let pid = support::pid_of(&mut busy);
    let busy = Mutex::new(busy);
    let works = |stop: &AtomicBool| {
        let mut busy = busy.lock().unwrap();
        while !stop.load(Ordering::Relaxed) {
            let select = "select count(*), sum(other), min(a_column_with_a_long_name), max(other) \
                          from a_table_with_a_long_name where other between 10 and 900";
            busy.batch_execute(select).unwrap();
        }
    };
    let [recording, before, after] =
        ["mixed-load", "index-before", "index-after"].map(Fixture::open);
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let shipped = Fixture::open("forgotten-transaction").with_files();
    let bucket = format!("file://{}", at("bucket"));
    for cluster in
        ["blocked", "a-cluster-whose-name-is-as-long-as-a-terminal-is-wide-or-even-longer"]
    {
        output(tally().args(["ship", "--cluster", cluster]).arg(shipped.path()).arg(&bucket));
    }
    let queries = output(tally().args(["fleet", "queries"]));
    let queries = queries.lines().skip(1).filter_map(|line| line.split_whitespace().next());
    let queries: Vec<&str> = queries.collect();
    assert!(queries.contains(&"regressions"), "{queries:?}");
    let engine = engines().map(|[duckdb, _]| duckdb.display().to_string());
    // In a container, profiles may not be allowed; then the command says so.
    std::fs::create_dir(folder.path().join("profiles")).unwrap();
    for name in ["profiles/a.json", "profiles/b.json"] {
        let mut profile = tally();
        profile.args(["profile", "--for", "1", "-o", &at(name), &server]).output().unwrap();
    }
    std::thread::scope(|scope| {
        for (verb, study) in [("study", SMALL), ("storage", STEADY)] {
            let (file, results) = (at(&format!("{verb}.toml")), at(verb));
            scope.spawn(move || {
                std::fs::write(&file, study).unwrap();
                output(tally().args([verb, "run", &file, "-o", &results]));
            });
        }
    });
    let (_client_folder, client, mut maker) = waiting::segment();
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let slot = maker.claim(1, 1, Who::client(), cpu, monotonic_ns());
    maker.write(&slot);
    let filled = |arguments: &str, name: &str| {
        let folder = folder.path().join(name);
        std::fs::create_dir_all(&folder).unwrap();
        let path = |fixture: &Fixture| fixture.path().display().to_string();
        arguments
            .replace("{server}", &server)
            .replace("{uri}", &uri)
            .replace("{pid}", &pid.to_string())
            .replace("{recording}", &path(&recording))
            .replace("{before}", &path(&before))
            .replace("{after}", &path(&after))
            .replace("{shipped}", &path(&shipped))
            .replace("{bucket}", &at("bucket"))
            .replace("{engine}", engine.as_deref().unwrap_or_default())
            .replace("{study}", &at("study"))
            .replace("{storage}", &at("storage"))
            .replace("{client}", &client.display().to_string())
            .replace("{profiles}", &at("profiles"))
            .replace("{folder}", &folder.display().to_string())
    };
    let mut all: Vec<String> = panes()
        .iter()
        .flat_map(|pane| {
            [
                format!("top --once --interval 0.3 --view {pane} {{server}}"),
                format!("top --once --interval 0.3 --samples 20 --view {pane} {{uri}}"),
                format!("top --once --view {pane} --replay {{recording}}"),
            ]
        })
        .collect();
    // These change the level, so they run after the others.
    let (mut at_level, mut changing) = (Vec::new(), Vec::new());
    for (verb, views) in CASES {
        if let Run(views) = views {
            let all = if matches!(*verb, "cost" | "level") { &mut changing } else { &mut at_level };
            all.extend(views.iter().map(|arguments| arguments.to_string()));
        }
    }
    all.append(&mut at_level);
    all.extend(queries.iter().map(|query| {
        format!("fleet ask {query} --engine {{engine}} --root {{bucket}} --since 2026-01-01")
    }));
    if engine.is_none() {
        all.retain(|arguments| !arguments.contains("{engine}"));
    }
    let wrong = support::while_working(&[&waits, &waits, &works], || {
        eventually("sessions wait", || {
            let found = output(tally().args(["blocking", "--json", &server]));
            let found: serde_json::Value = serde_json::from_str(&found).unwrap();
            found["blocked"].as_u64() >= Some(2)
        });
        let wrong = Mutex::new(Vec::new());
        let next = AtomicUsize::new(0);
        let run = |at: usize, arguments: &str| {
            let plain = arguments.trim_start_matches(['?', '@']);
            let marks = &arguments[..arguments.len() - plain.len()];
            let (may_fail, is_interrupted) = (marks.contains('?'), marks.contains('@'));
            let mut found = too_wide(&filled(plain, &format!("{at}")), may_fail, is_interrupted);
            if marks.is_empty() {
                found.extend(shortened(&filled(plain, &format!("{at}-pipe"))));
            }
            wrong.lock().unwrap().extend(found);
        };
        let run_some = || loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            let Some(arguments) = all.get(at) else { break };
            run(at, arguments);
        };
        // Most of their time is waiting for an interval to end.
        std::thread::scope(|scope| {
            for _ in 0..8 {
                scope.spawn(run_some);
            }
        });
        for (at, arguments) in changing.iter().enumerate() {
            run(all.len() + at, arguments);
        }
        holder.batch_execute("rollback").unwrap();
        wrong.into_inner().unwrap()
    });
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn no_view_of_a_java_client_is_wider_than_the_terminal() {
    let Some(java) = java() else { return };
    let preloaded = support::plain().setting("shared_preload_libraries", "pg_tally");
    let (cluster, port) = support::on_loopback(preloaded);
    let url = format!("jdbc:postgresql://127.0.0.1:{port}/postgres?sslmode=disable");
    // Statements, a pool, problems, pauses of the virtual machine.
    let mut client =
        java.start("threads=16,edges=on,cpu=on", &["org.pgtally.test.Repeated", &url, "postgres"]);
    client.finish();
    let segment = client.segment().display().to_string();
    let folder = tempfile::tempdir().unwrap();
    let recording = folder.path().join("recording").display().to_string();
    let server = cluster.data_dir().display().to_string();
    output(tally().args([
        "record",
        "--interval",
        "0.3",
        "--for",
        "1",
        "--client",
        &segment,
        "-o",
        &recording,
        &server,
    ]));
    let report = format!("report {recording}");
    let views = [
        "calls",
        "calls --sort bytes",
        "calls --interval 0.3",
        "methods",
        "methods --sort cpu-excl",
        "methods --callers",
        "methods --callees",
        "status",
        "top --once --interval 0.3",
    ];
    let of_segment = |view: &&str| format!("{view} {segment}");
    let mut wrong: Vec<String> = views
        .iter()
        .map(of_segment)
        .chain([report])
        .flat_map(|view: String| too_wide(&view, false, false))
        .collect();
    client.child.kill().unwrap();
    client.child.wait().unwrap();
    // Of a client that has ended.
    wrong.extend(
        ["calls", "methods", "status"]
            .iter()
            .map(of_segment)
            .flat_map(|view: String| too_wide(&view, false, false)),
    );
    assert!(wrong.is_empty(), "{} lines:\n{}", wrong.len(), wrong.join("\n"));
}
