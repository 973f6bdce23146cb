// SPDX-License-Identifier: PostgreSQL

//! File systems made for an arm: a file as large as asked for, a loop device over it, `mkfs`, `mount`.
//!
//! The device reads and writes its file without the page cache, so that data is not kept twice and a
//! flush goes on to the disk below. It is detached at once, which the kernel does when the file
//! system is unmounted. Whatever ends this process, all of it is undone.
//!
//! tmpfs needs nothing of the kind, nor root: it is a folder in /dev/shm.

use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use scratch::Undo;

/// A file system of this size holds a small server; some cannot be made smaller than 300 MB.
pub const USUAL_BYTES: u64 = 2 << 30;

const SHARED_MEMORY: &str = "/dev/shm";

/// Those who make the file system hold the pipe open as well, so that nothing is mounted any more when
/// it begins. A server that still stops keeps its file system busy for a while;
/// in the end it is taken out of sight, and goes when nobody uses it any more.
const UNDO: &str = r#"
n=0
for device in $(losetup --noheadings --output NAME --associated "$1/image" 2>&1); do
    losetup -d "$device"
done
while mountpoint -q "$1/mount" && ! umount "$1/mount"; do
    n=$((n + 1))
    [ $n -eq 100 ] && umount -l "$1/mount" && break
    sleep 0.1
done
rm -rf --one-file-system -- "$1"
"#;

/// Where an arm's files may lie. Its file system goes when this is dropped: the server before it.
#[derive(Debug)]
pub struct Place {
    path: PathBuf,
    undo: Undo,
}

impl Place {
    /// Make one of this kind, of so many bytes, on the disk of the folder `near`. The error says, in words
    /// for the user, why it cannot be had here.
    pub fn make(kind: &str, bytes: u64, near: &Path) -> Result<Place, String> {
        let tmpfs = kind == "tmpfs";
        let parent = if tmpfs { Path::new(SHARED_MEMORY) } else { near };
        let folder = tempfile::Builder::new()
            .prefix("tally-fs.")
            .tempdir_in(parent)
            .map_err(|error| format!("cannot create a folder in {}: {error}", parent.display()))?;
        passable(folder.path())?;
        let path = folder.path().join("mount");
        std::fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        // Before there is anything to undo.
        let undo =
            Undo::start(UNDO, &[folder.path().as_os_str()]).map_err(|error| error.to_string())?;
        // From here on the folder is the shell's to remove.
        let place = Place { path, undo };
        let folder = folder.keep();
        if !tmpfs {
            place.mount(kind, bytes, &folder)?;
        }
        passable(&place.path)?;
        Ok(place)
    }

    /// A folder on it, through which anybody may pass.
    pub fn path(&self) -> &Path {
        &self.path
    }

