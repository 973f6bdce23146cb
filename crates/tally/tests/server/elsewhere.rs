// SPDX-License-Identifier: PostgreSQL
//! Servers that the command can reach only through their connection. A mount namespace stands for another
//! machine: the path that the server there calls its data directory is something else here, or does not exist.
//! This requires root; without it, the tests are skipped.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::{chown, MetadataExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use live::local_server::{segment_path_in, LocalServer, DEFAULT_FOLDER};
use pq::Conninfo;
use rustix::process::{kill_process, Pid, Signal};
use scratch::{Builder, Cluster};
use segment::{Level, LevelSwitch, Segment};

use crate::support::{complaint, eventually, on_loopback, output, plain, segment, start, tally};

/// The server of a cluster, in a mount namespace of its own.
struct Elsewhere {
    cluster: Cluster,
    server: Child,
}

impl Elsewhere {
    /// In that namespace, its data directory has this path. A path that does not exist here is below /mnt. `None`
    /// if this is not possible here.
    fn start(builder: Builder, data: &Path) -> Option<Elsewhere> {
        if !rustix::process::geteuid().is_root() {
            println!("not tested: mount namespaces need root");
            return None;
        }
        let mut cluster = builder.create().unwrap();
        cluster.also_remove(&segment(&cluster));
        let owner = std::fs::metadata(cluster.data_dir()).unwrap();
        let log = std::fs::File::create(cluster.log_path()).unwrap();
        let script = "[ -d \"$2\" ] || { mount -t tmpfs none /mnt && mkdir \"$2\"; }
            mount --bind \"$1\" \"$2\" && cd / && exec setpriv --reuid \"$3\" --regid \"$4\" --clear-groups \"$5\" -D \"$2\"";
        let server = Command::new("unshare")
            .args(["--mount", "sh", "-c", script, "sh"])
            .args([cluster.data_dir(), data])
            .args([owner.uid().to_string(), owner.gid().to_string()])
            .arg(cluster.binaries().program("postgres"))
            .env("LC_ALL", "C.UTF-8")
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut elsewhere = Elsewhere { cluster, server };
        eventually("the server elsewhere starts", || {
            assert_eq!(elsewhere.server.try_wait().unwrap(), None, "{}", elsewhere.cluster.log());
            elsewhere.cluster.psql("select 1").is_ok()
        });
        Some(elsewhere)
    }
}

impl Drop for Elsewhere {
    fn drop(&mut self) {
        // It has not been reaped yet, so the PID is still its own.
        let _ = kill_process(Pid::from_child(&self.server), Signal::QUIT);
        let _ = self.server.wait();
    }
}

fn is_local(conninfo: &str) -> bool {
    let conninfo = Conninfo::parse(conninfo).unwrap();
    let mut client = live::server::connect(&conninfo).unwrap();
    LocalServer::of_connection(&mut client).unwrap().is_some()
}

/// Responds to one client like a server with this data directory and a process with this PID.
fn pose_as_server(mut client: TcpStream, data: &Path, backend: u32) {
    let mut length = [0; 4];
    client.read_exact(&mut length).unwrap();
    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
    client.read_exact(&mut startup).unwrap();
    let message = |kind: u8, body: &[u8]| {
        [&[kind][..], &(body.len() as u32 + 4).to_be_bytes(), body].concat()
    };
    let ready = message(b'Z', b"I");
    client.write_all(&[message(b'R', &[0; 4]), ready.clone()].concat()).unwrap();
    let (ours, theirs) = (client.local_addr().unwrap(), client.peer_addr().unwrap());
    let number = |value: u32| (23u32, Some(value.to_be_bytes().to_vec()));
    let text = |text: String| (25u32, Some(text.into_bytes()));
    let values = [
        (25, None),
        text(data.display().to_string()),
        number(backend),
        text(theirs.ip().to_string()),
        number(u32::from(theirs.port())),
        text(ours.ip().to_string()),
        number(u32::from(ours.port())),
    ];
    let count = (values.len() as u16).to_be_bytes();
    let (mut columns, mut row) = (count.to_vec(), count.to_vec());
    for (kind, value) in values {
        columns.extend([b"c\0", &[0; 6][..], &kind.to_be_bytes(), &[0; 6], &[0, 1]].concat());
        let length = value.as_ref().map_or(u32::MAX, |value| value.len() as u32);
        row.extend(length.to_be_bytes());
        row.extend(value.unwrap_or_default());
    }
    let answer = [
        message(b'1', b""),
        message(b'2', b""),
        message(b'T', &columns),
        message(b'D', &row),
        message(b'C', b"SELECT 1\0"),
        ready,
    ];
    let mut head = [0; 5];
    while client.read_exact(&mut head).is_ok() {
        let length = u32::from_be_bytes([head[1], head[2], head[3], head[4]]);
        client.read_exact(&mut vec![0; length as usize - 4]).unwrap();
        if head[0] == b'S' {
            client.write_all(&answer.concat()).unwrap();
        }
    }
}

