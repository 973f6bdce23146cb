// SPDX-License-Identifier: PostgreSQL
//! Scratch clusters against a real PostgreSQL.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use scratch::{alive, Cluster, Load, OsUser, StopMode};

/// Maximum time to wait for an event.
const PATIENCE: Duration = Duration::from_secs(120);

#[test]
fn a_cluster_answers_and_leaves_no_files_behind() {
    let cluster = Cluster::builder().setting("work_mem", "7MB").start().unwrap();
    assert_eq!(cluster.psql("show work_mem; select 1, null, 'a'").unwrap(), "7MB\n1\t\ta");
    let (dir, pid) = (cluster.dir().to_path_buf(), cluster.postmaster_pid().unwrap());
    assert!(cluster.processes().iter().any(|process| process.title.contains("checkpointer")));
    drop(cluster);
    assert!(!dir.exists() && !alive(pid));
}

#[test]
fn several_clusters_run_at_a_time() {
    let one = Cluster::builder().start().unwrap();
    let two = Cluster::builder().start().unwrap();
    one.psql("create table only_here ()").unwrap();
    assert!(two.psql("select from only_here").is_err());
}

#[test]
fn a_cluster_survives_stop_restart_and_the_death_of_its_postmaster() {
    let mut cluster = Cluster::builder().start().unwrap();
    cluster.psql("create table kept as select 42 as answer").unwrap();
    cluster.restart().unwrap();
    cluster.stop(StopMode::Immediate).unwrap();
    assert!(cluster.psql("select").is_err());
    cluster.start().unwrap();
    cluster.kill9_postmaster().unwrap();
    cluster.start().unwrap();
    assert_eq!(cluster.psql("select answer from kept").unwrap(), "42");
}

/// Root starts servers as another user, who must not be able to redirect root to root's own files.
#[test]
fn the_servers_user_leads_root_nowhere() {
    if !rustix::process::geteuid().is_root() {
        println!("not tested: it needs root");
        return;
    }
    let victim = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(victim.path(), "root's").unwrap();
    let mut cluster =
        Cluster::builder().library(std::env::current_exe().unwrap()).create().unwrap();
    let user = cluster.os_user().clone();
    let plant = |path: &Path| {
        let mut shell = user.command(Path::new("/bin/sh"));
        shell.args(["-c", "rm -rf -- \"$1\" && ln -s -- \"$2\" \"$1\"", "sh"]).arg(path);
        shell.arg(victim.path()).output().unwrap().status.success()
    };
    // Files that root opens are in a directory that belongs to root.
    assert!(!plant(&cluster.log_path()) && !plant(&cluster.dir().join("lib")));
    // Files in the data directory are opened with the privileges of that user.
    assert!(plant(&cluster.data_dir().join("postgresql.conf")));
    assert!(cluster.append_config("work_mem = '9MB'").is_err());
    assert!(plant(&cluster.data_dir().join("pg_wal")));
    let moved = cluster.dir().join("moved");
    assert!(cluster.move_directory("pg_wal", &moved).is_err());
    // A pipe without a writer.
    let pid_file = cluster.data_dir().join("postmaster.pid");
    let made = user.command(Path::new("mkfifo")).arg(&pid_file).status().unwrap();
    assert!(made.success() && cluster.start().is_err());
    assert_eq!(std::fs::read_to_string(victim.path()).unwrap(), "root's");
}

/// Otherwise, others could put files that the user reads into its home or working directory.
#[test]
fn the_home_of_the_servers_user_is_roots() {
    let user = OsUser::find().unwrap();
    let mut shell = user.command(Path::new("sh"));
    let output = shell.args(["-c", "echo $HOME; pwd"]).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stdout), "/\n/\n");
}

/// Everybody can reach a port.
#[test]
fn nobody_connects_by_tcp_without_the_password() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut cluster = Cluster::builder()
        .setting("listen_addresses", "127.0.0.1")
        .setting("port", &port.to_string())
        .create()
        .unwrap();
    let socket = |port| cluster.host().join(format!(".s.PGSQL.{port}"));
    std::os::unix::fs::symlink(socket(port), socket(cluster.port())).unwrap();
    cluster.start().unwrap();
    let string = format!("host=127.0.0.1 port={port} user=postgres dbname=postgres");
    let connect = |password: &str| {
        let mut conninfo = pq::Conninfo::parse(&string).unwrap();
        conninfo.set("password", password);
        pq::Client::connect(&conninfo).map(drop)
    };
    let error = connect("wrong").unwrap_err();
    assert!(error.message().contains("password authentication failed"), "{error}");
    connect(scratch::password()).unwrap();
}

/// Whoever connects is a superuser, who can run programs as the server's user.
#[test]
fn no_other_user_connects() {
    if !rustix::process::geteuid().is_root() {
        println!("not tested: it needs root");
        return;
    }
    let cluster = Cluster::builder().start().unwrap();
    let output = Command::new("setpriv")
        .args(["--reuid", "65534", "--regid", "65534", "--clear-groups"])
        .arg(cluster.binaries().program("psql"))
        .args(["-XAtc", "select 'let in'", "-U", "postgres", "-h"])
        .arg(cluster.host())
        .arg("postgres")
        .output()
        .unwrap();
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && error.contains("Permission denied"), "{error}");
}

#[test]
fn a_server_that_cannot_start_shows_its_log() {
    let error = Cluster::builder().setting("no_such_setting", "1").start().unwrap_err().to_string();
    assert!(error.contains("no_such_setting"), "{error}");
}

