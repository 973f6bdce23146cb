// SPDX-License-Identifier: PostgreSQL
//! Names and texts with invisible characters or characters that reverse the text's direction: output for
//! people shows them as escapes, JSON has them escaped and exact.

use super::extension::installed;
use crate::support;
use crate::support::installation::Installation;
use crate::support::recorder::Recorder;
use crate::support::serving::Serving;
use crate::support::{output, plain, start, tally};
use rustix::process::Signal;

/// Characters that reverse, hide, isolate and mark text, and a tag beyond the first 65,536 characters.
const ODD: &str = "a\u{202e}b\u{200b}c\u{2067}d\u{200f}\u{61c}e\u{e0041}";
const SHOWN: &str = "a\\u202Eb\\u200Bc\\u2067d\\u200F\\u061Ce\\uDB40\\uDC41";

/// Checks that none of them occurs; the function's own test has U+FEFF and the others.
fn assert_clean(what: &str, text: &str) {
    let unseen = |c: char| {
        matches!(u32::from(c), 0x61c | 0x200b..=0x200f | 0x202a..=0x202e | 0x2060..=0x2069)
            || u32::from(c) > 0xe0000
            || c == '\u{1b}'
    };
    let found = text.chars().find(|c| unseen(*c));
    assert!(found.is_none(), "{what} has U+{:04X}", u32::from(found.unwrap_or_default()));
}

#[test]
fn no_output_has_invisible_characters() {
    // The data directory's path contains them too.
    let folder = tempfile::Builder::new().prefix(&format!("{ODD}.")).tempdir_in("/tmp").unwrap();
    let everybody = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(folder.path(), everybody).unwrap();
    let builder = plain().setting("shared_preload_libraries", "pg_tally").directory(folder.path());
    let cluster = start(builder.setting("pg_tally.slow_threshold", "1ms"));
    cluster.psql(&format!("create database \"{ODD}\"")).unwrap();
    cluster.psql(&format!("create role \"{ODD}\" superuser login")).unwrap();
    let data = cluster.data_dir().to_str().unwrap();
    let recording = tempfile::tempdir().unwrap();
    let recorded = recording.path().to_str().unwrap();
    let recorder = Recorder::start(&cluster, recording.path(), &["--detail", "1s"]);
    recorder.wait_for(1);
    let mut config: postgres::Config = cluster.connection_string().parse().unwrap();
    let mut client = config.user(ODD).dbname(ODD).connect(postgres::NoTls).unwrap();
    client.batch_execute(&format!("create table \"{ODD}\" (i int); checkpoint")).unwrap();
    let statement = format!("select count(*) as \"{ODD}\", pg_sleep(0.01) from \"{ODD}\"");
    let mut ran = |times: usize| (0..times).for_each(|_| client.batch_execute(&statement).unwrap());
    ran(50);

    let seen = |arguments: &[&str]| {
        let text = output(tally().args(arguments));
        assert_clean(&arguments.join(" "), &text);
        text
    };
    let mut shown = Vec::new();
    for view in ["sessions", "statements", "io"] {
        let text = seen(&["top", "--once", "--view", view, data]);
        shown.push((view, text));
    }
    let json = seen(&["top", "--once", "--json", data]);
    shown.push(("statements", seen(&["statements", "--sort", "calls", data])));
    seen(&["statements", "--json", data]);
    shown.push(("events", seen(&["events", data])));
    for verb in ["status", "ls", "level"] {
        let target: &[&str] = if verb == "ls" { &[] } else { &[data] };
        let text = seen(&[&[verb], target].concat());
        if verb != "level" {
            shown.push((verb, text));
        }
    }
    let error = support::complaint(tally().args(["level", &format!("{data}/{ODD}")]), 2);
    assert_clean("an error", &error);
    shown.push(("an error", error));

    let serving = Serving::start(&cluster, &["--statements", "50"]);
    ran(50);
    let metrics = serving.metrics();
    assert_clean("/metrics", &metrics);
    // The metrics format escapes a backslash.
    shown.push(("/metrics", metrics.replace("\\\\", "\\")));
    let protobuf = "Host: localhost\r\nAccept: application/vnd.google.protobuf;\
                    proto=io.prometheus.client.MetricFamily;encoding=delimited";
    let protobuf = serving.status("/metrics", protobuf).1;
    assert!(!protobuf.contains(&ODD[..4]) && protobuf.contains("a\\u202Eb"));
    support::eventually("there is a report", || serving.report().is_some());
    assert_clean("/report.json", &serving.get("/report.json").unwrap());
    let page = serving.get("/").unwrap();
    assert_clean("the page", &page);

    recorder.wait_for(2);
    recorder.end(Signal::TERM);
    shown.push(("report", seen(&["report", "--text", recorded])));
    seen(&["report", "--json", recorded]);
    let other = recording.path().with_extension("other");
    let copied = std::process::Command::new("cp").arg("-r").arg(recorded).arg(&other).status();
    assert!(copied.unwrap().success());
    seen(&["diff", recorded, other.to_str().unwrap()]);
    std::fs::remove_dir_all(&other).unwrap();
    let file = recording.path().join("report.html");
    seen(&["report", "-o", file.to_str().unwrap(), recorded]);
    let page = std::fs::read_to_string(&file).unwrap();
    assert_clean("report.html", &page);
    shown.push(("report.html", page));

    // They are shown as escapes, not left out, and JSON has the characters themselves.
    for (what, text) in &shown {
        let start = &SHOWN[..SHOWN.find("\\u2067").unwrap()];
        assert!(text.contains(start), "{what} does not show the name: {text}");
    }
    let value: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(value.to_string().contains(ODD), "the JSON's text is not exact");
}

