// SPDX-License-Identifier: PostgreSQL
//! Flags, environment, service files and password files lead tally to the same server as psql. The witness is
//! psql itself, and the servers' logs say who connected to which database.

use crate::support;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::{Command, Output};

use crate::support::reachable::{Reachable, PASSWORD};

/// How a program ended.
#[derive(Debug, PartialEq, Eq)]
enum End {
    /// The server (0 or 1), and what was added to its log.
    Connected(usize, String),
    /// libpq's words.
    Refused(String),
}

/// Verbs that connect; what they do afterwards does not matter here.
const VERBS: [&[&str]; 6] = [
    &["status"],
    &["statements"],
    &["events"],
    &["blocking"],
    &["level"],
    &["functions", "--list", "none"],
];

/// The first connection in the additions to the logs: server, user and database.
fn connected(servers: &[Reachable; 2], before: [usize; 2], application: &str) -> Option<End> {
    servers.iter().zip(before).enumerate().find_map(|(number, (server, before))| {
        let log = server.cluster.log();
        let mut lines = log[before..].lines();
        let found = lines.find(|line| line.contains(&format!("application_name={application}")))?;
        let line = found.replace(application, "IT");
        Some(End::Connected(number, line.split("connection authorized: ").nth(1)?.to_string()))
    })
}

fn end(servers: &[Reachable; 2], command: &mut Command, application: &str) -> End {
    let before = [0, 1].map(|number| servers[number].cluster.log().len());
    let Output { stderr, .. } = command.output().unwrap();
    if let Some(connected) = connected(servers, before, application) {
        return connected;
    }
    let text = String::from_utf8(stderr).unwrap();
    // Lines of libpq are sentences of tally's message, with full stops.
    let text = text.lines().map(str::trim).collect::<Vec<_>>().join(" ").replace(". ", " ");
    let begins = ["psql: error: ", "cannot connect to the server: ", "not a connection string: "];
    let refusal = begins
        .iter()
        .find_map(|begin| text.split_once(begin))
        .map_or(text.as_str(), |parts| parts.1);
    // Text that tally adds is advice.
    End::Refused(refusal.split("; run this as").next().unwrap_or(refusal).to_string())
}

