// SPDX-License-Identifier: PostgreSQL
//! The Nth system call of a recorder or a reader fails, for N = 1, 2, ... until none does.
//!
//! Acknowledged rows are there, once, at any time; refused rows are not. The error names a file. The next writer,
//! or the same one if it continues, works as if nothing had happened.

mod support;

use faulty::{arm, under, Call, Fault, FaultPlan};
use recording::{Error, Files, Range, Recording, RetentionPolicy};
use segment::Frame;
use std::path::{Path, PathBuf};
use support::{assert_same, Maker, MIDNIGHT, SECOND};

/// Writes end at many points of a line and a block.
fn each_fault(work: impl FnMut(FaultPlan) -> Option<&'static str>) {
    faulty::each_fault(499, work);
}

/// Files that a reader would not expect in a closed recording.
fn left_over(folder: &Path) -> Vec<PathBuf> {
    let mut all = support::files(folder);
    all.retain(|path| {
        path.extension().is_none_or(|extension| extension != "parquet")
            && !["recording.json", "lock"].iter().any(|name| path.ends_with(name))
    });
    all
}

/// A folder in memory, because thousands of files are synced.
fn in_memory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").unwrap()
}

fn assert_names_a_file(error: &Error, folder: &Path) {
    let (text, folder) = (error.to_string(), folder.display().to_string());
    assert!(text.contains(&folder), "{text}");
}

/// Checks that the recording has all acknowledged rows, and each interval once.
fn assert_recorded(maker: &Maker, folder: &Path) {
    let recording = Recording::open(folder, None).unwrap();
    let frames = recording.frame_rows(Range::ALL).unwrap();
    let numbers: Vec<u64> = frames.iter().map(|row| row.frame).collect();
    assert_eq!(numbers, (1..maker.writer.next_frame()).collect::<Vec<_>>());
    assert_same(maker.sum.as_ref().unwrap(), &recording.sum(Range::ALL).unwrap(), 100.0);
    assert_eq!(recording.problems(), Vec::<String>::new());
}

/// The next writer of a recording, with upkeep in a separate thread, as in a recorder.
fn next(folder: &Path, begin_us: i64) -> Maker {
    let mut maker = Maker::with_retention(folder, RetentionPolicy::default(), begin_us);
    maker.writer.threaded = true;
    maker
}

/// Writes twelve seconds; the minute ends after ten.
fn begin(folder: &Path) -> Maker {
    next(folder, MIDNIGHT + 49 * SECOND)
}

/// Writes this many seconds; stops at the first that is refused.
fn seconds(maker: &mut Maker, n: usize) -> Result<(), Error> {
    for _ in 0..n {
        let (frame, batch) = maker.batch();
        maker.writer.push(batch)?;
        match &mut maker.sum {
            Some(sum) => sum.merge(&frame),
            None => maker.sum = Some(frame),
        }
    }
    Ok(())
}

/// Another writer finds the recording, and adds three seconds.
fn go_on(folder: &Path, sum: Option<Frame>, time_us: i64) -> Maker {
    let mut maker = next(folder, time_us);
    maker.sum = sum;
    assert_recorded(&maker, folder);
    seconds(&mut maker, 3).unwrap();
    assert_recorded(&maker, folder);
    maker
}

#[test]
fn a_writer_that_goes_on_after_a_refusal_has_lost_and_doubled_nothing() {
    each_fault(|plan| {
        let folder = in_memory();
        let mut maker = begin(folder.path());
        seconds(&mut maker, 3).unwrap();
        let (done, hit) = under(plan, || seconds(&mut maker, 12));
        if let Err(error) = &done {
            assert_names_a_file(error, folder.path());
        }
        assert!(done.is_ok() || hit.is_some());
        assert_recorded(&maker, folder.path());
        // First from the journal, then across the end of the next minute.
        seconds(&mut maker, 1).unwrap();
        assert_recorded(&maker, folder.path());
        seconds(&mut maker, 70).unwrap();
        assert_recorded(&maker, folder.path());
        hit
    });
}

#[test]
fn the_next_writer_goes_on_after_one_that_ended_by_an_error() {
    each_fault(|plan| {
        let folder = in_memory();
        let mut maker = begin(folder.path());
        seconds(&mut maker, 3).unwrap();
        let (done, hit) = under(plan, || seconds(&mut maker, 12));
        assert!(done.is_ok() || hit.is_some());
        let (sum, time_us) = (maker.sum.take(), maker.time_us);
        drop(maker);
        go_on(folder.path(), sum, time_us);
        hit
    });
}