    fn mount(&self, kind: &str, bytes: u64, folder: &Path) -> Result<(), String> {
        if !kind.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
            return Err(format!("\"{kind}\" is no kind of file system"));
        }
        if !rustix::process::geteuid().is_root() {
            return Err(format!("making {kind} needs root"));
        }
        let image = folder.join("image");
        File::create(&image)
            .and_then(|file| {
                let flags = rustix::fs::FallocateFlags::empty();
                rustix::fs::fallocate(&file, flags, 0, bytes).map_err(Into::into)
            })
            .map_err(|error| {
                format!("no room for {} MB at {}: {error}", bytes >> 20, image.display())
            })?;
        // What makes it quiet, and where it comes from in Debian.
        let (options, package): (&[&str], &str) = match kind {
            "ext2" | "ext3" | "ext4" => (&["-q", "-F"], "e2fsprogs"),
            "xfs" => (&["-q", "-f"], "xfsprogs"),
            "btrfs" => (&["-q", "-f"], "btrfs-progs"),
            "f2fs" => (&["-q", "-f"], "f2fs-tools"),
            "zfs" => {
                return Err("zfs wants a pool; make one and name its folder with --directory".into())
            }
            _ => (&[], "its tools"),
        };
        let make = format!("mkfs.{kind}");
        self.done(Command::new(&make).args(options).arg(&image), package)?;
        let mut attach = Command::new("losetup");
        let device =
            self.done(attach.args(["--find", "--show", "--direct-io=on"]).arg(&image), "mount")?;
        let mounted =
            self.done(Command::new("mount").args(["-t", kind, &device]).arg(&self.path), "mount");
        let detached = self.done(Command::new("losetup").args(["-d", &device]), "mount");
        mounted.and(detached).map(drop)
    }

    /// Run it; what it printed, or why it could not.
    fn done(&self, command: &mut Command, package: &str) -> Result<String, String> {
        let name = command.get_program().to_string_lossy().into_owned();
        let path = std::env::var("PATH").unwrap_or_default();
        let output = command
            .env("PATH", format!("{path}:/usr/sbin:/sbin"))
            .env("LC_ALL", "C.UTF-8")
            .stdin(self.undo.pipe().map_err(|error| format!("a pipe: {error}"))?)
            .output()
            .map_err(|error| match error.kind() {
                ErrorKind::NotFound => format!("{name} is not installed (Debian: {package})"),
                _ => format!("{name}: {error}"),
            })?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).trim().to_string());
        }
        let words = String::from_utf8_lossy(&output.stderr);
        let own = words.lines().find(|line| line.starts_with(&name)).map(String::from);
        Err(own.unwrap_or_else(|| format!("{name}: {}", words.trim())))
    }
}

fn passable(path: &Path) -> Result<(), String> {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755))
        .map_err(|error| format!("cannot change the mode of {}: {error}", path.display()))
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

    /// The kernel gives the device back when the last who has it open closes it: perhaps another's
    /// `losetup` that is looking around.
    fn no_loop_is_left(folder: &Path) {
        let began = std::time::Instant::now();
        while !loops(folder).is_empty() && began.elapsed().as_secs() < 10 {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(loops(folder), "");
    }

    #[test]
    fn a_file_system_is_there_and_gone_afterwards() {
        let near = tempfile::tempdir().unwrap();
        let place = match Place::make("ext4", 64 << 20, near.path()) {
            Ok(place) => place,
            Err(why) => return println!("not tested: {why}"),
        };
        assert_eq!(kind_of(place.path()), "ext2/ext3");
        std::fs::write(place.path().join("file"), [7; 4096]).unwrap();
        assert!(!loops(near.path()).is_empty());
        drop(place);
        assert_eq!(std::fs::read_dir(near.path()).unwrap().count(), 0);
        no_loop_is_left(near.path());
    }

    #[test]
    fn tmpfs_needs_no_mount() {
        let place = Place::make("tmpfs", 1 << 20, Path::new("/nowhere")).unwrap();
        assert_eq!(kind_of(place.path()), "tmpfs");
        let folder = place.path().parent().unwrap().to_path_buf();
        drop(place);
        assert!(!folder.exists());
    }

    #[test]
    fn what_cannot_be_made_says_why_and_leaves_nothing() {
        let near = tempfile::tempdir().unwrap();
        let why = |kind: &str, bytes| Place::make(kind, bytes, near.path()).unwrap_err();
        assert!(why("../x", 1 << 20).contains("no kind of file system"));
        if rustix::process::geteuid().is_root() {
            assert!(why("ext4", 1 << 60).contains("no room for"));
            assert!(why("nosuchfs", 1 << 20).contains("mkfs.nosuchfs is not installed"));
            assert!(why("zfs", 1 << 20).contains("--directory"));
        } else {
            assert!(why("ext4", 64 << 20).contains("needs root"));
        }
        assert_eq!(std::fs::read_dir(near.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_server_that_still_stops_keeps_it_for_a_while() {
        let near = tempfile::tempdir().unwrap();
        let Ok(place) = Place::make("ext4", 64 << 20, near.path()) else { return };
        let mut busy =
            Command::new("sleep").arg("0.5").current_dir(place.path()).spawn().expect("sleep");
        drop(place);
        assert_eq!(std::fs::read_dir(near.path()).unwrap().count(), 0);
        busy.wait().unwrap();
        no_loop_is_left(near.path());
    }
}
