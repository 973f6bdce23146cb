// SPDX-License-Identifier: PostgreSQL
//! `tally top` names the session for which others wait.

use std::thread::JoinHandle;

use crate::support::row_lock::{server, session, UPDATE};
use crate::support::tmux::Tmux;
use crate::support::top::Top;
use crate::support::{eventually, output, segment, tally};
use live::backend::{send, SessionAction, SessionId};
use postgres::Client;
use rustix::process::{kill_process, Pid, Signal};
use scratch::Cluster;
use serde_json::Value;

/// A session that waits for the row; it ends with the wait.
fn waiter(cluster: &Cluster) -> (i32, JoinHandle<Result<(), postgres::Error>>) {
    let (mut client, pid) = session(cluster, "waiter");
    (pid, std::thread::spawn(move || client.batch_execute(UPDATE)))
}

/// A session that has changed the row and does nothing.
fn forgetful(cluster: &Cluster) -> (Client, i32) {
    let (mut client, pid) = session(cluster, "forgetful");
    client.batch_execute("begin").unwrap();
    client.batch_execute("update orders set v = 7 where id = 1").unwrap();
    (client, pid)
}

fn json(cluster: &Cluster, seconds: &str) -> Value {
    let args = ["top", "--once", "--json", "--interval", seconds];
    let text = output(tally().env("PGUSER", cluster.user()).args(args).arg(segment(cluster)));
    serde_json::from_str(&text).unwrap()
}

#[test]
fn the_diagnoses_name_the_session_that_others_wait_for() {
    let cluster = server();
    let healthy = json(&cluster, "0.2");
    assert_eq!(
        (&healthy["healthy"], &healthy["diagnoses"]),
        (&true.into(), &serde_json::json!([]))
    );
    assert_eq!(healthy["uncovered_processes"], 0);

    let (mut root, pid) = forgetful(&cluster);
    let waiters: Vec<_> = (0..3).map(|_| waiter(&cluster)).collect();
    eventually("all are blocked", || json(&cluster, "0.2")["blocking"]["blocked"] == 3);
    let mut seen = Value::Null;
    let sentence =
        format!("3 sessions wait for session {pid} (forgetful, postgres@postgres), idle");
    // Nobody is named before a session has waited for half a second.
    eventually("it is diagnosed", || {
        seen = json(&cluster, "0.2");
        let text = seen["diagnoses"][0]["text"].as_str();
        text.is_some_and(|text| text.starts_with(&sentence))
    });
    let first = &seen["diagnoses"][0];
    assert_eq!((&seen["healthy"], &first["rule"]), (&false.into(), &"locks".into()), "{seen:#}");
    assert!(first["evidence"].to_string().contains("update orders set v = $1"), "{first:#}");
    let length = seen["diagnosed_seconds"].as_f64().unwrap();
    assert!((length - seen["interval_seconds"].as_f64().unwrap()).abs() < 0.01, "{length}");
    root.batch_execute("rollback").unwrap();
    for (_, thread) in waiters {
        thread.join().unwrap().unwrap();
    }
}

#[test]
fn the_text_begins_with_who_waits_for_whom_and_has_the_tree_at_level_waits() {
    let cluster = server();
    let (mut root, pid) = forgetful(&cluster);
    let waiters: Vec<_> = (0..2).map(|_| waiter(&cluster)).collect();
    let args = ["top", "--once", "--interval", "0.1", "--view", "locks"];
    let mut text = String::new();
    eventually("a wait of a second", || {
        let mut top = tally();
        text = output(top.env("PGUSER", cluster.user()).args(args).arg(segment(&cluster)));
        text.starts_with('!')
    });
    let line = format!(
        "! 2 sessions wait for session {pid} (forgetful, postgres@postgres), idle in transaction for "
    );
    assert!(text.starts_with(&line) && text.contains("; longest "), "{text}");
    let tree = &text[text.find("Blocked sessions").unwrap()..];
    let lines: Vec<&str> = tree.lines().skip(2).take(3).collect();
    assert!(lines[0].starts_with(&format!("{pid} forgetful")), "{tree}");
    assert!(lines[1].starts_with("  ") && lines[1].contains("transaction "), "{tree}");
    assert!(
        lines[2].starts_with("    ") && lines[2].contains("row (0,1) of relation orders"),
        "{tree}"
    );
    assert!(tree.contains("lock statistics require level locks"), "{tree}");
    root.batch_execute("rollback").unwrap();
    for (_, thread) in waiters {
        thread.join().unwrap().unwrap();
    }
}

