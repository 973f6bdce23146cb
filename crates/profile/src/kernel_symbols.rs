// SPDX-License-Identifier: PostgreSQL
//! The kernel's functions: /proc/kallsyms.

/// Functions by address.
#[derive(Debug, Default)]
pub struct KernelSymbols(Vec<(u64, String, Option<String>)>);

/// The kernel's name as an image.
pub const KERNEL: &str = "kernel";

impl KernelSymbols {
    /// Reads the symbols of this machine; `None` if the kernel hides the addresses.
    pub fn read() -> Option<KernelSymbols> {
        KernelSymbols::parse(&std::fs::read_to_string("/proc/kallsyms").ok()?)
    }

    fn parse(text: &str) -> Option<KernelSymbols> {
        let symbol = |line: &str| {
            let mut words = line.split_ascii_whitespace();
            let address =
                u64::from_str_radix(words.next()?, 16).ok().filter(|address| *address != 0)?;
            words.next().filter(|kind| matches!(*kind, "t" | "T" | "w" | "W"))?;
            let name = words.next()?.to_string();
            let module = words.next().map(|module| module.trim_matches(['[', ']']).to_string());
            Some((address, name, module))
        };
        let mut all: Vec<_> = text.lines().filter_map(symbol).collect();
        // Of several names for one address, the first is the usual one.
        all.sort_by_key(|symbol| symbol.0);
        all.dedup_by_key(|symbol| symbol.0);
        (!all.is_empty()).then_some(KernelSymbols(all))
    }

    /// The function at an address, and its module if it belongs to one.
    pub fn find(&self, address: u64) -> Option<(&str, Option<&str>)> {
        let after = self.0.partition_point(|symbol| symbol.0 <= address);
        let (_, name, module) = self.0.get(after.checked_sub(1)?)?;
        Some((name, module.as_deref()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_address() {
        let symbols = KernelSymbols::parse(
            "ffffffff81000000 T _text\nffffffff81000100 D data\nffffffff81000200 t do_read\n\
             ffffffffc0000000 t fill\t[ext4]\n",
        );
        let symbols = symbols.unwrap();
        assert_eq!(symbols.find(0xffffffff81000150), Some(("_text", None)));
        assert_eq!(symbols.find(0xffffffff81000200), Some(("do_read", None)));
        assert_eq!(symbols.find(0xffffffffc0000010), Some(("fill", Some("ext4"))));
        assert_eq!(symbols.find(1), None);
        assert!(KernelSymbols::parse("0000000000000000 T _text\n").is_none());
    }

    #[test]
    fn the_first_name_of_an_address_counts_in_whatever_order_lines_come() {
        let text = "ffffffff81000300 W late\nffffffff81000100 t usual\nffffffff81000100 T alias\n";
        let symbols = KernelSymbols::parse(text).unwrap();
        assert_eq!(symbols.find(0xffffffff810002ff), Some(("usual", None)));
        assert_eq!(symbols.find(0xffffffff81000300), Some(("late", None)));
    }
}
