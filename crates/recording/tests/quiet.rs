// SPDX-License-Identifier: PostgreSQL
//! Damaged Parquet files are reported as errors. A panic of the library that reads them is not printed, because the
//! screen may belong to a view. This is a separate program, because it sets the panic hook of the process.

mod support;

use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};

use recording::{Range, Recording};
use support::{copy, files, Maker};

static SHOWN: AtomicUsize = AtomicUsize::new(0);

/// xorshift, so that the damage is the same each time.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[test]
fn no_damaged_file_shows_the_panic_of_its_library() {
    panic::set_hook(Box::new(|_| {
        SHOWN.fetch_add(1, Ordering::Relaxed);
    }));
    let original = tempfile::tempdir().unwrap();
    let mut maker = Maker::new(original.path());
    maker.seconds(130);
    drop(maker);
    let (mut errors, mut panics) = (0, 0);
    let (mut state, mut last) = (20260101, String::new());
    for round in 0..4000 {
        // Most of these damages are errors that the library returns.
        if round >= 400 && panics > 0 {
            break;
        }
        let folder = tempfile::tempdir().unwrap();
        copy(original.path(), folder.path());
        let parquet: Vec<_> = files(folder.path())
            .into_iter()
            .filter(|path| path.extension().is_some_and(|end| end == "parquet"))
            .collect();
        let path = &parquet[next(&mut state) as usize % parquet.len()];
        let mut bytes = std::fs::read(path).unwrap();
        // Damage the description of the columns at the end, on which a reader relies most.
        let length = bytes.len();
        let from = length - (length / 2).min(2000);
        for _ in 0..3 {
            bytes[from + next(&mut state) as usize % (length - 8 - from)] = next(&mut state) as u8;
        }
        std::fs::write(path, bytes).unwrap();
        let Ok(recording) = Recording::open(folder.path(), None) else { continue };
        let read = [
            recording.frame_rows(Range::ALL).err(),
            recording.statement_texts(Range::ALL).err(),
            recording.settings(Range::ALL).err(),
            recording.sum(Range::ALL).err(),
            recording.statements(Range::ALL).err(),
            recording.session_history(Range::ALL).err(),
        ];
        let mut reported: Vec<String> =
            recording.problems().iter().map(|problem| problem.to_string()).collect();
        reported.extend(read.into_iter().flatten().map(|error| error.to_string()));
        errors += reported.len();
        // A caught panic is reported with only this reason.
        panics += reported.iter().filter(|text| text.contains(": damaged")).count();
        last = reported.pop().unwrap_or(last);
    }
    let _ = panic::take_hook();
    println!("{errors} errors, {panics} of them panics of the library; the last: {last}");
    assert!(errors > 20 && panics > 0);
    assert_eq!(SHOWN.load(Ordering::Relaxed), 0, "panics that were shown");
}
