// SPDX-License-Identifier: PostgreSQL
//! `tally serve` on a real server: metrics that match pgbench exactly, a real Prometheus, malicious
//! requests, a server that restarts.

use crate::support;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use crate::support::eventually;
use crate::support::reachable::{Reachable, PASSWORD};
use crate::support::serving::{self as serve, field, Serving};
use crate::support::strace::Strace;

/// Longer than a reading of the metrics is cached.
const KEPT: Duration = Duration::from_millis(150);

#[test]
fn counters_of_two_scrapes_differ_by_exactly_the_work_between_them() {
    let cluster = serve::quiet();
    cluster.pgbench_init(1).unwrap();
    let serving = Serving::start(&cluster, &["--statements", "3"]);
    let before = serving.metrics();
    assert_eq!(serve::load(&cluster, 3, 40), 120);
    let after = serving.metrics();
    let grown = |name: &str| field(&after, name) - field(&before, name);
    assert_eq!(grown("pgtally_commits_total"), 120.0);
    assert_eq!(
        grown("pgtally_commit_seconds_count{how=\"leader\"}")
            + grown("pgtally_commit_seconds_count{how=\"group_committed\"}"),
        120.0
    );
    // Seven commands a transaction.
    let query = "pgtally_command_seconds_count{command=\"Query\"}";
    assert!(grown(query) >= 840.0, "{}", grown(query));
    // The accounts add up to the total, before and after.
    for text in [&before, &after] {
        let sum = |name: &str| -> f64 {
            text.lines().filter(|line| line.starts_with(name)).map(serve::value).sum()
        };
        let (parts, whole) =
            (sum("pgtally_time_seconds_total{"), field(text, "pgtally_session_seconds_total"));
        assert!((parts - whole).abs() < 1e-6 * whole, "{parts} of {whole}");
        assert_eq!(sum("pgtally_overflow_total{"), 0.0);
    }
    // The three with the most time, and the others.
    let named = after.lines().filter(|line| line.starts_with("pgtally_statement_calls_total{"));
    assert_eq!(named.count(), 4, "{after}");
    assert_none_fell(&before, &after);
}

/// No counter has fallen.
fn assert_none_fell(before: &str, after: &str) {
    let counters: Vec<&str> = serve::counters(before);
    assert!(counters.len() > 50);
    for name in counters {
        let now = serve::find(after, name);
        let fell = now.is_some_and(|now| now < field(before, name));
        assert!(!fell, "{name}: {} -> {now:?}", field(before, name));
    }
}

/// The query IDs of COMMIT, SET and "select 1" contain no OID, so they are the same for each role of the same
/// name.
#[test]
fn a_role_that_is_made_again_or_renamed_has_each_series_once() {
    let cluster = serve::quiet();
    let mut client = cluster.connect().unwrap();
    let serving = Serving::start(&cluster, &["--statements", "20"]);
    let series = |metrics: &str, role: &str| -> f64 {
        let of_role = format!("user=\"{role}\"");
        let its = metrics.lines().filter(|line| {
            line.starts_with("pgtally_statement_calls_total{") && line.contains(&of_role)
        });
        its.map(serve::value).sum()
    };
    let mut before = serving.metrics();
    for (time, name) in ["again", "again", "again", "other"].into_iter().enumerate() {
        if name == "again" {
            client.batch_execute("create role again login").unwrap();
        } else {
            client
                .batch_execute("create role again login; alter role again rename to other")
                .unwrap();
        }
        let mut theirs = cluster.config().user(name).connect(postgres::NoTls).unwrap();
        for sql in ["begin", "select 1", "commit", "set work_mem = '1MB'"] {
            theirs.batch_execute(sql).unwrap();
        }
        drop(theirs);
        let done = if name == "again" { 4.0 * (time + 1) as f64 } else { 4.0 };
        let mut after = String::new();
        eventually("its statements are counted", || {
            after = serving.metrics();
            series(&after, name) == done
        });
        let mut names: Vec<&str> = (after.lines())
            .filter(|line| !line.starts_with('#'))
            .filter_map(|line| line.rsplit_once(' ').map(|(name, _)| name))
            .collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all, "a label set is there twice: {after}");
        assert_none_fell(&before, &after);
        before = after;
        client.batch_execute(&format!("drop role {name}")).unwrap();
    }
}