#[test]
fn thirty_ways_lead_where_psql_goes() {
    let servers = [Reachable::start(&[]), Reachable::start(&[])];
    let [a, b] = &servers;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    for server in &servers {
        for name in ["app", "watcher", "poor"] {
            server.cluster.psql(&format!("create database {name}")).unwrap();
        }
    }
    let escaped = PASSWORD.replace('\\', "\\\\");
    let passfile = format!(
        "{}:5432:*:watcher:{escaped}\n*:*:app:poor:wrong\n{}:*:*:poor:{escaped}\n",
        a.address, b.address
    );
    std::fs::write(at("pass"), &passfile).unwrap();
    std::fs::write(at("open"), &passfile).unwrap();
    let mode = |name: &str, mode| {
        std::fs::set_permissions(Path::new(&at(name)), PermissionsExt::from_mode(mode)).unwrap()
    };
    mode("pass", 0o600);
    mode("open", 0o644);
    let sockets = [0, 1].map(|number| servers[number].cluster.host().display().to_string());
    let services = format!(
        "[first]\nhost={}\nuser=postgres\ndbname=postgres\n[second]\nhost={}\nuser=poor\ndbname=app\nsslmode=require\n\
         [nobody]\nhost={}\nuser=nobody\ndbname=postgres\n",
        sockets[0], b.address, sockets[1]
    );
    std::fs::write(at("services"), services).unwrap();
    let [s0, s1] = &sockets;
    let (a4, b4) = (&a.address, &b.address);
    let cert = a.certificate.display().to_string();
    let uri = PASSWORD.bytes().map(|byte| format!("%{byte:02X}")).collect::<String>();

    // Environment and arguments as words. PASS stands for the password, ~ for a space.
    let cases: Vec<(String, String)> = [
        (String::new(), format!("-h {s0} -U postgres -d postgres")),
        (String::new(), format!("-h {s1} -p 5432 -U postgres -d app")),
        (String::new(), format!("-h {s1} -p 5999 -U postgres -d app")),
        (format!("PGHOST={s0} PGUSER=postgres PGDATABASE=app"), String::new()),
        (format!("PGHOST={s0} PGUSER=postgres"), String::new()),
        (format!("PGHOST={s0} PGUSER=watcher"), String::new()),
        (format!("PGHOST={s0} PGUSER=postgres"), format!("-h {s1}")),
        (format!("PGHOST={s0} PGUSER=postgres PGPORT=5999"), String::new()),
        (format!("PGHOST={s0} PGUSER=postgres PGPORT=5999"), "-p 5432".into()),
        (format!("PGHOST={s0} PGUSER=postgres"), "-U nobody".into()),
        (format!("PGHOST={a4} PGUSER=watcher PGPASSWORD=PASS"), String::new()),
        (format!("PGHOST={a4} PGUSER=watcher PGPASSWORD=wrong"), String::new()),
        (format!("PGHOST={a4} PGUSER=watcher"), "-w".into()),
        (format!("PGHOST={a4} PGUSER=watcher PGPASSWORD=PASS PGSSLMODE=disable"), String::new()),
        (format!("PGHOST={a4} PGUSER=watcher PGPASSWORD=PASS PGSSLMODE=verify-full PGSSLROOTCERT={cert}"), String::new()),
        (format!("PGHOST={b4} PGUSER=watcher PGPASSWORD=PASS PGSSLMODE=verify-full PGSSLROOTCERT={cert}"), String::new()),
        (format!("PGHOST={a4} PGUSER=watcher PGPASSFILE={}", at("pass")), String::new()),
        (format!("PGHOST={b4} PGUSER=watcher PGPASSFILE={}", at("pass")), "-w".into()),
        (format!("PGHOST={a4} PGUSER=watcher PGPASSFILE={}", at("open")), "-w".into()),
        (format!("PGHOST={b4} PGUSER=poor PGDATABASE=app PGPASSFILE={}", at("pass")), String::new()),
        (format!("PGHOST={b4} PGUSER=poor PGPASSFILE={}", at("pass")), String::new()),
        (format!("PGSERVICEFILE={} PGSERVICE=first", at("services")), String::new()),
        (format!("PGSERVICEFILE={} PGSERVICE=first PGHOST={s1}", at("services")), String::new()),
        (format!("PGSERVICEFILE={} PGSERVICE=first", at("services")), format!("-h {s1}")),
        (format!("PGSERVICEFILE={} PGSERVICE=second PGPASSWORD=PASS", at("services")), String::new()),
        (format!("PGSERVICEFILE={} PGSERVICE=missing", at("services")), String::new()),
        (format!("PGSERVICEFILE={}", at("services")), "service=nobody".into()),
        (format!("PGSERVICEFILE={}", at("services")), "service=first".into()),
        (String::new(), format!("postgresql://watcher:{uri}@{a4}/app?sslmode=require")),
        (String::new(), format!("postgres://postgres@%2Fnowhere,{}/app", s1.replace('/', "%2F"))),
        ("PGUSER=postgres".into(), format!("host={s1}~dbname=app")),
        (format!("PGHOST={s0} PGUSER=nobody"), "postgresql:///app?user=postgres".into()),
        (String::new(), format!("-h {s0} -U postgres -d dbname=app")),
        (format!("PGHOSTADDR={b4} PGHOST=elsewhere PGUSER=watcher PGPASSWORD=PASS"), String::new()),
        (format!("PGHOST={s0} PGUSER=postgres PGDATABASE=nowhere"), String::new()),
    ]
    .to_vec();
    assert!(cases.len() >= 30);
    let words = |text: &str| -> Vec<String> {
        text.split(' ')
            .filter(|word| !word.is_empty())
            .map(|word| word.replace('~', " ").replace("PASS", PASSWORD))
            .collect()
    };
    let mut ends = [0, 0];
    for (number, (environment, arguments)) in cases.iter().enumerate() {
        let environment = environment.replace("PASSFILE", "\u{1}").replace("PGPASSWORD", "\u{2}");
        let environment = words(&environment).into_iter().map(|word| {
            let word = word.replace('\u{1}', "PASSFILE").replace('\u{2}', "PGPASSWORD");
            let (name, value) = word.split_once('=').unwrap();
            (name.to_string(), value.to_string())
        });
        let case = (environment.collect::<Vec<_>>(), words(arguments));
        let prepare = |program: &Path| {
            let mut command = Command::new(program);
            for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("PG")) {
                command.env_remove(name);
            }
            command.env("HOME", folder.path()).env("PGCONNECT_TIMEOUT", "120").envs(case.0.clone());
            command
        };
        let mut psql = prepare(&scratch::Binaries::find().unwrap().program("psql"));
        psql.args(["-X", "-w", "-c", "select 1"]).args(&case.1);
        let mut tally = prepare(Path::new(env!("CARGO_BIN_EXE_tally")));
        tally.args(VERBS[number % VERBS.len()]).args(case.1.iter().filter(|word| *word != "-w"));
        let (expected, found) =
            (end(&servers, &mut psql, "psql"), end(&servers, &mut tally, "tally"));
        assert_eq!(found, expected, "{number}: {environment:?} {arguments}", environment = case.0);
        ends[usize::from(matches!(expected, End::Refused(_)))] += 1;
    }
    assert!(ends[0] >= 12 && ends[1] >= 8, "{ends:?}");
}

