// SPDX-License-Identifier: PostgreSQL
//! Every command block of README and docs is run in order, in one terminal, as printed. What stands for a reader's
//! servers and times, and what is not run, is listed in `support/documented.rs`.

use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::atomic::Ordering;

use scratch::Cluster;
use tempfile::TempDir;

use super::storage::STEADY;
use super::study::SMALL;
use crate::support::documented::{
    instead, live, Before, Entry, BEFORE, INSTEAD, NOT_COMMANDS, NOT_RUN, SHOWN_IF_ANY,
};
use crate::support::documents::{commands, documents, has_heading, heading, root, Document, Kind};
use crate::support::fleet::engines;
use crate::support::installation::Installation;
use crate::support::terminal::{Printed, Terminal};
use crate::support::{self, plain, ports, programs, while_working};

/// Each document is a test of its own.
macro_rules! documents {
    ($($test:ident $name:literal,)*) => {
        $(#[test]
        fn $test() {
            run($name);
        })*

        const TESTED: &[&str] = &[$($name),*];
    };
}

documents! {
    commands_of_readme "README.md",
    commands_of_any_server "docs/any-server.md",
    commands_of_clock "docs/clock.md",
    commands_of_compare "docs/compare.md",
    commands_of_cost "docs/cost.md",
    commands_of_find_a_slow_server "docs/find-a-slow-server.md",
    commands_of_first_look "docs/first-look.md",
    commands_of_fleet "docs/fleet.md",
    commands_of_install "docs/install.md",
    commands_of_libpq "docs/libpq.md",
    commands_of_locks_and_functions "docs/locks-and-functions.md",
    commands_of_opentelemetry "docs/opentelemetry.md",
    commands_of_production "docs/production.md",
    commands_of_profile "docs/profile.md",
    commands_of_reference_json "docs/reference-json.md",
    commands_of_reference_recording "docs/reference-recording.md",
    commands_of_reference_settings "docs/reference-settings.md",
    commands_of_reference_sql "docs/reference-sql.md",
    commands_of_remote "docs/remote.md",
    commands_of_shipping "docs/shipping.md",
    commands_of_statements "docs/statements.md",
    commands_of_storage "docs/storage.md",
    commands_of_storage_studies "docs/storage-studies.md",
    commands_of_studies "docs/studies.md",
    commands_of_trace "docs/trace.md",
}

fn excepted(entries: &[Entry], document: &str, text: &str) -> bool {
    entries.iter().any(|entry| entry.is_about(document, text))
}

#[test]
fn every_block_is_run_or_listed() {
    for document in documents() {
        let mut runs = false;
        for block in &document.blocks {
            let place = format!("{}:{}", document.name, block.line);
            if excepted(NOT_COMMANDS, &document.name, &block.text) {
                continue;
            }
            match block.kind {
                Kind::Commands => {
                    let run = |text: &str| !excepted(NOT_RUN, &document.name, text);
                    runs |= commands(block).iter().any(|command| run(&command.text));
                }
                Kind::Sql => runs = true,
                Kind::Sample => {}
                Kind::Other => {
                    panic!("{place}: no command, and not in NOT_COMMANDS:\n{}", block.text)
                }
            }
        }
        let tested = TESTED.contains(&document.name.as_str());
        assert_eq!(
            tested, runs,
            "{}: it has commands that are run, or is in TESTED",
            document.name
        );
    }
}

#[test]
fn every_exception_is_needed() {
    let documents = documents();
    let blocks = || {
        documents.iter().flat_map(|document| {
            document.blocks.iter().map(|block| (document.name.as_str(), block))
        })
    };
    for entry in NOT_COMMANDS {
        let used = blocks().any(|(name, block)| entry.is_about(name, &block.text));
        assert!(used, "no block: {entry:?}");
        assert!(!entry.reason.is_empty());
    }
    let all: Vec<(&str, String)> = blocks()
        .filter(|(_, block)| block.kind == Kind::Commands)
        .flat_map(|(name, block)| {
            commands(block).into_iter().map(move |command| (name, command.text))
        })
        .collect();
    for entry in NOT_RUN {
        assert!(all.iter().any(|(name, text)| entry.is_about(name, text)), "no command: {entry:?}");
        assert!(!entry.reason.is_empty());
    }
    for (document, from, _) in INSTEAD {
        let is_of = |name: &str| document.is_empty() || *document == name;
        let used = all.iter().any(|(name, text)| is_of(name) && text.contains(from));
        assert!(used, "no command has {from} in {document}");
    }
}