/// The time of a statement counts while it runs, even if it ends with an error.
#[test]
fn no_counter_falls_when_a_statement_is_cancelled() {
    let cluster = serve::quiet();
    let serving = Serving::start(&cluster, &["--statements", "5"]);
    let mut client = cluster.connect().unwrap();
    let stop = client.cancel_token();
    let cancelled = std::thread::spawn(move || client.batch_execute("select pg_sleep(60)"));
    let seconds = |metrics: &str| -> f64 {
        let lines =
            metrics.lines().filter(|line| line.starts_with("pgtally_statement_seconds_total{"));
        lines.map(serve::value).sum()
    };
    let mut before = String::new();
    eventually("it runs for a second", || {
        before = serving.metrics();
        seconds(&before) >= 1.0
    });
    stop.cancel_query(postgres::NoTls).unwrap();
    cancelled.join().unwrap().unwrap_err();
    std::thread::sleep(KEPT);
    assert_none_fell(&before, &serving.metrics());
}

/// Until a message is read, the time since its arrival counts as the idle session's.
#[test]
fn no_counter_falls_when_time_moves_to_another_account() {
    let cluster = serve::quiet();
    let serving = Serving::start(&cluster, &[]);
    let mut client = cluster.connect().unwrap();
    let pid = support::pid_of(&mut client);
    let Some(slow) = Strace::delay("recvfrom", Duration::from_secs(3), pid) else { return };
    let idle = "pgtally_time_seconds_total{process=\"client backend\",phase=\"idle\",activity=\"cpu\",class=\"cpu\"}";
    let first = field(&serving.metrics(), idle);
    let answered = std::thread::spawn(move || client.batch_execute("select 1").map(|()| client));
    let mut before = String::new();
    eventually("the message has come and is not read", || {
        before = serving.metrics();
        field(&before, idle) >= first + 1.0
    });
    let _client = answered.join().unwrap().unwrap();
    std::thread::sleep(KEPT);
    let after = serving.metrics();
    drop(slow);
    assert_none_fell(&before, &after);
    let sum = |text: &str, name: &str| -> f64 {
        text.lines().filter(|line| line.starts_with(name)).map(serve::value).sum()
    };
    let (parts, whole) = (
        sum(&after, "pgtally_time_seconds_total{"),
        field(&after, "pgtally_session_seconds_total"),
    );
    assert!((parts - whole).abs() < 1e-6 * whole, "{parts} of {whole}");
}

#[test]
fn a_server_is_served_through_a_connection_with_the_figures_of_its_file() {
    let server = Reachable::start(&[("autovacuum", "off")]);
    server.cluster.pgbench_init(1).unwrap();
    let mut command = std::process::Command::new(assert_cmd::cargo::cargo_bin("tally"));
    command.env("PGPASSWORD", PASSWORD);
    let options = ["--no-token", "--statements", "100"];
    let remote =
        Serving::start_command(command, &server.string("watcher"), "127.0.0.1:0", &options);
    let local = Serving::start(&server.cluster, &["--statements", "100"]);
    assert_eq!(serve::load(&server.cluster, 2, 30), 60);
    let (there, here) = (remote.metrics(), local.metrics());
    assert!(field(&here, "pgtally_commits_total") >= 60.0);
    let mut compared = 0;
    for line in here.lines() {
        let (name, value) = line.rsplit_once(' ').unwrap();
        // The clients' commits do not change any more; the reader's own session writes nothing.
        let still = ["pgtally_commit", "pgtally_wal_records_total{process=\"client backend\"}"];
        if !still.iter().any(|start| name.starts_with(start)) {
            continue;
        }
        let (value, brought): (f64, f64) = (value.parse().unwrap(), field(&there, name));
        // The length of a tick is measured by each reader.
        assert!((value - brought).abs() <= 1e-4 * value, "{name}: {value} {brought}");
        compared += 1;
    }
    assert!(compared > 20, "{compared}");
    let update = |metrics: &str| -> Vec<f64> {
        let calls = "pgtally_statement_calls_total{queryid=";
        let lines = metrics.lines().filter(|line| line.starts_with(calls));
        let mut calls: Vec<f64> = lines.map(serve::value).filter(|calls| *calls == 60.0).collect();
        calls.truncate(5);
        calls
    };
    assert_eq!(update(&there), [60.0; 5]);
    assert_eq!(update(&here), [60.0; 5]);
    support::eventually("the page has the first interval", || remote.report().is_some());
}

