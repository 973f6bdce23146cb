// SPDX-License-Identifier: PostgreSQL
//! `tally serve --alert`: the messages that a command, a webhook and a real Alertmanager get.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};

use scratch::Cluster;
use serde_json::Value;

use crate::support::owned::Owned;
use crate::support::ports::free_port;
use crate::support::serving::Serving;
use crate::support::{eventually, shared};

const OFTEN: [&str; 4] = ["--alert-interval", "1s", "--alert-repeat", "1s"];

/// Has a session wait for a row that another one has locked, until `meanwhile` returns.
fn while_blocked(cluster: &Cluster, meanwhile: impl FnOnce()) {
    cluster.psql("create table if not exists t as select 1 i").unwrap();
    let mut holder = cluster.connect().unwrap();
    holder.batch_execute("begin; update t set i = 2").unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| cluster.connect().unwrap().batch_execute("update t set i = 3"));
        eventually("a session waits", || {
            let sql = "select count(*) from pg_locks where not granted";
            cluster.psql(sql).is_ok_and(|found| found == "1")
        });
        meanwhile();
        holder.batch_execute("rollback").unwrap();
        waiter.join().unwrap().unwrap();
    });
}

/// The messages that a command has appended to a file, a line each.
fn told(file: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(file).unwrap_or_default();
    // The last line may be incomplete.
    text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
}

/// The events about locks.
fn events(file: &Path) -> Vec<String> {
    let told = told(file);
    let of_locks = told.iter().filter(|message| message["rule"] == "locks");
    of_locks.map(|message| message["event"].as_str().unwrap().to_string()).collect()
}

#[test]
fn a_command_is_told_of_the_beginning_the_duration_and_the_end() {
    let cluster = shared();
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("told");
    let command = format!("(cat; echo) >> {}", file.display());
    let _serving = Serving::start(&cluster, &[&["--alert", &command][..], &OFTEN].concat());
    while_blocked(&cluster, || {
        eventually("the problem is told twice", || events(&file).len() >= 2);
        assert_eq!(events(&file)[..2], ["begin", "update"]);
    });
    eventually("the end is told", || events(&file).iter().any(|event| event == "end"));
    let all = told(&file);
    let of_locks: Vec<&Value> = all.iter().filter(|message| message["rule"] == "locks").collect();
    let begin = of_locks[0];
    assert_eq!(begin["data_directory"], cluster.data_dir().to_str().unwrap());
    assert!(!begin["summary"].as_str().unwrap().is_empty());
    assert!(!begin["diagnoses"][0]["advice"].as_str().unwrap().is_empty());
    let end = of_locks.iter().find(|message| message["event"] == "end").unwrap();
    assert_eq!(end["since"], begin["since"]);
}

#[test]
fn a_silenced_rule_is_not_told() {
    let cluster = shared();
    let folder = tempfile::tempdir().unwrap();
    let (file, silence) = (folder.path().join("told"), folder.path().join("silence"));
    std::fs::write(&silence, "all\n").unwrap();
    let command = format!("(cat; echo) >> {}", file.display());
    let alert = ["--alert", &command, "--alert-silence", silence.to_str().unwrap()];
    let serving = Serving::start(&cluster, &[&alert[..], &OFTEN].concat());
    while_blocked(&cluster, || {
        // The page has the problem, so that there is something to tell.
        eventually("the page has the problem", || {
            let report = serving.get("/report.json");
            report.is_some_and(|report| report.contains("\"weight\":\"warning\""))
        });
        assert_eq!(told(&file), Vec::<Value>::new());
        std::fs::write(&silence, "jit\n").unwrap();
        eventually("the problem is told", || events(&file).first().is_some_and(|e| e == "begin"));
    });
}

/// Reads a request; returns its body.
fn request(stream: &TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut length = 0;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).unwrap();
        let line = line.trim().to_ascii_lowercase();
        if let Some(value) = line.strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
        if line.is_empty() {
            break;
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body).unwrap();
    String::from_utf8(body).unwrap()
}

fn reply(mut stream: &TcpStream, status: &str) {
    let answer = format!("HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
    stream.write_all(answer.as_bytes()).unwrap();
}

#[test]
fn a_webhook_that_does_not_answer_delays_nothing_and_loses_nothing() {
    let cluster = shared();
    let hook = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/services/secret", hook.local_addr().unwrap());
    let serving = Serving::start(&cluster, &[&["--alert", &url][..], &OFTEN].concat());
    let mut first = String::new();
    while_blocked(&cluster, || {
        let (stream, _) = hook.accept().unwrap();
        first = request(&stream);
        // While the message waits for its answer, others are answered.
        assert!(serving.get("/metrics").is_some_and(|all| all.contains("pgtally_up 1")));
        reply(&stream, "503 Service Unavailable");
        drop(stream);
        let (stream, _) = hook.accept().unwrap();
        assert_eq!(request(&stream), first, "it is sent again");
        reply(&stream, "200 OK");
    });
    let first: Value = serde_json::from_str(&first).unwrap();
    let text = first["text"].as_str().unwrap();
    assert!(text.contains(cluster.data_dir().to_str().unwrap()), "{text}");
    assert!(text.contains("What to do: "), "{text}");
    loop {
        let (stream, _) = hook.accept().unwrap();
        let body = request(&stream);
        reply(&stream, "200 OK");
        if body.contains("): over, since ") {
            break;
        }
    }
}

#[test]
fn alertmanager_has_the_alert_while_the_problem_lasts() {
    let Some(program) = ["alertmanager", "prometheus-alertmanager"]
        .into_iter()
        .find(|name| Command::new(name).arg("--version").output().is_ok())
    else {
        eprintln!("alertmanager is not installed: not tested");
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let settings = folder.path().join("alertmanager.yml");
    std::fs::write(&settings, "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n").unwrap();
    let address = format!("127.0.0.1:{}", free_port());
    let _manager = Owned::new(
        Command::new(program)
            .arg(format!("--config.file={}", settings.display()))
            .arg(format!("--storage.path={}", folder.path().join("data").display()))
            .args([format!("--web.listen-address={address}"), "--cluster.listen-address=".into()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let url = format!("http://{address}/api/v2/alerts");
    let alerts = || -> Option<Vec<Value>> {
        let text = ureq::get(&url).call().ok()?.body_mut().read_to_string().ok()?;
        let all: Vec<Value> = serde_json::from_str(&text).ok()?;
        Some(all.into_iter().filter(|alert| alert["labels"]["rule"] == "locks").collect())
    };
    eventually("Alertmanager answers", || alerts().is_some());
    let cluster = shared();
    let arguments = ["--alert", &url, "--alert-interval", "1s"];
    let _serving = Serving::start(&cluster, &arguments);
    while_blocked(&cluster, || {
        eventually("Alertmanager has the alert", || alerts().is_some_and(|all| !all.is_empty()));
        let all = alerts().unwrap();
        assert_eq!(all.len(), 1, "{all:?}");
        assert_eq!(all[0]["labels"]["alertname"], "PgtallyProblem");
    });
    eventually("the alert is resolved", || alerts().is_some_and(|all| all.is_empty()));
}
