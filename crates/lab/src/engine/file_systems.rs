// SPDX-License-Identifier: PostgreSQL

//! Creates file systems for an arm: an image file, a loop device on it, `mkfs`, `mount`. An array has one
//! image per device, and `mdadm` combines them.
//!
//! The loop device bypasses the page cache, so that data is not cached twice and a flush reaches the
//! disk below. It is detached right after mounting; the kernel completes that when the file system is
//! unmounted. Everything is removed even if this process is killed.
//!
//! tmpfs needs neither a device nor root: it is a directory in /dev/shm.

use files::Access;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use scratch::Undo;
use serde::Deserialize;

/// Default size: enough for a small server, and above the 300 MB that some file systems need.
pub const USUAL_BYTES: u64 = 2 << 30;

/// Bytes that md reserves on each device.
const MD_BYTES: u64 = 4 << 20;

const SHARED_MEMORY: &str = "/dev/shm";

/// Removes the file system. `mkfs`, `losetup` and `mount` also hold the pipe open, so this starts only
/// after they have ended. A server that is stopping keeps the file system busy: after 10 s it is
/// unmounted lazily.
const UNDO: &str = r#"
n=0
for image in "$1"/image*; do
    for device in $(losetup --noheadings --output NAME --associated "$image" 2>&1); do
        losetup -d "$device"
    done
done
while mountpoint -q "$1/mount" && ! umount "$1/mount"; do
    n=$((n + 1))
    [ $n -eq 100 ] && umount -l "$1/mount" && break
    sleep 0.1
done
if [ -f "$1/array" ]; then
    n=0
    while [ -e "$(cat "$1/array")" ] && ! mdadm --quiet --stop "$(cat "$1/array")"; do
        n=$((n + 1))
        [ $n -eq 100 ] && break
        sleep 0.1
    done
fi
rm -rf --one-file-system -- "$1"
"#;

/// A RAID array of the kernel's md driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Array {
    /// 0, 1, 5, 6 or 10.
    pub level: u8,
    /// Number of devices.
    pub devices: u8,
}

impl Array {
    /// Checks that md can create this array.
    pub fn check(&self) -> Result<(), String> {
        let min = match self.level {
            0 | 1 | 10 => 2,
            5 => 3,
            6 => 4,
            _ => return Err("RAID level must be 0, 1, 5, 6 or 10".into()),
        };
        match (min..=16).contains(&self.devices) {
            true => Ok(()),
            false => Err(format!("RAID level {} needs {min} to 16 devices", self.level)),
        }
    }

    /// Bytes of each device, for an array of this size.
    fn device_bytes(&self, bytes: u64) -> u64 {
        let devices = u64::from(self.devices);
        let of_data = match self.level {
            0 => devices,
            1 => 1,
            5 => devices - 1,
            6 => devices - 2,
            _ => devices / 2,
        };
        bytes / of_data.max(1) + MD_BYTES
    }
}

/// A file system for an arm's files, removed on drop. Drop the server first.
#[derive(Debug)]
pub struct FileSystem {
    path: PathBuf,
    undo: Undo,
}

impl FileSystem {
    /// Creates a file system of this kind and size (bytes) on the disk of the directory `near`. The error
    /// tells the user why that is not possible.
    pub fn make(kind: &str, bytes: u64, near: &Path) -> Result<FileSystem, String> {
        Self::make_with(kind, bytes, near, None, None)
    }

    /// Like [`FileSystem::make`], with mount options such as "noatime", and on an array of devices.
    pub fn make_with(
        kind: &str,
        bytes: u64,
        near: &Path,
        options: Option<&str>,
        array: Option<Array>,
    ) -> Result<FileSystem, String> {
        let tmpfs = kind == "tmpfs";
        let parent = if tmpfs { Path::new(SHARED_MEMORY) } else { near };
        let folder =
            files::unique_folder(parent, "tally-fs.", Access::Everybody).map_err(|error| {
                format!("could not create a directory in {}: {error}", parent.display())
            })?;
        let path = folder.join("mount");
        files::new_folder(&path, Access::Everybody)
            .map_err(|error| format!("{}: {error}", path.display()))?;
        // Start this before there is anything to undo.
        let undo = Undo::start(UNDO, &[folder.as_os_str()]).map_err(|error| error.to_string())?;
        // From here on the shell removes the folder.
        let file_system = FileSystem { path, undo };
        if !tmpfs {
            file_system.mount(kind, bytes, &folder, options, array)?;
        }
        passable(&file_system.path)?;
        Ok(file_system)
    }