#[test]
fn names_and_labels_are_the_documented_ones() {
    let cluster = serve::quiet();
    cluster.pgbench_init(1).unwrap();
    let serving = Serving::start(&cluster, &["--statements", "2"]);
    let documented = include_str!("../../../../docs/reference-metrics.md");
    let mut names: Vec<(String, String)> = Vec::new();
    for line in serving.metrics().lines().filter(|line| !line.starts_with('#')) {
        let (name, rest) = line.split_once(['{', ' ']).unwrap();
        let labels: Vec<&str> =
            rest.split("\",").filter_map(|pair| Some(pair.split_once("=\"")?.0)).collect();
        let base = ["_bucket", "_sum", "_count"].iter().find_map(|end| name.strip_suffix(end));
        let labels: Vec<&str> = labels.into_iter().filter(|label| *label != "le").collect();
        names.push((base.unwrap_or(name).to_string(), labels.join(", ")));
    }
    names.sort();
    names.dedup();
    assert!(names.len() > 25, "{names:?}");
    for (name, labels) in names {
        let row = documented.lines().find(|line| line.starts_with(&format!("| `{name}` |")));
        let row = row.unwrap_or_else(|| panic!("docs/reference-metrics.md lacks {name}"));
        let documented = row.split('|').nth(3).unwrap().trim().replace('`', "");
        assert_eq!(documented, labels, "labels of {name}");
    }
}

#[test]
fn promtool_accepts_the_metrics_and_prometheus_keeps_the_same_figures() {
    let cluster = serve::quiet();
    cluster.pgbench_init(1).unwrap();
    let serving = Serving::start(&cluster, &[]);
    let mut check = assert_cmd::Command::new("promtool");
    check.args(["check", "metrics"]).write_stdin(serving.metrics()).assert().success();
    for options in [&[][..], &["--enable-feature=native-histograms"]] {
        let prometheus = serve::Prometheus::start(&serving, options);
        let native = !options.is_empty();
        let ours = serving.metrics();
        let commits = field(&ours, "pgtally_commits_total");
        assert!(commits > 0.0);
        support::eventually("Prometheus has scraped", || {
            prometheus.query("pgtally_commits_total") == Some(commits)
        });
        let led = field(&ours, "pgtally_commit_seconds_count{how=\"leader\"}");
        let sum = field(&ours, "pgtally_commit_seconds_sum{how=\"leader\"}");
        let name = "pgtally_commit_seconds";
        let (count, seconds) = if native {
            (
                format!("histogram_count({name}{{how=\"leader\"}})"),
                format!("histogram_sum({name}{{how=\"leader\"}})"),
            )
        } else {
            (format!("{name}_count{{how=\"leader\"}}"), format!("{name}_sum{{how=\"leader\"}}"))
        };
        assert_eq!(prometheus.query(&count), Some(led));
        assert_eq!(prometheus.query(&seconds), Some(sum));
        let median = if native {
            format!("histogram_quantile(0.5, {name}{{how=\"leader\"}})")
        } else {
            format!("histogram_quantile(0.5, sum by (le) ({name}_bucket{{how=\"leader\"}}))")
        };
        let median = prometheus.query(&median).unwrap();
        assert!(median > 0.0 && median < sum, "{median}");
    }
}

