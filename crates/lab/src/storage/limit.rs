// SPDX-License-Identifier: PostgreSQL
//! Limits a device with the kernel's block I/O controller, to simulate a disk that is slow or becomes slow.
//!
//! With cgroup v1 the limit is set on the root group and holds for the whole device, including write-back of the page
//! cache. cgroup v2 has no limits on the root group: this process moves into a group of its own for the time being, as
//! do the processes it starts, and the kernel charges write-back to the group that wrote. In both cases the limits
//! name the device, so nothing else is affected, and they are removed even if this process is killed.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use scratch::Undo;

use crate::storage::file::Limit;

/// Each line is the path of a limit, a blank, and the device's number.
const UNDO_LIMITS: &str = r#"
printf '%s' "$lines" | while read -r device path; do
    [ -n "$path" ] && echo "$device 0" > "$path"
done
"#;

/// $1 is the group, $2 the one that its processes came from.
const UNDO_GROUP: &str = r#"
tries=0
while [ -d "$1" ] && [ $tries -lt 100 ]; do
    while read -r pid; do echo "$pid" > "$2/cgroup.procs"; done < "$1/cgroup.procs"
    rmdir "$1" && break
    tries=$((tries + 1))
    sleep 0.1
done
"#;

/// Where limits are written.
#[derive(Debug)]
enum Files {
    /// A file for each limit, in cgroup v1's root group.
    Root(PathBuf),
    /// One file for all limits, in a cgroup v2 group of our own.
    Group(PathBuf),
}

/// The limits of one device.
#[derive(Debug)]
pub struct Limiter {
    files: Files,
    device: String,
    undo: Undo,
}

/// Where the controller is mounted.
#[derive(Debug, PartialEq)]
enum Controller {
    V1(PathBuf),
    V2(PathBuf),
}

/// Finds the controller in the table of mounts. The error says why there is none.
fn controller(mounts: &str) -> Result<Controller, String> {
    let mut v2 = None;
    for line in mounts.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let point = left.split(' ').nth(4).unwrap_or_default();
        let mut fields = right.split(' ');
        match (fields.next(), fields.nth(1)) {
            (Some("cgroup"), Some(options))
                if options.split(',').any(|option| option == "blkio") =>
            {
                return Ok(Controller::V1(PathBuf::from(point)));
            }
            (Some("cgroup2"), _) => v2 = Some(PathBuf::from(point)),
            _ => {}
        }
    }
    v2.map(Controller::V2).ok_or_else(|| {
        "limits require the kernel's block I/O controller, and no cgroup hierarchy is mounted"
            .into()
    })
}

/// Makes a group below cgroup v2's root and moves this process there.
fn enter_group(root: &Path, device: &str) -> Result<(PathBuf, Undo), String> {
    let known = std::fs::read_to_string(root.join("cgroup.controllers")).unwrap_or_default();
    for wanted in ["io", "memory"] {
        if !known.split_ascii_whitespace().any(|controller| controller == wanted) {
            return Err(format!(
                "limits require the cgroup controller {wanted}, and {} has only: {}",
                root.display(),
                known.trim()
            ));
        }
        write(&root.join("cgroup.subtree_control"), &format!("+{wanted}"))?;
    }
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let home = groups.lines().find_map(|line| line.strip_prefix("0::/")).unwrap_or_default();
    let home = root.join(home);
    let group =
        root.join(format!("tally-storage-{}-{}", std::process::id(), device.replace(':', "-")));
    let undo = Undo::start(UNDO_GROUP, &[group.as_os_str(), home.as_os_str()])
        .map_err(|error| error.to_string())?;
    files::new_folder(&group, files::Access::Everybody)
        .map_err(|error| format!("{}: {error}", group.display()))?;
    // 0 means the process that writes.
    write(&group.join("cgroup.procs"), "0")?;
    Ok((group, undo))
}

