// SPDX-License-Identifier: PostgreSQL
//! Comparison with pg_stat_statements in the same server: both must agree on the same statements,
//! whichever was loaded first.

use crate::support;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use crate::support::verify::{Claim, Trial};
use crate::support::workload::{self, LostByWitness};
use postgres::Client;
use scratch::Cluster;

/// Figures that must agree exactly, and since which major version pg_stat_statements has them.
static COUNTS: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let later: [(u32, &[&str]); 3] = [
        (17, &["jit_deform_count"]),
        (18, &["wal_buffers_full", "parallel_workers_to_launch", "parallel_workers_launched"]),
        (19, &["generic_plan_calls", "custom_plan_calls"]),
    ];
    let later = later.into_iter().filter(|(since, _)| support::major() >= *since);
    FIRST_COUNTS.into_iter().chain(later.flat_map(|(_, columns)| columns.iter().copied())).collect()
});

const FIRST_COUNTS: [&str; 20] = [
    "plans",
    "calls",
    "rows",
    "shared_blks_hit",
    "shared_blks_read",
    "shared_blks_dirtied",
    "shared_blks_written",
    "local_blks_hit",
    "local_blks_read",
    "local_blks_dirtied",
    "local_blks_written",
    "temp_blks_read",
    "temp_blks_written",
    "wal_records",
    "wal_fpi",
    "wal_bytes",
    "jit_functions",
    "jit_inlining_count",
    "jit_optimization_count",
    "jit_emission_count",
];

/// Times that the server measures for both.
static SERVER_TIMES: LazyLock<Vec<&str>> = LazyLock::new(|| {
    let apart = [
        "shared_blk_read_time",
        "shared_blk_write_time",
        "local_blk_read_time",
        "local_blk_write_time",
        "jit_deform_time",
    ];
    let apart = apart.into_iter().filter(|_| support::major() >= 17);
    FIRST_SERVER_TIMES.into_iter().chain(apart).collect()
});

const FIRST_SERVER_TIMES: [&str; 8] = [
    "blk_read_time",
    "blk_write_time",
    "temp_blk_read_time",
    "temp_blk_write_time",
    "jit_generation_time",
    "jit_inlining_time",
    "jit_optimization_time",
    "jit_emission_time",
];

/// Times that each measures for itself.
const KINDS: [&str; 2] = ["plan", "exec"];
const PARTS: [&str; 5] = ["total", "min", "max", "mean", "stddev"];

/// The library loaded later is the outer one for planning and utility statements, so its times include the
/// overhead of the other: at most this much per call, in milliseconds. For execution, pg_stat_statements measures
/// inside the executor, and pg_tally is always the outer one.
const OTHERS_COST: f64 = 0.005;
/// The same for a call that creates a new entry, whose text the other library has to store.
const OTHERS_ENTRY: f64 = 0.3;
/// The outer time cannot be shorter than the inner one, except for the difference of the clocks.
const CLOCKS: f64 = 0.0005;
/// For one in this many statements, the times may differ by more: another process had the CPU between the two
/// clock readings, or while the executor finished, which we do not time if there is nothing to finish. How often
/// this happens depends on the load of the machine; an error of ours would show in all statements of a kind.
const INTERRUPTED: usize = 100;
/// The same in an emulator: the first time the code between the two readings runs, it is translated.
const TRANSLATED: usize = 10;

/// Role, database, top level, query id.
type Key = (i64, i64, bool, i64);

struct Statement {
    query: String,
    counts: Vec<i64>,
    server_times: Vec<f64>,
    /// By [`KINDS`] and [`PARTS`].
    times: [[f64; 5]; 2],
}