/// A reader's machine: a server with a load, a home, and a place for files.
struct Machine {
    cluster: Cluster,
    folder: TempDir,
    /// What stands for {names} in commands.
    values: Vec<(&'static str, String)>,
}

impl Machine {
    fn start(before: Before) -> Machine {
        let installation = Installation::shared();
        let builder = plain().binaries(installation.binaries());
        let cluster = support::start(match before {
            Before::Fresh => builder,
            Before::Preloaded | Before::Enabled => builder
                .setting("shared_preload_libraries", "pg_tally")
                .setting("pg_tally.plan_threshold", "0"),
        });
        let mut admin = cluster.connect().unwrap();
        let me = rustix::process::geteuid().as_raw();
        let me = support::output(assert_cmd::Command::new("id").args(["-un", &me.to_string()]));
        // The reader, an administrator; an application, and who watches from elsewhere.
        for role in [me.trim(), "app"] {
            if role != cluster.user() {
                admin.batch_execute(&format!("create role {role} login superuser")).unwrap();
            }
        }
        admin.batch_execute("create role billing login").unwrap();
        for database in ["app", "shop", "bench"] {
            admin.batch_execute(&format!("create database {database} owner app")).unwrap();
        }
        if before == Before::Enabled {
            admin.batch_execute("create extension pg_tally").unwrap();
            admin.batch_execute("create role monitor login in role pg_monitor").unwrap();
        }
        for database in ["shop", "bench"] {
            let mut init = Command::new(cluster.binaries().program("pgbench"));
            init.args(["-i", "-q", "-h"]).arg(cluster.host());
            init.args(["-p", &cluster.port().to_string(), "-U", "app", database]);
            let done = init.output().unwrap();
            assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
        }
        let folder = tempfile::Builder::new().prefix("reader.").tempdir().unwrap();
        // Like /tmp: all users may create files, and only its owner may change a file.
        std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o1777)).unwrap();
        let machine = Machine { cluster, folder, values: Vec::new() };
        machine.programs(installation);
        // A reader's own studies.
        std::fs::write(machine.at("study.toml"), SMALL).unwrap();
        let storage = STEADY.replace("name = \"one\"", "name = \"full\"");
        std::fs::write(machine.at("storage.toml"), storage).unwrap();
        machine
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `tally` as it is installed, `sudo`, and DuckDB if it can be installed.
    fn programs(&self, installation: &Installation) {
        for folder in ["bin", "home"] {
            std::fs::create_dir(self.at(folder)).unwrap();
        }
        let tally = installation.tally().get_program().to_owned();
        std::os::unix::fs::symlink(tally, self.at("bin/tally")).unwrap();
        if let Some([duckdb, _]) = engines() {
            std::os::unix::fs::symlink(duckdb, self.at("bin/duckdb")).unwrap();
        }
        let change = match self.cluster.os_user().name() {
            Some(name) => format!("setpriv --reuid {name} --regid {name} --init-groups"),
            None => String::new(),
        };
        let sudo = format!(
            "#!/bin/sh\n# The server's user is another one where the test runs as root.\n\
             [ \"$1\" != -u ] || {{ shift 2; exec {change} \"$@\"; }}\nexec \"$@\"\n"
        );
        programs::write(&self.at("bin/sudo"), sudo.as_bytes());
        let service = format!("[production]\nhost={}\n", self.cluster.host().display());
        std::fs::write(self.at("home/.pg_service.conf"), service).unwrap();
    }

    fn terminal(&self) -> Terminal {
        let bin = self.cluster.binaries().dir().display().to_string();
        let path = format!("{}:{bin}:/usr/bin:/bin:/usr/sbin:/sbin", self.at("bin").display());
        let text = |value: &str| value.to_string();
        Terminal::start(&[
            (text("PATH"), path),
            (text("HOME"), self.at("home").display().to_string()),
            (text("PWD"), self.folder.path().display().to_string()),
            (text("TERM"), text("xterm-256color")),
            (text("LC_ALL"), text("C.UTF-8")),
            (text("NO_COLOR"), text("1")),
            (text("PAGER"), text("cat")),
            (text("PG_CONFIG"), Installation::shared().pg_config().display().to_string()),
            (text("PGHOST"), self.cluster.host().display().to_string()),
            (text("PGPORT"), self.cluster.port().to_string()),
            (text("PGDATABASE"), text("postgres")),
        ])
    }

    /// The command with this machine's names; those of the load are looked up where they are used.
    fn command(&mut self, document: &str, text: &str) -> String {
        let text = instead(document, text);
        let mut found = text.clone();
        let names = [
            "{box}",
            "{fleet}",
            "{pq}",
            "{data}",
            "{host}",
            "{port}",
            "{free}",
            "{pid}",
            "{statement}",
        ];
        for name in names.into_iter().filter(|name| text.contains(name)) {
            let known = self.values.iter().find(|(known, _)| *known == name);
            let value = match known {
                Some((_, value)) => value.clone(),
                None => self.value(name),
            };
            found = found.replace(name, &value);
            self.values.push((name, value));
        }
        found
    }