#[test]
fn the_environment_leads_every_verb_to_the_server_that_enable_changed() {
    let server = support::start(support::plain());
    let run = |args: &[&str]| {
        let mut command = support::tally();
        command.env("PGHOST", server.host()).env("PGPORT", "5432").env("PGUSER", "postgres");
        command.env("PGDATABASE", "postgres").args(args);
        support::output(&mut command)
    };
    run(&["enable"]);
    let mut client = server.connect().unwrap();
    client.batch_execute("select 1").unwrap();
    let data = server.data_dir().display().to_string();
    for verb in [&["top", "--once", "--json"][..], &["status", "--json"], &["statements", "--json"]]
    {
        assert!(run(verb).contains(&data), "{verb:?}");
    }
    drop(client);
    run(&["disable"]);
}

/// What these connections to a server are: user, database and, over TLS, its parameters.
fn connections(server: &Reachable, before: usize) -> Vec<String> {
    let log = server.cluster.log();
    let lines = log[before..].lines().filter(|line| line.contains("application_name=tally"));
    let authorized = lines.filter_map(|line| line.split_once("connection authorized: "));
    authorized.map(|(_, connection)| connection.to_string()).collect()
}

#[test]
fn a_local_servers_later_questions_go_through_the_connection_that_found_its_segment() {
    let server = Reachable::start(&[]);
    // Only the string says where its role may connect to.
    for sql in [
        "create database app",
        "revoke connect on database postgres from public",
        "grant pg_monitor to watcher",
    ] {
        server.cluster.psql(sql).unwrap();
    }
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    let host = server.cluster.host().display().to_string();
    std::fs::write(at("services"), format!("[here]\nhost={host}\nuser=watcher\ndbname=app\n"))
        .unwrap();
    let uri = format!("postgresql://watcher@/app?host={}", host.replace('/', "%2F"));
    let over_tls = server.full_string("watcher").replace("dbname=postgres", "dbname=app");
    let ask = |arguments: &[&str], target: &str, is_tls: bool, run: &dyn Fn(&[&str]) -> Output| {
        let before = server.cluster.log().len();
        let output = run(arguments);
        let text = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{arguments:?} {target}: {text}");
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let found = connections(&server, before);
        let tables = json["health"].as_array().unwrap_or_else(|| panic!("{json:#}"));
        assert!(tables.iter().any(|table| table["id"] == "transaction_ids"), "{json:#}");
        // The first one finds the segment.
        assert!(found.len() >= 3, "{found:?}");
        for connection in &found {
            assert!(
                connection.starts_with("user=watcher "),
                "{arguments:?} {target}: {connection}"
            );
            assert_eq!(connection.contains("SSL enabled"), is_tls, "{target}: {connection}");
        }
        assert!(found[1..].iter().any(|later| later.contains(" database=app ")), "{found:?}");
    };
    let verbs: [&[&str]; 2] = [&["health", "--json"], &["doctor", "--json", "--for", "1"]];
    for verb in verbs {
        for (target, is_tls) in [(uri.as_str(), false), (&over_tls, true), ("service=here", false)]
        {
            ask(verb, target, is_tls, &|arguments| {
                let mut tally = support::tally();
                tally.env("PGSERVICEFILE", at("services")).args(arguments).arg(target);
                tally.output().unwrap()
            });
        }
    }
    // Without a user in the string it would be the role of this operating system's user.
    if rustix::process::geteuid().is_root() {
        let owner = server.cluster.data_dir().metadata().unwrap();
        ask(verbs[0], &uri, false, &|arguments| {
            support::as_user(owner.uid(), owner.gid(), arguments, Path::new(&uri))
        });
    }
}

#[test]
fn a_connection_that_leads_to_another_server_later_is_refused() {
    let [one, other] = [(); 2]
        .map(|()| support::start(support::plain().setting("shared_preload_libraries", "pg_tally")));
    let asked = |string: &str| {
        let found = segment::SegmentPath::of_owner(
            support::segment(&one),
            one.data_dir().metadata().unwrap().uid(),
        );
        let segment = segment::Segment::open(&found.found_through(string)).unwrap();
        live::vacuum::read(&segment, view::vacuum::Scope::Server).map_err(|error| error.to_string())
    };
    assert!(asked(&one.connection_string()).is_ok());
    let error = asked(&other.connection_string()).unwrap_err();
    assert!(error.contains("connected to another server"), "{error}");
}

#[test]
fn flags_that_cannot_hold_are_refused() {
    let complaint = |args: &[&str]| support::complaint(support::tally().args(args), 2);
    assert!(complaint(&["top", "-h", "x", "/tmp"]).contains("already identifies the server"));
    assert!(complaint(&["top", "-d", "host=x", "host=y"]).contains("both -d"));
    assert!(complaint(&["top", "-h"]).contains("a value is required"));
    assert!(complaint(&["status", "hosst=x"]).contains("hosst"));
    for verb in ["top", "enable", "level", "record", "serve", "cost"] {
        let help = support::output(support::tally().args([verb, "-?"]));
        assert!(help.contains("-h, --host <HOST>") && help.contains("-U, --username"), "{help}");
    }
}
