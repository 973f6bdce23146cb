// SPDX-License-Identifier: PostgreSQL
//! What a new user meets: which server is meant, what to do next, where files went, and what figures are missing.

use std::path::Path;
use std::process::Command;

use segment::clock::monotonic_ns;
use segment::layout::header;

use crate::maker::{Who, ACCOUNT};
use crate::support::pty::{lines, Pty};
use crate::support::shared_server::Profile;
use crate::support::{
    complaint, eventually, on_loopback, output, plain, segment, sessions, shared, start, tally,
};
use crate::waiting;

/// Standard output and standard error of a command that succeeds.
fn said(command: &mut assert_cmd::Command) -> (String, String) {
    let ended = command.assert().success().get_output().clone();
    (String::from_utf8(ended.stdout).unwrap(), String::from_utf8(ended.stderr).unwrap())
}

#[test]
fn enable_on_a_fresh_server_tells_the_next_three_commands_and_they_work() {
    let cluster = start(plain());
    let text = output(tally().args(["enable", &cluster.connection_string()]));
    let commands: Vec<&str> = text
        .lines()
        .filter_map(|line| line.split_once(" tally ")?.1.split_once(": "))
        .map(|(command, _)| command)
        .collect();
    let data = cluster.data_dir().display();
    let expected = ["status", "top", "doctor"].map(|verb| format!("{verb} {data}"));
    assert_eq!(commands, expected, "{text}");
    let session = cluster.connect().unwrap();
    for command in commands {
        let more: &[&str] = match command.split(' ').next().unwrap() {
            "top" => &["--once"],
            "doctor" => &["--for", "1s"],
            _ => &[],
        };
        output(tally().args(command.split(' ')).args(more));
    }
    drop(session);
}

#[test]
fn a_server_without_pg_tally_is_told_from_one_that_cannot_be_reached() {
    let cluster = start(plain());
    let mut status = tally();
    status.env("PGHOST", cluster.host()).env("PGPORT", "5432").env("PGUSER", "postgres");
    let text = complaint(status.env("PGDATABASE", "postgres").arg("status"), 1);
    assert!(text.contains(&cluster.data_dir().display().to_string()), "{text}");
    // As where no server is named: live's tests.
    assert!(text.contains("; run `tally enable`, or try `tally demo`"), "{text}");
    let text = complaint(tally().arg("status").arg(cluster.data_dir()), 1);
    assert!(text.contains("`tally enable"), "{text}");
    let text = complaint(tally().args(["status", "-h", "/nonexistent", "-p", "5999"]), 1);
    assert!(text.contains("/nonexistent/.s.PGSQL.5999"), "{text}");
}

/// The command in a mount namespace of its own, where the server's sockets are in Debian's folder and no cluster is
/// configured. `None`: that needs root.
fn on_debian(cluster: &scratch::Cluster, arguments: &[&str]) -> Option<std::process::Output> {
    let script = "mount --make-rprivate / && mkdir -p /var/run/postgresql /etc/postgresql && \
                  mount --bind \"$1\" /var/run/postgresql && mount -t tmpfs none /etc/postgresql && shift && exec \"$@\"";
    let mut command = Command::new("unshare");
    command.args(["-m", "sh", "-c", script, "sh"]).arg(cluster.host());
    command.arg(assert_cmd::cargo::cargo_bin("tally")).args(arguments);
    for name in crate::support::CONNECTION {
        command.env_remove(name);
    }
    let may = rustix::process::geteuid().is_root()
        && Command::new("unshare")
            .args(["-m", "true"])
            .status()
            .is_ok_and(|status| status.success());
    if !may {
        println!("not tested: a mount namespace needs root");
        return None;
    }
    Some(command.env_remove("PGCLUSTER").output().unwrap())
}

#[test]
fn the_only_server_is_found_on_whichever_port_it_is() {
    let (cluster, port) = on_loopback(plain());
    let Some(ended) = on_debian(&cluster, &["enable"]) else { return };
    let text = String::from_utf8_lossy(&ended.stdout);
    let error = String::from_utf8_lossy(&ended.stderr);
    assert!(text.contains(&format!("port {port}")), "{text}{error}");
    let ended = on_debian(&cluster, &["disable"]).unwrap();
    assert!(ended.status.success(), "{}", String::from_utf8_lossy(&ended.stderr));
}