/// The full-screen view through this connection.
fn top(cluster: &Cluster, user: &str, target: &str) -> Tmux {
    let tally = env!("CARGO_BIN_EXE_tally");
    let command = format!("PGUSER={user} {tally} top --no-witness --view locks '{target}'");
    let tmux = Tmux::run(160, 30, &command);
    tmux.until_seen("forgetful");
    let _ = cluster;
    tmux
}

#[test]
fn c_cancels_and_k_terminates_through_the_server_with_its_rights() {
    let cluster = server();
    cluster.psql("create role poor login").unwrap();
    let (_root, pid) = forgetful(&cluster);
    let (waiting, thread) = waiter(&cluster);
    eventually("it is blocked", || json(&cluster, "0.2")["blocking"]["blocked"] == 1);
    let alive = |pid: i32| {
        let sql = format!("select count(*) from pg_stat_activity where pid = {pid}");
        cluster.psql(&sql).unwrap().trim() == "1"
    };

    // Without the privilege: the server's message is shown, and nothing happens.
    let by_path = segment(&cluster).display().to_string();
    let poor = top(&cluster, "poor", &by_path);
    poor.press(&["k"]);
    poor.until_seen(&format!("Terminate session {pid} (forgetful, postgres@postgres)? y/n"));
    poor.press(&["y"]);
    let seen = poor.until_seen("did not terminate session");
    assert!(seen.to_lowercase().contains("superuser"), "{seen}");
    assert!(alive(pid));
    // A role that does not exist: there is no connection, and the message says how to specify one.
    let nobody = top(&cluster, "nobody", &by_path);
    nobody.press(&["k", "y"]);
    let seen = nobody.until_seen("cannot connect to ");
    assert!(seen.contains("connection string"), "{seen}");
    assert!(alive(pid));

    let tmux = top(&cluster, cluster.user(), &by_path);
    tmux.press(&["k", "n"]);
    tmux.until_seen("not confirmed");
    assert!(alive(pid));
    tmux.press(&["c"]);
    tmux.until_seen("is not executing a statement");
    // The session that waits for it is.
    tmux.press(&["Down", "c"]);
    tmux.until_seen(&format!("Cancel the statement of session {waiting} (waiter, "));
    tmux.press(&["y"]);
    tmux.until_seen("sent a cancel request to session");
    let error = thread.join().unwrap().unwrap_err();
    assert_eq!(error.as_db_error().unwrap().code().code(), "57014", "{error}");
    assert!(alive(pid));

    // The root, by a connection string.
    let (_, thread) = waiter(&cluster);
    let tmux = top(&cluster, "nobody", &cluster.connection_string());
    tmux.press(&["k", "y"]);
    tmux.until_seen("sent a terminate request to session");
    eventually("its end", || !alive(pid));
    thread.join().unwrap().unwrap();
}

/// A stopped postmaster accepts no connection: only the request waits for it.
#[test]
fn a_server_that_does_not_accept_does_not_freeze_the_screen() {
    let cluster = server();
    let (_root, pid) = forgetful(&cluster);
    let (_, thread) = waiter(&cluster);
    eventually("it is blocked", || json(&cluster, "0.2")["blocking"]["blocked"] == 1);
    let tmux = top(&cluster, cluster.user(), &segment(&cluster).display().to_string());
    let postmaster = Pid::from_raw(cluster.postmaster_pid().unwrap() as i32).unwrap();
    kill_process(postmaster, Signal::STOP).unwrap();
    tmux.press(&["k", "y"]);
    tmux.until_seen(&format!("asking the server to terminate session {pid}"));
    tmux.press(&["k", "y"]);
    tmux.until_seen("the server has not responded yet");
    tmux.press(&["F1"]);
    tmux.until_seen("open a row into its phases");
    tmux.press(&["Escape"]);
    kill_process(postmaster, Signal::CONT).unwrap();
    tmux.until_seen(&format!("sent a terminate request to session {pid}"));
    thread.join().unwrap().unwrap();
}