impl Limiter {
    /// A limiter for the device with this number. Limits hold for processes started afterwards.
    pub fn new(major: u32, minor: u32) -> Result<Limiter, String> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").map_err(|e| e.to_string())?;
        let device = format!("{major}:{minor}");
        let (files, undo) = match controller(&mounts)? {
            Controller::V1(root) => {
                let undo = Undo::start(UNDO_LIMITS, &[] as &[&OsStr]);
                (Files::Root(root), undo.map_err(|error| error.to_string())?)
            }
            Controller::V2(root) => {
                let (group, undo) = enter_group(&root, &device)?;
                (Files::Group(group), undo)
            }
        };
        let limiter = Limiter { files, device, undo };
        match limiter.path("write_bps").exists() {
            true => Ok(limiter),
            false => {
                Err("this kernel cannot limit devices; it lacks CONFIG_BLK_DEV_THROTTLING".into())
            }
        }
    }

    fn path(&self, what: &str) -> PathBuf {
        match &self.files {
            Files::Root(root) => root.join(format!("blkio.throttle.{what}_device")),
            Files::Group(group) => group.join("io.max"),
        }
    }

    /// Sets a limit; values that it does not name stay unchanged.
    pub fn set(&mut self, limit: &Limit) -> Result<(), String> {
        let values = [
            ("write_bps", "wbps", limit.write_bytes.map(|size| size.0)),
            ("read_bps", "rbps", limit.read_bytes.map(|size| size.0)),
            ("write_iops", "wiops", limit.write_operations),
            ("read_iops", "riops", limit.read_operations),
        ];
        for (file, key, value) in values {
            let Some(value) = value else { continue };
            let path = self.path(file);
            match self.files {
                Files::Root(_) => {
                    self.undo.send_line(&format!("{} {}", self.device, path.display()));
                    write(&path, &format!("{} {value}", self.device))?;
                }
                Files::Group(_) => write(&path, &format!("{} {key}={value}", self.device))?,
            }
        }
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    files::write_to_kernel(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// A limit in words.
pub fn describe(limit: &Limit) -> String {
    let bytes = |what: &str, size: Option<crate::storage::file::Size>| {
        size.map(|size| format!("{what} {size}/s"))
    };
    let operations = |what: &str, n: Option<u64>| n.map(|n| format!("{n} {what}/s"));
    let all = [
        bytes("write", limit.write_bytes),
        bytes("read", limit.read_bytes),
        operations("writes", limit.write_operations),
        operations("reads", limit.read_operations),
    ];
    all.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::file::Size;

    #[test]
    fn the_controller_is_found_or_the_reason_reported() {
        let v1 = "26 1 0:22 / /proc rw - proc proc rw\n40 1 0:30 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n";
        let v2 = "40 1 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        let in_v1 = Controller::V1(PathBuf::from("/sys/fs/cgroup/blkio"));
        assert_eq!(controller(v1), Ok(in_v1));
        assert_eq!(controller(v2), Ok(Controller::V2(PathBuf::from("/sys/fs/cgroup"))));
        // The controller belongs to one of them, and v1 has it where its mount names it.
        assert!(matches!(controller(&format!("{v2}{v1}")), Ok(Controller::V1(_))));
        assert!(controller("").unwrap_err().contains("no cgroup hierarchy is mounted"));
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("cgroup.controllers"), "cpu memory pids\n").unwrap();
        let error = enter_group(root.path(), "7:1").unwrap_err();
        assert!(error.contains("controller io") && error.contains("cpu memory pids"), "{error}");
    }

    #[test]
    fn limits_are_taken_away_in_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let undo = Undo::start(UNDO_LIMITS, &[] as &[&OsStr]).unwrap();
        let mut limiter =
            Limiter { files: Files::Root(folder.path().to_path_buf()), device: "7:3".into(), undo };
        let limit = Limit {
            write_bytes: Some(Size(4096)),
            read_bytes: Some(Size(8192)),
            write_operations: Some(3),
            read_operations: Some(4),
            ..Limit::default()
        };
        let files = ["write_bps", "read_bps", "write_iops", "read_iops"];
        let path = |what: &str| folder.path().join(format!("blkio.throttle.{what}_device"));
        for what in files {
            std::fs::write(path(what), "").unwrap();
        }
        limiter.set(&limit).unwrap();
        let read = |what: &str| std::fs::read_to_string(path(what)).unwrap();
        assert_eq!(files.map(read), ["7:3 4096", "7:3 8192", "7:3 3", "7:3 4"]);
        drop(limiter);
        assert_eq!(files.map(read), ["7:3 0\n"; 4]);
        assert_eq!(describe(&limit), "write 4 kB/s, read 8 kB/s, 3 writes/s, 4 reads/s");
    }
}
