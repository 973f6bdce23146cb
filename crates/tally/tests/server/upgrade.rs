// SPDX-License-Identifier: PostgreSQL
//! From an earlier version of the extension to this one: its SQL objects, the statements in the segment, and the
//! statements that the earlier library has saved. The files of earlier versions are in `pg_tally/test/versions`.

use crate::support;
use std::fs;
use std::io::Read;
use std::os::unix::fs::{chown, FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::support::installation::Installation;
use crate::support::{create_views, output, start, tally};
use postgres::{Client, NoTls};
use scratch::{Cluster, StopMode};

/// The earlier versions, each with an upgrade script to the next.
const EARLIER: [&str; 2] = ["0.1", "0.2"];

fn versions() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../pg_tally/test/versions")
}

/// A server whose installation has the earlier versions' scripts, too.
fn server(installation: &Installation) -> Cluster {
    for version in EARLIER {
        let name = format!("pg_tally--{version}.sql");
        fs::copy(versions().join(&name), installation.extensions().join(&name)).unwrap();
    }
    let builder = Cluster::builder().directory(support::memory()).binaries(installation.binaries());
    start(builder.setting("shared_preload_libraries", "pg_tally"))
}

fn database(cluster: &Cluster, name: &str) -> Client {
    cluster.psql(&format!("create database \"{name}\"")).unwrap();
    let target = cluster.connection_string().replace("dbname=postgres", &format!("dbname={name}"));
    Client::connect(&target, NoTls).unwrap()
}

fn one(client: &mut Client, sql: &str) -> String {
    client.query_one(sql, &[]).unwrap().get(0)
}