/// Reads a view, without the statements that read it and without statements that failed before planning, which
/// pg_stat_statements does not have.
fn read(client: &mut Client, view: &str, major: u32) -> BTreeMap<Key, Statement> {
    let counts: String = COUNTS.iter().map(|column| format!(", {column}::bigint")).collect();
    // From 17 on, pg_stat_statements has separate times for shared and for local blocks. We have their sum.
    let apart = view == "pg_stat_statements" && major >= 17;
    let server_time = |column: &str| match column {
        "blk_read_time" if apart => ", shared_blk_read_time + local_blk_read_time".into(),
        "blk_write_time" if apart => ", shared_blk_write_time + local_blk_write_time".into(),
        _ => format!(", {column}"),
    };
    let times: String = KINDS
        .iter()
        .flat_map(|kind| PARTS.map(|part| format!(", {part}_{kind}_time")))
        .chain(SERVER_TIMES.iter().map(|column| server_time(column)))
        .collect();
    let sql = format!(
        "select userid::bigint, dbid::bigint, toplevel, queryid, query{counts}{times} from {view}
         where calls + plans > 0"
    );
    let mut statements = BTreeMap::new();
    for row in client.query(&sql, &[]).unwrap() {
        let query = row.get::<_, Option<String>>(4).unwrap_or_else(|| "(no text)".into());
        if query.contains("pg_stat_statements") || query.contains("tally.") {
            continue;
        }
        let counts_at = 5;
        let times_at = counts_at + COUNTS.len();
        let server_at = times_at + KINDS.len() * PARTS.len();
        let statement = Statement {
            query,
            counts: (counts_at..times_at).map(|at| row.get(at)).collect(),
            times: [0, 1].map(|kind| {
                [0, 1, 2, 3, 4].map(|part| row.get(times_at + kind * PARTS.len() + part))
            }),
            server_times: (server_at..server_at + SERVER_TIMES.len())
                .map(|at| row.get(at))
                .collect(),
        };
        let key = (row.get(0), row.get(1), row.get(2), row.get(3));
        assert!(statements.insert(key, statement).is_none(), "{view} tells {key:?} twice");
    }
    statements
}

fn count(statement: &Statement, column: &str) -> i64 {
    statement.counts[COUNTS.iter().position(|name| *name == column).unwrap()]
}

/// Collects differences, so that one run shows all of them.
#[derive(Default)]
struct Findings {
    wrong: Vec<String>,
    checked: usize,
}

impl Findings {
    fn check(&mut self, right: bool, say: impl FnOnce() -> String) {
        self.checked += 1;
        if !right {
            self.wrong.push(say());
        }
    }

    /// Prints the differences; returns whether at most one in `share` checks differs (0: none may).
    fn are_at_most(&self, share: usize, what: &str) -> bool {
        println!("{what}: {} checked, {} differ", self.checked, self.wrong.len());
        for line in self.wrong.iter().take(60) {
            println!("  {}", line.replace('\n', "\n  "));
        }
        self.wrong.len() <= self.checked.checked_div(share).unwrap_or(0)
    }

    /// Differences in the same thing count as one.
    fn together(self, of: &mut Findings) {
        of.check(self.wrong.is_empty(), || self.wrong.join("\n"));
    }
}

/// A short name of a statement for messages.
fn name(key: &Key, statement: &Statement) -> String {
    let text: String = statement.query.split_whitespace().collect::<Vec<_>>().join(" ");
    let start: String = text.chars().take(70).collect();
    format!("{} \"{start}\"", if key.2 { "top" } else { "nested" })
}

fn sets_agree(
    ours: &BTreeMap<Key, Statement>,
    theirs: &BTreeMap<Key, Statement>,
    lost: &[LostByWitness],
) -> bool {
    let keys = |of: &BTreeMap<Key, Statement>| of.keys().copied().collect::<BTreeSet<_>>();
    let mut findings = Findings::default();
    for key in keys(ours).union(&keys(theirs)) {
        findings.check(ours.contains_key(key), || {
            format!("only the witness has {}", name(key, &theirs[key]))
        });
        let known = theirs.contains_key(key) || is_lost(&ours[key], lost);
        findings.check(known, || format!("the witness has not {}", name(key, &ours[key])));
    }
    assert!(theirs.len() > workload::DISTINCT as usize, "only {} statements", theirs.len());
    findings.are_at_most(0, "statements")
}

/// Statements that both have.
fn pairs<'a>(
    ours: &'a BTreeMap<Key, Statement>,
    theirs: &'a BTreeMap<Key, Statement>,
) -> impl Iterator<Item = (&'a Key, &'a Statement, &'a Statement)> {
    ours.iter().filter_map(|(key, we)| Some((key, we, theirs.get(key)?)))
}

