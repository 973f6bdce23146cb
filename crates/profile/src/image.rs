// SPDX-License-Identifier: PostgreSQL
//! The functions of an ELF file: names from its symbol tables, or from those of its debug file.
//!
//! A stripped file still exports symbols, and has the start address of each function for unwinding (.eh_frame_hdr). A
//! function without a name can therefore at least be told from its neighbours by its address.

use std::fs;
use std::path::{Path, PathBuf};

use object::read::elf::{ElfFile64, FileHeader};
use object::{Object, ObjectSection, ObjectSegment, ObjectSymbol, SymbolKind};

/// Larger files are not read; their functions are named by address.
const LARGEST: u64 = 1 << 30;
/// Where distributions install stripped symbols.
const DEBUG_FOLDER: &str = "/usr/lib/debug/.build-id";

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct ElfFunction {
    address: u64,
    size: u64,
    name: String,
}

/// A loaded segment of the file.
#[derive(Debug, Clone, Copy)]
struct Segment {
    offset: u64,
    size: u64,
    address: u64,
}

/// The functions of a file.
#[derive(Debug, Default)]
pub struct Image {
    segments: Vec<Segment>,
    functions: Vec<ElfFunction>,
    /// Where functions begin, with a name or without.
    begins: Vec<u64>,
    stripped: bool,
}

impl Image {
    /// Reads a file; `None` if it cannot be read or is not an ELF file for this architecture.
    pub fn read(path: &Path) -> Option<Image> {
        let bytes = read(path)?;
        let file = ElfFile64::<object::Endianness>::parse(&*bytes).ok()?;
        let segments = file.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            Segment { offset, size, address: segment.address() }
        });
        let mut image = Image { segments: segments.collect(), ..Image::default() };
        image.stripped = file.symbols().next().is_none();
        image.add_functions(&file);
        if image.stripped {
            if let Some(debug) = debug_file(&file).and_then(|path| read(&path)) {
                if let Ok(debug) = ElfFile64::<object::Endianness>::parse(&*debug) {
                    image.add_functions(&debug);
                    image.stripped = debug.symbols().next().is_none();
                }
            }
        }
        image.functions.sort();
        image.functions.dedup_by_key(|function| function.address);
        image.begins = begins(&file).unwrap_or_default();
        Some(image)
    }

    fn add_functions<'f, F: FileHeader<Endian = object::Endianness>>(
        &mut self,
        file: &object::read::elf::ElfFile<'f, F>,
    ) {
        let all = file.symbols().chain(file.dynamic_symbols());
        let functions =
            all.filter(|symbol| symbol.kind() == SymbolKind::Text && symbol.address() != 0);
        self.functions.extend(functions.filter_map(|symbol| {
            let name = symbol.name().ok().filter(|name| !name.is_empty())?.to_string();
            Some(ElfFunction { address: symbol.address(), size: symbol.size(), name })
        }));
    }

    /// Whether it has only exported symbols.
    pub fn is_stripped(&self) -> bool {
        self.stripped
    }

    /// The function at an offset in the file. A function without a name is named by file and address,
    /// and the named function before it.
    pub fn function(&self, offset: u64, file: &str) -> String {
        let segment = self
            .segments
            .iter()
            .find(|segment| (segment.offset..segment.offset + segment.size).contains(&offset));
        let Some(segment) = segment else { return format!("{file}+{offset:#x}") };
        let address = offset - segment.offset + segment.address;
        let before = |count: usize| count.checked_sub(1);
        let named = before(self.functions.partition_point(|function| function.address <= address))
            .map(|at| &self.functions[at]);
        let begin = before(self.begins.partition_point(|begin| *begin <= address))
            .map(|at| self.begins[at]);
        match named {
            Some(function) if address < function.address + function.size => function.name.clone(),
            // Assembly code has no size; it extends to the next function.
            Some(function)
                if function.size == 0 && begin.is_none_or(|begin| begin <= function.address) =>
            {
                function.name.clone()
            }
            _ => match (begin, named) {
                // The name is only a hint where in the file it is: in the same source file, or near it.
                (Some(begin), Some(near)) => format!("{file}+{begin:#x} (after {})", near.name),
                (Some(begin), None) => format!("{file}+{begin:#x}"),
                (None, _) => format!("{file} (no symbol)"),
            },
        }
    }
}

