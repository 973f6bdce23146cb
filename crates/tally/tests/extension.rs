// SPDX-License-Identifier: PostgreSQL
//! CREATE EXTENSION, `tally enable --database` and `tally disable` on servers in which an ordinary
//! role has prepared something, and what they leave behind.

mod support;

use std::collections::BTreeSet;

use scratch::Cluster;
use support::installation::Installation;
use support::{complaint, output, start, tally};

/// Turns whoever calls it, if he may, into somebody who makes mallory a superuser.
const ATTACK: &str = "language plpgsql as $$ begin \
     if current_setting('is_superuser') = 'on' then alter role mallory superuser; end if; \
     return null; end $$";

fn installed(installation: &Installation, mode: &str) -> Cluster {
    let builder = Cluster::builder().binaries(installation.binaries());
    start(if mode.is_empty() { builder } else { builder.setting(mode, "pg_tally") })
}

/// A database of an ordinary role.
fn mallorys(cluster: &Cluster) -> String {
    cluster.psql("create role mallory login").unwrap();
    cluster.psql("create database app owner mallory").unwrap();
    within(cluster, "app")
}

fn within(cluster: &Cluster, database: &str) -> String {
    cluster.connection_string().replace("dbname=postgres", &format!("dbname={database}"))
}

fn client(string: &str) -> postgres::Client {
    postgres::Client::connect(string, postgres::NoTls).unwrap()
}

fn is_superuser(cluster: &Cluster) -> bool {
    cluster.psql("select rolsuper from pg_roles where rolname = 'mallory'").unwrap() == "t"
}

#[test]
fn a_schema_of_another_role_is_refused_and_gives_its_owner_nothing() {
    let installation = Installation::new();
    let cluster = installed(&installation, "shared_preload_libraries");
    let app = mallorys(&cluster);
    // Nearer to a call with plain numbers than the extension's own, which takes oids and a bigint.
    client(&app.replace("user=postgres", "user=mallory"))
        .batch_execute(&format!(
            "create schema tally; \
             create function tally.reset(integer, integer, integer) returns text {ATTACK}"
        ))
        .unwrap();
    let mut admin = client(&app);
    let created = admin.batch_execute("create extension pg_tally");
    // What a DBA does next.
    let _ = admin.batch_execute("select tally.reset(0, 0, 42)");
    let said = created.as_ref().map_err(|e| e.as_db_error().unwrap().message().to_string());
    assert!(
        said.as_ref().is_err_and(|said| said.contains("belongs to role \"mallory\"")),
        "{said:?}; mallory is superuser: {}",
        is_superuser(&cluster)
    );
    cluster.psql("alter role mallory nosuperuser").unwrap();
    let said = complaint(tally().args(["enable", "--database", "app", &app]), 1);
    assert!(said.contains("belongs to role mallory") && said.contains("DROP SCHEMA"), "{said}");
    // Nor is anything else of the command done.
    assert_eq!(cluster.psql("show session_preload_libraries").unwrap(), "");
    // Once it is out of the way it works, and the schema is the extension's.
    admin.batch_execute("alter schema tally rename to mallorys").unwrap();
    output(tally().args(["enable", "--database", "app", &app]));
    let owner = "select pg_get_userbyid(nspowner)::text from pg_namespace where nspname = 'tally'";
    assert_eq!(admin.query_one(owner, &[]).unwrap().get::<_, &str>(0), "postgres");
    // And mallory, the database's owner, cannot put anything there.
    let mut mallory = client(&app.replace("user=postgres", "user=mallory"));
    let planted = format!("create function tally.reset(integer) returns text {ATTACK}");
    assert!(mallory.batch_execute(&planted).is_err());
    assert!(!is_superuser(&cluster));
}

#[test]
fn an_extension_in_a_schema_that_is_not_its_own_is_refused() {
    let installation = Installation::new();
    let cluster = installed(&installation, "");
    let app = mallorys(&cluster);
    let mut admin = client(&app);
    admin.batch_execute("create extension pg_tally").unwrap();
    // As an older script left it.
    admin.batch_execute("alter extension pg_tally drop schema tally").unwrap();
    admin.batch_execute("alter schema tally owner to mallory").unwrap();
    let said = complaint(tally().args(["enable", "--database", "app", &app]), 1);
    assert!(said.contains("role mallory") && said.contains("DROP EXTENSION pg_tally"), "{said}");
}

#[test]
fn the_search_path_of_a_database_leads_our_sessions_nowhere() {
    let installation = Installation::new();
    let cluster = installed(&installation, "");
    let app = mallorys(&cluster);
    let mut mallory = client(&app.replace("user=postgres", "user=mallory"));
    mallory.batch_execute("create schema evil").unwrap();
    for signature in [
        "to_regprocedure(text) returns regprocedure",
        "pg_get_userbyid(oid) returns name",
        "obj_description(oid, name) returns text",
        "current_setting(text) returns text",
        "pg_reload_conf() returns boolean",
    ] {
        mallory.batch_execute(&format!("create function evil.{signature} {ATTACK}")).unwrap();
    }
    mallory.batch_execute("alter database app set search_path = evil, pg_catalog").unwrap();
    output(tally().args(["enable", "--database", "app", &app]));
    output(tally().args(["functions", "--list", "XLogFlush", &app]));
    output(tally().args(["disable", &app]));
    assert!(!is_superuser(&cluster));
}