/// A text with each string and each parameter as one mark, because we replace strings of utility statements,
/// which may be passwords.
fn without_strings(text: &str) -> String {
    let (mut shown, mut rest) = (String::new(), text);
    while let Some(at) = rest.find(['\'', '$']) {
        shown += &rest[..at];
        let after = &rest[at + 1..];
        let digits = after.len() - after.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let length = match (&rest[at..=at], digits) {
            ("'", _) => after.find('\'').map_or(after.len(), |end| end + 1),
            (_, 0) => {
                shown.push('$');
                rest = after;
                continue;
            }
            _ => digits,
        };
        // A quote that is doubled continues the string.
        if !shown.ends_with('?') {
            shown.push('?');
        }
        rest = &after[length..];
    }
    shown + rest
}

/// The same with its numbers: from 18 on, the query of a cursor WITH HOLD is encountered where its constants are
/// not known.
fn without_numbers(text: &str) -> String {
    let mut shown = String::new();
    for c in text.chars() {
        let in_word = shown.ends_with(|last: char| last.is_alphanumeric() || last == '_');
        match c.is_ascii_digit() && !in_word {
            true if shown.ends_with('?') => {}
            true => shown.push('?'),
            false => shown.push(c),
        }
    }
    shown
}

fn is_query(text: &str) -> bool {
    let word = text.trim_start_matches('(').split_whitespace().next().unwrap_or_default();
    ["select", "insert", "update", "delete", "merge", "with", "values", "table"]
        .contains(&word.to_lowercase().as_str())
}

fn texts_agree(ours: &BTreeMap<Key, Statement>, theirs: &BTreeMap<Key, Statement>) -> bool {
    let mut findings = Findings::default();
    for (_, statement, witness) in pairs(ours, theirs) {
        let replaced = || {
            let shown = |text: &str| without_numbers(&without_strings(text));
            !is_query(&witness.query) && shown(&statement.query) == shown(&witness.query)
        };
        findings.check(statement.query == witness.query || replaced(), || {
            format!("we: {:?}\n  the witness: {:?}", statement.query, witness.query)
        });
    }
    findings.are_at_most(0, "texts")
}

fn counts_agree(
    ours: &BTreeMap<Key, Statement>,
    theirs: &BTreeMap<Key, Statement>,
    lost: &[LostByWitness],
) -> bool {
    let mut findings = Findings::default();
    for (key, statement, witness) in pairs(ours, theirs) {
        if is_lost(witness, lost) {
            continue;
        }
        for (at, column) in COUNTS.iter().enumerate() {
            let (we, they) = (statement.counts[at], witness.counts[at]);
            findings.check(we == they, || {
                format!("{column} {we}, the witness {they}: {}", name(key, statement))
            });
        }
    }
    findings.are_at_most(0, "counts")
}

/// Checks that each column has a value other than zero somewhere; equal zeros would prove nothing.
fn assert_all_columns_matter(theirs: &BTreeMap<Key, Statement>, jit: bool) {
    for (at, column) in COUNTS.iter().enumerate() {
        let sum: i64 = theirs.values().map(|statement| statement.counts[at]).sum();
        assert!(sum > 0 || column.starts_with("jit") && !jit, "{column} is 0 throughout");
    }
    for (at, column) in SERVER_TIMES.iter().enumerate() {
        let sum: f64 = theirs.values().map(|statement| statement.server_times[at]).sum();
        assert!(sum > 0.0 || column.starts_with("jit") && !jit, "{column} is 0 throughout");
    }
}

/// Times that the server has measured for both.
fn server_times_agree(
    ours: &BTreeMap<Key, Statement>,
    theirs: &BTreeMap<Key, Statement>,
    lost: &[LostByWitness],
) -> bool {
    let mut findings = Findings::default();
    for (key, statement, witness) in pairs(ours, theirs) {
        if is_lost(witness, lost) {
            continue;
        }
        for (at, column) in SERVER_TIMES.iter().enumerate() {
            let (we, they) = (statement.server_times[at], witness.server_times[at]);
            findings.check((we - they).abs() <= (0.01 * they).max(0.1), || {
                format!("{column} {we:.4}, the witness {they:.4}: {}", name(key, statement))
            });
        }
    }
    findings.are_at_most(0, "times by the server")
}