/// Otherwise it could insert commands into the terminal's input.
#[test]
fn the_server_of_another_user_has_not_our_terminal() {
    let cluster = Cluster::builder().start().unwrap();
    if cluster.os_user().name().is_none() {
        println!("not tested: it needs root");
        return;
    }
    let pid = cluster.postmaster_pid().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let fields: Vec<&str> = stat.rsplit_once(')').unwrap().1.split_whitespace().collect();
    // Process group, session, terminal.
    assert_eq!(fields[2..5], [&*pid.to_string(), &*pid.to_string(), "0"]);
}

#[test]
fn a_reload_makes_new_settings_effective() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.append_config("work_mem = '9MB'\n").unwrap();
    cluster.reload().unwrap();
    let began = Instant::now();
    while cluster.psql("show work_mem").unwrap() != "9MB" {
        assert!(began.elapsed() < PATIENCE);
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn a_directory_that_exists_is_not_removed() {
    let mut cluster = Cluster::builder().create().unwrap();
    let theirs = tempfile::tempdir().unwrap();
    std::fs::write(theirs.path().join("it"), "theirs").unwrap();
    assert!(cluster.move_directory("pg_wal", theirs.path()).is_err());
    drop(cluster);
    assert!(theirs.path().join("it").exists());
}

#[test]
fn pgbench_runs_and_can_be_killed() {
    let cluster = Cluster::builder().start().unwrap();
    cluster.pgbench_init(1).unwrap();
    let result = cluster
        .pgbench()
        .load(Load::Script("select 1;\n".into()))
        .clients(2)
        .transactions(50)
        .run()
        .unwrap();
    assert_eq!((result.transactions, result.failed), (100, 0));
    assert!(result.tps > 0.0);
    let mut running = cluster.pgbench().duration(Duration::from_secs(600)).spawn().unwrap();
    let began = Instant::now();
    while cluster.backend_pids().unwrap().is_empty() {
        assert!(running.running() && began.elapsed() < PATIENCE);
    }
    running.kill();
    assert!(!alive(running.pid()));
}

#[test]
fn distinct_statements_have_distinct_query_ids() {
    let cluster = Cluster::builder().setting("compute_query_id", "on").start().unwrap();
    let load = Load::Distinct { hundreds: 50 };
    cluster.fill(&load, 1).unwrap();
    let result = cluster.pgbench().load(load).clients(2).transactions(200).run().unwrap();
    assert_eq!((result.transactions, result.failed), (400, 0));
    let id = |columns: &str, row: u32| {
        let sql = format!("explain (verbose) select {columns} from wide where id = {row}");
        let plan = cluster.psql(&sql).unwrap();
        plan.lines().find(|line| line.starts_with("Query Identifier")).unwrap().to_string()
    };
    assert_eq!(id("c7, c50", 1), id("c7, c50", 999));
    assert_ne!(id("c7, c50", 1), id("c50, c7", 1));
    assert_ne!(id("c7, c50", 1), id("c7, c100", 1));
}

/// Not a test by itself, but the process that the next test kills.
#[test]
#[ignore = "helper of the test below"]
fn helper_that_holds_a_cluster() {
    if std::env::var_os("TALLY_HELPER").is_some() {
        let cluster = Cluster::builder().start().unwrap();
        println!("\ncluster {} {}", cluster.postmaster_pid().unwrap(), cluster.dir().display());
        std::thread::sleep(Duration::from_secs(600));
    }
}

#[test]
fn a_cluster_is_removed_after_its_process_was_killed() {
    let mut helper = Command::new(std::env::current_exe().unwrap())
        .args(["--ignored", "--exact", "helper_that_holds_a_cluster", "--nocapture"])
        .env("TALLY_HELPER", "1")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let line = BufReader::new(helper.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok)
        .find(|line| line.starts_with("cluster "))
        .expect("the helper starts a cluster");
    let mut words = line.split(' ').skip(1);
    let pid: u32 = words.next().unwrap().parse().unwrap();
    let dir = words.next().unwrap().to_string();
    assert!(alive(pid));
    helper.kill().unwrap();
    helper.wait().unwrap();
    let began = Instant::now();
    while alive(pid) || Path::new(&dir).exists() {
        assert!(began.elapsed() < PATIENCE, "{dir} or pid {pid} is still there");
        std::thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_load_that_is_stopped_has_written_its_results_and_logs() {
    let cluster = Cluster::builder().start().unwrap();
    let logs = cluster.host().join("transactions");
    let pgbench = cluster
        .pgbench()
        .load(Load::Script("select 1;".into()))
        .clients(2)
        .jobs(2)
        .until_stopped()
        .arg("-l")
        .arg(&format!("--log-prefix={}", logs.display()))
        .arg("-P")
        .arg("1");
    let mut running = pgbench.spawn().unwrap();
    let began = Instant::now();
    while !running.so_far().contains("progress: ") {
        assert!(running.running() && began.elapsed() < PATIENCE, "{}", running.so_far());
        std::thread::sleep(Duration::from_millis(10));
    }
    let result = running.stop().unwrap();
    let written: usize = std::fs::read_dir(cluster.host())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().contains("/transactions."))
        .map(|path| std::fs::read_to_string(path).unwrap().lines().count())
        .sum();
    assert!(result.transactions > 0);
    assert_eq!(written as u64, result.transactions);
}
