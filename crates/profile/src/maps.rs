// SPDX-License-Identifier: PostgreSQL
//! The file at each address of a process: /proc/PID/maps.

use std::sync::Arc;

/// An executable mapped range.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Range {
    begin: u64,
    end: u64,
    /// Offset in the file of `begin`.
    offset: u64,
    /// Path; "[vdso]"; empty if there is no file.
    path: Arc<str>,
}

/// An executable range.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mapped<'m> {
    /// Its addresses.
    pub range: std::ops::Range<u64>,
    /// Offset of its start in the file.
    pub offset: u64,
    /// Path; "[vdso]"; empty if there is no file.
    pub path: &'m str,
}

/// The executable ranges of a process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Maps(Vec<Range>);

impl Maps {
    /// Reads the ranges of a running process; `None` if it has ended or we may not read them.
    pub fn read(pid: i32) -> Option<Maps> {
        let maps = Maps::parse(&std::fs::read_to_string(format!("/proc/{pid}/maps")).ok()?);
        // A process that is just ending has no ranges.
        (!maps.0.is_empty()).then_some(maps)
    }

    fn parse(text: &str) -> Maps {
        let range = |line: &str| {
            let mut words = line.splitn(6, ' ');
            let (begin, end) = words.next()?.split_once('-')?;
            let executable = words.next()?.contains('x');
            let offset = u64::from_str_radix(words.next()?, 16).ok()?;
            let path = words.nth(2).unwrap_or_default().trim_start();
            let path = path.strip_suffix(" (deleted)").unwrap_or(path).into();
            let begin = u64::from_str_radix(begin, 16).ok()?;
            let end = u64::from_str_radix(end, 16).ok()?;
            executable.then_some(Range { begin, end, offset, path })
        };
        Maps(text.lines().filter_map(range).collect())
    }

    /// All ranges, by address.
    pub fn all(&self) -> impl Iterator<Item = Mapped<'_>> {
        self.0.iter().map(|range| Mapped {
            range: range.begin..range.end,
            offset: range.offset,
            path: &range.path,
        })
    }

    /// The file at an address, and the offset in the file.
    pub fn find(&self, address: u64) -> Option<(&Arc<str>, u64)> {
        let after = self.0.partition_point(|range| range.begin <= address);
        let range = self.0.get(after.checked_sub(1)?).filter(|range| address < range.end)?;
        Some((&range.path, address - range.begin + range.offset))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_found_in_its_file() {
        let maps = Maps::parse(
            "555500000000-555500001000 r--p 00000000 fe:00 12 /usr/lib/a b\n\
             555500001000-555500003000 r-xp 00001000 fe:00 12                    /usr/lib/a b\n\
             7f0000000000-7f0000001000 r-xp 00000000 00:00 0 \n\
             7f0000002000-7f0000003000 r-xp 00002000 fe:00 13 /tmp/removed (deleted)\n",
        );
        let find = |at| maps.find(at).map(|(path, offset)| (path.to_string(), offset));
        assert_eq!(find(0x555500001010), Some(("/usr/lib/a b".into(), 0x1010)));
        assert_eq!(find(0x7f0000000010), Some((String::new(), 0x10)));
        assert_eq!(find(0x7f0000002000), Some(("/tmp/removed".into(), 0x2000)));
        assert_eq!(find(0x555500000010), None);
        assert_eq!(find(0x7f0000001000), None);
        assert_eq!(find(0), None);
    }

    #[test]
    fn an_address_in_the_middle_of_a_file_has_the_offset_of_its_range() {
        let maps = Maps::parse(
            "1000-2000 r-xp 00005000 fe:00 12 /a\n2000-3000 rw-p 00006000 fe:00 12 /a\n3000-4000 --xp 0 0:0 0 [vdso]\n",
        );
        let find = |at| maps.find(at).map(|(path, offset)| (&**path, offset));
        assert_eq!((find(0x1000), find(0x1fff)), (Some(("/a", 0x5000)), Some(("/a", 0x5fff))));
        assert_eq!((find(0x2000), find(0x3001)), (None, Some(("[vdso]", 1))));
    }
}