    fn value(&self, name: &str) -> String {
        let admin = |sql: &str| {
            support::eventually(sql, || {
                let row = self.cluster.connect().unwrap().query_opt(sql, &[]).unwrap();
                row.map(|row| row.get::<_, String>(0))
            })
        };
        match name {
            "{box}" => self.folder.path().display().to_string(),
            "{fleet}" => self.at("fleet").display().to_string(),
            "{pq}" => root().join("build/libpq/libtally_pq.so").display().to_string(),
            "{data}" => self.cluster.data_dir().display().to_string(),
            "{host}" => self.cluster.host().display().to_string(),
            "{port}" => self.cluster.port().to_string(),
            "{free}" => ports::free_port().to_string(),
            "{pid}" => admin("select pid::text from pg_stat_activity where application_name = 'billing' limit 1"),
            _ => admin(
                "select queryid::text from tally.statements where query like 'UPDATE pgbench_accounts%' limit 1",
            ),
        }
    }
}

fn run(name: &str) {
    let document = documents().into_iter().find(|document| document.name == name).unwrap();
    let (before, prepare) = BEFORE
        .iter()
        .find(|(of, ..)| *of == name)
        .map_or((Before::Enabled, &[][..]), |(_, before, prepare)| (*before, *prepare));
    let mut machine = Machine::start(before);
    // A session that connects again now and then, as those of an application do.
    let transactions = if before == Before::Fresh { 50 } else { 1_000_000 };
    let program = machine.cluster.binaries().program("pgbench");
    let (host, port) = (machine.cluster.host(), machine.cluster.port().to_string());
    let load: &support::Load = &|stop| {
        while !stop.load(Ordering::Relaxed) {
            let mut bench = Command::new(&program);
            bench.args(["-n", "-c", "1", "-R", "100", "-t", &transactions.to_string()]);
            bench.arg("-h").arg(&host).args(["-p", &port, "-U", "app", "shop"]);
            bench.env("PGAPPNAME", "billing").stdout(Stdio::null()).stderr(Stdio::null());
            let mut child = bench.spawn().unwrap();
            while child.try_wait().unwrap().is_none() && !stop.load(Ordering::Relaxed) {
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
            let _ = child.kill();
            let _ = child.wait();
        }
    };
    while_working(&[load], || read(&document, &mut machine, prepare));
}

/// Follows the document.
fn read(document: &Document, machine: &mut Machine, prepare: &[&str]) {
    let mut terminal = machine.terminal();
    for command in prepare {
        let command = machine.command(&document.name, command);
        let printed = terminal.run(&command);
        assert_eq!(printed.status, 0, "{command}: {}", printed.text);
    }
    let mut all = String::new();
    let mut headings = Vec::new();
    for block in &document.blocks {
        if excepted(NOT_COMMANDS, &document.name, &block.text) {
            continue;
        }
        match block.kind {
            Kind::Commands => {
                for typed in commands(block) {
                    if excepted(NOT_RUN, &document.name, &typed.text) {
                        continue;
                    }
                    let command = machine.command(&document.name, &typed.text);
                    if command.contains("duckdb") && !machine.at("bin/duckdb").exists() {
                        println!("not typed, because there is no DuckDB: {command}");
                        continue;
                    }
                    let place = format!("{}:{}: {command}", document.name, typed.line);
                    all += &type_it(&mut terminal, &place, &command).text;
                }
            }
            Kind::Sql => {
                let (sql, sample) = statements(&block.text);
                let file = machine.at("block.sql");
                std::fs::write(&file, sql).unwrap();
                let command =
                    format!("sudo -u postgres psql -X -v ON_ERROR_STOP=1 -f {}", file.display());
                let place = format!("{}:{}: {sql}", document.name, block.line);
                let printed = type_it(&mut terminal, &place, &command);
                let columns = sample.lines().find(|line| line.contains('|')).unwrap_or("");
                for column in columns.split('|').map(str::trim) {
                    assert!(
                        printed.text.contains(column),
                        "{place}: no {column:?}: {}",
                        printed.text
                    );
                }
            }
            Kind::Sample => {
                headings.extend(heading(&block.text).map(|columns| (block.line, columns)))
            }
            Kind::Other => {}
        }
    }
    for (line, mut heading) in headings {
        heading.retain(|word| !SHOWN_IF_ANY.contains(word));
        assert!(
            has_heading(&all, &heading),
            "{}:{line}: nothing has printed {heading:?}:\n{all}",
            document.name
        );
    }
}

/// Types a command, which must succeed; one that goes on is ended once it has begun.
fn type_it(terminal: &mut Terminal, place: &str, command: &str) -> Printed {
    let printed = match live(command) {
        Some(live) => terminal.run_until(command, live.prints, live.keys),
        None => terminal.run(command),
    };
    // One that is interrupted before it listens ends by the signal.
    let well = printed.status == 0 || live(command).is_some() && printed.status == 130;
    assert!(well, "{place}: status {}: {}", printed.status, printed.text);
    printed
}

/// The statements of a block, and what is shown as their result.
fn statements(text: &str) -> (&str, &str) {
    let code = text.split_inclusive('\n').scan(0, |at, line| {
        *at += line.len();
        Some((*at, line))
    });
    let ends = code.filter(|(_, line)| {
        line.split("--").next().is_some_and(|sql| sql.trim_end().ends_with(';'))
            && !line.contains('|')
    });
    text.split_at(ends.last().map_or(0, |(at, _)| at))
}
