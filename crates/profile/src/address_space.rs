// SPDX-License-Identifier: PostgreSQL
//! The data that samplers need to unwind the stacks of the server's processes.
//!
//! The recorder's thread reads files and tables; samplers only look up. An unknown process is a child of the
//! postmaster, with the same files at the same addresses when it was forked. Files that it loads later are read once a
//! sampler has met them.

use std::collections::{HashMap, HashSet};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use framehop::{MayAllocateDuringUnwind, Module, Unwinder};

use crate::maps::{Mapped, Maps};
use crate::registers::Walk;
use crate::unwind_table::UnwindTable;

/// The files of a process, and how to unwind in them.
pub struct AddressSpace {
    /// Sorted by address.
    files: Vec<MappedCode>,
    /// The same files, for the walk from frame to frame.
    pub unwinder: Walk<Arc<[u8]>, MayAllocateDuringUnwind>,
}

/// Code of a file in memory.
struct MappedCode {
    range: Range<u64>,
    /// Offset from an address in the file to the address in memory.
    bias: u64,
    /// `None` if the file has none.
    table: Option<Arc<UnwindTable>>,
}

impl AddressSpace {
    fn from_maps(
        maps: &Maps,
        mut table_of: impl FnMut(&str) -> Option<Arc<UnwindTable>>,
    ) -> AddressSpace {
        let mut files: Vec<MappedCode> = Vec::new();
        let mut unwinder = Walk::new();
        for Mapped { range, offset, path } in maps.all() {
            // Generated code, and the kernel's code in a process, have no table.
            let table = if path.starts_with('/') { table_of(path) } else { None };
            let address = table.as_ref().and_then(|known| known.address(offset));
            let bias = address.map_or(0, |address| range.start.wrapping_sub(address));
            // Pages changed in memory are separate ranges.
            match files.last_mut() {
                Some(last) if table.is_some() && same(&last.table, &table) && last.bias == bias => {
                    last.range.end = range.end;
                }
                _ => files.push(MappedCode { range, bias, table }),
            }
        }
        for file in &files {
            let Some(table) = &file.table else { continue };
            let (range, base) = (file.range.clone(), file.bias);
            unwinder.add_module(Module::new(String::new(), range, base, table.sections()));
        }
        AddressSpace { files, unwinder }
    }

    /// Whether the function at an address keeps a frame pointer; `None` if no file is known there.
    pub fn keeps_frame_pointer(&self, address: u64) -> Option<bool> {
        let after = self.files.partition_point(|file| file.range.start <= address);
        let file = self.files.get(after.checked_sub(1)?)?;
        let known = file.range.contains(&address);
        let of_file =
            |table: &Arc<UnwindTable>| table.keeps_frame_pointer(address.wrapping_sub(file.bias));
        known.then(|| file.table.as_ref().is_some_and(of_file))
    }
}

fn same(a: &Option<Arc<UnwindTable>>, b: &Option<Arc<UnwindTable>>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if Arc::ptr_eq(a, b))
}

/// The address spaces of all processes of the server.
#[derive(Default)]
pub struct AddressSpaces {
    known: RwLock<LearnedSpaces>,
    /// Processes in which a sampler has met unknown code.
    stale: Mutex<HashSet<i32>>,
}

#[derive(Default)]
struct LearnedSpaces {
    of_process: HashMap<i32, Arc<AddressSpace>>,
    postmaster: i32,
}

/// Reads the data for samplers; used only by the recorder's thread.
pub struct Learner<'s> {
    spaces: &'s AddressSpaces,
    /// Equal address spaces are kept once, since forked processes share them.
    by_maps: HashMap<Maps, Arc<AddressSpace>>,
    tables: HashMap<String, Option<Arc<UnwindTable>>>,
}

impl AddressSpaces {
    /// The address space of a process; that of the postmaster if the process has just started.
    pub fn space_of(&self, pid: i32) -> Option<Arc<AddressSpace>> {
        let known = self.known.read().unwrap_or_else(PoisonError::into_inner);
        let found = known.of_process.get(&pid).or_else(|| known.of_process.get(&known.postmaster));
        found.cloned()
    }

    /// Notes that a process has loaded code since it was last read.
    pub fn is_stale(&self, pid: i32) {
        self.stale.lock().unwrap_or_else(PoisonError::into_inner).insert(pid);
    }

    /// Takes the processes to read again.
    pub fn take_stale(&self) -> HashSet<i32> {
        std::mem::take(&mut *self.stale.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl<'s> Learner<'s> {
    /// A learner that writes into `spaces`.
    pub fn new(spaces: &'s AddressSpaces) -> Learner<'s> {
        Learner { spaces, by_maps: HashMap::new(), tables: HashMap::new() }
    }

    /// Records the files of a process.
    pub fn learn(&mut self, pid: i32, maps: &Maps, postmaster: i32) {
        let space = match self.by_maps.get(maps) {
            Some(space) => space.clone(),
            None => {
                let root = match postmaster {
                    0 => PathBuf::from("/"),
                    pid => Path::new("/proc").join(pid.to_string()).join("root"),
                };
                let tables = &mut self.tables;
                let space = Arc::new(AddressSpace::from_maps(maps, |path| {
                    if let Some(known) = tables.get(path) {
                        return known.clone();
                    }
                    let inside = root.join(path.trim_start_matches('/'));
                    let read = |path: &Path| UnwindTable::read(path).map(Arc::new);
                    let table = read(&inside).or_else(|| read(Path::new(path)));
                    tables.insert(path.to_string(), table.clone());
                    table
                }));
                self.by_maps.insert(maps.clone(), space.clone());
                space
            }
        };
        let mut known = self.spaces.known.write().unwrap_or_else(PoisonError::into_inner);
        known.postmaster = postmaster;
        let before = known.of_process.insert(pid, space);
        // Samplers wait for the lock, and freeing the old value may take a while.
        drop(known);
        drop(before);
    }
}
