// SPDX-License-Identifier: PostgreSQL
//! Globs for names, with the rules of fnmatch(3) that the extension follows.

/// Whether a name matches a glob with *, ? and sets in brackets.
pub fn matches(glob: &str, name: &str) -> bool {
    fits(glob.as_bytes(), name.as_bytes())
}

fn fits(glob: &[u8], name: &[u8]) -> bool {
    match glob {
        [] => name.is_empty(),
        [b'*', rest @ ..] => (0..=name.len()).any(|skip| fits(rest, &name[skip..])),
        [b'[', set @ ..] => match (name, set.iter().skip(1).position(|&c| c == b']')) {
            ([c, rest @ ..], Some(end)) => {
                in_set(&set[..end + 1], *c) && fits(&set[end + 2..], rest)
            }
            _ => false,
        },
        [c, glob @ ..] => match name {
            [n, name @ ..] => (c == n || *c == b'?') && fits(glob, name),
            [] => false,
        },
    }
}

/// Matches a character against the contents of brackets: "a-z_" or "!a-z_".
fn in_set(set: &[u8], c: u8) -> bool {
    let (not, mut set) = match set {
        [b'!' | b'^', rest @ ..] => (true, rest),
        _ => (false, set),
    };
    let mut found = false;
    while let [first, rest @ ..] = set {
        set = match rest {
            [b'-', last, rest @ ..] => {
                found |= (*first..=*last).contains(&c);
                rest
            }
            _ => {
                found |= *first == c;
                rest
            }
        };
    }
    found != not
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_match_as_in_a_shell() {
        for (glob, name) in [
            ("XLogFlush", "XLogFlush"),
            ("SimpleLru*", "SimpleLruReadPage"),
            ("*Lru*Page*", "SimpleLruReadPage_ReadOnly"),
            ("heap_?nsert", "heap_insert"),
            ("*", ""),
            ("a*b*c", "aXbXbc"),
            ("heap_[di]*", "heap_delete"),
            ("x[!a-c]", "xd"),
            ("x[]]", "x]"),
        ] {
            assert!(matches(glob, name), "{glob} {name}");
        }
        for (glob, name) in [
            ("XLogFlush", "XLogFlushAll"),
            ("?", ""),
            ("a*b", "ac"),
            ("", "x"),
            ("*x", "xy"),
            ("x[!a-c]", "xb"),
            ("x[", "x["),
        ] {
            assert!(!matches(glob, name), "{glob} {name}");
        }
    }
}
