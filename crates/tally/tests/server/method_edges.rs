// SPDX-License-Identifier: PostgreSQL
//! Who calls whom among a Java client's methods: numbers and times of programs whose calls are known.

use std::collections::BTreeMap;

use crate::support::java::{all, java, row};
use crate::support::json_reference::{assert_documented, PAGE};
use crate::support::{complaint, output, tally};
use serde_json::Value;

const CALLS: &str = "org.pgtally.test::Edges$Calls.";

/// Calls by caller and callee, without the prefix of their names; an empty caller is not a timed method.
fn edges(json: &Value) -> BTreeMap<(String, String), u64> {
    let rows = json["edges"].as_array().unwrap();
    let short = |name: &Value| {
        let name = name.as_str().unwrap_or_default();
        name.strip_prefix(CALLS).unwrap_or(name).to_string()
    };
    rows.iter()
        .map(|row| ((short(&row["caller"]), short(&row["callee"])), row["calls"].as_u64().unwrap()))
        .collect()
}

#[test]
fn calls_between_methods_are_counted_exactly() {
    const THREADS: u64 = 6;
    const ROUNDS: u64 = 300;
    const LONG: &str = "aMethodWithANameThatIsSoLongThatTwoOfItsKindNeverFitIntoOneName";
    for java in all() {
        let options = "methods=org.pgtally.test.Edges$Calls,edges=on,threads=16";
        let numbers = [THREADS, ROUNDS].map(|number| number.to_string());
        let program = ["org.pgtally.test.Edges", &numbers[0], &numbers[1]];
        let mut program = java.start(options, &program);
        let lines = program.finish();
        let json = program.methods();
        assert_eq!(json["exact"], true, "{json:#}");
        let mut found = edges(&json);
        // The depth of the stack, and how often a probe found no space on it, are unknown.
        let endless = |(caller, callee): &(String, String)| {
            caller.starts_with("endless") || callee.starts_with("endless")
        };
        let deep: Vec<u64> =
            found.iter().filter(|(key, _)| endless(key)).map(|(_, calls)| *calls).collect();
        assert!(deep.iter().sum::<u64>() > 500, "{deep:?}");
        found.retain(|key, _| !endless(key));
        let n = (THREADS + 1) * ROUNDS;
        let (long_a, long_b) =
            (shortened(&json, &format!("{LONG}A")), shortened(&json, &format!("{LONG}B")));
        let expected = [
            ("", "outer()", n),
            ("", "inner()", n),
            ("", "catching()", n),
            ("", "recursive(int)", n),
            ("", "even(int)", n),
            ("", &*long_a, n),
            ("", "hot()", 120_000),
            ("outer()", "inner()", 2 * n),
            ("outer()", "middle()", n),
            ("middle()", "inner()", n),
            ("catching()", "passing()", n),
            ("catching()", "inner()", n),
            ("passing()", "throwing()", n),
            ("recursive(int)", "recursive(int)", 9 * n),
            ("even(int)", "odd(int)", 5 * n),
            ("odd(int)", "even(int)", 5 * n),
            (&*long_a, &*long_b, n),
            (&*long_b, "inner()", n),
            ("hot()", "inner()", 120_000),
        ];
        let expected: BTreeMap<(String, String), u64> =
            expected.map(|(caller, callee, calls)| ((caller.into(), callee.into()), calls)).into();
        assert_eq!(found, expected);
        let allocated = lines.iter().find_map(|line| line.strip_prefix("allocated ")).unwrap();
        assert!(allocated.parse::<u64>().unwrap() < 100_000, "{allocated} bytes in 100,000 calls");
        program.end();
    }
}

/// The name of a method that is too long for a name in the segment.
fn shortened(json: &Value, method: &str) -> String {
    let end = format!("{}(#", &method[method.len() - 20..]);
    let rows = json["methods"].as_array().unwrap();
    let mut names = rows.iter().map(|row| row["method"].as_str().unwrap());
    let name = names.find(|name| name.contains(&end)).unwrap();
    let name = format!("org.pgtally.test::{name}");
    name.strip_prefix(CALLS).unwrap_or(&name).to_string()
}