fn times_agree(
    ours: &BTreeMap<Key, Statement>,
    theirs: &BTreeMap<Key, Statement>,
    lost: &[LostByWitness],
    we_are_outside: bool,
) -> bool {
    let mut longer = Findings::default();
    let mut shorter = Findings::default();
    let mut ratios = Vec::new();
    for (key, statement, witness) in pairs(ours, theirs) {
        if is_lost(witness, lost) {
            continue;
        }
        let (mut too_long, mut too_short) = (Findings::default(), Findings::default());
        for (kind, kind_name) in KINDS.iter().enumerate() {
            let calls = count(statement, if kind == 0 { "plans" } else { "calls" }) as f64;
            for (part, part_name) in PARTS.iter().enumerate() {
                let (we, they) = (statement.times[kind][part], witness.times[kind][part]);
                // Utility statements and a few others have no planning time.
                let executor = kind == 1 && count(statement, "plans") > 0;
                let outside = we_are_outside || executor;
                let (outside, inside) = if outside { (we, they) } else { (they, we) };
                let (each, once) = match *part_name {
                    "total" => (calls, 1.0),
                    "mean" => (1.0, 1.0 / calls.max(1.0)),
                    _ => (1.0, 1.0),
                };
                let say = || {
                    let name = name(key, statement);
                    let what = format!("{part_name}_{kind_name}_time");
                    format!("{what} {we:.4}, the witness {they:.4} ({calls} times): {name}")
                };
                let others = each * OTHERS_COST + once * OTHERS_ENTRY;
                too_long.check(outside <= 1.01 * inside + others, say);
                // The standard deviation may differ either way, and the outer one is not always known.
                let minimum = 0.999 * inside - each * CLOCKS;
                let unsure = *part_name == "stddev" || kind == 1 && !executor && !we_are_outside;
                too_short.check(unsure || outside >= minimum, say);
            }
        }
        too_long.together(&mut longer);
        too_short.together(&mut shorter);
        // Longer statements, for which the overhead does not matter.
        if witness.times[1][3] > 0.5 {
            ratios.push(statement.times[1][0] / witness.times[1][0]);
        }
    }
    ratios.sort_by(f64::total_cmp);
    let ratio = ratios[ratios.len() / 2];
    println!(
        "{} statements over 0.5 ms: {ratio:.5} of pg_stat_statements' time (median)",
        ratios.len()
    );
    let (most, near) = if support::emulated() { (TRANSLATED, 0.05) } else { (INTERRUPTED, 0.01) };
    let long = ratios.len() > 20 && (ratio - 1.0).abs() < near;
    [
        longer.are_at_most(most, "times outside not much longer"),
        shorter.are_at_most(most, "times outside no shorter"),
        long,
    ] == [true; 3]
}

fn is_lost(statement: &Statement, lost: &[LostByWitness]) -> bool {
    lost.iter().any(|lost| lost.text == statement.query)
}

/// Executions of the statements with this text.
fn calls(of: &BTreeMap<Key, Statement>, text: &str) -> i64 {
    let all = of.values().filter(|statement| statement.query == text);
    all.map(|statement| count(statement, "calls")).sum()
}

/// We count each execution that pg_stat_statements does not recognise the second time.
fn check_lost(
    ours: &BTreeMap<Key, Statement>,
    theirs: Option<&BTreeMap<Key, Statement>>,
    lost: &[LostByWitness],
) {
    for lost in lost {
        let we = calls(ours, lost.text);
        if let Some(calls) = lost.calls {
            assert_eq!(we, calls, "{}", lost.text);
        }
        let Some(theirs) = theirs else { continue };
        let they = calls(theirs, lost.text);
        println!("{:?}: {we} executions, pg_stat_statements saw {they}", lost.text);
        assert!(they < we, "the witness has learned to count {}", lost.text);
        if lost.calls.is_none() {
            assert_eq!(we - they, workload::PREPARED_AGAIN, "{}", lost.text);
        }
    }
}