#[test]
fn enter_opens_a_session_with_what_it_did_and_whom_it_blocks() {
    let cluster = server();
    let (mut root, pid) = forgetful(&cluster);
    let (waiting, thread) = waiter(&cluster);
    eventually("it is blocked", || json(&cluster, "0.2")["blocking"]["blocked"] == 1);
    let tmux = top(&cluster, cluster.user(), &segment(&cluster).display().to_string());
    tmux.press(&["Enter"]);
    let seen = tmux.until("all of the page", |seen| {
        seen.contains("Activity since it started") && seen.contains("query ID")
    });
    for part in [
        &format!("Session {pid} (forgetful, postgres@postgres)"),
        "client backend, client local, started ",
        "idle in transaction for ",
        "; transaction open for ",
        "Last statement",
        "update orders set v = $1 where id = $2",
        &format!("session {waiting} (waiter, postgres@postgres), waiting for transaction "),
    ] {
        assert!(seen.contains(part), "{part}: {seen}");
    }
    tmux.press(&["Escape"]);
    tmux.until_seen("BEHIND");
    tmux.press(&["Down", "Enter"]);
    let seen = tmux.until_seen("Waits for transaction ");
    assert!(seen.contains(&format!("Session {waiting} (waiter, ")), "{seen}");
    assert!(
        seen.contains(&format!(
            "session {pid} (forgetful, postgres@postgres), idle in transaction for "
        )),
        "{seen}"
    );
    tmux.press(&["Escape"]);
    tmux.until_seen("BEHIND");
    root.batch_execute("rollback").unwrap();
    thread.join().unwrap().unwrap();
}

#[test]
fn a_request_reaches_only_the_session_and_the_server_that_were_shown() {
    let (cluster, other) = (server(), server());
    let (mut client, pid) = forgetful(&cluster);
    let segment = segment::Segment::open(&segment(&cluster)).unwrap();
    let claims = segment.claims().unwrap();
    let claim = claims.iter().find(|claim| claim.pid == pid).unwrap();
    let shown = SessionId { pid, slot: claim.slot, generation: claim.generation };
    let send = |shown, target: &str| {
        send(SessionAction::Terminate, shown, &segment, Some(target)).unwrap_err().to_string()
    };
    // A later owner of the slot, whose process has the same pid.
    let later = SessionId { generation: shown.generation + 1, ..shown };
    let error = send(later, &cluster.connection_string());
    assert!(error.contains("has ended"), "{error}");
    let error = send(shown, &other.connection_string());
    assert!(error.contains("another server"), "{error}");
    client.batch_execute("rollback").unwrap();
}

#[test]
fn what_has_ended_is_diagnosed_as_long_as_it_is_within_the_last_seconds() {
    /// How long the last seconds are, and how much longer they may be: a fifth and an interval.
    const LAST: f64 = 10.0;
    let cluster = server();
    let (mut root, _) = forgetful(&cluster);
    let waiters: Vec<_> = (0..3).map(|_| waiter(&cluster)).collect();
    eventually("all are blocked", || json(&cluster, "0.2")["blocking"]["blocked"] == 3);
    let mut top = Top::start(&["--interval", "0.5"], &segment(&cluster));
    let mut seen: Vec<Value> = (0..4).map(|_| top.interval()).collect();
    root.batch_execute("rollback").unwrap();
    for (_, thread) in waiters {
        thread.join().unwrap().unwrap();
    }
    let wrong = |value: &Value| value["diagnoses"][0]["rule"] == "locks";
    eventually("the waits are within the last seconds no more", || {
        seen.push(top.interval());
        !wrong(&seen[seen.len() - 1])
    });

    let length = |value: &Value| value["interval_seconds"].as_f64().unwrap();
    let waited = |interval: &Value| -> f64 {
        let accounts = interval["ledger"].as_array().unwrap().iter();
        let waits = accounts.filter(|row| row["activity"].as_str().unwrap().starts_with("Lock:"));
        waits.map(|row| row["seconds"].as_f64().unwrap()).sum()
    };
    let longest = seen.iter().map(length).fold(0.0, f64::max);
    for now in 0..seen.len() {
        let diagnosed = seen[now]["diagnosed_seconds"].as_f64().unwrap();
        let all: f64 = seen[..=now].iter().map(length).sum();
        // They are whole intervals, the last ones.
        let of = |from: usize| seen[from..=now].iter().map(length).sum::<f64>();
        let close = |from: &usize| (of(*from) - diagnosed).abs() < 1e-3 * diagnosed;
        let from = (0..=now).find(close).unwrap_or_else(|| panic!("{diagnosed} s in line {now}"));
        assert!(diagnosed >= 0.999 * all.min(LAST), "{diagnosed} of {all}");
        assert!(diagnosed <= 1.001 * (LAST * 1.2 + longest), "{diagnosed}, {longest}");
        // The rule requires waits of a tenth of the load; nobody does anything else.
        let waited: f64 = seen[from..=now].iter().map(waited).sum();
        if waited == 0.0 || waited > 0.5 * diagnosed {
            assert_eq!(wrong(&seen[now]), waited > 0.0, "line {now}: {:#}", seen[now]["diagnoses"]);
        }
    }
    let ended = |value: &&Value| waited(value) == 0.0 && wrong(value);
    assert!(seen.iter().any(|interval| ended(&interval)), "no wait was diagnosed after its end");
}