#[test]
fn malicious_requests_are_refused() {
    let cluster = serve::quiet();
    let serving = Serving::start(&cluster, &[]);
    let first = |request: &str| serving.raw(request).lines().next().unwrap_or("").to_string();
    for (request, status) in [
        ("GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "200"),
        ("GET / HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n", "421"),
        ("GET / HTTP/1.1\r\nConnection: close\r\n\r\n", "400"),
        ("POST / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", "405"),
        ("DELETE /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "405"),
        ("GET /../../etc/passwd HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "404"),
        ("GET /%2e%2e/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", "404"),
        ("nonsense\r\n\r\n", "400"),
        ("GET / HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n\r\nabc", "413"),
    ] {
        let line = first(request);
        assert!(line.contains(status), "{request:?}: {line}");
    }
    let head = serving.raw("HEAD / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    assert!(head.ends_with("\r\n\r\n"), "HEAD has no content: {head}");
    for header in [
        "x-content-type-options: nosniff",
        "referrer-policy: no-referrer",
        "frame-ancestors 'none'",
        "default-src 'none'",
    ] {
        assert!(head.contains(header), "{header} is missing: {head}");
    }
    // A request head of a megabyte is cut off.
    let mut stream = serving.connect();
    let _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: localhost\r\nX: ");
    let refused = (0..64).any(|_| stream.write_all(&[b'x'; 16 * 1024]).is_err());
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    let answer = String::from_utf8_lossy(&answer);
    assert!(refused || answer.contains("431"), "{answer}");
    serving.stop();
}

/// Half-open connections, and connections that never complete their request.
#[test]
fn connections_without_a_request_keep_nobody_out() {
    let cluster = serve::quiet();
    let serving = Serving::with_token(&cluster);
    let header = format!("Host: localhost\r\nAuthorization: Bearer {}", serving.token());
    let mut idle: Vec<TcpStream> = Vec::new();
    for number in 0..200 {
        let mut stream = serving.connect();
        if number % 2 == 0 {
            stream.write_all(b"GET / HTTP/1.1\r\nHost: local").unwrap();
        }
        idle.push(stream);
    }
    assert_eq!(serving.status("/metrics", &header).0, "200");
    // A connection that has passed the gate stays while others arrive.
    let mut known = serving.connect();
    let request = format!("GET /metrics HTTP/1.1\r\n{header}\r\n\r\n");
    let mut answer = [0; 12];
    known.write_all(request.as_bytes()).unwrap();
    known.read_exact(&mut answer).unwrap();
    idle.extend((0..200).map(|_| serving.connect()));
    assert_eq!(serving.status("/metrics", &header).0, "200");
    let last = format!("GET /metrics HTTP/1.1\r\nConnection: close\r\n{header}\r\n\r\n");
    known.write_all(last.as_bytes()).unwrap();
    let mut again = Vec::new();
    known.read_to_end(&mut again).unwrap();
    assert_eq!(String::from_utf8_lossy(&again).matches("HTTP/1.1 200").count(), 1);
    drop(idle);
    serving.stop();
}

#[test]
fn another_user_of_this_machine_needs_the_token() {
    let cluster = serve::quiet();
    cluster.psql("select 'secret'").unwrap();
    let serving = Serving::with_token(&cluster);
    let host = "Host: localhost";
    for path in ["/", "/metrics", "/report.json", "/?token=", "/?token=0123456789abcdef"] {
        let (status, answer) = serving.status(path, host);
        assert_eq!(status, "401", "{path}: {answer}");
    }
    let token = serving.token().to_string();
    assert!(token.len() >= 32 && token.bytes().all(|b| b.is_ascii_hexdigit()), "{token}");
    // The URL with the token sets a cookie that scripts cannot read and that other sites' pages do not send.
    let (status, answer) = serving.status(&format!("/?token={token}"), host);
    assert_eq!(status, "303", "{answer}");
    let cookie = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).unwrap();
    assert!(cookie.ends_with("; Path=/; HttpOnly; SameSite=Strict"), "{cookie}");
    let pair = cookie.split(';').next().unwrap();
    for path in ["/", "/metrics"] {
        assert_eq!(serving.status(path, &format!("{host}\r\nCookie: {pair}")).0, "200");
    }
    assert_eq!(serving.status("/", &format!("{host}\r\nCookie: {pair}0")).0, "401");
    let bearer = format!("Authorization: Bearer {token}");
    let (_, metrics) = serving.status("/metrics", &format!("{host}\r\n{bearer}"));
    assert!(metrics.contains("pgtally_up 1"), "{metrics}");
    // The other checks come first.
    assert_eq!(serving.status("/", &format!("Host: evil.example\r\n{bearer}")).0, "421");
    // Another run has another token and cookie.
    let other = Serving::with_token(&cluster);
    assert_ne!(other.token(), token);
    assert_eq!(other.status("/", &format!("{host}\r\nCookie: {pair}")).0, "401");
    // --no-token works on loopback only.
    let open = Serving::start(&cluster, &[]);
    assert_eq!(open.status("/metrics", host).0, "200");
    let data = cluster.data_dir().to_str().unwrap();
    let everywhere = ["serve", data, "--no-token", "--listen", "0.0.0.0:0"];
    assert!(support::complaint(support::tally().args(everywhere), 2).contains("--token-file"));
}

#[test]
fn one_line_shows_how_to_open_it() {
    let cluster = serve::quiet();
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin("tally"))
        .args(["serve", "--listen", "127.0.0.1:0"])
        .arg(cluster.data_dir())
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let line = support::line_of(&mut std::io::BufReader::new(child.stdout.take().unwrap()));
    child.kill().unwrap();
    child.wait().unwrap();
    let address = line.trim_end().strip_prefix("Open http://127.0.0.1:").unwrap();
    assert!(address.contains("/?token="), "{line}");
}

#[test]
fn other_addresses_need_a_token() {
    use std::os::unix::fs::PermissionsExt;
    let cluster = serve::quiet();
    let data = cluster.data_dir().to_str().unwrap().to_string();
    let complaint =
        support::complaint(support::tally().args(["serve", &data, "--listen", "0.0.0.0:0"]), 2);
    assert!(complaint.contains("--token-file"), "{complaint}");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token");
    std::fs::write(&file, "0123456789abcdef0123456789abcdef\n").unwrap();
    let path = file.to_str().unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
    let all = ["serve", &data, "--listen", "0.0.0.0:0", "--token-file", path];
    let complaint = support::complaint(support::tally().args(all), 1);
    assert!(complaint.contains("chmod 600"), "{complaint}");
    // The group may read a file that root owns, as PostgreSQL has it for keys.
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).unwrap();
    if !rustix::process::geteuid().is_root() {
        let complaint = support::complaint(support::tally().args(all), 1);
        assert!(complaint.contains("chmod 600"), "{complaint}");
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let serving = Serving::start(&cluster, &["--token-file", path]);
    let ask = |extra: &str| {
        serving.raw(&format!(
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\n{extra}Connection: close\r\n\r\n"
        ))
    };
    assert!(ask("").starts_with("HTTP/1.1 401"));
    assert!(ask("Authorization: Bearer 0123456789abcdef0123456789abcdeX\r\n").contains(" 401"));
    let token = "0123456789abcdef0123456789abcdef";
    assert!(ask(&format!("Authorization: Bearer {token}\r\n")).contains("pgtally_up 1"));
    let port = serving.address().rsplit(':').next().unwrap();
    assert!(ask(&format!("Cookie: pgtally_token_{port}={token}\r\n")).contains("pgtally_up 1"));
    let welcome = serving.raw(&format!(
        "GET /?token={token} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    ));
    assert!(
        welcome.starts_with("HTTP/1.1 303") && welcome.contains("location: /\r\n"),
        "{welcome}"
    );
}

#[test]
fn a_port_in_use_is_an_error_with_a_remedy() {
    let cluster = serve::quiet();
    let data = cluster.data_dir().to_str().unwrap().to_string();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let complaint =
        support::complaint(support::tally().args(["serve", &data, "--listen", &address]), 1);
    assert!(complaint.contains(&address) && complaint.contains("--listen"), "{complaint}");
}

#[test]
fn a_unix_socket_works_and_is_removed_at_the_end() {
    let cluster = serve::quiet();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tally.sock");
    let serving = Serving::at(&cluster, &format!("unix:{}", path.display()), &[]);
    let mut stream = std::os::unix::net::UnixStream::connect(&path).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: any\r\nConnection: close\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.contains("pgtally_up 1"), "{answer}");
    serving.stop();
    assert!(!path.exists());
}

#[test]
fn a_server_that_restarts_leaves_a_gap_and_is_followed() {
    let mut cluster = serve::quiet();
    cluster.pgbench_init(1).unwrap();
    let serving = Serving::start(&cluster, &["--interval", "200ms"]);
    let report = || serving.report();
    support::eventually("there is a report", || report().is_some());
    serve::load(&cluster, 2, 20);
    support::eventually("it has pgbench's commits", || {
        report().unwrap()["totals"]["commits"].as_u64() == Some(40)
    });
    cluster.stop(scratch::StopMode::Fast).unwrap();
    support::eventually("the metrics report that the server is down", || {
        serving.metrics().contains("pgtally_up 0\n")
    });
    assert!(!serving.metrics().contains("pgtally_commits_total"));
    support::eventually("the report has the gap", || {
        report().unwrap()["gaps"].as_array().unwrap().len() == 1
    });
    // A shorter gap does not count once the next run is known.
    std::thread::sleep(std::time::Duration::from_secs(3));
    cluster.start().unwrap();
    serve::load(&cluster, 1, 10);
    support::eventually("it is followed again", || {
        report().unwrap()["totals"]["commits"].as_u64() == Some(50)
    });
    let back = report().unwrap();
    assert_eq!(back["gaps"].as_array().unwrap().len(), 1, "{}", back["gaps"]);
    assert_eq!(field(&serving.metrics(), "pgtally_commits_total"), 10.0);
    // The charts' values add up to the tables'.
    let axis = &back["axes"]["main"]["seconds"];
    let stack = back["charts"].as_array().unwrap().iter().find(|c| c["id"] == "activity").unwrap();
    let mut sum = 0.0;
    for series in stack["series"].as_array().unwrap() {
        for (value, seconds) in
            series["values"].as_array().unwrap().iter().zip(axis.as_array().unwrap())
        {
            sum += value.as_f64().unwrap_or(0.0) * seconds.as_f64().unwrap();
        }
    }
    let busy = back["totals"]["busy_seconds"].as_f64().unwrap();
    assert!((sum - busy).abs() < 0.001 * busy, "{sum} of {busy}");
    // The covered time and the gap add up to the shown time, in which no statement counts twice.
    let [from, to, covered, gaps] = ["from", "to", "covered_seconds", "gap_seconds"]
        .map(|key| back["measured"][key].as_f64().unwrap());
    assert!((covered + gaps - (to - from)).abs() < 0.05, "{covered} + {gaps} of {}", to - from);
    support::eventually("the report has the commits of both runs", || {
        calls_of(&report().unwrap(), "END") == 50
    });
    // What the lists have over time adds up to the table.
    support::eventually("the statement's points have its time", || {
        let report = report().unwrap();
        let (sum, seconds) =
            (ranked(&report, "statements", "END"), figure_of(&report, "END", "seconds"));
        assert_eq!(sum.1, sum.2);
        seconds > 0.0 && (sum.0 - seconds).abs() < 0.01 * seconds
    });
    assert!(!back.to_string().contains("-0.0,"), "{back}");
    serving.stop();
}

/// A figure of a statement in a report's table.
fn figure_of(report: &serde_json::Value, text: &str, key: &str) -> f64 {
    let tables = report["tables"].as_array().unwrap();
    let table = tables.iter().find(|table| table["id"] == "statements").unwrap();
    let at = |key| {
        table["columns"].as_array().unwrap().iter().position(|column| column["key"] == key).unwrap()
    };
    let (query, figure) = (at("query"), at(key));
    let rows = table["rows"].as_array().unwrap().iter();
    rows.filter(|cells| cells[query] == text).filter_map(|cells| cells[figure].as_f64()).sum()
}

/// Calls of a statement in a report.
fn calls_of(report: &serde_json::Value, text: &str) -> u64 {
    figure_of(report, text, "calls") as u64
}

/// The time of a row of a list over time, with the number of its points and of those of its axis.
fn ranked(report: &serde_json::Value, list: &str, name: &str) -> (f64, usize, usize) {
    let lists = report["rankings"].as_array().unwrap();
    let Some(list) = lists.iter().find(|one| one["id"] == list) else { return (0.0, 0, 0) };
    let rows = list["rows"].as_array().unwrap();
    let Some(row) = rows.iter().find(|row| row["name"] == name) else { return (0.0, 0, 0) };
    let seconds = row["seconds"].as_array().unwrap();
    let points = list["axis"]["time"].as_array().unwrap().len();
    (seconds.iter().filter_map(serde_json::Value::as_f64).sum(), seconds.len(), points)
}

#[test]
fn a_browser_shows_the_load_as_it_runs() {
    let cluster = serve::quiet();
    cluster.pgbench_init(1).unwrap();
    let serving = Serving::at(&cluster, "127.0.0.1:0", &["--interval", "200ms"]);
    let script =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../web/test/serving.mjs");
    let mut browser = std::process::Command::new("node");
    browser.arg(script).arg(serving.page());
    if let Some(picture) = std::env::var_os("PGTALLY_PICTURE") {
        browser.arg(picture);
    }
    let committed = AtomicU64::new(0);
    let load = |stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            committed.fetch_add(serve::load(&cluster, 2, 20), Ordering::Relaxed);
        }
    };
    let output = support::while_working(&[&load], || browser.output().unwrap());
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let seen: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    for nothing in ["requests", "violations", "errors"] {
        assert_eq!(seen[nothing], serde_json::json!([]), "{nothing}");
    }
    // The report of the whole load has each of its commits, and the page has the report's rates.
    let bearer = format!("Host: localhost\r\nAuthorization: Bearer {}", serving.token());
    let mut report = serde_json::Value::Null;
    support::eventually("the report has all commits", || {
        let (_, answer) = serving.status("/report.json", &bearer);
        report = serde_json::from_str(answer.split_once("\r\n\r\n").unwrap().1).unwrap();
        report["totals"]["commits"].as_u64() == Some(committed.load(Ordering::Relaxed))
    });
    let charts = report["charts"].as_array().unwrap();
    let chart = charts.iter().find(|chart| chart["id"] == "throughput").unwrap();
    let series = chart["series"].as_array().unwrap();
    let commits = series.iter().find(|sery| sery["name"] == "commits that wrote WAL").unwrap();
    let numbers = |list: &serde_json::Value| -> Vec<f64> {
        list.as_array().unwrap().iter().map(|number| number.as_f64().unwrap_or(0.0)).collect()
    };
    let rates = numbers(&commits["values"]);
    let axis = &report["axes"][chart["axis"].as_str().unwrap()];
    let sum: f64 = rates.iter().zip(numbers(&axis["seconds"])).map(|(rate, s)| rate * s).sum();
    let all = committed.into_inner() as f64;
    assert!((sum / all - 1.0).abs() < 0.005, "{sum} of {all}");
    // The last one may have grown after the browser read it.
    let shown = numbers(&seen["commits"]);
    assert!(shown.len() > 5 && shown.iter().any(|rate| *rate > 0.0), "{seen}");
    for (shown, rate) in shown[..shown.len() - 1].iter().zip(&rates) {
        assert!((shown - rate).abs() <= 0.05 + 0.01 * rate, "{shown:?} {rates:?}");
    }
}

#[test]
fn the_page_begins_with_the_session_that_others_wait_for() {
    let cluster = serve::quiet();
    cluster.psql("create table orders (v int); insert into orders values (0)").unwrap();
    let serving = Serving::start(&cluster, &["--interval", "500ms"]);
    let first = || serving.report().map(|report| report["findings"][0].clone());
    support::eventually("a healthy server", || {
        first().is_some_and(|finding| finding["text"].as_str().unwrap().starts_with("Healthy"))
    });
    let mut config = cluster.config();
    let mut root = config.application_name("forgetful").connect(postgres::NoTls).unwrap();
    let pid = support::pid_of(&mut root);
    root.batch_execute("begin; update orders set v = 1").unwrap();
    let mut waiter = cluster.connect().unwrap();
    let waiter = std::thread::spawn(move || waiter.batch_execute("update orders set v = 2"));
    let sentence =
        format!("1 session waits for session {pid} (forgetful, postgres@postgres), idle");
    support::eventually("the culprit", || {
        first().is_some_and(|finding| finding["text"].as_str().unwrap().starts_with(&sentence))
    });
    let found = first().unwrap();
    assert_eq!((&found["section"], &found["weight"]), (&"locks".into(), &"warning".into()));
    assert!(
        found["remedy"]["text"]
            .as_str()
            .unwrap()
            .starts_with("If its client has abandoned it, end it"),
        "{found}"
    );
    let page = serving.get("/").unwrap();
    let begin = page.find(&sentence).unwrap();
    assert!(begin < page.find("id=\"ledger\"").unwrap(), "before the tables");
    root.batch_execute("rollback").unwrap();
    waiter.join().unwrap().unwrap();
    // The wait is still a cause in the last few minutes, without the session, which has ended its transaction.
    support::eventually("its end", || {
        first().is_some_and(|finding| !finding["text"].as_str().unwrap().contains("forgetful"))
    });
}

#[test]
fn a_session_is_traced_where_that_is_allowed_and_its_page_has_what_it_did() {
    let cluster = serve::quiet();
    let reading = Serving::start(&cluster, &[]);
    assert_eq!(reading.status("/trace", "Host: localhost").0, "404");
    let serving = Serving::start(&cluster, &["--allow-trace"]);
    let mut client =
        cluster.config().application_name("</td>traced").connect(postgres::NoTls).unwrap();
    let pid = support::pid_of(&mut client);
    // Where tally has sessions of its own, as a recorder through a connection has, the others are still there.
    let mut config = cluster.config();
    let mut own =
        config.application_name(segment::own::APPLICATION).connect(postgres::NoTls).unwrap();
    let own_pid = support::pid_of(&mut own);
    let list = serving.get("/trace").unwrap();
    assert!(!list.contains(&format!("trace?pid={own_pid}\"")), "{list}");
    assert!(list.contains(&format!("<a href=\"trace?pid={pid}\">{pid}</a>")), "{list}");
    assert!(list.contains("&lt;/td&gt;traced"), "{list}");
    let refused =
        [("/trace?pid=0", "400"), ("/trace?pid=1&seconds=99", "400"), ("/trace?pid=1", "503")];
    for (path, status) in refused {
        let (given, answer) = serving.status(path, "Host: localhost");
        assert_eq!(given, status, "{path}: {answer}");
    }
    let client = std::sync::Mutex::new(client);
    let load = |stop: &AtomicBool| {
        while !stop.load(Ordering::Relaxed) {
            client.lock().unwrap().batch_execute("select count(*) from pg_class").unwrap();
        }
    };
    let mut page = String::new();
    support::while_working(&[&load], || {
        // A session that gets no CPU for a second has none.
        support::eventually("a plan is in a page of a second", || {
            page = serving.get(&format!("/trace?pid={pid}&seconds=1")).unwrap();
            page.contains("\"node end\"")
        });
    });
    let (_, data) = page.split_once("id=\"report\">").unwrap();
    let trace: serde_json::Value =
        serde_json::from_str(data.split_once("</script>").unwrap().0).unwrap();
    let lines = trace["lines"].as_array().unwrap();
    let of = |what: &str| lines.iter().filter(|line| line["what"] == what).count();
    assert!(of("message") > 0 && of("node end") > 0, "{} lines", lines.len());
    assert!(lines.iter().all(|line| line["pid"] == pid));
}