fn server(libraries: &str, cpu: &str) -> Cluster {
    let mut server = support::plain();
    if support::major() >= 19 {
        // The witness's clock otherwise runs at a frequency that the server determines when it starts, which is
        // 0.1 % off under load.
        server = server.setting("timing_clock_source", "system");
    }
    let cluster = support::start(
        server
            .setting("shared_preload_libraries", libraries)
            .setting("pg_stat_statements.track", "all")
            .setting("pg_stat_statements.track_planning", "on")
            .setting("pg_stat_statements.track_utility", "on")
            .setting("pg_stat_statements.max", "10000")
            .setting("pg_tally.statements", "all")
            .setting("pg_tally.statements_cpu", cpu)
            .setting("pg_tally.max_statements", "10000")
            .setting("compute_query_id", "auto")
            .setting("track_io_timing", "on")
            .setting("shared_buffers", "4MB")
            .setting("wal_buffers", "64kB")
            .setting("max_worker_processes", "8"),
    );
    support::create_views(&cluster);
    cluster
}

/// Some builds have no contrib modules. There, our figures are compared with what was executed.
fn agrees_without_witness(cpu: &str) {
    let cluster = server("pg_tally", cpu);
    let mut observer = cluster.connect().unwrap();
    let major = support::major();
    let _sessions = workload::run(&cluster);
    let ours = read(&mut observer, "tally.statements", major);
    check_lost(&ours, None, &workload::lost_by_witness(major));
    assert!(ours.len() > workload::DISTINCT as usize, "only {} statements", ours.len());
}

/// Runs everything with these libraries, and with CPU time or without; returns whether the times agree. None if
/// there is no witness.
fn agrees(libraries: &str, cpu: &str) -> Option<bool> {
    if !support::has_module("pg_stat_statements") {
        println!("this server has no pg_stat_statements");
        agrees_without_witness(cpu);
        return None;
    }
    let cluster = server(libraries, cpu);
    cluster.psql("create extension pg_stat_statements").unwrap();
    let mut observer = cluster.connect().unwrap();
    let jit: bool = observer.query_one("select pg_jit_available()", &[]).unwrap().get(0);
    let major = support::major();
    let _sessions = workload::run(&cluster);

    let lost = workload::lost_by_witness(major);
    let ours = read(&mut observer, "tally.statements", major);
    let theirs = read(&mut observer, "pg_stat_statements", major);
    let evicted = "select dealloc from pg_stat_statements_info";
    assert_eq!(observer.query_one(evicted, &[]).unwrap().get::<_, i64>(0), 0);
    println!("{libraries}: {} statements, pg_stat_statements {}", ours.len(), theirs.len());

    assert_all_columns_matter(&theirs, jit);
    let agree = [
        sets_agree(&ours, &theirs, &lost),
        texts_agree(&ours, &theirs),
        counts_agree(&ours, &theirs, &lost),
        server_times_agree(&ours, &theirs, &lost),
    ];
    check_lost(&ours, Some(&theirs), &lost);
    assert_eq!(agree, [true; 4], "of the sets, texts, counts and server's times: see above");
    // The library loaded later is called first.
    Some(times_agree(&ours, &theirs, &lost, libraries.ends_with("pg_tally")))
}

const BEFORE_US: &str = "pg_stat_statements,pg_tally";
const AFTER_US: &str = "pg_tally,pg_stat_statements";

#[test]
fn pg_stat_statements_loaded_before_us_agrees() {
    agrees(BEFORE_US, "off");
}

#[test]
fn pg_stat_statements_loaded_after_us_agrees() {
    agrees(AFTER_US, "off");
}

#[test]
fn pg_stat_statements_agrees_while_cpu_time_is_measured() {
    agrees(AFTER_US, "on");
}

#[test]
#[ignore = "verify: times agree with those of pg_stat_statements"]
fn verify_times_agree_with_pg_stat_statements() {
    for libraries in [BEFORE_US, AFTER_US] {
        let text = format!("times agree with those of pg_stat_statements ({libraries})");
        Claim { text: &text, alarm: 0.1, n: 2, m: 4 }.check(|_| {
            let agree = agrees(libraries, "off");
            let result = agree.map_or("no witness", |agree| if agree { "agree" } else { "differ" });
            Trial { holds: agree.unwrap_or(true), result: result.into(), half_width: "-".into() }
        });
    }
}