#[test]
fn times_of_edges_are_those_that_the_program_reads_around_and_within_its_calls() {
    let Some(java) = java() else { return };
    let options = "methods=org.pgtally.test.Abc#?,edges=on";
    let mut abc = java.start(options, &["org.pgtally.test.Abc", "2"]);
    let before = abc.methods();
    let lines = abc.finish();
    let json = abc.methods();
    // Elapsed times that the program measured: of A, of B, of C called by B, of C called by A.
    let printed = |word: &str| -> Vec<f64> {
        let line = lines.iter().find_map(|line| line.strip_prefix(word)).unwrap();
        line.split(' ').map(|ns| ns.parse::<f64>().unwrap() / 1e9).collect()
    };
    let (within, around) = (printed("within "), printed("around "));
    let edge = |json: &Value, caller: &str, callee: &str| {
        let name = |method: &str| Value::from(format!("org.pgtally.test::Abc.{method}()"));
        let rows = json["edges"].as_array().unwrap();
        let found =
            rows.iter().find(|row| row["caller"] == name(caller) && row["callee"] == name(callee));
        let found = found.unwrap_or_else(|| panic!("{caller} {callee}: {json:#}"));
        (found["calls"].as_u64().unwrap(), found["seconds"].as_f64().unwrap())
    };
    for (caller, callee, calls, at) in [("a", "b", 2, 1), ("b", "c", 4, 2), ("a", "c", 1, 3)] {
        let ((calls_before, before), (calls_after, after)) =
            (edge(&before, caller, callee), edge(&json, caller, callee));
        assert_eq!(calls_after - calls_before, 2 * calls, "{caller} {callee}");
        // Seconds are rounded.
        let (found, min, max) = (after - before, within[at] - 1e-8, around[at] + 1e-8);
        assert!((min..=max).contains(&found), "{caller} {callee}: {found} s, not {min} to {max} s");
    }
    // The edges into a method add up to its time.
    let sum: f64 = ["a", "b"].map(|caller| edge(&json, caller, "c").1).iter().sum();
    let all = row(&json, "Abc.c()")["inclusive"]["seconds"].as_f64().unwrap();
    assert!((sum / all - 1.0).abs() < 1e-9, "{sum} s by edges, {all} s");
    let text = |choice: &str| output(tally().args(["methods", choice]).arg(abc.segment()));
    let callers = text("--callers=Abc.c");
    let mut lines = callers.lines().skip_while(|line| !line.trim_start().starts_with("COUNT"));
    let head: Vec<&str> = lines.next().unwrap().split_whitespace().collect();
    assert_eq!(head, ["COUNT", "ELAPSED", "%CALLEE", "CALLER", "CALLEE"], "{callers}");
    let lines: Vec<Vec<&str>> = lines.map(|line| line.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 2, "{callers}");
    // The one that took longer comes first, which on a busy machine need not be the one with more calls.
    let count_of = |caller: &str| {
        let names =
            [format!("org.pgtally.test::Abc.{caller}()"), "org.pgtally.test::Abc.c()".into()];
        lines.iter().find(|line| line[4..] == names).map(|line| line[0])
    };
    assert_eq!((count_of("b"), count_of("a")), (Some("12"), Some("3")), "{callers}");
    let callees = text("--callees=*Abc.a()");
    assert_eq!(callees.matches("Abc.a()").count(), 2, "{callees}");
    assert!(text("--callers").contains("(application)"));
    assert_eq!(text("--callees").matches("Abc.b()").count(), 2);
    assert_documented(PAGE, json["edges"][0].as_object().unwrap().keys());
    let complaint = complaint(tally().args(["methods", "--callers=D.d"]).arg(abc.segment()), 1);
    assert!(complaint.contains("no method \"D.d\" has completed a call"), "{complaint}");
    abc.end();
}

#[test]
fn calls_of_virtual_threads_are_counted_with_their_callers() {
    let Some(java) = all().into_iter().find(|java| java.version() >= Some(21)) else {
        return eprintln!("left out: there is no Java 21 or later");
    };
    let mut threads = java.start(
        "methods=org.pgtally.test.Virtual#call:org.pgtally.test.Virtual#inner,edges=on",
        &["org.pgtally.test.Virtual", "10000"],
    );
    threads.finish();
    let json = threads.methods();
    let found = edges(&json);
    let [call, inner] = ["call(CountDownLatch)", "inner()"]
        .map(|method| format!("org.pgtally.test::Virtual.{method}"));
    assert_eq!(found, [((String::new(), call.clone()), 10_000), ((call, inner), 10_000)].into());
    for method in ["Virtual.call(CountDownLatch)", "Virtual.inner()"] {
        assert_eq!(row(&json, method)["calls"], 10_000, "{json:#}");
    }
    // Each was parked for a millisecond within its call.
    let elapsed = row(&json, "Virtual.call(CountDownLatch)")["inclusive"]["seconds"].as_f64();
    assert!(elapsed.unwrap() >= 10.0, "{json:#}");
    // They have no accounts, but the head has their time.
    let busy = json["busy_seconds"].as_f64().unwrap();
    assert!((busy - elapsed.unwrap()).abs() < 1e-3 * busy, "{busy} s, {elapsed:?}");
    threads.end();
}
