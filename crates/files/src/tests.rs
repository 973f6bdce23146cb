// SPDX-License-Identifier: PostgreSQL
use super::*;
use std::os::unix::fs::{chown, symlink};
use std::sync::Mutex;

use rustix::fs::Mode;

const NOBODY: u32 = 65_534;
/// The umask belongs to the whole process.
static UMASK: Mutex<()> = Mutex::new(());

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().mode() & 0o7777
}

#[test]
fn the_mode_is_the_accesss_whatever_the_umask_is() {
    let folder_of_test = tempfile::tempdir().unwrap();
    let _one = UMASK.lock();
    for umask in [0, 0o022, 0o077, 0o277] {
        for (access, of_file, of_folder) in [
            (Access::Owner, 0o600, 0o700),
            (Access::Group, 0o640, 0o750),
            (Access::Everybody, 0o644, 0o755),
        ] {
            let at = |name: &str| folder_of_test.path().join(format!("{umask}-{of_file}-{name}"));
            let before = rustix::process::umask(Mode::from_raw_mode(umask));
            create(&at("created"), access).unwrap();
            append(&at("appended"), access).unwrap();
            replace(&at("replaced"), b"", access, "", true).unwrap();
            folder(&at("above").join("below"), access).unwrap();
            let unique = unique_folder(folder_of_test.path(), "it.", access).unwrap();
            rustix::process::umask(before);
            for name in ["created", "appended", "replaced"] {
                assert_eq!(mode(&at(name)), of_file, "{umask:o} {name}");
            }
            for path in [at("above"), at("above").join("below"), unique] {
                assert_eq!(mode(&path), of_folder, "{umask:o} {}", path.display());
            }
        }
    }
}

#[test]
fn our_own_file_is_emptied_and_becomes_ours_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it");
    std::fs::write(&path, "before").unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o666)).unwrap();
    write(&path, b"new", Access::Owner).unwrap();
    append(&path, Access::Owner).unwrap().write_all(b"er").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"newer");
    assert_eq!(mode(&path), 0o600);
    assert!(create_new(&path, Access::Owner).is_err() && append_new(&path, Access::Owner).is_err());
}

#[test]
fn no_link_is_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("victim"), "it").unwrap();
    symlink(at("victim"), at("link")).unwrap();
    symlink(at("none"), at("dangling")).unwrap();
    std::fs::hard_link(at("victim"), at("hard")).unwrap();
    for name in ["link", "dangling", "hard"] {
        for made in [create(&at(name), Access::Owner), append(&at(name), Access::Owner)] {
            let error = made.unwrap_err().to_string();
            assert!(error.contains("link") || error.contains("another name"), "{name}: {error}");
        }
    }
    assert_eq!(std::fs::read(at("victim")).unwrap(), b"it");
    // Replacing replaces the link itself.
    replace(&at("link"), b"new", Access::Owner, "", false).unwrap();
    assert_eq!(std::fs::read(at("victim")).unwrap(), b"it");
    // The user may direct output there.
    assert!(create(Path::new("/dev/null"), Access::Owner).is_ok());
    symlink("/dev/null", at("nowhere")).unwrap();
    assert!(create(&at("nowhere"), Access::Owner).is_ok());
    let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
    assert!(made.success());
    let reader = std::thread::spawn({
        let pipe = at("pipe");
        move || std::fs::read_to_string(pipe).unwrap()
    });
    write(&at("pipe"), b"all of it", Access::Owner).unwrap();
    assert_eq!(reader.join().unwrap(), "all of it");
}

fn is_root() -> bool {
    if !rustix::process::geteuid().is_root() {
        println!("not tested: it needs root");
    }
    rustix::process::geteuid().is_root()
}

#[test]
fn a_file_of_another_user_is_not_written() {
    if !is_root() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("it");
    std::fs::write(&path, "theirs").unwrap();
    chown(&path, Some(NOBODY), None).unwrap();
    for made in [create(&path, Access::Owner), append(&path, Access::Owner)] {
        assert!(made.unwrap_err().to_string().contains("user 65534"));
    }
    assert_eq!(std::fs::read(&path).unwrap(), b"theirs");
}

