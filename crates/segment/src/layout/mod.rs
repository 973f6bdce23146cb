// SPDX-License-Identifier: PostgreSQL
//! The layout of the segment: offsets and sizes, generated from `format/layout.toml`, and functions that read fields.
//!
//! Everything is in the byte order of the writing machine, which must be that of the reader. The functions
//! here read a field of a buffer whose size the caller has derived from the validated header. A field
//! beyond the buffer reads as zero, so no content makes the reader panic.

#[rustfmt::skip]
mod offsets;

pub use offsets::*;

/// The end of the part of the header that a reader reads repeatedly.
pub const LIVE_END: usize = header::REFUSAL_LOGGED;
/// Operations that are counted for each relation.
pub const RELATION_OPERATIONS: usize = relation_operation::OPERATIONS as usize;
/// Bytes of an octave.
pub const OCTAVE_SIZE: usize = OCTAVE * 8;
/// Bytes of one octave of each statistic of a chunk.
pub const ROW_SIZE: usize = ROW * 8;
/// Bytes of a chunk.
pub const CHUNK_SIZE: usize = CHUNK_BUCKETS * 8;

/// Bytes of a book with this many statistics.
pub const fn book_size(statistics: usize) -> usize {
    book::SIZE + statistics * head::SIZE + statistics.div_ceil(CHUNK) * CHUNK_SIZE
}

/// Bytes from the start of a book's histograms to a bucket of the histogram of head `index`.
pub const fn bucket_offset(index: usize, bucket: usize) -> usize {
    index / CHUNK * CHUNK_SIZE
        + bucket / OCTAVE * ROW_SIZE
        + index % CHUNK * OCTAVE_SIZE
        + bucket % OCTAVE * 8
}

/// The pending wait of a book: the index of its head, and whether it has ended. The time of a wait that may continue
/// counts, but not yet as an event.
pub(crate) fn pending(pend: u32) -> Option<(usize, bool)> {
    (pend != NONE).then_some(((pend & !PEND_OPEN) as usize, pend & PEND_OPEN == 0))
}

/// The `u16` at `at`.
pub fn u16_at(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|b| b.try_into().ok()).map_or(0, u16::from_ne_bytes)
}

/// The `u32` at `at`.
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

/// The `i32` at `at`.
pub fn i32_at(bytes: &[u8], at: usize) -> i32 {
    u32_at(bytes, at) as i32
}

/// The `u64` at `at`.
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

/// The `f64` at `at`.
pub fn f64_at(bytes: &[u8], at: usize) -> f64 {
    f64::from_bits(u64_at(bytes, at))
}

/// The text of `size` bytes at `at`, up to its terminator. Control characters, with which a
/// hostile writer could attack a terminal, become question marks.
pub fn text_at(bytes: &[u8], at: usize, size: usize) -> String {
    let field = bytes.get(at..at + size).unwrap_or(&[]);
    let end = field.iter().position(|&b| b == 0).unwrap_or(field.len());
    String::from_utf8_lossy(&field[..end])
        .chars()
        .map(|c| if c.is_control() { '?' } else { c })
        .collect()
}

/// A region of the file: entries of `stride` bytes from `offset` on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Number of entries.
    pub count: u32,
    /// Bytes per entry.
    pub stride: u32,
}

impl Region {
    /// The region that the header describes at `at`.
    pub fn at(bytes: &[u8], at: usize) -> Region {
        Region {
            offset: u64_at(bytes, at + region::OFFSET),
            count: u32_at(bytes, at + region::COUNT),
            stride: u32_at(bytes, at + region::STRIDE),
        }
    }

    /// The end of the region; `None` on overflow.
    pub fn end(&self) -> Option<u64> {
        u64::from(self.count).checked_mul(u64::from(self.stride))?.checked_add(self.offset)
    }

    /// The offset of entry `index`. The caller must have checked `end` and `index`.
    pub fn entry(&self, index: u32) -> u64 {
        self.offset + u64::from(index) * u64::from(self.stride)
    }
}

/// The histogram bucket of a value.
pub fn bucket(value: u64) -> usize {
    if value < 8 {
        return value as usize;
    }
    let octave = 63 - value.leading_zeros() as usize;
    if octave > 43 {
        return HIST_BUCKETS - 1;
    }
    (octave - 2) * 8 + ((value >> (octave - 3)) & 7) as usize
}

/// The smallest value of a bucket.
pub fn bucket_low(bucket: usize) -> u64 {
    if bucket < 8 {
        return bucket as u64;
    }
    ((8 + bucket % 8) as u64) << (bucket / 8 - 1)
}

/// The middle of a bucket, which is within 1/16 of every value in it, except for the last bucket, which has
/// all larger values.
pub fn bucket_middle(bucket: usize) -> u64 {
    let low = bucket_low(bucket);
    low + (bucket_low(bucket + 1) - low) / 2
}

#[cfg(test)]
mod tests {
    use crate::layout::*;

    #[test]
    fn every_value_lies_in_its_bucket_and_within_a_sixteenth_of_the_middle() {
        let mut value = 1u64;
        while value < 1 << 43 {
            for v in [value - 1, value, value + 1, value + value / 3] {
                let b = bucket(v);
                assert!(bucket_low(b) <= v && v < bucket_low(b + 1), "{v}");
                let error = bucket_middle(b).abs_diff(v) as f64;
                assert!(error <= v as f64 / 16.0, "{v}: {error}");
            }
            value += value / 7 + 1;
        }
        for exact in 0..16 {
            assert_eq!((bucket(exact), bucket_low(exact as usize)), (exact as usize, exact));
        }
        let last = bucket((1 << 44) - 1);
        assert_eq!((last, bucket(1 << 44), bucket(u64::MAX)), (HIST_BUCKETS - 1, last, last));
        assert_eq!(bucket_low(HIST_BUCKETS - 8), 1 << 43);
    }

    #[test]
    fn text_ends_at_its_terminator_and_has_no_control_characters() {
        assert_eq!(text_at(b"ab\x1b[2J\0rest", 0, 11), "ab?[2J");
        assert_eq!(text_at(b"full", 0, 4), "full");
        assert_eq!(text_at(b"\xff\xfe", 0, 2), "\u{fffd}\u{fffd}");
        assert_eq!(text_at(b"short", 3, 9), "");
    }
}
