// SPDX-License-Identifier: PostgreSQL
//! Applies the changes of a segment to its image (pg_tally/sql/remote_image.c writes them). The bytes are not trusted.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Number of bits of a run's first number that hold its length minus 1.
const LENGTH_BITS: u32 = 3;
const LENGTH_MOST: u64 = (1 << LENGTH_BITS) - 1;
const WORD: u64 = 8;
/// More slots than a segment can have.
const SLOTS: usize = 1 << 16;

/// Numbers of 7 bits a byte, the lowest first.
struct VariableNumbers<'a>(&'a [u8]);

impl VariableNumbers<'_> {
    fn next(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7F) << shift;
            if byte & 0x80 == 0 {
                return Some(number);
            }
        }
        None
    }

    fn next_signed(&mut self) -> Option<i64> {
        self.next().map(signed)
    }
}

/// The sign is in the lowest bit.
fn signed(number: u64) -> i64 {
    (number >> 1) as i64 ^ -((number & 1) as i64)
}

/// Change the image, which may grow to `largest` bytes.
pub(super) fn apply(changes: &[u8], image: &File, largest: u64) -> Result<(), String> {
    let damaged = || "the server's reply is malformed".to_string();
    let mut numbers = VariableNumbers(changes);
    let mut word = 0u64;
    let mut bytes = Vec::new();
    while !numbers.0.is_empty() {
        let first = numbers.next().ok_or_else(damaged)?;
        let mut count = (first & LENGTH_MOST) + 1;
        if count > LENGTH_MOST {
            count = count.checked_add(numbers.next().ok_or_else(damaged)?).ok_or_else(damaged)?;
        }
        word = word.checked_add_signed(signed(first >> LENGTH_BITS)).ok_or_else(damaged)?;
        // Each word takes at least one byte.
        let end = word.checked_add(count).filter(|end| *end <= largest / WORD);
        let end = end.filter(|_| count <= numbers.0.len() as u64).ok_or_else(damaged)?;
        bytes.clear();
        bytes.resize((count * WORD) as usize, 0);
        read_or_zeros(image, &mut bytes, word * WORD).map_err(|error| error.to_string())?;
        for known in bytes.chunks_exact_mut(WORD as usize) {
            let difference = numbers.next_signed().ok_or_else(damaged)? as u64;
            let before = u64::from_ne_bytes(known.try_into().map_err(|_| damaged())?);
            known.copy_from_slice(&before.wrapping_add(difference).to_ne_bytes());
        }
        image.write_all_at(&bytes, word * WORD).map_err(|error| error.to_string())?;
        word = end;
    }
    Ok(())
}

/// Reads bytes of the image; bytes beyond its end are zeros.
fn read_or_zeros(image: &File, bytes: &mut [u8], offset: u64) -> std::io::Result<()> {
    let mut have = 0;
    while have < bytes.len() {
        match image.read_at(&mut bytes[have..], offset + have as u64) {
            Ok(0) => break,
            Ok(read) => have += read,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The tick of each slot, 0 if the slot has no owner; `None`: the bytes are malformed.
pub(super) fn slot_ticks(bytes: &[u8], tick: u64) -> Option<Vec<u64>> {
    let mut numbers = VariableNumbers(bytes);
    let mut ticks = Vec::new();
    for _ in 0..numbers.next()? {
        let slot = ticks.len().checked_add(usize::try_from(numbers.next()?).ok()?)?;
        if slot >= SLOTS {
            return None;
        }
        ticks.resize(slot, 0);
        ticks.push(tick.wrapping_sub(numbers.next_signed()? as u64));
    }
    Some(ticks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn image() -> File {
        tempfile::tempfile().unwrap()
    }

    fn words(image: &File) -> Vec<u64> {
        let mut bytes = vec![0; image.metadata().unwrap().len() as usize];
        image.read_exact_at(&mut bytes, 0).unwrap();
        bytes.chunks_exact(8).map(|word| u64::from_ne_bytes(word.try_into().unwrap())).collect()
    }

    #[test]
    fn runs_are_added_to_what_is_there() {
        let image = image();
        // Two words from word 1 on: +1, -1; then one from one before the end on: +150.
        let changes = [2 << 3 | 1, 2, 1, 1 << 3, 0xAC, 2];
        apply(&changes, &image, 1 << 20).unwrap();
        assert_eq!(words(&image), [0, 1, 149]);
        // A run of 9 words.
        apply(&[7, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2], &image, 1 << 20).unwrap();
        assert_eq!(words(&image).len(), 9);
        assert_eq!(words(&image)[1], 2);
    }

    #[test]
    fn what_would_write_elsewhere_is_refused() {
        let image = image();
        for changes in [
            &[0x80][..],                                                   // cut
            &[1 << 3],                                                     // before the beginning
            &[0, 0x80],                                                    // cut within a word
            &[7, 0xFF, 0xFF, 0xFF, 0x7F, 0], // a run longer than the bytes
            &[0xF0, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 1, 0], // far away
            &[0xFF; 12],                     // no number
        ] {
            assert!(apply(changes, &image, 1 << 20).is_err(), "{changes:?}");
        }
        assert!(image.metadata().unwrap().len() <= 1 << 20);
    }

    #[test]
    fn each_slot_has_its_tick() {
        assert_eq!(slot_ticks(&[2, 1, 2, 0, 4], 100), Some(vec![0, 99, 98]));
        assert_eq!(slot_ticks(&[0], 100), Some(vec![]));
        assert_eq!(slot_ticks(&[1, 0xFF, 0xFF, 0x7F, 2], 100), None);
        assert_eq!(slot_ticks(&[2, 1, 2], 100), None);
    }
}