#[test]
fn root_with_a_port_alone_connects_as_the_servers_own_user() {
    if !rustix::process::geteuid().is_root() {
        println!("not tested: it needs root");
        return;
    }
    let cluster = start(plain());
    cluster.replace_file("pg_hba.conf", "local all all peer\n").unwrap();
    let by_peer = || {
        let mut command = tally();
        command.args(["enable", "-h"]).arg(cluster.host()).args(["-p", "5432"]);
        command.env_remove("PGUSER").env_remove("PGDATABASE");
        command
    };
    // Without a role, the server's own: its user has one of the same name.
    let trusted = cluster.connect().unwrap();
    cluster.reload().unwrap();
    eventually("the server asks for the user", || cluster.connect().is_err());
    let text = output(&mut by_peer());
    assert!(text.contains("every new session"), "{text}");
    assert!(cluster.log().contains("role \"root\" does not exist"), "as psql, first");
    // A role that was named is taken at its word.
    let error = complaint(by_peer().args(["-U", "nobody"]), 1);
    assert!(error.contains("Peer authentication failed"), "{error}");
    drop(trusted);
}

#[test]
fn root_gets_the_health_of_a_server_as_its_user_without_a_line_in_its_log() {
    if !rustix::process::geteuid().is_root() {
        println!("not tested: it needs root");
        return;
    }
    let cluster = shared();
    cluster.replace_file("pg_hba.conf", "local all all peer\n").unwrap();
    let trusted = cluster.connect().unwrap();
    cluster.reload().unwrap();
    eventually("the server asks for the user", || cluster.connect().is_err());
    let data = cluster.data_dir().display().to_string();
    let segment = segment(&cluster).display().to_string();
    for target in [data.as_str(), segment.as_str()] {
        let text = output(tally().args(["health", target]));
        assert!(text.contains("Transaction IDs\n"), "{text}");
        let doctor = output(tally().args(["doctor", "--json", "--for", "1", target]));
        let doctor: serde_json::Value = serde_json::from_str(&doctor).unwrap();
        assert!(!doctor["health"].as_array().unwrap().is_empty(), "{doctor:#}");
    }
    assert!(!cluster.log().contains("role \"root\""), "{}", cluster.log());
    // Where the connection is named, as psql first; the command remembers that it was in vain.
    let host = cluster.host().display().to_string();
    let text = output(tally().args(["health", "-h", &host, "-p", &cluster.port().to_string()]));
    assert!(text.contains("Transaction IDs\n"), "{text}");
    assert_eq!(cluster.log().matches("role \"root\" does not exist").count(), 1);
    drop(trusted);
}

#[test]
fn every_verb_that_writes_a_file_says_where_it_went() {
    let cluster = shared();
    cluster.pgbench_init(1).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let target = cluster.data_dir().display().to_string();
    let load = cluster.pgbench().clients(1).rate(50.0).until_stopped().spawn().unwrap();
    for name in ["a", "b"] {
        let mut record = tally();
        record.args(["record", "--interval", "100ms", "--for", "1s", "-o", &at(name), &target]);
        let (_, error) = said(&mut record);
        assert!(error.contains(&at(name)), "{error}");
    }
    let all: [(&str, &[&str]); 8] = [
        ("report.html", &["report", "{a}", "-o"]),
        ("report.json", &["report", "{a}", "--json", "-o"]),
        ("diff.html", &["diff", "{a}", "{b}", "-o"]),
        ("trace.html", &["trace", "{t}", "--database", "postgres", "--for", "200ms", "-o"]),
        ("trace.jsonl", &["trace", "{t}", "--database", "postgres", "--for", "200ms", "-o"]),
        ("profile.html", &["profile", "{t}", "--for", "200ms", "-o"]),
        ("boards", &["dashboards"]),
        ("pages", &["man"]),
    ];
    std::fs::create_dir(folder.path().join("pages")).unwrap();
    for (name, arguments) in all {
        let mut command = tally();
        for argument in arguments {
            let names = [("{a}", at("a")), ("{b}", at("b")), ("{t}", target.clone())];
            let text =
                names.iter().fold(argument.to_string(), |text, (from, to)| text.replace(from, to));
            command.arg(text);
        }
        let (_, error) = said(command.arg(at(name)));
        assert!(Path::new(&at(name)).exists(), "{arguments:?}");
        assert!(error.contains(&format!("wrote {}", at(name))), "{arguments:?}: {error}");
    }
    load.stop().unwrap();
}

