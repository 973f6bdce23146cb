// SPDX-License-Identifier: PostgreSQL
//! The data that a machine loses in a power failure: everything written but not synced.

use libc::c_int;
use std::cell::RefCell;
use std::collections::HashMap;
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

thread_local! {
    /// The length on disk, by device and inode; `None` while not tracked.
    static LENGTHS: RefCell<Option<HashMap<(u64, u64), u64>>> = const { RefCell::new(None) };
}

/// The files that this thread has written to and not synced since tracking began.
#[derive(Debug)]
pub struct Unsynced(PhantomData<*const ()>);

/// Begin.
pub fn begin() -> Unsynced {
    LENGTHS.set(Some(HashMap::new()));
    Unsynced(PhantomData)
}

impl Unsynced {
    /// Simulate that the kernel has written everything to disk, as it does within half a minute.
    pub fn write_back(&self) {
        LENGTHS.set(Some(HashMap::new()));
    }

    /// Simulate a power failure. Names are on disk. Files below this directory for which `lose` returns true
    /// keep only their synced contents.
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
    // A thread that is ending may still write.
    let _ = LENGTHS.try_with(|lengths| {
        let Ok(mut lengths) = lengths.try_borrow_mut() else { return };
        let Some(lengths) = lengths.as_mut() else { return };
        // SAFETY: fstat fills the structure, and all its fields are integers.
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

/// The file now has this length.
pub fn truncated(fd: c_int, length: i64) {
    let length = u64::try_from(length).unwrap_or(0);
    with_file(fd, |lengths, file, _| {
        let known = lengths.entry(file).or_insert(length);
        *known = length.min(*known);
    });
}

/// The file is on disk.
pub fn synced(fd: c_int) {
    with_file(fd, |lengths, file, _| {
        lengths.remove(&file);
    });
}