#[test]
fn a_recorder_that_could_not_close_its_recording_is_continued() {
    each_fault(|plan| {
        let folder = in_memory();
        let mut maker = begin(folder.path());
        seconds(&mut maker, 14).unwrap();
        let (sum, time_us) = (maker.sum.take(), maker.time_us);
        let (done, hit) = under(plan, || maker.writer.close());
        if let Err(error) = &done {
            assert!(hit.is_some());
            assert_names_a_file(error, folder.path());
        }
        let maker = go_on(folder.path(), sum, time_us);
        maker.writer.close().unwrap();
        assert_eq!(left_over(folder.path()), Vec::<PathBuf>::new());
        hit
    });
}

#[test]
fn a_recording_that_could_not_be_opened_is_as_it_was() {
    let killed = in_memory();
    let mut maker = begin(killed.path());
    seconds(&mut maker, 14).unwrap();
    let (sum, time_us) = (maker.sum.take(), maker.time_us);
    std::mem::forget(maker);
    each_fault(|plan| {
        let folder = in_memory();
        support::copy(killed.path(), folder.path());
        let (opened, hit) = under(plan, || {
            recording::Writer::open(folder.path(), support::about(), RetentionPolicy::default())
        });
        if let Err(error) = &opened {
            assert!(hit.is_some());
            assert_names_a_file(error, folder.path());
        }
        drop(opened);
        go_on(folder.path(), sum.clone(), time_us);
        hit
    });
}

#[test]
fn files_that_could_not_be_removed_are_removed_later_and_the_writer_goes_on() {
    each_fault(|plan| {
        let folder = in_memory();
        let mut maker = begin(folder.path());
        seconds(&mut maker, 14).unwrap();
        let files: Files = maker.writer.files();
        let minute = files.list();
        let (done, hit) = under(plan, || files.remove(&minute));
        assert!(done.is_ok() || hit.is_some());
        // The next minute is written while a shipping thread might remove files.
        seconds(&mut maker, 70).unwrap();
        files.remove(&minute).unwrap();
        let recording = Recording::open(folder.path(), None).unwrap();
        let frames = recording.frame_rows(Range::ALL).unwrap();
        let numbers: Vec<u64> = frames.iter().map(|row| row.frame).collect();
        assert_eq!(numbers, (11..maker.writer.next_frame()).collect::<Vec<_>>());
        assert_eq!(recording.problems(), Vec::<String>::new());
        hit
    });
}

/// A recording, complete or with files that are being replaced, and its contents.
fn recorded(folder: &Path, replacing: bool) -> Maker {
    let mut maker = begin(folder);
    seconds(&mut maker, if replacing { 10 } else { 14 }).unwrap();
    if replacing {
        let armed = arm(FaultPlan::nth(&[Call::Rename], 2, Fault::Fails(libc::EIO)));
        seconds(&mut maker, 4).unwrap_err();
        assert!(armed.hit().is_some());
    }
    maker
}

#[test]
fn a_reader_reads_all_or_says_what_it_could_not_read() {
    for (errno, replacing) in [(libc::EMFILE, false), (libc::EIO, true)] {
        let folder = in_memory();
        let maker = recorded(folder.path(), replacing);
        let whole = maker.sum.as_ref().unwrap();
        let fails = |n| FaultPlan::nth(&[Call::Open, Call::Read], n, Fault::Fails(errno));
        faulty::until_untouched(10, fails, |plan| {
            let (read, hit) = under(plan, || {
                let recording = Recording::open(folder.path(), None)?;
                let sum = recording.sum(Range::ALL)?;
                Ok::<_, Error>((recording, sum))
            });
            match read {
                Ok((recording, sum)) if recording.problems().is_empty() => {
                    assert_same(whole, &sum, 100.0);
                }
                Ok((recording, _)) => {
                    let text = recording.problems().join("\n");
                    assert!(text.contains(&folder.path().display().to_string()), "{text}");
                }
                Err(error) => assert_names_a_file(&error, folder.path()),
            }
            hit
        });
    }
}
