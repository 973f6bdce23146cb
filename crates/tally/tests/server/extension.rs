// SPDX-License-Identifier: PostgreSQL
//! CREATE EXTENSION, `tally enable --database` and `tally disable`: attacks by an ordinary role, and what
//! remains afterwards.

use crate::support;
use std::collections::BTreeSet;

use crate::support::installation::Installation;
use crate::support::{complaint, output, start, tally};
use scratch::Cluster;

/// Body of a function that makes mallory a superuser if a superuser calls it.
const ATTACK: &str = "language plpgsql as $$ begin \
     if current_setting('is_superuser') = 'on' then alter role mallory superuser; end if; \
     return null; end $$";

pub(super) fn installed(installation: &Installation, mode: &str) -> Cluster {
    let builder = Cluster::builder().directory(support::memory()).binaries(installation.binaries());
    start(if mode.is_empty() { builder } else { builder.setting(mode, "pg_tally") })
}

/// Creates a database that belongs to the ordinary role mallory; returns its connection string.
fn create_mallorys_database(cluster: &Cluster) -> String {
    cluster.psql("create role mallory login").unwrap();
    cluster.psql("create database app owner mallory").unwrap();
    connection_string(cluster, "app")
}

fn connection_string(cluster: &Cluster, database: &str) -> String {
    cluster.connection_string().replace("dbname=postgres", &format!("dbname={database}"))
}

fn client(string: &str) -> postgres::Client {
    postgres::Client::connect(string, postgres::NoTls).unwrap()
}

fn is_superuser(cluster: &Cluster) -> bool {
    cluster.psql("select rolsuper from pg_roles where rolname = 'mallory'").unwrap() == "t"
}

#[test]
fn a_schema_of_another_role_is_refused_and_gives_its_owner_no_rights() {
    let installation = Installation::shared();
    let cluster = installed(installation, "shared_preload_libraries");
    let app = create_mallorys_database(&cluster);
    // A better match for a call with integer constants than the extension's own function.
    client(&app.replace("user=postgres", "user=mallory"))
        .batch_execute(&format!(
            "create schema tally; \
             create function tally.reset(integer, integer, integer) returns text {ATTACK}"
        ))
        .unwrap();
    let mut admin = client(&app);
    let created = admin.batch_execute("create extension pg_tally");
    // The administrator's next step.
    let _ = admin.batch_execute("select tally.reset(0, 0, 42)");
    let text = created.as_ref().map_err(|e| e.as_db_error().unwrap().message().to_string());
    assert!(
        text.as_ref().is_err_and(|text| text.contains("belongs to role \"mallory\"")),
        "{text:?}; mallory is superuser: {}",
        is_superuser(&cluster)
    );
    cluster.psql("alter role mallory nosuperuser").unwrap();
    let text = complaint(tally().args(["enable", "--database", "app", &app]), 1);
    assert!(text.contains("role mallory") && text.contains("DROP SCHEMA"), "{text}");
    // The command changes nothing else either.
    assert_eq!(cluster.psql("show session_preload_libraries").unwrap(), "");
    // It works once that schema is renamed, and the new schema belongs to the extension.
    admin.batch_execute("alter schema tally rename to mallorys").unwrap();
    output(tally().args(["enable", "--database", "app", &app]));
    let owner = "select pg_get_userbyid(nspowner)::text from pg_namespace where nspname = 'tally'";
    assert_eq!(admin.query_one(owner, &[]).unwrap().get::<_, &str>(0), "postgres");
    // Mallory, the database's owner, cannot create objects in it.
    let mut mallory = client(&app.replace("user=postgres", "user=mallory"));
    let planted = format!("create function tally.reset(integer) returns text {ATTACK}");
    assert!(mallory.batch_execute(&planted).is_err());
    assert!(!is_superuser(&cluster));
}

#[test]
fn a_lock_that_another_keeps_is_not_waited_for_without_end() {
    let installation = Installation::shared();
    let cluster = installed(installation, "");
    let app = create_mallorys_database(&cluster);
    let mut mallory = client(&app.replace("user=postgres", "user=mallory"));
    mallory.batch_execute("begin; create schema tally").unwrap();
    let text = complaint(tally().args(["enable", "--database", "app", &app]), 1);
    assert!(text.contains("lock timeout"), "{text}");
    mallory.batch_execute("rollback").unwrap();
    output(tally().args(["enable", "--database", "app", &app]));
    // The objects that PUBLIC may use.
    mallory.batch_execute("begin; select from tally.status").unwrap();
    let refused = tally().args(["disable", &app]).assert().code(1).get_output().clone();
    let text = String::from_utf8(refused.stderr).unwrap();
    assert!(text.contains("lock timeout") && text.contains("app"), "{text}");
    mallory.batch_execute("rollback").unwrap();
    assert!(output(tally().args(["disable", &app])).contains("dropped"));
}

#[test]
fn an_extension_in_another_roles_schema_is_refused() {
    let installation = Installation::shared();
    let cluster = installed(installation, "");
    let app = create_mallorys_database(&cluster);
    let mut admin = client(&app);
    admin.batch_execute("create extension pg_tally").unwrap();
    // As left by an older version of the script.
    admin.batch_execute("alter extension pg_tally drop schema tally").unwrap();
    admin.batch_execute("alter schema tally owner to mallory").unwrap();
    let text = complaint(tally().args(["enable", "--database", "app", &app]), 1);
    assert!(text.contains("role mallory") && text.contains("DROP EXTENSION pg_tally"), "{text}");
}

