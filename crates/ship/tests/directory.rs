// SPDX-License-Identifier: PostgreSQL
//! Shipping into a directory: what readers find there at every step.

mod support;

use recording::{Compaction, Range, Recording};
use ship::{Bucket, Rules, Shipped, Spool};
use std::time::Duration;
use support::recorder::{assert_same, MIDNIGHT, SECOND};
use support::{objects, origin, read, superseded, Shipment};

fn url(folder: &std::path::Path) -> String {
    format!("file://{}", folder.join("bucket").display())
}

#[test]
fn readers_find_every_interval_once_at_every_step() {
    let folder = tempfile::tempdir().unwrap();
    let url = url(folder.path());
    let mut it = Shipment::new(&folder.path().join("spool"), &url, MIDNIGHT);
    it.pass.most = 1;
    it.maker.seconds(230);
    // One file at a time: intervals come, and none is there without its statistics.
    let mut before = 0;
    while it.pass.run().more {
        if it.pass.bucket().list("recordings").unwrap().is_empty() {
            continue;
        }
        let (frames, _) = read(&url);
        assert!(frames >= before, "{frames} after {before}");
        before = frames;
    }
    let (frames, _) = read(&url);
    // The minutes that have ended; the journal has the rest.
    assert_eq!(frames, 179);
    // The hour ends: it is merged in the spool, then replaced in the bucket.
    it.maker.time_us += 3600 * SECOND;
    it.next_minute();
    let mut steps = 0;
    loop {
        let more = it.pass.run().more;
        let (frames, _) = read(&url);
        // The first hour has 230, as soon as its file arrives, and never fewer than before.
        assert!(frames == 179 || frames == 230, "{frames}");
        steps += 1;
        if !more {
            break;
        }
    }
    assert!(steps >= 3, "{steps}");
    assert_eq!(read(&url).0, 230);
    // What was merged is there, and not valid.
    assert!(superseded(it.pass.bucket()) > 5);
    it.pass.grace = Duration::ZERO;
    assert!(it.all().removed > 5);
    assert_eq!(superseded(it.pass.bucket()), 0);
    assert_eq!(read(&url).0, 230);
    it.next_minute();
    it.all();
    let (frames, _) = read(&url);
    assert_eq!(frames, 231, "the minute after the hour");
    let passed = it.all();
    assert_eq!((passed.sent, passed.left), (0, 0), "nothing is sent twice");
}

#[test]
fn the_sums_of_the_bucket_are_those_of_the_recording() {
    let folder = tempfile::tempdir().unwrap();
    let url = url(folder.path());
    let spool = folder.path().join("spool");
    let mut it = Shipment::new(&spool, &url, MIDNIGHT + 3300 * SECOND);
    for _ in 0..2 {
        it.maker.seconds(200);
        it.next_minute();
        it.all();
    }
    let sum = it.maker.sum.clone().unwrap();
    it.maker.writer.pause().unwrap();
    // As after the recorder's end.
    let spool = Spool::open(&spool).unwrap();
    let files = recording::Files::at_rest(&spool.directory).unwrap();
    let bucket = Bucket::open(&url).unwrap();
    let who = spool.claimant("machine");
    let mut pass = ship::Pass::new(bucket, origin(), &spool, who, files, None).unwrap();
    let passed = pass.run();
    assert!(passed.problem.is_none() && passed.left == 0, "{passed:?}");
    let (frames, found) = read(&url);
    assert_eq!(frames, 402);
    assert_same(&sum, &found.unwrap(), 4.0);
    // A part of the time is a part of the files.
    let shipped =
        Shipped::find(Bucket::open(&url).unwrap(), Some("main"), Some("machine")).unwrap();
    let part = tempfile::tempdir().unwrap();
    shipped.copy(MIDNIGHT, MIDNIGHT + SECOND, part.path()).unwrap();
    assert!(
        Recording::open(part.path(), None).unwrap().frame_rows(Range::ALL).unwrap().len() <= 402
    );
    let error = Shipped::find(Bucket::open(&url).unwrap(), None, Some("other")).unwrap_err();
    assert!(error.to_string().contains("hosts machine"), "{error}");
}

#[test]
fn a_clock_that_was_set_back_hides_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let url = url(folder.path());
    let mut it = Shipment::new(&folder.path().join("spool"), &url, MIDNIGHT + 3700 * SECOND);
    it.maker.seconds(100);
    it.maker.time_us = MIDNIGHT + 7300 * SECOND;
    it.next_minute();
    it.all();
    assert_eq!(read(&url).0, 100);
    // Into the hour that was merged and sent; first earlier than all in it.
    it.maker.time_us = MIDNIGHT + 3600 * SECOND;
    it.maker.seconds(70);
    let mut seen = vec![read(&url).0];
    for _ in 0..5 {
        it.all();
        seen.push(read(&url).0);
        std::thread::sleep(Duration::from_millis(5));
    }
    it.maker.time_us = MIDNIGHT + 10_900 * SECOND;
    it.next_minute();
    it.next_minute();
    it.all();
    seen.push(read(&url).0);
    assert!(seen.is_sorted(), "{seen:?}");
    // All of the hours that have ended, and the minute that the last one ended.
    assert_eq!(*seen.last().unwrap(), 172, "{seen:?}");
    let hours = objects(it.pass.bucket()).into_iter().filter(|object| {
        object.table == "frames" && object.grade == Compaction::Hour && object.time == "010000"
    });
    assert_eq!(hours.count(), 1);
}

