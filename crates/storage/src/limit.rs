// SPDX-License-Identifier: PostgreSQL
//! Limits a device by the kernel's block I/O controller: a slow disk, or one that becomes slow.
//!
//! The limit holds for the whole device, for write-back of the page cache too: cgroup v1's root group.
//! Its files are named by the device, so nothing else is affected. The limits are taken away even if
//! this process is killed. A kernel whose controller is in cgroup v2 has no limits for its root
//! group: the arm is left out with that reason.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use scratch::Undo;

use crate::file::Limit;

/// Each line is the path of a limit, a blank, and the device's number.
const UNDO: &str = r#"
printf '%s' "$lines" | while read -r device path; do
    [ -n "$path" ] && echo "$device 0" > "$path"
done
"#;

/// The limits of one device.
#[derive(Debug)]
pub struct Limiter {
    group: PathBuf,
    device: String,
    undo: Undo,
}

/// The root group of cgroup v1's controller, from the table of mounts; an error that says why there is none.
fn root_group(mounts: &str) -> Result<PathBuf, String> {
    let mut v2 = false;
    for line in mounts.lines() {
        let Some((left, right)) = line.split_once(" - ") else { continue };
        let point = left.split(' ').nth(4).unwrap_or_default();
        let mut fields = right.split(' ');
        match (fields.next(), fields.nth(1)) {
            (Some("cgroup"), Some(options)) if options.split(',').any(|it| it == "blkio") => {
                return Ok(PathBuf::from(point));
            }
            (Some("cgroup2"), _) => v2 = true,
            _ => {}
        }
    }
    Err(match v2 {
        true => {
            "limits need the blkio controller of cgroup v1, and only cgroup v2 is mounted".into()
        }
        false => "limits need the blkio controller of cgroup v1, which is not mounted".into(),
    })
}

impl Limiter {
    /// For the device with this number.
    pub fn new(major: u32, minor: u32) -> Result<Limiter, String> {
        let mounts = std::fs::read_to_string("/proc/self/mountinfo").map_err(|e| e.to_string())?;
        let group = root_group(&mounts)?;
        let undo = Undo::start(UNDO, &[] as &[&OsStr]).map_err(|error| error.to_string())?;
        let limiter = Limiter { group, device: format!("{major}:{minor}"), undo };
        match limiter.path("write_bps").exists() {
            true => Ok(limiter),
            false => Err("the kernel cannot limit devices (CONFIG_BLK_DEV_THROTTLING)".into()),
        }
    }

    fn path(&self, what: &str) -> PathBuf {
        self.group.join(format!("blkio.throttle.{what}_device"))
    }

    /// Set a limit; what it does not name stays as it is.
    pub fn set(&mut self, limit: &Limit) -> Result<(), String> {
        let values = [
            ("write_bps", limit.write_bytes.map(|size| size.0)),
            ("read_bps", limit.read_bytes.map(|size| size.0)),
            ("write_iops", limit.write_operations),
            ("read_iops", limit.read_operations),
        ];
        for (what, value) in values {
            let Some(value) = value else { continue };
            let path = self.path(what);
            self.undo.send_line(&format!("{} {}", self.device, path.display()));
            write(&path, &format!("{} {value}", self.device))?;
        }
        Ok(())
    }
}

fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("{}: {error}", path.display()))
}

/// What a limit says, for people.
pub fn describe(limit: &Limit) -> String {
    let bytes =
        |what: &str, size: Option<crate::file::Size>| size.map(|size| format!("{what} {size}/s"));
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
    use crate::file::Size;

    #[test]
    fn the_controller_is_found_or_the_reason_reported() {
        let v1 = "26 1 0:22 / /proc rw - proc proc rw\n40 1 0:30 / /sys/fs/cgroup/blkio rw - cgroup cgroup rw,blkio\n";
        assert_eq!(root_group(v1), Ok(PathBuf::from("/sys/fs/cgroup/blkio")));
        let v2 = "40 1 0:30 / /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert!(root_group(v2).unwrap_err().contains("only cgroup v2"));
        assert!(root_group("").unwrap_err().contains("not mounted"));
    }

    #[test]
    fn limits_are_taken_away_in_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let undo = Undo::start(UNDO, &[] as &[&OsStr]).unwrap();
        let mut limiter =
            Limiter { group: folder.path().to_path_buf(), device: "7:3".into(), undo };
        let limit = Limit { write_bytes: Some(Size(4096)), ..Limit::default() };
        limiter.set(&limit).unwrap();
        let path = folder.path().join("blkio.throttle.write_bps_device");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "7:3 4096");
        drop(limiter);
        assert_eq!(std::fs::read_to_string(&path).unwrap(), "7:3 0\n");
        assert_eq!(describe(&limit), "write 4 kB/s");
    }
}