/// A session's title contains the name that its client has given, before it is asked for a password.
#[test]
fn a_title_of_the_clients_choice_proves_nothing() {
    let (here, port) = on_loopback(plain());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port_of_fake = listener.local_addr().unwrap().port();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let (client, ours) = listener.accept().unwrap();
            // The title must name the port of that connection.
            let name = format!("({})", ours.port());
            let mut real = TcpStream::connect(("127.0.0.1", port)).unwrap();
            let startup = [&[0, 3, 0, 0][..], b"user\0", name.as_bytes(), b"\0\0"].concat();
            let length = (startup.len() as u32 + 4).to_be_bytes();
            real.write_all(&[&length[..], &startup].concat()).unwrap();
            let titled =
                || here.processes().into_iter().find(|process| process.title.contains(&name));
            eventually("the server has such a process", || titled().is_some());
            pose_as_server(client, here.data_dir(), titled().unwrap().pid);
        });
        let conninfo = format!(
            "host=127.0.0.1 port={port_of_fake} user=postgres sslmode=disable gssencmode=disable"
        );
        let mut client = pq::Client::connect(&Conninfo::parse(&conninfo).unwrap()).unwrap();
        assert_eq!(LocalServer::of_connection(&mut client).unwrap(), None);
    });
}

/// A file as a clean stop leaves it.
fn save_statements(cluster: &Cluster) -> std::path::PathBuf {
    let data = std::fs::metadata(cluster.data_dir()).unwrap();
    let path = cluster.data_dir().join("pg_stat/pg_tally.statements");
    std::fs::write(&path, "saved").unwrap();
    chown(&path, Some(data.uid()), Some(data.gid())).unwrap();
    path
}

fn level(cluster: &Cluster) -> Level {
    // The name of the data directory in the segment is one from there.
    let path = segment_path_in(Path::new(DEFAULT_FOLDER), cluster.data_dir()).unwrap();
    Segment::open(&path).unwrap().level().unwrap()
}

#[test]
fn a_local_server_with_the_same_data_directory_is_left_alone() {
    let (here, port) = on_loopback(plain().setting("shared_preload_libraries", "pg_tally"));
    let Some(there) = Elsewhere::start(plain(), here.data_dir()) else { return };
    let ask = "select setting from pg_settings where name = 'data_directory'";
    assert_eq!(there.cluster.psql(ask).unwrap(), here.psql(ask).unwrap());
    let by_address = format!(
        "host=127.0.0.1 port={port} user=postgres dbname=postgres password={}",
        scratch::password()
    );
    assert!(is_local(&here.connection_string()) && is_local(&by_address));
    assert!(!is_local(&there.cluster.connection_string()));

    let (mine, its) = (save_statements(&here), save_statements(&there.cluster));
    LevelSwitch::open(&segment(&here)).unwrap().set(Level::Locks);
    let target = there.cluster.connection_string();
    output(tally().args(["enable", &target]));
    let text = output(tally().args(["functions", "--set", "XLogFlush", &target]));
    assert!(text.contains("another machine"), "{text}");
    let _session = there.cluster.connect().unwrap();
    assert_eq!((level(&here), level(&there.cluster)), (Level::Locks, Level::Waits));
    let text = output(tally().args(["disable", &target]));
    let removed =
        |line: &str| line.starts_with("removed ") && line.ends_with("pg_stat/pg_tally.statements");
    assert!(text.lines().any(removed), "{text}");
    assert_eq!((level(&here), level(&there.cluster)), (Level::Locks, Level::Off));
    assert!(mine.exists() && !its.exists());
}

#[test]
fn a_server_on_another_machine_is_enabled_and_disabled_through_its_connection() {
    let elsewhere = Path::new("/mnt/of another machine");
    let Some(there) = Elsewhere::start(plain(), elsewhere) else { return };
    let settings = || {
        let text = std::fs::read_to_string(there.cluster.data_dir().join("postgresql.auto.conf"));
        text.unwrap().lines().filter(|line| !line.starts_with('#')).collect::<String>()
    };
    let before = settings();
    let target = there.cluster.connection_string();
    assert!(output(tally().args(["enable", &target])).contains("every new session"));
    eventually("the reload", || {
        let list = there.cluster.psql("show session_preload_libraries").unwrap();
        list == "pg_tally"
    });
    let mut session = there.cluster.connect().unwrap();
    for _ in 0..2 {
        let text = output(tally().args(["disable", &target]));
        assert!(text.contains("measuring is off for all processes"), "{text}");
        assert!(text.contains("the last one removes the server's segment"), "{text}");
        assert_eq!((level(&there.cluster), settings()), (Level::Off, before.clone()));
        output(tally().args(["enable", "--level", "locks", &target]));
        assert_eq!(level(&there.cluster), Level::Locks);
    }
    session.batch_execute("select 1").unwrap();
    output(tally().args(["disable", &target]));
    drop(session);
    eventually("the last session removes the segment", || !segment(&there.cluster).exists());
    assert!(output(tally().args(["disable", &target])).contains("nothing to do"));
}

/// Only for the command, which is a superuser.
#[test]
fn no_other_role_controls_the_running_processes() {
    let cluster = start(plain().setting("shared_preload_libraries", "pg_tally"));
    let signature = "control(level integer, save boolean) returns boolean";
    cluster
        .psql(&format!(
            "create function {signature} as 'pg_tally', 'pg_tally_set_running' language c strict; \
             create function forget() returns void as 'pg_tally', 'pg_tally_remove_saved_statements' \
                 language c strict; \
             create role poor login"
        ))
        .unwrap();
    for call in ["control(0, false)", "forget()"] {
        let error = cluster.psql(&format!("set role poor; select {call}")).unwrap_err().to_string();
        assert!(error.contains("must be superuser"), "{error}");
    }
    assert_eq!(level(&cluster), Level::Waits);
    let error = cluster.psql("select control(7, true)").unwrap_err().to_string();
    assert!(error.contains("invalid level: 7"), "{error}");
    let poor = cluster.connection_string().replace("user=postgres", "user=poor");
    complaint(tally().args(["disable", &poor]), 1);
}