#[test]
fn two_recorders_do_not_mix_and_a_new_one_can_take_over() {
    let folder = tempfile::tempdir().unwrap();
    let url = url(folder.path());
    let mut first = Shipment::new(&folder.path().join("first"), &url, MIDNIGHT);
    first.maker.seconds(70);
    first.all();
    assert_eq!(read(&url).0, 59);
    let second = folder.path().join("second");
    let mut it = Shipment::new(&second, &url, MIDNIGHT);
    it.maker.seconds(130);
    let refused = it.pass.run();
    let text = refused.problem.unwrap().to_string();
    assert!(text.contains("/first on machine") && text.contains("--take-over"), "{text}");
    assert!(refused.left > 0);
    assert_eq!(read(&url).0, 59);
    let bucket = Bucket::open(&url).unwrap();
    let who = Spool::open(&second).unwrap().claimant("machine");
    let claim = ship::claim(&bucket, &origin(), &who, true).unwrap();
    assert_eq!(claim, ship::Claim::Ours(2));
    it.all();
    // The former owner stops, and nothing of it is replaced: the same hour, the same names.
    first.maker.seconds(60);
    let text = first.pass.run().problem.unwrap().to_string();
    assert!(text.contains("/second on machine"), "{text}");
    let frames = |generation: u32| {
        let of = |object: &ship::layout::Object| {
            object.table == "frames" && object.generation == generation
        };
        objects(&bucket).iter().filter(|it| of(it)).count()
    };
    assert_eq!((frames(1), frames(2)), (1, 2));
    it.maker.time_us += 3600 * SECOND;
    it.next_minute();
    it.all();
    let all = objects(&bucket);
    let highest = ship::layout::grades(&all);
    let valid = all.iter().filter(|it| it.table == "frames" && highest[&it.hour()] == it.grade);
    let mut valid: Vec<(u32, Compaction)> = valid.map(|it| (it.generation, it.grade)).collect();
    valid.sort();
    assert_eq!(valid, [(1, Compaction::Minute), (2, Compaction::Hour)]);
}

#[test]
fn a_full_spool_drops_the_oldest_minutes_that_were_not_sent_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let url = url(folder.path());
    let spool = folder.path().join("spool");
    let mut it = Shipment::new(&spool, &url, MIDNIGHT);
    it.maker.seconds(130);
    it.all();
    // Another recording is the owner, so nothing can be sent.
    let bucket = Bucket::open(&url).unwrap();
    let other = Spool::open(&folder.path().join("other")).unwrap().claimant("machine");
    ship::claim(&bucket, &origin(), &other, true).unwrap();
    it.maker.seconds(300);
    let unsent = |it: &Shipment| -> u64 {
        it.pass.unsent().iter().map(|path| path.metadata().unwrap().len()).sum()
    };
    let all = unsent(&it);
    it.pass.limit = all / 2;
    let passed = it.pass.run();
    let dropped = passed.dropped.unwrap();
    assert!(dropped.files > 0 && dropped.bytes >= all / 2, "{dropped:?}");
    assert_eq!(dropped.from_us, MIDNIGHT + 120 * SECOND, "the oldest of those that were not sent");
    assert!(unsent(&it) <= all / 2 && unsent(&it) > 0);
    assert!(it.pass.run().dropped.is_none());
    // What stays is sent when it is the owner again.
    let who = Spool::open(&spool).unwrap().claimant("machine");
    ship::claim(&bucket, &origin(), &who, true).unwrap();
    it.all();
    let (frames, _) = read(&url);
    assert!(frames > 119 && frames < 430, "{frames}");
    // With everything sent, an old hour leaves the spool and stays in the bucket.
    it.maker.time_us += 3600 * SECOND;
    it.next_minute();
    it.all();
    it.next_minute();
    it.pass.keep = Some(Duration::ZERO);
    let (before, _) = read(&url);
    it.all();
    it.all();
    assert!(it.maker.writer.files().list().iter().all(|(_, file)| file.hour().1 != "00"));
    assert!(read(&url).0 >= before);
}

#[test]
fn upkeep_removes_what_was_merged_and_old_days_only() {
    let folder = tempfile::tempdir().unwrap();
    let url = url(folder.path());
    let mut it = Shipment::new(&folder.path().join("spool"), &url, MIDNIGHT);
    it.maker.seconds(130);
    it.all();
    it.maker.time_us += 3600 * SECOND;
    it.next_minute();
    it.next_minute();
    it.all();
    let bucket = Bucket::open(&url).unwrap();
    let (frames, merged) = (read(&url).0, superseded(&bucket) as u64);
    assert!(merged > 5);
    let rules = Rules { grace: Duration::from_secs(3600), ..Rules::default() };
    assert_eq!(ship::upkeep(&bucket, rules).unwrap().merged_files, 0, "readers may have listed it");
    let rules = Rules { grace: Duration::ZERO, dry_run: true, ..Rules::default() };
    assert_eq!(ship::upkeep(&bucket, rules).unwrap().merged_files, merged);
    assert_eq!(superseded(&bucket) as u64, merged);
    let rules = Rules { dry_run: false, ..rules };
    assert_eq!(ship::upkeep(&bucket, rules).unwrap().merged_files, merged);
    assert_eq!((superseded(&bucket), read(&url).0), (0, frames));
    // March 2026 is older than a day.
    let rules = Rules { keep: Some(Duration::from_secs(86_400)), ..rules };
    let removed = ship::upkeep(&bucket, rules).unwrap();
    assert!(removed.files > 0 && removed.old_files == removed.files, "{removed:?}");
    assert!(objects(&bucket).is_empty());
    assert_eq!(bucket.list("owners").unwrap().len(), 1);
}