#[test]
fn root_writes_only_where_nobody_else_can_change_the_path() {
    if !is_root() {
        return;
    }
    // Files created here without the crate `files` are subject to the umask.
    let _one = UMASK.lock();
    let ours = tempfile::tempdir().unwrap();
    let at = |name: &str| ours.path().join(name);
    let theirs = at("theirs");
    std::fs::create_dir_all(theirs.join("below")).unwrap();
    chown(&theirs, Some(NOBODY), None).unwrap();
    std::fs::create_dir(at("open")).unwrap();
    std::fs::set_permissions(at("open"), Permissions::from_mode(0o777)).unwrap();
    std::fs::create_dir(at("of a group")).unwrap();
    std::fs::set_permissions(at("of a group"), Permissions::from_mode(0o775)).unwrap();
    chown(at("of a group"), None, Some(NOBODY)).unwrap();
    symlink(&theirs, at("link")).unwrap();
    std::fs::create_dir(at("with a list")).unwrap();
    // Entries of 8 bytes: tag, permissions, id. Owner, user nobody, group, mask, others.
    let entries = [
        (1u16, 7u16, u32::MAX),
        (2, 7, NOBODY),
        (4, 5, u32::MAX),
        (16, 7, u32::MAX),
        (32, 5, u32::MAX),
    ];
    let mut list = 2u32.to_le_bytes().to_vec();
    for (tag, rights, id) in entries {
        list.extend(
            tag.to_le_bytes().into_iter().chain(rights.to_le_bytes()).chain(id.to_le_bytes()),
        );
    }
    let flags = rustix::fs::XattrFlags::empty();
    let listed =
        rustix::fs::setxattr(at("with a list"), "system.posix_acl_access", &list, flags).is_ok();
    if listed {
        assert!(create(&at("with a list/it"), Access::Owner).is_err());
    }
    for path in [
        theirs.join("it"),
        theirs.join("below/it"),
        theirs.join("none/it"),
        at("link/it"),
        at("open/it"),
        at("of a group/it"),
        at("open/../link/below/it"),
    ] {
        let error = create(&path, Access::Owner).unwrap_err().to_string();
        assert!(error.contains("refusing to write under"), "{}: {error}", path.display());
        assert!(folder(&path, Access::Owner).is_err() && !path.exists(), "{}", path.display());
        assert!(replace(&path, b"", Access::Owner, "", false).is_err());
        let parent = path.parent().unwrap();
        assert!(unique_folder(parent, "it", Access::Owner).is_err());
    }
    // In a directory like /tmp, other users cannot replace our files; links of other users are not followed.
    std::fs::create_dir(at("sticky")).unwrap();
    std::fs::set_permissions(at("sticky"), Permissions::from_mode(0o1777)).unwrap();
    std::fs::create_dir(at("sticky/ours")).unwrap();
    create(&at("sticky/it"), Access::Owner).unwrap();
    create(&at("sticky/ours/it"), Access::Owner).unwrap();
    symlink(ours.path(), at("sticky/link")).unwrap();
    rustix::fs::chownat(
        rustix::fs::CWD,
        at("sticky/link"),
        Some(rustix::fs::Uid::from_raw(NOBODY)),
        None,
        rustix::fs::AtFlags::SYMLINK_NOFOLLOW,
    )
    .unwrap();
    assert!(create(&at("sticky/link/new"), Access::Owner).is_err());
    // Root's own links are followed.
    symlink(at("sticky"), at("ours")).unwrap();
    create(&at("ours/ours/../ours/again"), Access::Owner).unwrap();
    assert!(at("sticky/ours/again").exists());
}

#[test]
fn what_others_made_is_read_without_links_pipes_and_limits_beyond() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::write(at("plain"), "12345").unwrap();
    std::os::unix::fs::symlink(at("plain"), at("link")).unwrap();
    assert!(std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap().success());
    assert_eq!(read(&at("plain"), 5).unwrap(), b"12345");
    let error = |name: &str, limit| read(&at(name), limit).unwrap_err().to_string();
    assert!(error("plain", 4).contains("larger than 4 bytes"), "{}", error("plain", 4));
    assert!(error("link", 5).contains("a symbolic link"));
    // The pipe has no writer, so opening it would block.
    assert!(error("pipe", 5).contains("not a regular file"));
    assert!(error(".", 5).contains("not a regular file"));
    let endless = read_named(std::path::Path::new("/dev/zero"), 1 << 20).unwrap_err();
    assert!(endless.to_string().contains("larger than 1 MB"), "{endless}");
    assert_eq!(read_named(&at("link"), 5).unwrap(), b"12345");
}
