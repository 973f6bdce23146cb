// SPDX-License-Identifier: PostgreSQL
//! The unwind information of a file: .eh_frame.

use std::ops::Range;
use std::path::Path;
use std::sync::Arc;

use framehop::ExplicitModuleSectionInfo;
use gimli::{BaseAddresses, CieOrFde, EhFrame, EndianSlice, NativeEndian, UnwindSection};
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection, ObjectSegment};

use crate::image::read;
use crate::registers::keeps_frame_pointer;

/// A section and its address.
#[derive(Debug)]
struct ElfSection {
    addresses: Range<u64>,
    bytes: Arc<[u8]>,
}

/// The unwind table of a file. Addresses are the file's own.
#[derive(Debug)]
pub struct UnwindTable {
    frames: ElfSection,
    index: Option<ElfSection>,
    text: Option<Range<u64>>,
    /// Loaded segments: range in the file, and start address.
    segments: Vec<(Range<u64>, u64)>,
    /// Functions that keep a frame pointer, in order of address.
    pointed: Vec<Range<u64>>,
}

impl UnwindTable {
    /// Reads a file; `None` if it cannot be read, or has no such table.
    pub fn read(path: &Path) -> Option<UnwindTable> {
        let bytes = read(path)?;
        let file = ElfFile64::<object::Endianness>::parse(&*bytes).ok()?;
        let section = |name: &str| {
            let section = file.section_by_name(name)?;
            let addresses = section.address()..section.address() + section.size();
            Some(ElfSection { addresses, bytes: section.data().ok()?.into() })
        };
        let text = file
            .section_by_name(".text")
            .map(|section| section.address()..section.address() + section.size());
        let segments = file.segments().map(|segment| {
            let (offset, size) = segment.file_range();
            (offset..offset.saturating_add(size), segment.address())
        });
        let mut table = UnwindTable {
            frames: section(".eh_frame")?,
            index: section(".eh_frame_hdr"),
            text,
            segments: segments.collect(),
            pointed: Vec::new(),
        };
        table.pointed = table.pointed();
        Some(table)
    }

    /// The address at an offset in the file.
    pub fn address(&self, offset: u64) -> Option<u64> {
        let (range, address) = self.segments.iter().find(|segment| segment.0.contains(&offset))?;
        Some(offset - range.start + address)
    }

    /// Whether the function at an address keeps a frame pointer.
    pub fn keeps_frame_pointer(&self, address: u64) -> bool {
        let after = self.pointed.partition_point(|function| function.start <= address);
        after > 0 && self.pointed[after - 1].contains(&address)
    }

    /// The sections in the form that the unwinder needs.
    pub fn sections(&self) -> ExplicitModuleSectionInfo<Arc<[u8]>> {
        ExplicitModuleSectionInfo {
            text_svma: self.text.clone(),
            eh_frame_svma: Some(self.frames.addresses.clone()),
            eh_frame: Some(self.frames.bytes.clone()),
            eh_frame_hdr_svma: self.index.as_ref().map(|section| section.addresses.clone()),
            eh_frame_hdr: self.index.as_ref().map(|section| section.bytes.clone()),
            ..ExplicitModuleSectionInfo::default()
        }
    }

    /// Finds functions that keep a frame pointer. Ignores a damaged table from the point of damage on.
    fn pointed(&self) -> Vec<Range<u64>> {
        let section = EhFrame::new(&self.frames.bytes, NativeEndian);
        let bases = BaseAddresses::default().set_eh_frame(self.frames.addresses.start);
        let bases = match &self.text {
            Some(text) => bases.set_text(text.start),
            None => bases,
        };
        let mut found = Vec::new();
        let mut entries = section.entries(&bases);
        while let Ok(Some(entry)) = entries.next() {
            let CieOrFde::Fde(partial) = entry else { continue };
            let Ok(function) = partial.parse(EhFrame::cie_from_offset) else { continue };
            if is_pointed(&function, &section, &bases) {
                found.push(function.initial_address()..function.end_address());
            }
        }
        found.sort_by_key(|function| function.start);
        found
    }
}

type Bytes<'b> = EndianSlice<'b, NativeEndian>;

fn is_pointed(
    function: &gimli::FrameDescriptionEntry<Bytes<'_>>,
    section: &EhFrame<Bytes<'_>>,
    bases: &BaseAddresses,
) -> bool {
    let mut rules = function.instructions(section, bases);
    while let Ok(Some(rule)) = rules.next() {
        if keeps_frame_pointer(&rule) {
            return true;
        }
    }
    false
}
