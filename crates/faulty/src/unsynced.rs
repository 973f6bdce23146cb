// SPDX-License-Identifier: PostgreSQL
//! What a machine that loses its power has not on its disk: what was written and not synchronized.

use libc::c_int;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

thread_local! {
    /// By device and inode, the length that is on the disk; none while nobody wants to know.
    static LENGTHS: RefCell<Option<HashMap<(u64, u64), u64>>> = const { RefCell::new(None) };
}

/// The files that this thread has written to and not synchronized since this was begun.
#[derive(Debug)]
pub struct Unsynced(PhantomData<*const ()>);

/// Begin.
pub fn begin() -> Unsynced {
    LENGTHS.set(Some(HashMap::new()));
    Unsynced(PhantomData)
}

impl Unsynced {
    /// The kernel has written all to the disk, as it does within half a minute.
    pub fn write_back(&self) {
        LENGTHS.set(Some(HashMap::new()));
    }

    /// Names are on the disk; of the contents below this directory only what is synchronized stays of the
    /// files for which `lose` says so.
    pub fn lose(&self, directory: &Path, mut lose: impl FnMut(&Path) -> bool) -> io::Result<()> {
        let lengths = LENGTHS.take().unwrap_or_default();
        let done = lose_below(directory, &lengths, &mut lose);
        self.write_back();
        done
    }
}

impl Drop for Unsynced {
    fn drop(&mut self) {
        LENGTHS.set(None);
    }
}

fn lose_below(
    directory: &Path,
    lengths: &HashMap<(u64, u64), u64>,
    lose: &mut impl FnMut(&Path) -> bool,
) -> io::Result<()> {
    let mut entries: Vec<_> = std::fs::read_dir(directory)?.collect::<Result<_, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let (path, metadata) = (entry.path(), entry.metadata()?);
        if metadata.is_dir() {
            lose_below(&path, lengths, lose)?;
        } else if let Some(length) = lengths.get(&(metadata.dev(), metadata.ino())) {
            if *length < metadata.len() && lose(&path) {
                std::fs::OpenOptions::new().write(true).open(&path)?.set_len(*length)?;
            }
        }
    }
    Ok(())
}

fn with_file(fd: c_int, what: impl FnOnce(&mut HashMap<(u64, u64), u64>, (u64, u64), u64)) {
    // A thread that ends may still write.
    let _ = LENGTHS.try_with(|lengths| {
        let Ok(mut lengths) = lengths.try_borrow_mut() else { return };
        let Some(lengths) = lengths.as_mut() else { return };
        // SAFETY: fstat fills it, and all of its fields are integers.
        let mut status: libc::stat = unsafe { std::mem::zeroed() };
        // SAFETY: `status` has space for the result.
        if unsafe { libc::fstat(fd, &mut status) } == 0 {
            what(
                lengths,
                (status.st_dev, status.st_ino),
                u64::try_from(status.st_size).unwrap_or(0),
            );
        }
    });
}

/// The file is about to be written to.
pub fn written(fd: c_int) {
    with_file(fd, |lengths, file, length| {
        lengths.entry(file).or_insert(length);
    });
}

/// The file has this length now.
pub fn truncated(fd: c_int, length: i64) {
    let length = u64::try_from(length).unwrap_or(0);
    with_file(fd, |lengths, file, _| {
        let known = lengths.entry(file).or_insert(length);
        *known = length.min(*known);
    });
}

/// The file is on the disk.
pub fn synced(fd: c_int) {
    with_file(fd, |lengths, file, _| {
        lengths.remove(&file);
    });
}
