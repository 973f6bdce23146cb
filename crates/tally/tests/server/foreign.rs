// SPDX-License-Identifier: PostgreSQL
//! Files that another user placed where the command looks for a server's segment. The command neither shows nor
//! writes them, and connects to no server that they name. The tests change the owner of files, which requires
//! root (`make test` in a container has it); without root they are skipped.

use crate::support;
use std::io::{Read, Write};
use std::os::unix::fs::{chown, symlink, FileExt, MetadataExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::support::{complaint, plain, segment, start, tally};
use scratch::Cluster;
use segment::layout::header;

const NOBODY: u32 = 65_534;
const SECRET: &str = "root's own password";
/// Every verb that reads or writes a segment.
const VERBS: [&[&str]; 9] = [
    &["status"],
    &["top", "--once"],
    &["statements"],
    &["functions"],
    &["events"],
    &["level"],
    &["level", "off"],
    &["record", "--for", "1s", "-o", "/nonexistent/recording"],
    &["serve", "--listen", "127.0.0.1:0"],
];

/// A server with a segment, and one without, whose segment can be forged. None without root, because only root
/// can create a file of another user.
fn two_servers() -> Option<(Cluster, Cluster)> {
    if !rustix::process::geteuid().is_root() {
        return None;
    }
    let small = support::plain().setting("shared_preload_libraries", "pg_tally");
    Some((start(small.setting("pg_tally.max_slots", "64")), start(plain())))
}

/// Runs the verb on the target, which comes after a level if there is one; returns the error.
fn error_of(verb: &[&str], target: &Path) -> String {
    complaint(tally().args(verb).arg(target), 1)
}

/// A forged segment, removed on drop.
struct Planted(PathBuf);

impl Drop for Planted {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

impl Planted {
    /// Copies a segment and gives the copy another owner.
    fn copy(of: &Path, at: PathBuf, owner: u32) -> Planted {
        let copied = Command::new("cp").arg("--sparse=always").arg(of).arg(&at).status().unwrap();
        assert!(copied.success());
        chown(&at, Some(owner), Some(owner)).unwrap();
        Planted(at)
    }

    fn text(&self, at: usize, text: &str) {
        let file = std::fs::OpenOptions::new().write(true).open(&self.0).unwrap();
        file.write_all_at(&[text.as_bytes(), b"\0"].concat(), at as u64).unwrap();
    }

    fn head(&self) -> Vec<u8> {
        let mut head = vec![0; 4096];
        std::fs::File::open(&self.0).unwrap().read_exact(&mut head).unwrap();
        head
    }
}

/// Listens on a socket of user nobody, asks clients for a clear-text password, and stores everything that they
/// send.
struct Listening {
    folder: tempfile::TempDir,
    heard: Arc<Mutex<Vec<u8>>>,
    stop: Arc<AtomicBool>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Listening {
    fn start() -> Listening {
        let folder = tempfile::tempdir().unwrap();
        chown(folder.path(), Some(NOBODY), Some(NOBODY)).unwrap();
        let path = folder.path().join(".s.PGSQL.5432");
        let listener = UnixListener::bind(&path).unwrap();
        chown(&path, Some(NOBODY), Some(NOBODY)).unwrap();
        listener.set_nonblocking(true).unwrap();
        let (heard, stop) = (Arc::<Mutex<Vec<u8>>>::default(), Arc::<AtomicBool>::default());
        let thread = {
            let (heard, stop) = (heard.clone(), stop.clone());
            std::thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    let Ok((mut stream, _)) = listener.accept() else {
                        std::thread::sleep(Duration::from_millis(5));
                        continue;
                    };
                    stream.set_nonblocking(false).unwrap();
                    stream.set_read_timeout(Some(Duration::from_secs(120))).unwrap();
                    let mut length = [0; 4];
                    stream.read_exact(&mut length).unwrap();
                    let mut startup = vec![0; u32::from_be_bytes(length) as usize - 4];
                    stream.read_exact(&mut startup).unwrap();
                    stream.write_all(&[b'R', 0, 0, 0, 8, 0, 0, 0, 3]).unwrap();
                    let mut rest = vec![0; 1000];
                    let read = stream.read(&mut rest).unwrap_or(0);
                    let mut heard = heard.lock().unwrap();
                    heard.extend(startup);
                    heard.extend(&rest[..read]);
                }
            })
        };
        Listening { folder, heard, stop, thread: Some(thread) }
    }

    fn path(&self) -> &Path {
        self.folder.path()
    }

    fn heard(&self) -> String {
        String::from_utf8_lossy(&self.heard.lock().unwrap()).into_owned()
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}

/// Where the command looks for the segment of a server with this data directory.
fn predicted(data: &Path) -> PathBuf {
    let meta = std::fs::metadata(data).unwrap();
    PathBuf::from(format!("/dev/shm/pg_tally.{:x}.{:x}", meta.dev(), meta.ino()))
}

#[test]
fn a_file_of_another_user_is_neither_shown_nor_written() {
    let Some((real, victim)) = two_servers() else { return };
    let planted = Planted::copy(&segment(&real), segment(&victim), NOBODY);
    let before = planted.head();
    let owner = Command::new("stat").args(["-c", "%U"]).arg(victim.data_dir()).output().unwrap();
    let owner = String::from_utf8(owner.stdout).unwrap();
    for verb in VERBS {
        for target in [victim.data_dir(), planted.0.as_path()] {
            let message = error_of(verb, target);
            for word in
                [&planted.0.display().to_string(), "belongs to user nobody", "remove the segment"]
            {
                assert!(message.contains(word), "{verb:?} {}: {word}: {message}", target.display());
            }
            assert!(message.contains(owner.trim()), "{message}");
        }
    }
    assert!(planted.head() == before, "it has been written");
    // `tally ls` lists it with its owner.
    let list = support::output(tally().args(["ls"]));
    let line = list.lines().find(|line| line.contains(&planted.0.display().to_string())).unwrap();
    assert!(line.contains("not trusted, so not read: it belongs to user nobody"), "{line}");
}

#[test]
fn a_link_is_not_followed() {
    let Some((real, victim)) = two_servers() else { return };
    let link = Planted(segment(&victim));
    symlink(segment(&real), &link.0).unwrap();
    for verb in VERBS {
        for target in [victim.data_dir(), link.0.as_path()] {
            let message = error_of(verb, target);
            assert!(message.contains("links are not followed"), "{verb:?}: {message}");
        }
    }
}

#[test]
fn a_foreign_file_cannot_direct_a_connection() {
    let Some((real, victim)) = two_servers() else { return };
    let listening = Listening::start();
    let planted = Planted::copy(&segment(&real), segment(&victim), NOBODY);
    planted.text(header::SOCKET_DIR, listening.path().to_str().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let target = planted.0.to_str().unwrap();
    for verb in [
        &["record", "--for", "2s", "-o", folder.path().to_str().unwrap(), target][..],
        &["top", "--once", "--view", "io", target],
        &["functions", "--list", "*", target],
        &["enable", target],
        &["disable", target],
    ] {
        let mut command = tally();
        command.env("PGUSER", "postgres").env("PGPASSWORD", SECRET).args(verb);
        complaint(&mut command, 1);
        assert_eq!(listening.heard(), "", "{verb:?}");
    }
    support::output(tally().env("PGPASSWORD", SECRET).arg("ls"));
    assert_eq!(listening.heard(), "");
}

/// Segment and socket both belong to nobody, so they are a valid server. But a password is sent only to a server
/// that the user named.
#[test]
fn a_password_goes_only_to_a_server_that_was_named() {
    let Some((real, _)) = two_servers() else { return };
    let listening = Listening::start();
    let planted = Planted::copy(&segment(&real), predicted(listening.path()), NOBODY);
    planted.text(header::SOCKET_DIR, listening.path().to_str().unwrap());
    planted.text(header::HOST, listening.path().to_str().unwrap());
    let run = |target: &str| {
        let folder = tempfile::tempdir().unwrap();
        let mut command = tally();
        command.env("PGUSER", "postgres").env("PGPASSWORD", SECRET);
        command.args(["record", "--for", "2s", "-o", folder.path().to_str().unwrap(), target]);
        support::output(&mut command);
        let mut command = tally();
        command.env("PGUSER", "postgres").env("PGPASSWORD", SECRET);
        complaint(command.args(["functions", "--list", "*", target]), 1)
    };
    let message = run(planted.0.to_str().unwrap());
    assert!(listening.heard().contains("postgres"), "it was connected to");
    assert!(!listening.heard().contains(SECRET), "{}", listening.heard());
    assert!(message.contains("PGPASSWORD was not sent"), "{message}");
    // Named by its data directory, the server gets the password.
    let file = format!(
        "{}\n{}\n0\n5432\n{}\n\n",
        std::process::id(),
        listening.path().display(),
        listening.path().display()
    );
    std::fs::write(listening.path().join("postmaster.pid"), file).unwrap();
    run(listening.path().to_str().unwrap());
    assert!(listening.heard().contains(SECRET));
}

#[test]
fn a_socket_of_another_user_is_not_connected_to() {
    let Some((real, _)) = two_servers() else { return };
    let listening = Listening::start();
    let mine = Planted::copy(&segment(&real), predicted(listening.path()), 0);
    mine.text(header::SOCKET_DIR, listening.path().to_str().unwrap());
    let mut command = tally();
    command.env("PGUSER", "postgres").env("PGPASSWORD", SECRET);
    let message = complaint(command.args(["functions", "--list", "*"]).arg(&mine.0), 1);
    assert!(message.contains("not a socket that belongs to the server's user"), "{message}");
    assert_eq!(listening.heard(), "");
}

#[test]
fn root_and_the_servers_user_read_and_set_its_segment_by_every_name() {
    let cluster = support::shared();
    let link = tempfile::tempdir().unwrap();
    let link = link.path().join("data");
    symlink(cluster.data_dir(), &link).unwrap();
    let path = segment(&cluster);
    for target in [cluster.data_dir(), &path, &link] {
        support::output(tally().args(["level", "locks"]).arg(target));
        assert_eq!(support::output(tally().arg("level").arg(target)), "locks\n");
    }
    let by_connection = cluster.connection_string();
    assert_eq!(support::output(tally().args(["level", &by_connection])), "locks\n");
}