#[test]
fn only_the_extensions_own_function_lists_functions() {
    let installation = Installation::shared();
    let cluster = installed(installation, "");
    let app = create_mallorys_database(&cluster);
    client(&app.replace("user=postgres", "user=mallory"))
        .batch_execute(&format!(
            "create schema tally; \
             create function tally.probeable(glob text, out name text, out module text, out bytes integer, \
                                             out probeable boolean, out reason text) {}",
            ATTACK.replace("return null;", "")
        ))
        .unwrap();
    let text = output(tally().args(["functions", "--list", "XLogFlush", &app]));
    assert!(text.contains("XLogFlush"), "{text}");
    assert!(!is_superuser(&cluster));
}

#[test]
fn the_search_path_of_a_database_does_not_affect_our_sessions() {
    let installation = Installation::shared();
    let cluster = installed(installation, "");
    let app = create_mallorys_database(&cluster);
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

/// The content of a database's catalogs: schemas and extensions by name, numbers of rows for the others.
fn catalogs(cluster: &Cluster, database: &str) -> Vec<String> {
    let mut client = client(&connection_string(cluster, database));
    let lists = ["nspname from pg_namespace", "extname from pg_extension"];
    let lists = lists.map(|what| {
        let (name, from) = what.split_once(' ').unwrap();
        format!("select string_agg({name}::text, ' ' order by {name}) {from}")
    });
    let counted = ["proc", "class", "type", "description", "init_privs", "depend", "rewrite"];
    let counts =
        counted.map(|catalog| format!("select '{catalog} ' || count(*) from pg_{catalog}"));
    let more = ["db_role_setting", "shdescription", "authid"];
    let shared = more.map(|catalog| format!("select '{catalog} ' || count(*) from pg_{catalog}"));
    let all = lists.into_iter().chain(counts).chain(shared);
    all.map(|sql| client.query_one(&sql, &[]).unwrap().get(0)).collect()
}

/// Files in the data directory, pg_stat and pg_stat_tmp, and the content of postgresql.auto.conf.
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
    let installation = Installation::shared();
    let mut cluster = installed(installation, "");
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
    // A clean stop saves the statements, and the next start loads them.
    cluster.stop(scratch::StopMode::Fast).unwrap();
    assert!(cluster.data_dir().join("pg_stat/pg_tally.statements").exists());
    cluster.start().unwrap();
    output(tally().args(["functions", "--set", "XLogFlush", &target]));

    let text = output(tally().args(["disable", &target]));
    for database in databases {
        assert!(
            text.contains(&format!("dropped extension pg_tally in database {database}")),
            "{text}"
        );
    }
    cluster.stop(scratch::StopMode::Fast).unwrap();
    assert_eq!(files(&cluster), files_before);
    assert!(!support::segment(&cluster).exists());
    cluster.start().unwrap();
    assert_eq!(databases.map(|database| catalogs(&cluster, database)), before);
    let text = output(tally().args(["disable", &target]));
    assert!(text.contains("nothing to do"), "{text}");
}

#[test]
fn a_server_that_is_enabled_again_keeps_its_statements() {
    let installation = Installation::shared();
    let mut cluster = installed(installation, "");
    let target = cluster.connection_string();
    output(tally().args(["enable", "--mode", "shared", &target]));
    cluster.restart().unwrap();
    output(tally().args(["disable", &target]));
    output(tally().args(["enable", "--mode", "shared", &target]));
    cluster.stop(scratch::StopMode::Fast).unwrap();
    assert!(cluster.data_dir().join("pg_stat/pg_tally.statements").exists());
    // The library was removed by hand, so the saved statements are obsolete.
    let auto = cluster.data_dir().join("postgresql.auto.conf");
    std::fs::write(&auto, "").unwrap();
    cluster.start().unwrap();
    let text = output(tally().args(["disable", &target]));
    let removed =
        |line: &str| line.starts_with("removed ") && line.ends_with("pg_stat/pg_tally.statements");
    assert!(text.lines().any(removed), "{text}");
    assert!(!cluster.data_dir().join("pg_stat/pg_tally.statements").exists());
}

#[test]
fn disable_keeps_and_names_extensions_it_did_not_create_or_that_others_need() {
    let installation = Installation::shared();
    let cluster = installed(installation, "");
    cluster.psql("create database other").unwrap();
    cluster.psql("create extension pg_tally").unwrap();
    let target = cluster.connection_string();
    output(tally().args(["enable", "--database", "postgres", "--database", "other", &target]));
    let mut other = client(&connection_string(&cluster, "other"));
    other.batch_execute("create view mine as select * from tally.status").unwrap();
    let text = output(tally().args(["disable", &target]));
    for words in [
        "database postgres keeps extension pg_tally: not created by `tally enable`",
        "database other keeps extension pg_tally: server error: cannot drop extension",
        "to remove it, run DROP EXTENSION pg_tally in that database",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
}
