// SPDX-License-Identifier: PostgreSQL
//! The mounts in /proc/PID/mountinfo, and the mount of a path.

use std::collections::HashMap;
use std::ffi::OsString;
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use crate::number::DeviceNumber;

/// One mount.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Mount {
    pub id: u64,
    parent: u64,
    /// The number of the file system's device; anonymous if it has none.
    pub number: DeviceNumber,
    /// The directory of the file system that is mounted: "/", except for bind mounts and subvolumes.
    pub root: PathBuf,
    pub point: PathBuf,
    pub options: String,
    pub kind: String,
    pub source: PathBuf,
    /// Still escaped, to distinguish a comma within an option from one between options.
    pub super_options: Vec<u8>,
    /// Whether a table lists it.
    pub listed: bool,
}

impl Mount {
    /// A mount that no table lists, from the kernel's numbers for it and its device. For a root that is not a
    /// mount point it is the mount of "/"; the other values are those of another mount of the device, or of a
    /// file on it.
    pub fn unlisted(
        id: Option<u64>,
        number: DeviceNumber,
        source: PathBuf,
        kind: &str,
        read_only: bool,
    ) -> Mount {
        // Before Linux 5.8 mounts have no number; the kernel's numbers are far below these.
        let own = 1 << 63 | u64::from(number.major) << 32 | u64::from(number.minor);
        Mount {
            id: id.unwrap_or(own),
            parent: 0,
            number,
            root: "/".into(),
            point: "/".into(),
            options: if read_only { "ro" } else { "rw" }.into(),
            kind: kind.into(),
            source,
            super_options: Vec::new(),
            listed: false,
        }
    }

    /// The value of an option of the file system.
    pub fn super_option(&self, name: &str) -> Option<PathBuf> {
        self.super_options.split(|&b| b == b',').find_map(|option| {
            let value = option.strip_prefix(name.as_bytes())?.strip_prefix(b"=")?;
            Some(unescape(value).into())
        })
    }

    fn parse(line: &[u8]) -> Option<Mount> {
        let mut fields = line.split(|&b| b == b' ');
        let number = |field: &[u8]| std::str::from_utf8(field).ok()?.parse::<u64>().ok();
        let id = number(fields.next()?)?;
        let parent = number(fields.next()?)?;
        let device = std::str::from_utf8(fields.next()?).ok()?.parse().ok()?;
        let root = unescape(fields.next()?).into();
        let point = unescape(fields.next()?).into();
        let options = text(fields.next()?);
        // Any number of optional fields, up to a hyphen.
        fields.find(|field| field == b"-")?;
        let kind = text(fields.next()?);
        let source = unescape(fields.next()?).into();
        let super_options = fields.next().unwrap_or_default().to_vec();
        Some(Mount {
            id,
            parent,
            number: device,
            root,
            point,
            options,
            kind,
            source,
            super_options,
            listed: true,
        })
    }
}

/// The mounts of a process.
#[derive(Debug, Clone, Default)]
pub(crate) struct Mounts {
    mounts: Vec<Mount>,
    by_id: HashMap<u64, usize>,
    /// Indexes by parent mount; `None` if the parent is not in the table.
    children: HashMap<Option<u64>, Vec<usize>>,
}

impl Mounts {
    /// Parses a table; ignores malformed lines.
    pub fn parse(table: &[u8]) -> Mounts {
        let mounts: Vec<Mount> = table.split(|&b| b == b'\n').filter_map(Mount::parse).collect();
        let by_id: HashMap<u64, usize> =
            mounts.iter().enumerate().map(|(at, mount)| (mount.id, at)).collect();
        let mut children: HashMap<Option<u64>, Vec<usize>> = HashMap::new();
        for (at, mount) in mounts.iter().enumerate() {
            let parent = (mount.parent != mount.id && by_id.contains_key(&mount.parent))
                .then_some(mount.parent);
            children.entry(parent).or_default().push(at);
        }
        Mounts { mounts, by_id, children }
    }

    pub fn by_id(&self, id: u64) -> Option<&Mount> {
        self.by_id.get(&id).map(|&at| &self.mounts[at])
    }

    /// A mount of this device.
    pub fn by_number(&self, number: DeviceNumber) -> Option<&Mount> {
        self.mounts.iter().find(|mount| mount.number == number)
    }

    /// The mount of a path without symbolic links.
    ///
    /// As in the kernel, it starts from the root and crosses into the first mount on the way. The longest prefix
    /// alone might be a mount that a later one, further up, hides. Of several mounts on the same directory, the last
    /// one counts.
    pub fn of_path(&self, path: &Path) -> Option<&Mount> {
        let mut on: Option<&Mount> = None;
        // The loop ends even if the table is not a tree.
        for _ in 0..self.mounts.len() {
            let beneath = self.children.get(&on.map(|mount| mount.id));
            let next = beneath
                .into_iter()
                .flatten()
                .map(|&at| &self.mounts[at])
                .filter(|mount| path.starts_with(&mount.point))
                // min_by_key takes the first of equal ones, but the last one counts.
                .rev()
                .min_by_key(|mount| mount.point.components().count());
            match next {
                Some(next) => on = Some(next),
                None => break,
            }
        }
        on
    }

    /// The mount points below a directory.
    pub fn below<'a>(&'a self, directory: &'a Path) -> impl Iterator<Item = &'a Path> {
        self.mounts
            .iter()
            .map(|mount| mount.point.as_path())
            .filter(move |point| point.starts_with(directory) && *point != directory)
    }
}

