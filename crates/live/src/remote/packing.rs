// SPDX-License-Identifier: PostgreSQL
//! Unpacks a reply (pg_tally/sql/remote_image.c packs it). The bytes are not trusted.

use std::borrow::Cow;

use super::pglz;

/// Requests zstd, if the server supports it; only the SQL function knows this part (pg_tally/sql/remote_reading.h).
pub(super) const ZSTD: i32 = 8;
/// Maximum size of the unpacked bytes; the server never compresses more at a time.
const LARGEST: usize = 64 << 20;

/// The unpacked bytes; `None`: the packed bytes are malformed. `raw_size` is the number of unpacked bytes: positive for
/// pglz, negative for zstd, 0 for bytes that are not packed.
pub(super) fn unpack(packed: &[u8], raw_size: i32) -> Option<Cow<'_, [u8]>> {
    let size = usize::try_from(raw_size.unsigned_abs()).ok().filter(|size| *size <= LARGEST)?;
    match raw_size {
        0 => Some(packed.into()),
        1.. => pglz::unpack(packed, size).map(Cow::Owned),
        _ => {
            let raw = zstd::bulk::decompress(packed, size).ok()?;
            (raw.len() == size).then_some(raw.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zstd_is_unpacked_to_its_size_only() {
        let raw: Vec<u8> = (0..20_000u32).map(|number| (number % 251) as u8).collect();
        let packed = zstd::bulk::compress(&raw, 3).unwrap();
        assert_eq!(unpack(&packed, -20_000).as_deref(), Some(&*raw));
        for size in [-19_999, -20_001, i32::MIN, i32::MAX] {
            assert_eq!(unpack(&packed, size), None, "{size}");
        }
        assert_eq!(unpack(&packed[..packed.len() - 1], -20_000), None);
        assert_eq!(unpack(b"no zstd", -7), None);
        assert_eq!(unpack(b"as it is", 0).as_deref(), Some(&b"as it is"[..]));
    }
}
