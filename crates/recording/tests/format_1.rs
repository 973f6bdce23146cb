// SPDX-License-Identifier: PostgreSQL
//! Recordings of format 1, whose files list their series in the metadata, are still readable.
//! tests/data/format-1 has the last second of a recording written by the version before format 2.

use recording::{Range, Recording};
use segment::directory::StatKind;
use std::path::Path;

#[test]
fn a_recording_of_format_1_is_read_to_the_nanosecond() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/format-1");
    let recording = Recording::open(&path, None).unwrap();
    assert_eq!(recording.about().format, 1);
    let sum = recording.sum(Range::ALL).unwrap();
    assert_eq!(sum.statistics.len(), 178);
    let second = recording.range();
    // One line per kind: accounts, timers, values.
    let grid = recording
        .grid(second, &[second.from_us, second.to_us], 3, |series| {
            Some(match series.stat.kind {
                StatKind::Account => 0,
                StatKind::Timer => 1,
                StatKind::Value => 2,
            })
        })
        .unwrap();
    let lines: Vec<_> = grid.cells.iter().map(|line| (line[0].count, line[0].total)).collect();
    // The sums according to pyarrow.
    assert_eq!(lines, [(23_835, 1_877_206_988_649), (21_727, 1_654_468_726_326), (2_027, 489_239)]);
    assert_eq!(recording.problems(), Vec::<String>::new());
}