/// Decodes spaces, tabs, line feeds and backslashes, which are escaped as a backslash and three octal digits.
fn unescape(field: &[u8]) -> OsString {
    let mut bytes = Vec::with_capacity(field.len());
    let mut rest = field;
    while let Some((&first, after)) = rest.split_first() {
        let octal = after
            .get(..3)
            .filter(|digits| first == b'\\' && digits.iter().all(|d| (b'0'..=b'7').contains(d)))
            .map(|digits| digits.iter().fold(0u32, |sum, d| sum * 8 + u32::from(d - b'0')));
        match octal.and_then(|value| u8::try_from(value).ok()) {
            Some(byte) => {
                bytes.push(byte);
                rest = &after[3..];
            }
            None => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    OsString::from_vec(bytes)
}

/// A field as text.
pub(crate) fn text(field: &[u8]) -> String {
    unescape(field).to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    fn point<'a>(mounts: &'a Mounts, path: &str) -> (&'a str, &'a str) {
        let mount = mounts.of_path(Path::new(path)).expect("a mount");
        (mount.point.to_str().expect("a name"), mount.kind.as_str())
    }

    /// Captured on a machine with systemd, with one bind mount and one stacked mount added.
    const TABLE: &[u8] = b"\
26 1 253:1 / / rw,relatime shared:1 - ext4 /dev/mapper/vg-root rw,errors=remount-ro\n\
24 26 0:22 / /proc rw,nosuid - proc proc rw\n\
40 26 8:17 / /srv/pg rw,noatime shared:22 master:3 - xfs /dev/sdb1 rw,attr2\n\
41 40 253:1 /spare/wal /srv/pg/wal rw,relatime - ext4 /dev/mapper/vg-root rw\n\
42 26 0:50 / /mnt/a\\040b rw - tmpfs none rw,size=1024k\n\
43 42 8:33 / /mnt/a\\040b rw - ext4 /dev/sdc1 rw\n\
50 26 8:49 / /hidden/deep rw - ext4 /dev/sdd1 rw\n\
51 26 0:60 / /hidden rw - tmpfs none rw\n";

    #[test]
    fn a_path_is_on_the_last_mount_on_the_way() {
        let mounts = Mounts::parse(TABLE);
        assert_eq!(point(&mounts, "/etc/passwd"), ("/", "ext4"));
        assert_eq!(point(&mounts, "/srv/pg/base/1"), ("/srv/pg", "xfs"));
        assert_eq!(point(&mounts, "/srv/pgother"), ("/", "ext4"));
        assert_eq!(point(&mounts, "/srv/pg/wal/0001"), ("/srv/pg/wal", "ext4"));
        assert_eq!(mounts.by_id(41).expect("the bind mount").root, Path::new("/spare/wal"));
    }

    #[test]
    fn the_last_of_stacked_mounts_counts() {
        let mounts = Mounts::parse(TABLE);
        assert_eq!(point(&mounts, "/mnt/a b/x"), ("/mnt/a b", "ext4"));
        // Two that are both mounted on the same parent, as after a mount was moved.
        let twice = b"1 0 8:1 / / rw - ext4 a rw\n2 1 8:2 / /x rw - xfs b rw\n3 1 8:3 / /x rw - btrfs c rw\n";
        assert_eq!(point(&Mounts::parse(twice), "/x/y"), ("/x", "btrfs"));
    }

    #[test]
    fn a_mount_that_a_later_one_hides_is_not_found() {
        let mounts = Mounts::parse(TABLE);
        assert_eq!(point(&mounts, "/hidden/deep/file"), ("/hidden", "tmpfs"));
    }

    #[test]
    fn mounts_are_found_without_the_root_mount() {
        let part = b"9 7 8:2 / /pg rw - xfs /dev/sdb rw\n";
        assert_eq!(point(&Mounts::parse(part), "/pg/1"), ("/pg", "xfs"));
        assert!(Mounts::parse(part).of_path(Path::new("/etc")).is_none());
    }

    #[test]
    fn escaped_characters_are_decoded() {
        assert_eq!(unescape(b"a\\040b\\011c\\012d\\134e"), "a b\tc\nd\\e");
        // Other backslashes stay, and so do bytes that are not UTF-8.
        assert_eq!(unescape(b"\\9\\04\\777\\").as_bytes(), b"\\9\\04\\777\\");
        assert_eq!(unescape(b"\xff\\040").as_bytes(), b"\xff ");
    }

    #[test]
    fn an_option_may_hold_an_escaped_comma() {
        let line = b"1 0 0:5 / / rw - overlay o rw,lowerdir=/l,upperdir=/u\\054v\\040w,workdir=/x";
        let mount = Mount::parse(line).expect("a mount");
        assert_eq!(mount.super_option("upperdir"), Some("/u,v w".into()));
        assert_eq!(mount.super_option("upper"), None);
    }

    #[test]
    fn malformed_lines_are_ignored_and_a_ring_of_parents_ends() {
        assert!(Mounts::parse(b"\n1 2\nx y 8:1 / / rw - ext4 a rw\n1 1 8:1 / / rw\n")
            .of_path(Path::new("/"))
            .is_none());
        let ring = b"1 2 8:1 / / rw - ext4 a rw\n2 1 8:2 / / rw - ext4 b rw\n";
        assert!(Mounts::parse(ring).of_path(Path::new("/x")).is_none());
        let own = b"1 1 8:1 / / rw - ext4 a rw\n";
        assert_eq!(point(&Mounts::parse(own), "/x"), ("/", "ext4"));
    }
}
