// SPDX-License-Identifier: PostgreSQL
//! PostgreSQL's compression (src/common/pg_lzcompress.c describes the format). The bytes may come from anybody.
//!
//! It is implemented here because no crate does, and no other compression is always available: every server
//! has `pglz_compress`, while zstd, lz4 and zlib are build options, and libpq's protocol does not compress. A
//! server with zstd uses that instead ([`super::packing`]).

/// The `size` unpacked bytes; `None`: the packed bytes are malformed.
///
/// A control byte precedes up to eight items. Its bits, starting with the lowest, say whether an item is a literal byte
/// (0) or a copy of earlier output (1): 4 bits of length - 3 and 12 bits of distance, followed by another byte of
/// length if the 4 bits are 15.
pub(super) fn unpack(packed: &[u8], size: usize) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(size);
    let mut bytes = packed.iter().map(|&byte| usize::from(byte));
    while let Some(control) = bytes.next() {
        for bit in 0..8 {
            if out.len() == size {
                break;
            }
            let Some(first) = bytes.next() else { break };
            if control >> bit & 1 == 0 {
                out.push(first as u8);
                continue;
            }
            let distance = (first & 0xF0) << 4 | bytes.next()?;
            let mut length = (first & 0x0F) + 3;
            if length == 18 {
                length += bytes.next()?;
            }
            let from = out.len().checked_sub(distance).filter(|_| distance > 0)?;
            // Source and destination may overlap.
            for at in from..from + length.min(size - out.len()) {
                out.push(out[at]);
            }
        }
    }
    (out.len() == size).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn literals_and_copies_are_unpacked() {
        assert_eq!(unpack(&[0, b'a', b'b'], 2).as_deref(), Some(&b"ab"[..]));
        // "ab", then 6 bytes from 2 back; and one of 18 + 2 bytes from 1 back.
        assert_eq!(unpack(&[0b100, b'a', b'b', 3, 2], 8).as_deref(), Some(&b"abababab"[..]));
        assert_eq!(unpack(&[0b10, b'x', 15, 1, 2], 21), Some(vec![b'x'; 21]));
    }

    #[test]
    fn damaged_bytes_are_refused() {
        for (packed, size) in [
            (&[0b1, 3, 2][..], 6),    // before the beginning
            (&[0b10, b'a', 3, 0], 7), // no distance
            (&[0b10, b'a', 3], 7),    // cut
            (&[0, b'a'], 2),          // too short
        ] {
            assert_eq!(unpack(packed, size), None, "{packed:?}");
        }
    }
}