/// The parts of the extension: the definition, privileges and comment of each object.
fn objects(client: &mut Client) -> Vec<String> {
    let sql = "select concat_ws(E'\\n', pg_describe_object(d.classid, d.objid, d.objsubid), \
                      obj_description(d.objid, d.classid::regclass::name), \
                      (select pg_get_functiondef(oid) || coalesce(proacl::text, '') from pg_proc \
                       where d.classid = 'pg_proc'::regclass and oid = d.objid), \
                      (select concat(relkind, pg_get_viewdef(oid), relacl, reloptions) from pg_class \
                       where d.classid = 'pg_class'::regclass and oid = d.objid), \
                      (select string_agg(concat(attname, ' ', atttypid::regtype, attacl), ', ' order by attnum) \
                       from pg_attribute where d.classid = 'pg_class'::regclass and attrelid = d.objid), \
                      (select concat(nspowner::regrole, nspacl) from pg_namespace \
                       where d.classid = 'pg_namespace'::regclass and oid = d.objid), \
                      (select initprivs::text from pg_init_privs i where i.objoid = d.objid \
                       and i.classoid = d.classid and i.objsubid = 0)) \
               from pg_depend d join pg_extension e on e.oid = d.refobjid \
               where d.refclassid = 'pg_extension'::regclass and d.deptype = 'e' and e.extname = 'pg_tally' \
               order by 1";
    client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

fn views(client: &mut Client) -> Vec<String> {
    let sql =
        "select c.oid::regclass::text from pg_class c join pg_namespace n on n.oid = relnamespace \
               where nspname = 'tally' and relkind = 'v' order by 1";
    client.query(sql, &[]).unwrap().iter().map(|row| row.get(0)).collect()
}

#[test]
fn the_version_is_the_same_everywhere() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let read = |name: &str| fs::read_to_string(root.join(name)).unwrap();
    let control = read("pg_tally/pg_tally.control");
    let version = control.lines().find_map(|line| line.strip_prefix("default_version = ")).unwrap();
    let version = version.trim_matches('\'');
    // The crates' version is the one that all have; the extension's is its first two numbers, by which SQL scripts are
    // named.
    let release = env!("CARGO_PKG_VERSION");
    assert!(release.starts_with(&format!("{version}.")), "{release}, extension {version}");
    let json = |name: &str| serde_json::from_str::<serde_json::Value>(&read(name)).unwrap();
    let meta = json("META.json");
    assert_eq!(meta["version"], release);
    let meta = &meta["provides"]["pg_tally"];
    assert_eq!(meta["file"], format!("pg_tally/pg_tally--{version}.sql"));
    assert_eq!(meta["version"], release);
    assert_eq!(json("web/package.json")["version"], release);
    assert_eq!(json("web/package-lock.json")["version"], release);
    for name in ["client/java/pom.xml", "client/java/bench/pom.xml"] {
        let text = read(name);
        let found = text.split("<version>").nth(1).and_then(|text| text.split('<').next());
        assert_eq!(found, Some(release), "{name}");
    }
    for (name, before) in [
        ("packaging/debian/changelog", "pgtally ("),
        ("packaging/rpm/pgtally.spec", "Version:        "),
        ("packaging/rpm/pg_tally.spec", "Version:        "),
        ("packaging/kubernetes/sidecar/tally.yaml", "image: pgtally:"),
        ("packaging/kubernetes/recorder/recorder.yaml", "image: pgtally:"),
        ("packaging/kubernetes/example/kustomization.yaml", "newTag: "),
    ] {
        let text = read(name);
        let found = text.split(before).nth(1).unwrap();
        assert!(found.starts_with(release), "{name}: {}", &found[..10]);
    }
    let changelog = read("CHANGELOG.md");
    let newest = changelog.lines().find(|line| line.starts_with("## [")).unwrap();
    assert!(newest.starts_with(&format!("## [{release}]")), "{newest}");
    assert_eq!(
        crate::support::output(crate::support::tally().arg("--version")),
        format!("tally {release}\n")
    );
    let manual = crate::support::output(crate::support::tally().arg("man"));
    assert!(manual.contains(&format!("tally {release}")), "{manual}");
    for page in crate::support::documents::documents() {
        let text = read(&page.name);
        for name in ["pg_tally", "pgtally", "tally"] {
            let name = format!("{name} ");
            let said = text.split(&name).skip(1);
            let number = |text: &str| {
                text.split(|c: char| !(c.is_ascii_digit() || c == '.'))
                    .next()
                    .unwrap_or("")
                    .to_string()
            };
            for found in said.map(number).filter(|number| number.starts_with("0.")) {
                assert!(
                    [release, version].contains(&found.trim_end_matches('.')),
                    "{}: {name}{found}",
                    page.name
                );
            }
        }
    }
    let makefile = read("pg_tally/Makefile");
    let data = makefile.lines().find_map(|line| line.strip_prefix("DATA = ")).unwrap();
    let mut scripts = vec![format!("pg_tally--{version}.sql")];
    for (from, to) in EARLIER.iter().zip(EARLIER.iter().skip(1).chain([&version])) {
        scripts.push(format!("pg_tally--{from}--{to}.sql"));
    }
    assert_eq!(data.split(' ').collect::<Vec<_>>(), scripts);
}

#[test]
fn an_updated_extension_equals_a_new_one_and_statements_survive() {
    let installation = Installation::new();
    let cluster = server(&installation);
    let mut new = database(&cluster, "new");
    new.batch_execute("create extension pg_tally").unwrap();
    let expected = objects(&mut new);
    assert!(expected.len() > 30, "{}", expected.len());
    let calls = "select sum(calls)::bigint::text from tally.statements where query like 'insert into kept %'";
    for version in EARLIER {
        let mut old = database(&cluster, version);
        old.batch_execute(&format!("create extension pg_tally version '{version}'")).unwrap();
        assert!(objects(&mut old) != expected, "version {version} has nothing to update");
        old.batch_execute("create table kept (a int)").unwrap();
        for n in 0..25 {
            old.batch_execute(&format!("insert into kept values ({n})")).unwrap();
        }
        // This library serves the earlier version's objects.
        for view in views(&mut old) {
            old.query(&format!("select * from {view}"), &[]).unwrap();
        }
        let calls = |client: &mut Client| one(client, calls);
        let before = calls(&mut old);
        old.batch_execute("alter extension pg_tally update").unwrap();
        let updated = objects(&mut old);
        let differs = |a: &[String], b: &[String]| -> Vec<String> {
            a.iter().filter(|object| !b.contains(object)).cloned().collect()
        };
        assert_eq!(
            (differs(&updated, &expected), differs(&expected, &updated)),
            (vec![], vec![]),
            "updated from version {version}; and new"
        );
        assert_eq!(calls(&mut old), before);
        // The objects added by the update work; the new function is called with its defaults.
        assert_eq!(one(&mut old, "select count(*)::text from tally.segment_changes()"), "1");
    }
}

