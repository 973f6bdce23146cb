// SPDX-License-Identifier: PostgreSQL
//! Copies of the installed server: unchanged, for witnesses that set breakpoints; and as other packagers build
//! it: one that binds functions lazily, as if linked without `-z now`, and one that does not call an exported
//! function, as if its compiler had put copies of it into the callers.
//!
//! The linker makes the same procedure linkage table either way. The copy's dynamic section no longer
//! asks to bind everything at the start, and its import table stays writable.

use std::collections::BTreeMap;
use std::ops::Range;
use std::os::unix::fs::{symlink, FileExt, PermissionsExt};
use std::path::Path;

use scratch::Binaries;
use tempfile::TempDir;

use super::programs;

const PT_LOAD: u64 = 1;
const PT_DYNAMIC: u64 = 2;
const PT_NULL: u32 = 0;
const PT_GNU_RELRO: u64 = 0x6474_e552;
const DT_PLTRELSZ: u64 = 2;
const DT_STRTAB: u64 = 5;
const DT_SYMTAB: u64 = 6;
const DT_JMPREL: u64 = 23;
const DT_BIND_NOW: u64 = 24;
const DT_FLAGS: u64 = 30;
const DT_FLAGS_1: u64 = 0x6fff_fffb;
const DF_BIND_NOW: u64 = 8;
const DF_1_NOW: u64 = 1;
/// An unknown tag, which the loader ignores.
const DT_IGNORED: u64 = 0x6000_0fff;

/// A program header: its own offset in the file, its type, and the segment it describes.
struct Header {
    at: usize,
    kind: u64,
    offset: u64,
    address: u64,
    size: u64,
}

/// A 64-bit little-endian ELF file.
struct Elf {
    bytes: Vec<u8>,
}

impl Elf {
    fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        assert_eq!(&bytes[..6], b"\x7fELF\x02\x01", "{}", path.display());
        Self { bytes }
    }

    fn number(&self, at: usize, size: usize) -> u64 {
        self.bytes[at..at + size].iter().rev().fold(0, |sum, &byte| sum << 8 | u64::from(byte))
    }

    fn put(&mut self, at: usize, size: usize, value: u64) {
        self.bytes[at..at + size].copy_from_slice(&value.to_le_bytes()[..size]);
    }

    fn headers(&self) -> Vec<Header> {
        let (first, each) = (self.number(32, 8) as usize, self.number(54, 2) as usize);
        (0..self.number(56, 2) as usize)
            .map(|i| first + i * each)
            .map(|at| Header {
                at,
                kind: self.number(at, 4),
                offset: self.number(at + 8, 8),
                address: self.number(at + 16, 8),
                size: self.number(at + 32, 8),
            })
            .collect()
    }

    /// The address of the first page; 0 if the program is position-independent.
    fn first_address(&self) -> u64 {
        let headers = self.headers();
        let loads = headers.iter().filter(|header| header.kind == PT_LOAD);
        loads.map(|load| load.address & !0xfff).min().unwrap()
    }

    /// The file offset of an address.
    fn file_offset(&self, address: u64) -> usize {
        let headers = self.headers();
        let mut loads = headers.iter().filter(|header| header.kind == PT_LOAD);
        let load = loads.find(|load| (load.address..load.address + load.size).contains(&address));
        let load = load.unwrap_or_else(|| panic!("{address:#x} is not loaded"));
        (load.offset + address - load.address) as usize
    }

    /// File offset and tag of each entry of the dynamic section.
    fn dynamic(&self) -> Vec<(usize, u64)> {
        let headers = self.headers();
        let section = headers.iter().find(|header| header.kind == PT_DYNAMIC).unwrap();
        let offsets = (section.offset..section.offset + section.size).step_by(16);
        offsets.map(|at| (at as usize, self.number(at as usize, 8))).collect()
    }

    fn tag(&self, tag: u64) -> u64 {
        let entries = self.dynamic();
        let entry = entries.iter().find(|(_, found)| *found == tag);
        let (at, _) = entry.unwrap_or_else(|| panic!("no entry {tag:#x} in the dynamic section"));
        self.number(at + 8, 8)
    }

    fn text(&self, at: usize) -> String {
        let bytes = &self.bytes[at..];
        let end = bytes.iter().position(|&byte| byte == 0).unwrap();
        String::from_utf8(bytes[..end].to_vec()).unwrap()
    }

    /// Address of each slot of the procedure linkage table, by the function's name.
    fn slots(&self) -> BTreeMap<String, u64> {
        let relocations = self.file_offset(self.tag(DT_JMPREL));
        let (symbols, strings) =
            (self.file_offset(self.tag(DT_SYMTAB)), self.file_offset(self.tag(DT_STRTAB)));
        (0..self.tag(DT_PLTRELSZ) as usize / 24)
            .map(|i| relocations + i * 24)
            .map(|at| {
                let symbol = symbols + self.number(at + 12, 4) as usize * 24;
                (self.text(strings + self.number(symbol, 4) as usize), self.number(at, 8))
            })
            .collect()
    }

    /// Whether the slots lead to the loader. With `-z now`, the linker may omit the code for that.
    fn can_be_lazy(&self) -> bool {
        self.slots().values().all(|&slot| self.number(self.file_offset(slot), 8) != 0)
    }

    /// The offset of an exported function's symbol in the file.
    fn symbol(&self, name: &str) -> usize {
        let (symbols, strings) =
            (self.file_offset(self.tag(DT_SYMTAB)), self.file_offset(self.tag(DT_STRTAB)));
        // The table of names follows the symbols.
        let mut all = (symbols..strings).step_by(24);
        let named = |at: &usize| {
            let start = strings + self.number(*at, 4) as usize;
            self.bytes[start..].starts_with(name.as_bytes()) && self.bytes[start + name.len()] == 0
        };
        all.find(named).unwrap_or_else(|| panic!("the server does not export {name}"))
    }

    /// Gives the symbol of a function the address and the size of another one.
    fn lead_elsewhere(&mut self, function: &str, other: &str) {
        let (at, from) = (self.symbol(function), self.symbol(other));
        self.bytes.copy_within(from + 8..from + 24, at + 8);
    }

    fn bind_lazily(&mut self) {
        for (at, tag) in self.dynamic() {
            match tag {
                DT_BIND_NOW => self.put(at, 8, DT_IGNORED),
                DT_FLAGS => self.put(at + 8, 8, self.number(at + 8, 8) & !DF_BIND_NOW),
                DT_FLAGS_1 => self.put(at + 8, 8, self.number(at + 8, 8) & !DF_1_NOW),
                _ => {}
            }
        }
        for header in self.headers() {
            if header.kind == PT_GNU_RELRO {
                self.put(header.at, 4, u64::from(PT_NULL));
            }
        }
    }
}