/// What the catalogs of a database hold: names where there are few, else how many.
fn catalogs(cluster: &Cluster, database: &str) -> Vec<String> {
    let mut client = client(&within(cluster, database));
    let lists = ["nspname from pg_namespace", "extname from pg_extension"];
    let lists = lists.map(|what| {
        let (name, from) = what.split_once(' ').unwrap();
        format!("select string_agg({name}::text, ' ' order by {name}) {from}")
    });
    let counted = ["proc", "class", "type", "description", "init_privs", "depend", "rewrite"];
    let counts = counted.map(|it| format!("select '{it} ' || count(*) from pg_{it}"));
    let more = ["db_role_setting", "shdescription", "authid"];
    let shared = more.map(|it| format!("select '{it} ' || count(*) from pg_{it}"));
    let all = lists.into_iter().chain(counts).chain(shared);
    all.map(|sql| client.query_one(&sql, &[]).unwrap().get(0)).collect()
}

/// Files of the data directory that are not tables, logs of transactions and the like, and the
/// settings.
fn files(cluster: &Cluster) -> (BTreeSet<String>, String) {
    let data = cluster.data_dir();
    let settings = std::fs::read_to_string(data.join("postgresql.auto.conf")).unwrap();
    let mut names = BTreeSet::new();
    for folder in [data.to_path_buf(), data.join("pg_stat"), data.join("pg_stat_tmp")] {
        for entry in std::fs::read_dir(&folder).unwrap().flatten() {
            names.insert(entry.path().strip_prefix(data).unwrap().display().to_string());
        }
    }
    (names, settings)
}

#[test]
fn nothing_stays_behind_in_the_catalogs_or_the_data_directory() {
    let installation = Installation::new();
    let mut cluster = installed(&installation, "");
    cluster.psql("create database other").unwrap();
    cluster.restart().unwrap();
    let databases = ["postgres", "other"];
    let before = databases.map(|database| catalogs(&cluster, database));
    cluster.stop(scratch::StopMode::Fast).unwrap();
    let files_before = files(&cluster);
    cluster.start().unwrap();

    let target = cluster.connection_string();
    let enable = ["enable", "--mode", "shared", "--database", "postgres", "--database", "other"];
    output(tally().args(enable).arg(&target));
    cluster.restart().unwrap();
    cluster.psql("select 1 as one").unwrap();
    // A clean stop keeps the statements, and the start that follows takes them.
    cluster.stop(scratch::StopMode::Fast).unwrap();
    assert!(cluster.data_dir().join("pg_stat/pg_tally.statements").exists());
    cluster.start().unwrap();
    output(tally().args(["functions", "--set", "XLogFlush", &target]));

    let said = output(tally().args(["disable", &target]));
    for database in databases {
        assert!(said.contains(&format!("of database {database} dropped")), "{said}");
    }
    cluster.stop(scratch::StopMode::Fast).unwrap();
    assert_eq!(files(&cluster), files_before);
    assert!(!support::segment(&cluster).exists());
    cluster.start().unwrap();
    assert_eq!(databases.map(|database| catalogs(&cluster, database)), before);
    let said = output(tally().args(["disable", &target]));
    assert!(said.contains("nothing to do"), "{said}");
}

#[test]
fn enabled_again_a_server_keeps_its_statements() {
    let installation = Installation::new();
    let mut cluster = installed(&installation, "");
    let target = cluster.connection_string();
    output(tally().args(["enable", "--mode", "shared", &target]));
    cluster.restart().unwrap();
    output(tally().args(["disable", &target]));
    output(tally().args(["enable", "--mode", "shared", &target]));
    cluster.stop(scratch::StopMode::Fast).unwrap();
    assert!(cluster.data_dir().join("pg_stat/pg_tally.statements").exists());
    // The library taken out by hand: what the last run kept is nobody's any more.
    let auto = cluster.data_dir().join("postgresql.auto.conf");
    std::fs::write(&auto, "").unwrap();
    cluster.start().unwrap();
    let said = output(tally().args(["disable", &target]));
    assert!(said.contains("pg_stat/pg_tally.statements is removed"), "{said}");
    assert!(!cluster.data_dir().join("pg_stat/pg_tally.statements").exists());
}

#[test]
fn what_enable_did_not_create_or_others_need_stays_and_is_named() {
    let installation = Installation::new();
    let cluster = installed(&installation, "");
    cluster.psql("create database other").unwrap();
    cluster.psql("create extension pg_tally").unwrap();
    let target = cluster.connection_string();
    output(tally().args(["enable", "--database", "postgres", "--database", "other", &target]));
    let mut other = client(&within(&cluster, "other"));
    other.batch_execute("create view mine as select * from tally.status").unwrap();
    let said = output(tally().args(["disable", &target]));
    for words in [
        "database postgres keeps extension pg_tally: `tally enable` did not create it",
        "database other keeps extension pg_tally: the server says: cannot drop extension",
        "DROP EXTENSION pg_tally in that database removes it",
    ] {
        assert!(said.contains(words), "{words}: {said}");
    }
}