#[test]
fn enable_updates_an_earlier_version() {
    let installation = Installation::new();
    let cluster = server(&installation);
    for version in EARLIER {
        let mut old = database(&cluster, version);
        old.batch_execute(&format!("create extension pg_tally version '{version}'")).unwrap();
        let enable = || {
            output(
                tally()
                    .args(["enable", "--mode", "shared", "--database", version])
                    .arg(cluster.connection_string()),
            )
        };
        let text = enable();
        let now = one(&mut old, "select extversion from pg_extension where extname = 'pg_tally'");
        assert_ne!(now, version);
        let line = format!("database {version}, updated from version {version} to {now}\n");
        assert!(text.contains(&line), "{text}");
        assert!(!enable().contains("updated from"));
    }
}

/// The file of statements that a server with version 0.1 saved when it was stopped, on another machine.
#[test]
fn statements_that_an_earlier_library_saved_are_read() {
    let mut cluster = support::shared();
    create_views(&cluster);
    cluster.stop(StopMode::Fast).unwrap();
    let mut saved = Vec::new();
    let file = fs::File::open(versions().join("pg_tally--0.1.statements.gz")).unwrap();
    flate2::read::GzDecoder::new(file).read_to_end(&mut saved).unwrap();
    let path = cluster.data_dir().join("pg_stat/pg_tally.statements");
    let owner = fs::metadata(cluster.data_dir()).unwrap();
    fs::write(&path, saved).unwrap();
    chown(&path, Some(owner.uid()), Some(owner.gid())).unwrap();
    cluster.start().unwrap();
    assert!(!path.exists(), "it was not read: {}", cluster.log());
    // The output of version 0.1 before it was stopped. Times are rounded to what a conversion of the clock
    // preserves.
    let figures = "select concat_ws('|', query, calls, rows, round(total_exec_time::numeric, 2), wal_records) \
                   from tally.statements where query like '%kept%' and query not like '%tally.%' order by query";
    let found: Vec<String> = cluster.psql(figures).unwrap().lines().map(String::from).collect();
    assert_eq!(
        found,
        [
            "create table kept (a int)|1|0|0.67|37",
            "insert into kept values ($1)|20|20|0.28|20",
            "select count(*) as kept, sum(a) from kept|1|1|0.02|0",
            "select pg_sleep($1) as kept|3|3|7.40|0",
        ]
    );
}

/// Session mode: the package was upgraded while sessions have the old library, whose segment has another format.
#[test]
fn the_first_session_with_another_format_replaces_the_segment() {
    let cluster = support::sessions();
    let pid =
        |client: &mut Client| one(client, "select pg_backend_pid()::text").parse::<i32>().unwrap();
    let mut old = cluster.connect().unwrap();
    let old_pid = pid(&mut old);
    let path = support::segment(&cluster);
    // Its format is what a later library would find.
    const VERSION_AT: u64 = segment::layout::header::VERSION as u64;
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.write_all_at(&99u32.to_le_bytes(), VERSION_AT).unwrap();
    let before = fs::metadata(&path).unwrap().ino();
    let mut new = cluster.connect().unwrap();
    let new_pid = pid(&mut new);
    old.batch_execute("select pg_sleep(0.01)").unwrap();
    assert_ne!(fs::metadata(&path).unwrap().ino(), before);
    let books = segment::Segment::open(&path).unwrap().snapshot(None).unwrap().books;
    let pids: Vec<i32> = books.iter().map(|book| book.pid).collect();
    assert!(pids.contains(&new_pid) && !pids.contains(&old_pid), "{pids:?}");
    assert_eq!(file.metadata().unwrap().nlink(), 0);
}