/// The installed programs with a lazily bound server. Prints the reason and returns None if the installed server
/// was linked without the code for lazy binding.
pub fn lazily_bound() -> Option<(TempDir, Binaries)> {
    let installed = Binaries::find().unwrap();
    let mut server = Elf::read(&installed.program("postgres"));
    if !server.can_be_lazy() {
        println!("not tested: the installed server has no entries for lazy binding");
        return None;
    }
    server.bind_lazily();
    Some(copy(&installed, &server))
}

/// The installed programs with a server whose symbol `function` leads to another exported function, which is not
/// called. The server itself calls its functions without symbols, so a detour of `function` is never reached.
pub fn never_calling(function: &str, other: &str) -> (TempDir, Binaries) {
    let installed = Binaries::find().unwrap();
    let mut server = Elf::read(&installed.program("postgres"));
    server.lead_elsewhere(function, other);
    copy(&installed, &server)
}

/// A copy of the installed server. A breakpoint in its file does not stop the other servers on the machine.
pub fn copied() -> (TempDir, Binaries) {
    let installed = Binaries::find().unwrap();
    let server = Elf::read(&installed.program("postgres"));
    copy(&installed, &server)
}

/// The installed programs with another server.
fn copy(installed: &Binaries, server: &Elf) -> (TempDir, Binaries) {
    let folder = tempfile::tempdir().unwrap();
    let mode = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(folder.path(), mode).unwrap();
    let programs = folder.path().join("bin");
    std::fs::create_dir(&programs).unwrap();
    for program in std::fs::read_dir(installed.dir()).unwrap().flatten() {
        if program.file_name() != "postgres" {
            symlink(program.path(), programs.join(program.file_name())).unwrap();
        }
    }
    // A relocatable server finds its other files relative to its own location.
    for other in ["lib", "share"] {
        let path = installed.dir().with_file_name(other);
        if path.exists() {
            symlink(path, folder.path().join(other)).unwrap();
        }
    }
    let path = programs.join("postgres");
    programs::write(&path, &server.bytes);
    let binaries = Binaries::at(&programs).unwrap();
    (folder, binaries)
}

/// Address ranges at which a process has mapped files whose names end in `name`.
pub fn mapped(pid: u32, name: &str) -> Vec<Range<u64>> {
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
    maps.lines()
        .filter(|line| line.ends_with(name))
        .map(|line| {
            let (low, rest) = line.split_once('-').unwrap();
            let high = rest.split_once(' ').unwrap().0;
            u64::from_str_radix(low, 16).unwrap()..u64::from_str_radix(high, 16).unwrap()
        })
        .collect()
}

/// The contents of the import table's slots in a process, by function name.
pub fn held(pid: u32, program: &Path) -> BTreeMap<String, u64> {
    let elf = Elf::read(program);
    let start = mapped(pid, program.to_str().unwrap()).iter().map(|range| range.start).min();
    let base = start.unwrap() - elf.first_address();
    let memory = std::fs::File::open(format!("/proc/{pid}/mem")).unwrap();
    let mut value = [0; 8];
    elf.slots()
        .into_iter()
        .map(|(name, slot)| {
            memory.read_exact_at(&mut value, base + slot).unwrap();
            (name, u64::from_le_bytes(value))
        })
        .collect()
}
