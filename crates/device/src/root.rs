// SPDX-License-Identifier: PostgreSQL
//! Files under a root directory: the server's root may differ from ours, in a container or after a chroot.

use std::fs::File;
use std::io::Read;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use rustix::fs::{
    fstat, fstatfs, fstatvfs, openat, openat2, readlinkat, statx, AtFlags, Dir, Mode, OFlags,
    ResolveFlags, StatVfsMountFlags, Statx, StatxFlags, CWD,
};
use rustix::io::Errno;

use crate::number::DeviceNumber;
use crate::problem::Problem;
use crate::space::Space;
use crate::system::System;

/// Size limit for reading a whole file, bytes.
const MAX_BYTES: u64 = 64 * 1024;
/// STATX_MNT_ID_UNIQUE of statx(2); a kernel that does not know it ignores it.
const MNT_ID_UNIQUE: StatxFlags = StatxFlags::from_bits_retain(0x4000);

/// A root directory, under which paths are looked up.
#[derive(Debug)]
pub(crate) struct Root {
    /// `None` for our own root.
    other: Option<OtherRoot>,
    /// Whether the tables have the kernel's numbers of mounts and devices.
    numbers: bool,
}

#[derive(Debug)]
struct OtherRoot {
    fd: OwnedFd,
    /// Its path under our own root, if it has one; "/" for a container's root.
    path: PathBuf,
}

/// A file or directory.
#[derive(Debug)]
pub(crate) struct FileIdentity {
    fd: OwnedFd,
    /// The kernel's number of its mount, since Linux 5.8: the one in the tables of mounts.
    pub mount_id: Option<u64>,
    /// A number that is never reused, since Linux 6.8; before that, `mount_id`, which a later mount may get.
    pub unique_mount_id: Option<u64>,
    /// The number of the file system's device; major 0 if it has none of its own.
    pub device: Option<DeviceNumber>,
    /// The path without symbolic links.
    pub path: PathBuf,
}

impl Root {
    /// Our own root.
    pub fn own(system: &System) -> Root {
        Root { other: None, numbers: system.own }
    }

    /// The root of a process.
    pub fn of_process(system: &System, pid: u32) -> Result<Root, Problem> {
        let fd = openat(CWD, system.proc.path(pid, "root"), path_flags(), Mode::empty())?;
        let ours = openat(CWD, c"/", path_flags(), Mode::empty())?;
        let location = |fd| fstat(fd).map(|stat| (stat.st_dev, stat.st_ino));
        let mounts = |process: &str| {
            std::fs::read_link(system.proc.root().join(process).join("ns/mnt")).ok()
        };
        if location(&fd)? == location(&ours)? && mounts(&pid.to_string()) == mounts("self") {
            return Ok(Self::own(system));
        }
        let path = name_of(&fd).unwrap_or_else(|| "/".into());
        Ok(Root { other: Some(OtherRoot { fd, path }), numbers: system.own })
    }

    /// Whether it is our own root.
    pub fn is_own(&self) -> bool {
        self.other.is_none()
    }

    fn open(&self, path: &Path, flags: OFlags) -> Result<OwnedFd, Errno> {
        match &self.other {
            None => openat(CWD, path, flags, Mode::empty()),
            // Absolute symbolic links start at that root.
            Some(root) => openat2(&root.fd, path, flags, Mode::empty(), ResolveFlags::IN_ROOT),
        }
    }

    /// Finds a file or directory; follows symbolic links.
    pub fn find(&self, path: &Path) -> Result<FileIdentity, Problem> {
        let fd = self.open(path, path_flags()).map_err(|errno| self.explain(path, errno))?;
        // Do not query the file system, so that a slow network causes no wait.
        let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
        let stat = |asked| statx(&fd, c"", flags, asked).ok().filter(|_| self.numbers);
        let id = |stat: Option<Statx>, asked: StatxFlags| {
            stat.filter(|s| s.stx_mask & asked.bits() != 0).map(|s| s.stx_mnt_id)
        };
        let common = stat(StatxFlags::MNT_ID);
        let device =
            common.map(|s| DeviceNumber { major: s.stx_dev_major, minor: s.stx_dev_minor });
        let mount_id = id(common, StatxFlags::MNT_ID);
        let unique_mount_id = id(stat(MNT_ID_UNIQUE), MNT_ID_UNIQUE).or(mount_id);
        let path = name_of(&fd).map_or_else(|| path.to_path_buf(), |name| self.inside(name));
        Ok(FileIdentity { fd, mount_id, unique_mount_id, device, path })
    }

    /// Converts a path of ours to one under this root.
    fn inside(&self, path: PathBuf) -> PathBuf {
        let root = self.other.as_ref().map_or(Path::new("/"), |root| &root.path);
        match path.strip_prefix(root) {
            Ok(rest) => Path::new("/").join(rest),
            Err(_) => path,
        }
    }