    /// The mount point; all users may enter it.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn mount(
        &self,
        kind: &str,
        bytes: u64,
        folder: &Path,
        mount_options: Option<&str>,
        array: Option<Array>,
    ) -> Result<(), String> {
        if !kind.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(format!("\"{kind}\" is not a file system type"));
        }
        if !rustix::process::geteuid().is_root() {
            return Err(format!("creating a {kind} file system requires root"));
        }
        // Options for quiet, forced creation, and the Debian package.
        let (options, package): (&[&str], &str) = match kind {
            "ext2" | "ext3" | "ext4" => (&["-q", "-F"], "e2fsprogs"),
            "xfs" => (&["-q", "-f"], "xfsprogs"),
            "btrfs" => (&["-q", "-f"], "btrfs-progs"),
            "f2fs" => (&["-q", "-f"], "f2fs-tools"),
            "zfs" => {
                return Err(
                    "zfs needs a pool; create one and pass its directory with --directory".into()
                )
            }
            _ => (&[], "its tools"),
        };
        let make = format!("mkfs.{kind}");
        // Check this before filling images.
        self.done(Command::new(&make).arg("-V"), package)?;
        let devices: Vec<String> = match array {
            None => vec![self.loop_device(&folder.join("image"), bytes)?],
            Some(array) => (0..array.devices)
                .map(|n| {
                    self.loop_device(&folder.join(format!("image{n}")), array.device_bytes(bytes))
                })
                .collect::<Result<_, _>>()?,
        };
        let device = match array {
            None => devices[0].clone(),
            Some(array) => self.array(array, &devices, folder)?,
        };
        self.done(Command::new(&make).args(options).arg(&device), package)?;
        let mut mount = Command::new("mount");
        mount.args(["-t", kind]).args(mount_options.iter().flat_map(|given| ["-o", given]));
        let mounted = self.done(mount.arg(&device).arg(&self.path), "mount");
        let detached = self.done(Command::new("losetup").arg("-d").args(&devices), "mount");
        mounted.and(detached).map(drop)
    }

    /// A loop device on a new image of this size.
    fn loop_device(&self, image: &Path, bytes: u64) -> Result<String, String> {
        files::create_new(image, Access::Owner)
            .and_then(|file| {
                let flags = rustix::fs::FallocateFlags::empty();
                rustix::fs::fallocate(&file, flags, 0, bytes).map_err(Into::into)
            })
            .map_err(|error| {
                format!("could not allocate {} MB for {}: {error}", bytes >> 20, image.display())
            })?;
        let mut attach = Command::new("losetup");
        self.done(attach.args(["--find", "--show", "--direct-io=on"]).arg(image), "mount")
    }

    /// An array of new devices: they are all zero, so they need no initial synchronisation.
    fn array(&self, array: Array, devices: &[String], folder: &Path) -> Result<String, String> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().replace('.', "-");
        let path = format!("/dev/md/{name}");
        files::write(&folder.join("array"), path.as_bytes(), Access::Owner)
            .map_err(|error| format!("{}: {error}", folder.display()))?;
        let mut create = Command::new("mdadm");
        create.args(["--quiet", "--create", &path, "--run", "--assume-clean", "--metadata=1.2"]);
        create.arg(format!("--level={}", array.level));
        create.arg(format!("--raid-devices={}", array.devices)).args(devices);
        match self.done(&mut create, "mdadm") {
            Err(why) if !Path::new("/proc/mdstat").exists() && !why.contains("not installed") => {
                Err(format!("this kernel does not support md arrays: {why}"))
            }
            made => made.map(|_| path),
        }
    }

    /// Runs the command. Returns its output, or why it failed.
    fn done(&self, command: &mut Command, package: &str) -> Result<String, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let path = std::env::var("PATH").unwrap_or_default();
        let output = command
            .env("PATH", format!("{path}:/usr/sbin:/sbin"))
            .env("LC_ALL", "C.UTF-8")
            .stdin(self.undo.pipe().map_err(|error| format!("could not create a pipe: {error}"))?)
            .output()
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => format!("{name} is not installed (Debian: {package})"),
                _ => format!("{name}: {error}"),
            })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_string());
        }
        let message = String::from_utf8_lossy(&output.stderr);
        let own = message.lines().find(|line| line.starts_with(&name)).map(String::from);
        Err(own.unwrap_or_else(|| format!("{name}: {}", message.trim())))
    }
}

