// SPDX-License-Identifier: PostgreSQL
//! `tally fleet ask --engine http://...`: a ClickHouse server with the views returns the same results as the
//! files, and errors say what is wrong. The server is chdb behind HTTP (`fleet/server.py`).

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::clickhouse::ClickHouse;
use crate::support::fleet::{ask, engines, fleet, rows, same};
use crate::support::{complaint, output, tally};

const USER: &str = "reader";
const PASSWORD: &str = "se cret";

fn as_user(password: &str) -> assert_cmd::Command {
    let mut command = tally();
    command.env("CLICKHOUSE_USER", USER).env("CLICKHOUSE_PASSWORD", password);
    command
}

/// Posts each of these statements, as `clickhouse client --multiquery` sends them.
fn send(url: &str, statements: &str) {
    for statement in statements.split(';').filter(|text| !text.trim().is_empty()) {
        let mut response = ureq::Agent::new_with_config(
            ureq::Agent::config_builder().http_status_as_error(false).build(),
        )
        .post(url)
        .header("X-ClickHouse-User", USER)
        .header("X-ClickHouse-Key", PASSWORD)
        .send(statement)
        .unwrap();
        let text = response.body_mut().read_to_string().unwrap();
        assert_eq!(response.status(), 200, "{statement}: {text}");
    }
}

fn fleet_sql(arguments: &[&str], root: &Path) -> String {
    output(tally().arg("fleet").args(arguments).arg("--root").arg(root))
}

#[test]
fn a_server_answers_over_files_and_over_tables() {
    let Some([_, python]) = engines() else { return };
    let made = fleet();
    let folder = tempfile::tempdir().unwrap();
    let server = ClickHouse::start(&python, folder.path(), USER, PASSWORD);
    // Whole hours, which tables with a row per minute have as well.
    let hour = jiff::Timestamp::now().as_second() / 3600 * 3600;
    let time = |seconds: i64| jiff::Timestamp::from_second(seconds).unwrap().to_string();
    let (since, until) = (time(hour - 7200), time(hour + 7200));
    let period = ["--since", &since, "--until", &until];
    let of_server = |query: &str, more: &[&str]| {
        rows(&output(
            as_user(PASSWORD)
                .args(["fleet", "ask", query, "--json", "--limit", "100000", "--engine"])
                .arg(&server.url)
                .args(period)
                .args(more),
        ))
    };
    let agree = |moment: &str, more: &[&str]| {
        for query in ["hosts", "load", "waits", "statements", "p99"] {
            let (found, wanted) =
                (of_server(query, more), ask(&python, &made.root, query, &period));
            assert!(!wanted.is_empty(), "{query}");
            assert_eq!(found.len(), wanted.len(), "{query} {moment}");
            for (found, wanted) in found.iter().zip(&wanted) {
                let is_same = found.values().zip(wanted.values()).all(|(a, b)| same(a, b));
                assert!(is_same, "{query} {moment}: {found:?} {wanted:?}");
            }
        }
    };
    // Without views, each query includes them.
    agree("with a root", &["--root", made.root.to_str().unwrap()]);
    send(&server.url, &fleet_sql(&["schema", "--engine", "clickhouse"], &made.root));
    agree("with views over files", &[]);
    let tables = ["--tables", "minute"];
    let schema = [&["schema", "--engine", "clickhouse"][..], &tables].concat();
    send(&server.url, &fleet_sql(&schema, &made.root));
    assert!(of_server("hosts", &[]).is_empty(), "tables are empty before the first refresh");
    send(&server.url, &fleet_sql(&[&["refresh"][..], &tables].concat(), &made.root));
    agree("with tables", &[]);
    // The other output formats.
    let mut text = as_user(PASSWORD);
    text.args(["fleet", "ask", "hosts", "--engine", &server.url]).args(period);
    assert!(output(&mut text).contains("COMMANDS"));
}

#[test]
fn what_a_server_refuses_is_reported_with_its_words() {
    let Some([_, python]) = engines() else { return };
    let folder = tempfile::tempdir().unwrap();
    let server = ClickHouse::start(&python, folder.path(), USER, PASSWORD);
    let url = &server.url;
    let load = |engine: &str, mut command: assert_cmd::Command| {
        complaint(command.args(["fleet", "ask", "load", "--since", "-1h", "--engine", engine]), 1)
    };
    // A wrong password, and none.
    for text in [load(url, as_user("another")), load(url, tally())] {
        assert!(text.contains("Authentication failed") && text.contains(url), "{text}");
        assert!(!text.contains("another"), "{text}");
    }
    // A server without the views.
    let text = load(url, as_user(PASSWORD));
    assert!(text.contains("Unknown table expression identifier") && text.contains(url), "{text}");
    // A server that does not exist.
    let address = url.clone();
    drop(server);
    let text = load(&address, as_user(PASSWORD));
    assert!(
        text.contains(&address)
            && text.contains("is this the HTTP interface of a ClickHouse server"),
        "{text}"
    );
    // Another program: its response is not JSON.
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", other.local_addr().unwrap());
    let web = std::thread::spawn(move || {
        let (mut stream, _) = other.accept().unwrap();
        read_request(&mut stream);
        let page = "<html>hello</html>";
        write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{page}", page.len()).unwrap();
    });
    let text = load(&address, tally());
    web.join().unwrap();
    assert!(text.contains("is not JSON") && text.contains("hello"), "{text}");
}

/// A request's head and body.
fn read_request(stream: &mut std::net::TcpStream) -> String {
    let mut text = String::new();
    let mut bytes = [0; 4096];
    loop {
        let n = stream.read(&mut bytes).unwrap();
        text.push_str(&String::from_utf8_lossy(&bytes[..n]));
        if n == 0 || text.trim_end().ends_with("FORMAT JSONEachRow") {
            return text;
        }
    }
}

#[test]
fn user_and_password_are_in_headers_and_not_in_the_list_of_processes() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let child = Command::new(assert_cmd::cargo::cargo_bin("tally"))
        .args(["fleet", "ask", "hosts", "--since", "-1h", "--engine", &url])
        .env("CLICKHOUSE_USER", USER)
        .env("CLICKHOUSE_PASSWORD", PASSWORD)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let (mut stream, _) = listener.accept().unwrap();
    let request = read_request(&mut stream);
    // While it waits for the response.
    let line = std::fs::read_to_string(format!("/proc/{}/cmdline", child.id())).unwrap();
    let words: Vec<&str> = line.split('\0').collect();
    assert!(words.contains(&url.as_str()), "{words:?}");
    assert!(!words.iter().any(|word| word.contains(USER) || word.contains(PASSWORD)), "{words:?}");
    let head = request.to_lowercase();
    assert!(head.starts_with("post / http/1.1"), "{request}");
    assert!(head.contains(&format!("x-clickhouse-user: {USER}\r\n")), "{request}");
    assert!(head.contains(&format!("x-clickhouse-key: {PASSWORD}\r\n")), "{request}");
    write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("no rows"), "{output:?}");
    // A URL with a password would be visible in the list of processes.
    let mut named = tally();
    named.args(["fleet", "ask", "hosts", "--engine", "http://reader:hidden@127.0.0.1:8123"]);
    let text = complaint(&mut named, 2);
    assert!(text.contains("CLICKHOUSE_PASSWORD"), "{text}");
}
