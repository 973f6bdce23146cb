// SPDX-License-Identifier: PostgreSQL
//! An installed pg_tally, with and without a build next to it.

use crate::support;
use crate::support::installation::Installation;
use crate::support::{plain, segment, start};
use postgres::{Client, NoTls};
use scratch::Cluster;

/// The library files that a process has mapped, from /proc.
fn libraries(client: &mut Client) -> Vec<String> {
    let pid = support::pid_of(client);
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    let mut found: Vec<String> = maps
        .lines()
        .filter_map(|line| line.split_whitespace().nth(5))
        .filter(|path| path.ends_with("/pg_tally.so"))
        .map(String::from)
        .collect();
    found.dedup();
    found
}

fn this_session(client: &mut Client) -> String {
    let sql = "select value from tally.status where name = 'this session'";
    client.query_one(sql, &[]).unwrap().get(0)
}

const SMALL: &str = r#"
name = "small"
title = "Small"
question = "Does it run?"
[server]
scale = 0
setup = "create table done (n int)"
[[arm]]
name = "on"
[[arm]]
name = "off"
settings = { track_activities = "off" }
[workload]
script = "insert into done values (1);"
clients = [1]
[gate]
foreign = 100000
steal = 100
[measure]
seconds = 1
warm_up = 0
repeats = 1
again = false
[[read]]
name = "commits"
interval = "commits.count"
[[read]]
name = "handled"
sql = "select sum(count) from tally.commands"
[[table]]
reads = ["commits", "handled"]
"#;

#[test]
fn the_installed_command_studies_with_the_installed_extension() {
    let installation = Installation::shared();
    let folder = tempfile::tempdir().unwrap();
    let (study, out) = (folder.path().join("study.toml"), folder.path().join("out"));
    std::fs::write(&study, SMALL).unwrap();
    let mut command = installation.tally();
    command.args(["study", "run"]).arg(&study).arg("-o").arg(&out);
    support::output(&mut command);
    let results = std::fs::read_to_string(out.join("results.json")).unwrap();
    let results: serde_json::Value = serde_json::from_str(&results).unwrap();
    assert_eq!(results["cells"], 2);
    let figures = results["figures"].as_array().unwrap();
    // For each arm, a figure from the segment and one from the views.
    let counted = figures.iter().filter(|figure| figure["mean"].as_f64() > Some(0.0));
    assert_eq!(counted.count(), 4, "{results}");
}

#[test]
fn a_server_with_another_file_of_the_library_creates_the_extension() {
    let installation = Installation::shared();
    let builder = plain().binaries(installation.binaries());
    let cluster = start(builder.setting("shared_preload_libraries", "pg_tally"));
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create extension pg_tally").unwrap();
    assert_eq!(this_session(&mut client), "instrumented");
    let own = cluster.dir().join("lib/pg_tally.so").display().to_string();
    assert_eq!(libraries(&mut client), [own]);
}

/// The server loads one file by its full path at start, and the functions of the views load another.
#[test]
fn a_second_file_of_the_library_only_reads() {
    let installation = Installation::shared();
    let copy = tempfile::tempdir().unwrap();
    let file = copy.path().join("pg_tally.so");
    std::fs::copy(support::library(), &file).unwrap();
    for path in [copy.path(), &file] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        std::fs::set_permissions(path, mode).unwrap();
    }
    let cluster = start(
        Cluster::builder()
            .directory(support::memory())
            .binaries(installation.binaries())
            .setting("shared_preload_libraries", &file.display().to_string())
            .setting("pg_tally.statements", "all"),
    );
    let mut client = cluster.connect().unwrap();
    client.batch_execute("create extension pg_tally").unwrap();
    assert_eq!(libraries(&mut client).len(), 2);
    let text = this_session(&mut client);
    assert_eq!(text, "not instrumented: another copy of the library is already loaded");
    let sql = "select count(*) from tally.sessions where kind = 'checkpointer'";
    assert_eq!(client.query_one(sql, &[]).unwrap().get::<_, i64>(0), 1);
    let sql = "select value from tally.status where name = 'statements'";
    assert_eq!(client.query_one(sql, &[]).unwrap().get::<_, String>(0), "all");
}

/// Any role may load the libraries in the directory `plugins`.
#[test]
fn a_plugin_that_any_role_may_load_obeys_the_configuration() {
    let installation = Installation::new();
    let plugins = installation.libraries().join("plugins");
    std::fs::create_dir(&plugins).unwrap();
    std::os::unix::fs::symlink("../pg_tally.so", plugins.join("pg_tally.so")).unwrap();
    let cluster =
        start(Cluster::builder().directory(support::memory()).binaries(installation.binaries()));
    cluster.psql("create role alice login").unwrap();
    let path = segment(&cluster);
    let connect =
        |options: &str| cluster.config().user("alice").options(options).connect(NoTls).unwrap();
    let mut client = connect("-c local_preload_libraries=pg_tally");
    assert_eq!(libraries(&mut client).len(), 1);
    assert!(!path.exists());
    let mut client = connect("");
    client.batch_execute("load '$libdir/plugins/pg_tally'").unwrap();
    client.batch_execute("load '$libdir/plugins/pg_tally'").unwrap();
    assert_eq!(libraries(&mut client).len(), 1);
    assert!(!path.exists());

    client.batch_execute("alter role alice set local_preload_libraries = 'pg_tally'").unwrap();
    let mut client = connect("");
    assert_eq!(libraries(&mut client).len(), 1);
    assert!(!path.exists());
    client.batch_execute("alter role alice reset local_preload_libraries").unwrap();

    cluster.append_config("local_preload_libraries = 'pg_tally'\n").unwrap();
    cluster.reload().unwrap();
    support::eventually("new sessions are instrumented, as configured", || {
        connect("").batch_execute("select 1").unwrap();
        path.exists()
    });
}

/// docs/install.md says on which systems a command that was built on Debian 12 runs.
#[test]
fn the_command_needs_no_later_glibc_than_documented() {
    use object::{Object, ObjectSection};
    let bytes = std::fs::read(assert_cmd::cargo::cargo_bin("tally")).unwrap();
    let elf = object::File::parse(&*bytes).unwrap();
    let names = elf.section_by_name(".dynstr").unwrap().data().unwrap();
    let minor = |name: &[u8]| -> Option<u32> {
        let version = std::str::from_utf8(name).ok()?.strip_prefix("GLIBC_2.")?;
        version.split('.').next()?.parse().ok()
    };
    let needed = names.split(|byte| *byte == 0).filter_map(minor).max().unwrap();
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let page = std::fs::read_to_string(root.join("docs/install.md")).unwrap();
    let said = page.split("glibc 2.").nth(1).unwrap();
    let said: u32 = said.split(|c: char| !c.is_ascii_digit()).next().unwrap().parse().unwrap();
    assert!(needed <= said, "it needs glibc 2.{needed}, and the documentation says 2.{said}");
}