    /// A dangling link exists although its target does not.
    fn explain(&self, path: &Path, errno: Errno) -> Problem {
        match self.link(path) {
            Some(to) if errno == Errno::NOENT => {
                Problem::Dangling(to.to_string_lossy().into_owned())
            }
            _ => errno.into(),
        }
    }

    fn link(&self, path: &Path) -> Option<PathBuf> {
        let flags = path_flags() | OFlags::NOFOLLOW;
        let fd = self.open(path, flags).ok()?;
        let target = readlinkat(&fd, c"", Vec::new()).ok()?;
        Some(std::ffi::OsString::from_vec(target.into_bytes()).into())
    }

    /// The names in a directory, unordered.
    pub fn list(&self, path: &Path) -> Result<Vec<PathBuf>, Problem> {
        let fd = self.open(path, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC)?;
        let mut names = Vec::new();
        for entry in Dir::read_from(&fd)? {
            let name = entry?.file_name().to_bytes().to_vec();
            if name != b"." && name != b".." {
                names.push(std::ffi::OsString::from_vec(name).into());
            }
        }
        Ok(names)
    }

    /// The contents of a short file.
    pub fn read(&self, path: &Path) -> Result<Vec<u8>, Problem> {
        // The path may be a pipe, for which a read would wait.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let mut bytes = Vec::new();
        File::from(self.open(path, flags)?).take(MAX_BYTES).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

impl FileIdentity {
    /// The space on its file system.
    pub fn space(&self) -> Result<Space, Problem> {
        Ok(Space::from_statvfs(&fstatvfs(&self.fd)?))
    }

    /// The type of its file system, for a mount that no table lists.
    pub fn kind(&self) -> &'static str {
        // linux/magic.h, and the sources of file systems that are not in it.
        match fstatfs(&self.fd).map_or(0, |stat| stat.f_type as u32) {
            0xEF53 => "ext4",
            0x5846_5342 => "xfs",
            0x9123_683E => "btrfs",
            0xF2F5_2010 => "f2fs",
            0xCA45_1A4E => "bcachefs",
            0x2FC1_2FC1 => "zfs",
            0x0102_1994 => "tmpfs",
            0x8584_58F6 => "ramfs",
            0x794C_7630 => "overlay",
            0x6969 => "nfs",
            0xFF53_4D42 => "cifs",
            0xFE53_4D42 => "smb3",
            0x00C3_6400 => "ceph",
            0x0102_1997 => "9p",
            0x6573_5546 => "fuse",
            _ => "unknown",
        }
    }

    /// Whether its mount is read-only.
    pub fn read_only(&self) -> bool {
        fstatvfs(&self.fd).is_ok_and(|stat| stat.f_flag.contains(StatVfsMountFlags::RDONLY))
    }
}

fn path_flags() -> OFlags {
    OFlags::PATH | OFlags::CLOEXEC
}

/// The kernel's name of an open file.
fn name_of(fd: &OwnedFd) -> Option<PathBuf> {
    std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A /proc whose process 77 has its root in a directory.
    fn elsewhere() -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().expect("a directory");
        let root = dir.path().join("root");
        std::fs::create_dir_all(root.join("var/data")).expect("a tree");
        std::fs::create_dir_all(dir.path().join("proc/77")).expect("a tree");
        std::os::unix::fs::symlink(&root, dir.path().join("proc/77/root")).expect("a link");
        let system = System::at(dir.path().join("proc"), dir.path().join("sys"));
        let view = Root::of_process(&system, 77).expect("a view");
        (dir, view)
    }

    #[test]
    fn links_are_followed_within_the_servers_root() {
        let (dir, view) = elsewhere();
        assert!(!view.is_own());
        let root = dir.path().join("root");
        std::os::unix::fs::symlink("/var/data", root.join("absolute")).expect("a link");
        std::os::unix::fs::symlink("/../../../etc", root.join("out")).expect("a link");
        assert_eq!(view.find(Path::new("/absolute")).expect("found").path, Path::new("/var/data"));
        assert_eq!(
            view.find(Path::new("/out")).expect_err("outside"),
            Problem::Dangling("/../../../etc".into())
        );
        assert_eq!(view.find(Path::new("/none")).expect_err("none"), Problem::Missing);
    }

    #[test]
    fn a_pipe_does_not_block_and_a_device_is_read_up_to_a_limit() {
        let (dir, view) = elsewhere();
        let pipe = dir.path().join("root/pipe");
        assert!(std::process::Command::new("mkfifo")
            .arg(&pipe)
            .status()
            .expect("mkfifo")
            .success());
        assert_eq!(view.read(Path::new("/pipe")).expect("nothing"), b"");
        let own = Root::own(&System::live());
        assert_eq!(own.read(Path::new("/dev/zero")).expect("zeros").len(), MAX_BYTES as usize);
    }

    #[test]
    fn our_own_process_has_our_own_root() {
        let view = Root::of_process(&System::live(), std::process::id()).expect("a view");
        assert!(view.is_own());
        assert!(view.find(Path::new("/")).expect("found").space().expect("space").total_bytes > 0);
    }
}
