// SPDX-License-Identifier: PostgreSQL
//! Removes the segments that killed clients have left. A client that ends removes its segment itself.
//!
//! A file is removed only if its header says that others may do that (not with the client's option `keep=on`), the process
//! in its header has ended, and its writer's lock is free. A process is identified by PID, start time, boot and PID
//! namespace. Nobody holds the lock of a file whose process has ended; where PIDs are wrong, as in a container, the lock is
//! what protects the file.
//!
//! A client that is killed while it creates its segment leaves a file under a temporary name, perhaps an empty one. That name
//! identifies the process instead of the header.
//!
//! Users remove their own files. Root acts as the owner of each file, in a thread of that user, so the kernel refuses
//! whatever the owner could not have done, wherever the owner lets the path lead.

use std::ffi::OsStr;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    fcntl_lock, fstat, openat, statat, unlinkat, AtFlags, FileType, FlockOperation, Mode, OFlags,
    CWD,
};
use rustix::process::{geteuid, Uid};
use rustix::thread::set_thread_res_uid;
use segment::segment_path::client_of;
use segment::{has_ended, Segment, ToSegmentPath};

/// The agent's first segment, which it writes before the application starts, is named so.
const WARM_UP: &str = ".warm";

/// Removes the segments of killed clients in a folder, as far as this user may; returns their paths.
pub fn remove(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let named = entries
        .filter(|entry| entry.file_name().to_str().and_then(ClientFile::from_name).is_some());
    let mut removed: Vec<PathBuf> = named
        .filter_map(|entry| {
            let owner = entry.metadata().ok()?.uid();
            as_user(owner, || remove_one(folder, &entry.file_name()))?.then(|| entry.path())
        })
        .collect();
    removed.sort();
    removed
}

/// A file of a client, as its name says.
#[derive(Debug, PartialEq, Eq)]
struct ClientFile {
    pid: i32,
    /// While the file is being created, start time (clock ticks since boot) and PID namespace of the process.
    creator: Option<(u64, u64)>,
}

impl ClientFile {
    /// `pg_tally.java.PID`, or with `.new.NAMESPACE.STARTED.` and anything else after it.
    fn from_name(name: &str) -> Option<ClientFile> {
        let (segment, unfinished) = match name.split_once(".new.") {
            Some((segment, unfinished)) => (segment, Some(unfinished)),
            None => (name, None),
        };
        let pid = client_of(segment.strip_suffix(WARM_UP).unwrap_or(segment))?;
        let creator = match unfinished {
            Some(unfinished) => {
                let mut fields = unfinished.splitn(3, '.');
                let namespace = fields.next()?.parse().ok()?;
                let started = fields.next()?.parse().ok()?;
                fields.next()?;
                Some((started, namespace))
            }
            None => None,
        };
        Some(ClientFile { pid, creator })
    }
}

/// Does it as this user. `None`: we may not.
fn as_user<T: Send>(owner: u32, action: impl FnOnce() -> T + Send) -> Option<T> {
    let own = geteuid();
    if owner == own.as_raw() {
        return Some(action());
    }
    if !own.is_root() {
        return None;
    }
    std::thread::scope(|scope| {
        let thread = scope.spawn(|| {
            let owner = Uid::from_raw(owner);
            // Of this thread alone, which ends. It cannot become root again.
            set_thread_res_uid(owner, owner, owner).ok()?;
            Some(action())
        });
        thread.join().ok().flatten()
    })
}

/// Removes the file if it is this user's, and its process has ended.
fn remove_one(folder: &Path, name: &OsStr) -> bool {
    try_to_remove(folder, name).unwrap_or(false)
}

fn try_to_remove(folder: &Path, name: &OsStr) -> Option<bool> {
    let directory =
        openat(CWD, folder, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())
            .ok()?;
    // Without O_NONBLOCK, opening a named pipe would block. The lock requires writing.
    let flags = OFlags::RDWR | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let file = File::from(openat(&directory, name, flags, Mode::empty()).ok()?);
    let opened = fstat(&file).ok()?;
    if opened.st_uid != geteuid().as_raw() {
        return None;
    }
    let client = ClientFile::from_name(name.to_str()?)?;
    let is_left = match client.creator {
        Some((started, namespace)) => {
            FileType::from_raw_mode(opened.st_mode) == FileType::RegularFile
                && has_ended(client.pid, started, namespace)
        }
        None => {
            let path = folder.join(name);
            let segment =
                Segment::from_file(file.try_clone().ok()?, path.to_segment_path()).ok()?;
            let header = segment.header();
            header.transient
                && i32::try_from(header.server_pid) == Ok(client.pid)
                && segment.server_runs() == Some(false)
        }
    };
    if !is_left || fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
        return Some(false);
    }
    // Another process may have replaced it meanwhile.
    let named = statat(&directory, name, AtFlags::SYMLINK_NOFOLLOW).ok()?;
    let same = (named.st_dev, named.st_ino) == (opened.st_dev, opened.st_ino);
    Some(same && unlinkat(&directory, name, AtFlags::empty()).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_clients_segments_are_looked_at() {
        let segment = Some(ClientFile { pid: 4711, creator: None });
        for name in ["pg_tally.java.4711", "pg_tally.java.4711.warm", "pg_tally.libpq.4711"] {
            assert_eq!(ClientFile::from_name(name), segment, "{name}");
        }
        let unfinished = Some(ClientFile { pid: 4711, creator: Some((22, 11)) });
        for name in
            ["pg_tally.java.4711.warm.new.11.22.a-b", "pg_tally.libpq.4711.new.11.22.4711.0"]
        {
            assert_eq!(ClientFile::from_name(name), unfinished, "{name}");
        }
        for other in [
            "pg_tally.fe00.2a5f31",
            "pg_tally.java.warm",
            "pg_tally.java.4711.new.1",
            "pg_tally.java.4711.new.1.2",
            "pg_tally.java.4711.new.x.2.3",
            "pg_tally.fe00.2a5f31.new.1.2.3",
        ] {
            assert_eq!(ClientFile::from_name(other), None, "{other}");
        }
    }

    #[test]
    fn other_files_of_these_names_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pg_tally.java.4711");
        std::fs::write(&path, "not a segment").unwrap();
        std::os::unix::fs::symlink(&path, folder.path().join("pg_tally.java.4712")).unwrap();
        std::fs::create_dir(folder.path().join("pg_tally.java.4713")).unwrap();
        assert_eq!(remove(folder.path()), Vec::<PathBuf>::new());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
    }

    #[test]
    fn root_acts_as_the_owner_and_others_as_themselves() {
        let own = geteuid();
        let user = || geteuid().as_raw();
        assert_eq!(as_user(own.as_raw(), user), Some(own.as_raw()));
        let other = 65_534;
        assert_eq!(as_user(other, user), own.is_root().then_some(other));
        assert_eq!(geteuid(), own, "the thread's user is not the process's");
    }
}
