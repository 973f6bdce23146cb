// SPDX-License-Identifier: PostgreSQL
//! `tally clock`: text, JSON, exit status, and notes about what could not be measured.

use crate::support;
use crate::support::verify::{Claim, Trial};
use crate::support::{complaint, tally};
use serde_json::Value;

fn json(args: &[&str]) -> Value {
    let command = &mut tally();
    let output = command.arg("clock").args(args).arg("--json").output().unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    // The machine may have a bad clock, but then the JSON and the exit status must agree.
    assert_eq!(output.status.code(), Some(if value["fit"] == true { 0 } else { 1 }));
    value
}

fn clock<'a>(value: &'a Value, name: &str) -> &'a Value {
    value["sources"].as_array().unwrap().iter().find(|clock| clock["name"] == name).unwrap()
}

#[test]
fn the_json_is_documented() {
    let value = json(&["--for", "0.5"]);
    let documented = std::fs::read_to_string("../../docs/clock.md").unwrap();
    let known = |name: &str| assert!(documented.contains(&format!("`{name}")), "{name}");
    value.as_object().unwrap().keys().for_each(|name| known(name));
    let server = clock(&value, "monotonic");
    server.as_object().unwrap().keys().for_each(|name| known(name));
    for part in ["loop_cost", "resolution", "rate"] {
        server[part].as_object().unwrap().keys().for_each(|name| known(name));
    }
    assert!(server["used_by"].as_array().unwrap().contains(&"server".into()));
    assert_eq!(value["verified"], Value::Null);
    let forecasts = value["forecasts"].as_array().unwrap();
    assert_eq!(forecasts.len(), 8);
    let row = &forecasts[0];
    let cost = server["loop_cost"]["typical_seconds"].as_f64().unwrap();
    assert_eq!(row["readings"], 2.0);
    assert!((row["clock_seconds"].as_f64().unwrap() - 2.0 * cost).abs() < 1e-12);
}

#[test]
fn the_text_ends_in_a_verdict() {
    let output = tally().args(["clock", "--for", "0.5"]).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    for heading in ["CLOCK ", "CPU PAIRS DIFFER BY", "READING TOOK", "GAPS IN", "TIMING COSTS HERE"]
    {
        assert!(text.contains(heading), "{heading}: {text}");
    }
    let verdict = if output.status.success() { "fit" } else { "unfit" };
    let line = text.lines().find(|line| line.starts_with("Verdict: ")).unwrap();
    assert!(line.starts_with(&format!("Verdict: {verdict}: monotonic")), "{text}");
}

#[test]
fn a_process_limited_to_one_processor_gets_a_note() {
    let plain = json(&["--for", "0.1"]);
    let first = plain["processors"][0].to_string();
    let output = assert_cmd::Command::new("taskset")
        .args(["-c", &first])
        .arg(assert_cmd::cargo::cargo_bin("tally"))
        .args(["clock", "--for", "0.1", "--json"])
        .output()
        .unwrap();
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(value["processors"].to_string(), format!("[{first}]"));
    let notes = value["notes"].to_string();
    assert!(notes.contains("only one processor"), "{notes}");
    assert!(clock(&value, "monotonic")["pairs"].as_array().unwrap().is_empty());
}

#[test]
fn wrong_arguments_end_with_2() {
    for args in [&["--for", "0"][..], &["--for", "3weeks"], &["--verify=yes"], &["target"]] {
        complaint(tally().arg("clock").args(args), 2);
    }
}

#[test]
#[ignore = "verify: the cost of a reading agrees with pg_test_timing"]
fn verify_the_cost_of_a_reading() {
    if support::emulated() {
        println!("not tested: pg_test_timing is emulated, this command is not");
        return;
    }
    let program = scratch::Binaries::find().unwrap().program("pg_test_timing");
    let theirs = || {
        let output = std::process::Command::new(&program).args(["-d", "1"]).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let line = text.lines().find(|line| line.starts_with("Per loop time")).unwrap();
        let words: Vec<&str> = line.split_whitespace().collect();
        words[words.len() - 2].parse::<f64>().unwrap()
    };
    let ours = || {
        let value = json(&["--for", "1"]);
        clock(&value, "monotonic")["loop_cost"]["mean_seconds"].as_f64().unwrap() * 1e9
    };
    // The loop is that of pg_test_timing. For a precise comparison on a quiet machine:
    // cargo run --release -p clock --example pg_test_timing
    let text =
        "the loop of tally clock takes as long as that of pg_test_timing, but for a debug build";
    Claim { text, alarm: 0.1, n: 2, m: 5 }.check(|_| {
        let (ours, theirs) = (ours(), theirs());
        Trial {
            holds: (0.5..8.0).contains(&(ours / theirs)),
            result: format!("{ours:.1} ns, pg_test_timing {theirs:.1} ns"),
            half_width: "-".into(),
        }
    });
}

#[test]
#[ignore = "verify: the estimated costs of timing are those of a server"]
fn verify_the_estimates_against_a_server() {
    if support::emulated() {
        println!(
            "not tested: estimates of this processor's clock say nothing about an emulated server"
        );
        return;
    }
    let text =
        "timing plan nodes costs more than counting their rows, by what tally clock estimates";
    Claim { text, alarm: 0.05, n: 2, m: 3 }.check(|_| {
        let value = json_verified();
        let verified = &value["verified"];
        let checks = verified["checks"].as_array().unwrap();
        assert_eq!(checks.len(), 2, "{verified}");
        assert_eq!(checks[0]["readings"], 1_800_004.0);
        let seconds = |name: &str| verified["explain"][name].as_f64().unwrap();
        let measured = checks[0]["measured_seconds"].as_f64().unwrap();
        Trial {
            holds: seconds("plain_seconds") > 0.0
                && seconds("analyze_seconds") > seconds("counting_seconds")
                && measured > 0.0,
            result: format!("{measured:.3} s for 1,800,004 readings, verdict {}", checks[0]),
            half_width: "-".into(),
        }
    });
}

#[test]
#[ignore = "verify: the rate of the processor's counter is the kernel's"]
fn verify_the_counters_rate() {
    let text =
        "the rate of the time-stamp counter is the kernel's within 20 ppm and its half-width";
    Claim { text, alarm: 0.05, n: 2, m: 3 }.check(|_| {
        let report = ::clock::test_clocks(std::time::Duration::from_millis(500), &mut |_, _| {});
        let trial = |holds, result, half_width| Trial { holds, result, half_width };
        let (Some(counter), Some(clock)) = (&report.system.counter, report.source("rdtsc")) else {
            return trial(true, "no such counter here".into(), "-".into());
        };
        if report.system.clock_source.as_deref() != Some("tsc") {
            return trial(true, "the kernel reads another clock".into(), "-".into());
        }
        // Both are the same counter: one read directly, the other by the kernel.
        let off = 1e6 * (clock.ticks_per_second / counter.hz - 1.0);
        let error = clock.rate.as_ref().unwrap().error_ppm;
        trial(off.abs() < 20.0 + error, format!("{off:.1} ppm"), format!("{error:.1} ppm"))
    });
}

/// The JSON with --verify. Ignores the exit status, since estimates may be off on a busy machine.
fn json_verified() -> Value {
    let command = &mut tally();
    command.timeout(std::time::Duration::from_secs(600));
    let output = command.args(["clock", "--for", "0.1", "--verify", "--json"]).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}: {stderr}", output.status))
}