/// What `tally demo` prints on a terminal until it shows the view, and its exit status after q.
fn demo(arguments: &[&str]) -> (Vec<String>, Option<i32>) {
    let mut command = vec![env!("CARGO_BIN_EXE_tally"), "demo", "--clients", "1"];
    command.extend(arguments);
    const FULL_SCREEN: &[u8] = b"\x1b[?1049h";
    let begins =
        |bytes: &[u8]| bytes.windows(FULL_SCREEN.len()).position(|window| window == FULL_SCREEN);
    let mut terminal = Pty::run(60, 24, &command);
    if arguments.contains(&"--once") {
        let (status, bytes) = terminal.end();
        assert_eq!(begins(&bytes), None);
        return (lines(&bytes), status);
    }
    let bytes = terminal.until("the view", |bytes| begins(bytes).is_some());
    let before = lines(&bytes[..begins(bytes).unwrap()]);
    terminal.press("q");
    (before, terminal.end().0)
}

#[test]
fn the_demo_says_which_keys_to_press_before_its_view_fills_the_screen() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("report.html").display().to_string();
    let (shown, status) = demo(&["--for", "600", "--report", &report]);
    let text = shown.join(" ").split_whitespace().collect::<Vec<_>>().join(" ");
    for hint in ["for 600 s. q quits", "h or ? lists the keys", "Tab or a digit selects a pane"] {
        assert!(text.contains(hint), "{hint}: {text}");
    }
    assert!(shown.iter().all(|line| line.chars().count() <= 60), "{shown:#?}");
    assert_eq!(status, Some(0));
    let (shown, status) = demo(&["--for", "1", "--once"]);
    let text = shown.join("\n");
    assert!(!text.contains("q quits") && text.contains(" with 1 client on "), "{text}");
    assert_eq!(status, Some(0));
}

#[test]
fn a_healthy_server_has_nothing_left_out() {
    for cluster in [Profile::Preloaded.server(), Profile::Sessions.server()] {
        let session = cluster.connect().unwrap();
        let text = output(tally().arg("status").arg(cluster.data_dir()));
        assert!(!text.contains("left out  "), "{text}");
        assert!(text.contains(" 0 left out"), "{text}");
        drop(session);
    }
}

#[test]
fn the_tree_of_functions_names_the_setting_that_it_needs() {
    let cluster = sessions();
    let session = cluster.connect().unwrap();
    let text = output(tally().args(["functions", "--tree"]).arg(cluster.data_dir()));
    assert!(text.contains("no functions are being timed"), "{text}");
    assert!(text.contains("ALTER SYSTEM SET pg_tally.function_edges = on"), "{text}");
    drop(session);
}

#[test]
fn short_waits_for_locks_are_counted_where_nobody_is_blocked() {
    let cluster = shared();
    let text = || output(tally().arg("blocking").arg(segment(&cluster)));
    let mut one = cluster.connect().unwrap();
    one.batch_execute("create table t (n int); insert into t values (1)").unwrap();
    let mut other = cluster.connect().unwrap();
    // Longer than the second after which a wait is reported.
    one.batch_execute("begin; update t set n = 2").unwrap();
    let waiting = std::thread::spawn(move || other.batch_execute("update t set n = 3"));
    eventually("it is reported", || {
        let events = segment::Segment::open(&segment(&cluster)).unwrap().events(0).unwrap();
        events.iter().any(|event| event.kind == segment::EventKind::Blocked)
    });
    one.batch_execute("commit").unwrap();
    waiting.join().unwrap().unwrap();
    let text = text();
    assert!(
        text.starts_with("No session is blocked.\nWaits for locks since measuring began, "),
        "{text}"
    );
    assert!(text.contains(" ago: ") && text.contains(", on average "), "{text}");
    assert!(text.contains("The last that was reported, ") && text.contains(" session "), "{text}");
}

#[test]
fn a_client_of_libpq_is_told_nothing_of_a_driver_for_java() {
    let (_folder, path, mut maker) = waiting::segment();
    let hint = |producer: &str, maker: &mut crate::maker::Maker| {
        maker.text(header::PRODUCER as u64, producer);
        output(tally().args(["calls", "--interval", "100ms"]).arg(&path))
    };
    let cpu = maker.stat("execute::cpu", ACCOUNT);
    let slot = maker.claim(1, 1, Who::client(), cpu, monotonic_ns());
    maker.write(&slot);
    let text = hint("libtally_pq 0.3.0", &mut maker);
    assert!(text.contains("`tally methods`") && !text.contains("org.postgresql"), "{text}");
    assert!(!text.contains("driver"), "{text}");
    let text = hint("pgtally-agent 0.3.0", &mut maker);
    assert!(text.contains("org.postgresql"), "{text}");
}