/// The content of a file, unless it is too large.
pub fn read(path: &Path) -> Option<Vec<u8>> {
    let length = fs::metadata(path).ok().filter(|metadata| metadata.is_file())?.len();
    (length <= LARGEST).then(|| fs::read(path).ok()).flatten()
}

fn debug_file(file: &ElfFile64<'_>) -> Option<PathBuf> {
    let id = file.build_id().ok()??;
    let hex: String = id.iter().map(|byte| format!("{byte:02x}")).collect();
    (hex.len() > 2)
        .then(|| Path::new(DEBUG_FOLDER).join(&hex[..2]).join(format!("{}.debug", &hex[2..])))
}

/// Start addresses of functions, from the search table of .eh_frame_hdr, in the only encoding that linkers write: 32
/// bits, signed, relative to the table's section.
fn begins(file: &ElfFile64<'_>) -> Option<Vec<u64>> {
    const COUNT_UDATA4: u8 = 0x03;
    const TABLE_DATAREL_SDATA4: u8 = 0x3b;
    let section = file.section_by_name(".eh_frame_hdr")?;
    let (data, base) = (section.data().ok()?, section.address());
    let [1, _, COUNT_UDATA4, TABLE_DATAREL_SDATA4, ..] = *data else { return None };
    let word = |at: usize| {
        data.get(at..at + 4).and_then(|bytes| bytes.try_into().ok()).map(i32::from_le_bytes)
    };
    let count = word(8)? as u32 as usize;
    let begin = |index: usize| {
        word(12 + 8 * index).map(|offset| base.wrapping_add_signed(i64::from(offset)))
    };
    let mut found: Vec<u64> = (0..count).map_while(begin).collect();
    found.sort_unstable();
    Some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_of_this_program_have_names() {
        let image = Image::read(&std::env::current_exe().unwrap()).unwrap();
        let own = image
            .functions
            .iter()
            .find(|function| function.name.contains("functions_of_this_program"));
        let own = own.expect("a test program is not stripped");
        let segment = image
            .segments
            .iter()
            .find(|segment| {
                (segment.address..segment.address + segment.size).contains(&own.address)
            })
            .unwrap();
        let offset = own.address - segment.address + segment.offset;
        assert_eq!(image.function(offset + 1, "x"), own.name);
        assert!(!image.is_stripped());
    }

    #[test]
    fn a_function_without_a_name_is_known_by_its_beginning() {
        let image = Image {
            segments: vec![Segment { offset: 0x100, size: 0x1000, address: 0x1100 }],
            functions: vec![ElfFunction { address: 0x1200, size: 0x10, name: "f".into() }],
            begins: vec![0x1200, 0x1240],
            stripped: true,
        };
        assert_eq!(image.function(0x20f, "x"), "f");
        assert_eq!(image.function(0x250, "x"), "x+0x1240 (after f)");
        assert_eq!(image.function(0x9000, "x"), "x+0x9000");
    }

    #[test]
    fn what_is_no_program_is_refused() {
        assert!(Image::read(Path::new("/etc/passwd")).is_none());
        assert!(Image::read(Path::new("/nowhere")).is_none());
    }

    #[test]
    fn code_without_a_size_reaches_to_the_next_function() {
        let function = |address, size, name: &str| ElfFunction { address, size, name: name.into() };
        let image = Image {
            segments: vec![Segment { offset: 0x100, size: 0x100, address: 0x1100 }],
            functions: vec![function(0x1110, 0x10, "f"), function(0x1140, 0, "assembly")],
            begins: vec![0x1130, 0x1160],
            stripped: false,
        };
        for (offset, name) in [
            (0x100, "x (no symbol)"),
            (0x110, "f"),
            (0x11f, "f"),
            (0x120, "x (no symbol)"),
            (0x130, "x+0x1130 (after f)"),
            (0x140, "assembly"),
            (0x15f, "assembly"),
            (0x160, "x+0x1160 (after assembly)"),
            (0x1ff, "x+0x1160 (after assembly)"),
            (0x200, "x+0x200"),
        ] {
            assert_eq!(image.function(offset, "x"), name, "{offset:#x}");
        }
    }
}