/// Lets all users enter the directory.
fn passable(path: &Path) -> Result<(), String> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("could not change the mode of {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kind_of(path: &Path) -> String {
        let output =
            Command::new("stat").args(["-f", "-c", "%T"]).arg(path).output().expect("stat");
        String::from_utf8_lossy(&output.stdout).trim().to_string()
    }

    fn loops(folder: &Path) -> String {
        let output = Command::new("losetup").arg("--list").output().expect("losetup");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().filter(|line| line.contains(&*folder.to_string_lossy())).collect()
    }

    /// Waits, because the kernel frees the device only when the last process closes it, and any `losetup`
    /// on the machine may hold it open briefly.
    fn no_loop_is_left(folder: &Path) {
        let began = std::time::Instant::now();
        while !loops(folder).is_empty() && began.elapsed().as_secs() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(loops(folder), "");
    }

    #[test]
    fn a_file_system_is_created_and_removed() {
        let near = tempfile::tempdir().unwrap();
        let file_system = match FileSystem::make("ext4", 64 << 20, near.path()) {
            Ok(file_system) => file_system,
            Err(why) => return println!("not tested: {why}"),
        };
        assert_eq!(kind_of(file_system.path()), "ext2/ext3");
        std::fs::write(file_system.path().join("file"), [7; 4096]).unwrap();
        assert!(!loops(near.path()).is_empty());
        drop(file_system);
        assert_eq!(std::fs::read_dir(near.path()).unwrap().count(), 0);
        no_loop_is_left(near.path());
    }

    #[test]
    fn devices_of_an_array_have_its_size_together() {
        let each = |level, devices| Array { level, devices }.device_bytes(120) - MD_BYTES;
        assert_eq!(
            [each(0, 4), each(1, 3), each(5, 4), each(6, 4), each(10, 4)],
            [30, 120, 40, 60, 60]
        );
        for (level, fewest) in [(0, 2), (1, 2), (5, 3), (6, 4), (10, 2)] {
            for (devices, is) in [(fewest - 1, false), (fewest, true), (16, true), (17, false)] {
                assert_eq!(Array { level, devices }.check().is_ok(), is, "{level} {devices}");
            }
        }
        assert!(Array { level: 4, devices: 4 }.check().is_err());
    }

    #[test]
    fn tmpfs_is_a_directory_in_shared_memory() {
        let file_system = FileSystem::make("tmpfs", 1 << 20, Path::new("/nowhere")).unwrap();
        assert_eq!(kind_of(file_system.path()), "tmpfs");
        let folder = file_system.path().parent().unwrap().to_path_buf();
        drop(file_system);
        assert!(!folder.exists());
    }

    #[test]
    fn a_failure_names_its_reason_and_leaves_no_files() {
        let near = tempfile::tempdir().unwrap();
        let why = |kind: &str, bytes| FileSystem::make(kind, bytes, near.path()).unwrap_err();
        assert!(why("../x", 1 << 20).contains("not a file system type"));
        if rustix::process::geteuid().is_root() {
            assert!(why("ext4", 1 << 60).contains("could not allocate"));
            assert!(why("nosuchfs", 1 << 20).contains("mkfs.nosuchfs is not installed"));
            assert!(why("zfs", 1 << 20).contains("--directory"));
        } else {
            assert!(why("ext4", 64 << 20).contains("requires root"));
        }
        assert_eq!(std::fs::read_dir(near.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_busy_file_system_is_removed_later() {
        let near = tempfile::tempdir().unwrap();
        let Ok(file_system) = FileSystem::make("ext4", 64 << 20, near.path()) else { return };
        let mut busy = Command::new("sleep")
            .arg("0.5")
            .current_dir(file_system.path())
            .spawn()
            .expect("sleep");
        drop(file_system);
        assert_eq!(std::fs::read_dir(near.path()).unwrap().count(), 0);
        busy.wait().unwrap();
        no_loop_is_left(near.path());
    }
}