/// A name that would give a terminal another title, colours, and a line of its own.
const HOSTILE: &str = "x\u{1b}]0;title\u{7}\u{1b}[31m\u{9b}2J\r\nforged  line";

/// Checks that none of it reaches a terminal, and that it makes no line of its own.
fn assert_harmless(what: &str, text: &[u8]) {
    let text = std::str::from_utf8(text).unwrap();
    let control = text.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\t'));
    assert_eq!(control, None, "{what}: {text:?}");
    assert!(!text.lines().any(|line| line.starts_with("forged")), "{what}: {text}");
}

#[test]
fn no_name_controls_a_terminal_or_forges_a_line() {
    let cluster = installed(Installation::shared(), "");
    // In later versions of the server, no database may have such a name.
    let quoted = format!("\"{HOSTILE}\"");
    let may = cluster.psql(&format!("create database {quoted}")).is_ok();
    let database = if may { HOSTILE } else { "postgres" };
    let role = if may { HOSTILE } else { "x\u{1b}]0;title\u{7}" };
    cluster
        .psql(&format!(
            "create role \"{role}\" superuser login; \
             alter role \"{role}\" set session_preload_libraries = 'plpgsql'"
        ))
        .unwrap();
    let target = cluster.connection_string();
    let seen = |arguments: &[&str]| {
        let done = tally().args(arguments).output().unwrap();
        let what = arguments.join(" ");
        assert_harmless(&what, &done.stdout);
        assert_harmless(&what, &done.stderr);
        // Every line of a message but the first is indented.
        for line in String::from_utf8(done.stderr).unwrap().lines() {
            println!("{line}");
            assert!(line.starts_with("tally: ") || line.starts_with("  "), "{what}: {line}");
        }
        println!("{what}: {}\n{}", done.status, String::from_utf8_lossy(&done.stdout));
        String::from_utf8(done.stdout).unwrap()
    };
    let shown = "x\\u001B]0;title\\u0007";
    let enabled = seen(&["enable", "--mode", "shared", "--database", database, &target]);
    assert!(
        enabled.contains(&format!("not covered  sessions of all databases, role {shown}")),
        "{enabled}"
    );
    assert!(!may || enabled.contains(&format!("in database {shown}")), "{enabled}");
    let mut cluster = cluster;
    cluster.restart().unwrap();
    let mut config = cluster.config();
    let mut client = config.user(role).dbname(database).connect(postgres::NoTls).unwrap();
    client.batch_execute(&format!("create table {quoted} (i int); checkpoint")).unwrap();
    for _ in 0..20 {
        let sql = format!("select count(*) as {quoted} from {quoted} /* {HOSTILE} */");
        client.batch_execute(&sql).unwrap();
    }
    let data = cluster.data_dir().to_str().unwrap();
    let recording = tempfile::tempdir().unwrap();
    let recorder = Recorder::start(&cluster, recording.path(), &["--detail", "1s"]);
    recorder.wait_for(2);
    recorder.end(Signal::TERM);
    for arguments in [
        &["ls"][..],
        &["status", data],
        &["level", data],
        &["events", data],
        &["blocking", data],
        &["doctor", "--for", "1s", data],
        &["functions", data],
        &["functions", "--set", HOSTILE, &target],
        &["statements", data],
        &["statements", data, "--sort", "calls"],
        &["top", "--once", data],
        &["top", "--once", "--color", "never", "--view", "sessions", data],
        &["top", "--once", "--view", "statements", data],
        &["report", "--text", recording.path().to_str().unwrap()],
        // Messages: a target, a database, a role and a file that do not exist.
        &["status", HOSTILE],
        &["status", &format!("{data}/{HOSTILE}")],
        &["enable", "--database", &format!("{HOSTILE}2"), &target],
        &["enable", &target.replace("user=postgres", &format!("user='{HOSTILE}2'"))],
        &["report", HOSTILE],
        &["level", HOSTILE, data],
        &[HOSTILE],
    ] {
        seen(arguments);
    }
    drop(client);
    let disabled = seen(&["disable", &target]);
    assert!(!may || disabled.contains(&format!("in database {shown}")), "{disabled}");
}
