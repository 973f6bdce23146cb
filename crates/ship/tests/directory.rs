// SPDX-License-Identifier: PostgreSQL
//! Shipping into a directory by two recorders, from a full spool, and the upkeep of the directory. The readers' view at
//! every step is simulated (tests/simulation).

mod support;

use recording::{Compaction, RetentionPolicy};
use ship::{Bucket, Rules, Spool};
use std::time::Duration;
use support::recorder::{MIDNIGHT, SECOND};
use support::{objects, origin, read, soon, superseded, Shipment};

fn url(folder: &std::path::Path) -> String {
    format!("file://{}", folder.join("bucket").display())
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
    let mut shipment = Shipment::new(&second, &url, MIDNIGHT);
    shipment.maker.seconds(130);
    let refused = shipment.pass.run(&ship::now_us);
    let text = refused.problem.unwrap().to_string();
    assert!(text.contains("/first on machine") && text.contains("--take-over"), "{text}");
    assert!(refused.left > 0);
    assert_eq!(read(&url).0, 59);
    let bucket = Bucket::open(&url).unwrap();
    let who = Spool::open(&second).unwrap().claimant("machine");
    let claim = ship::claim(&bucket, &origin(), &who, true, ship::now_us()).unwrap();
    assert_eq!(claim, ship::Claim::Ours(2));
    shipment.all();
    // The former owner stops, and none of its files are replaced, although the hour and the names are the same.
    first.maker.seconds(60);
    let text = first.pass.run(&ship::now_us).problem.unwrap().to_string();
    assert!(text.contains("/second on machine"), "{text}");
    let frames = |generation: u32| {
        let of = |object: &ship::layout::Object| {
            object.table == "frames" && object.generation == generation
        };
        objects(&bucket).iter().filter(|object| of(object)).count()
    };
    assert_eq!((frames(1), frames(2)), (1, 2));
    shipment.maker.time_us += 3600 * SECOND;
    shipment.next_minute();
    shipment.all();
    let all = objects(&bucket);
    let highest = ship::layout::grades(&all);
    let valid = all
        .iter()
        .filter(|object| object.table == "frames" && highest[&object.hour()] == object.grade);
    let mut valid: Vec<(u32, Compaction)> =
        valid.map(|object| (object.generation, object.grade)).collect();
    valid.sort();
    assert_eq!(valid, [(1, Compaction::Minute), (2, Compaction::Hour)]);
}

#[test]
fn a_full_spool_drops_the_oldest_minutes_that_were_not_sent_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let url = url(folder.path());
    let spool = folder.path().join("spool");
    let mut shipment = Shipment::new(&spool, &url, MIDNIGHT);
    shipment.maker.seconds(130);
    shipment.all();
    // Another recording is the owner, so nothing can be sent.
    let bucket = Bucket::open(&url).unwrap();
    let other = Spool::open(&folder.path().join("other")).unwrap().claimant("machine");
    ship::claim(&bucket, &origin(), &other, true, ship::now_us()).unwrap();
    shipment.maker.seconds(300);
    let unsent = |shipment: &Shipment| -> u64 {
        shipment.pass.unsent().iter().map(|path| path.metadata().unwrap().len()).sum()
    };
    let all = unsent(&shipment);
    shipment.pass.limit = all / 2;
    let passed = shipment.pass.run(&ship::now_us);
    let dropped = passed.dropped.unwrap();
    assert!(dropped.files > 0 && dropped.bytes >= all / 2, "{dropped:?}");
    assert_eq!(dropped.from_us, MIDNIGHT + 120 * SECOND, "the oldest of those that were not sent");
    assert!(unsent(&shipment) <= all / 2 && unsent(&shipment) > 0);
    assert!(shipment.pass.run(&ship::now_us).dropped.is_none());
    // The remaining files are sent when it is the owner again.
    let who = Spool::open(&spool).unwrap().claimant("machine");
    ship::claim(&bucket, &origin(), &who, true, ship::now_us()).unwrap();
    shipment.all();
    let (frames, _) = read(&url);
    assert!(frames > 119 && frames < 430, "{frames}");
    // With everything sent, an old hour leaves the spool and stays in the bucket.
    shipment.maker.time_us += 3600 * SECOND;
    shipment.next_minute();
    shipment.all();
    shipment.next_minute();
    (shipment.pass.keep, shipment.pass.grace) = (Some(Duration::ZERO), Duration::ZERO);
    let (before, _) = read(&url);
    shipment.all();
    shipment.all();
    assert!(shipment.maker.writer.files().list().iter().all(|(_, file)| file.hour().1 != "00"));
    assert!(read(&url).0 >= before);
    assert_eq!(superseded(&bucket), 0);
}

#[test]
fn upkeep_removes_what_was_merged_and_old_days_only() {
    let folder = tempfile::tempdir().unwrap();
    let url = url(folder.path());
    let mut shipment = Shipment::new(&folder.path().join("spool"), &url, MIDNIGHT);
    shipment.maker.seconds(130);
    shipment.all();
    shipment.maker.time_us += 3600 * SECOND;
    shipment.next_minute();
    shipment.next_minute();
    shipment.all();
    let bucket = Bucket::open(&url).unwrap();
    let (frames, merged) = (read(&url).0, superseded(&bucket) as u64);
    assert!(merged > 5);
    let rules = Rules { grace: Duration::from_secs(3600), ..Rules::default() };
    assert_eq!(
        ship::upkeep(&bucket, rules, ship::now_us()).unwrap().merged_files,
        0,
        "readers may have listed it"
    );
    let rules = Rules { grace: Duration::ZERO, dry_run: true, ..Rules::default() };
    assert_eq!(ship::upkeep(&bucket, rules, ship::now_us()).unwrap().merged_files, merged);
    assert_eq!(superseded(&bucket) as u64, merged);
    let rules = Rules { dry_run: false, ..rules };
    assert_eq!(ship::upkeep(&bucket, rules, ship::now_us()).unwrap().merged_files, merged);
    assert_eq!((superseded(&bucket), read(&url).0), (0, frames));
    // March 2026 is older than a day.
    let rules = Rules { keep: Some(Duration::from_secs(86_400)), ..rules };
    let removed = ship::upkeep(&bucket, rules, ship::now_us()).unwrap();
    assert!(removed.files > 0 && removed.old_files == removed.files, "{removed:?}");
    assert!(objects(&bucket).is_empty());
    assert_eq!(bucket.list("owners").unwrap().len(), 1);
}

#[test]
fn an_hour_of_which_some_minutes_were_never_sent_arrives_in_all_tables_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let url = url(folder.path());
    // Intervals of ten seconds: the last one of a minute ends in the file of the next.
    let tens = RetentionPolicy { tens: Duration::ZERO, ..soon() };
    let spool = folder.path().join("spool");
    let mut shipment = Shipment::with_retention(&spool, &url, MIDNIGHT, tens);
    shipment.maker.seconds(130);
    shipment.all();
    let counted = || {
        let (frames, sum) = read(&url);
        let events = sum
            .unwrap()
            .statistics
            .iter()
            .map(|statistic| statistic.total.change.count)
            .sum::<u64>();
        (frames, events)
    };
    let before = counted();
    // Two minutes more are merged with their hour before they can be sent.
    shipment.maker.seconds(130);
    shipment.maker.time_us += 3600 * SECOND;
    shipment.next_minute();
    shipment.pass.most = 1;
    let mut steps = Vec::new();
    loop {
        let passed = shipment.pass.run(&ship::now_us);
        assert!(passed.problem.is_none(), "{:?}", passed.problem);
        steps.push(counted());
        if !passed.more {
            break;
        }
    }
    let changed = steps.iter().position(|now| *now != before).unwrap();
    assert!(changed > 1, "{steps:?}");
    // Later files are in addition to it.
    assert!(
        steps[changed].1 > 2 * before.1 && steps[changed..].is_sorted_by_key(|step| step.1),
        "{steps:?}"
    );
}

#[test]
fn the_grace_period_begins_when_the_merged_hour_has_arrived() {
    const MINUTE: i64 = 60 * SECOND;
    let folder = tempfile::tempdir().unwrap();
    let mut shipment = Shipment::new(&folder.path().join("spool"), &url(folder.path()), MIDNIGHT);
    shipment.maker.seconds(130);
    shipment.all();
    shipment.maker.time_us += 3600 * SECOND;
    shipment.next_minute();
    // Sending the hour takes twenty minutes.
    let begun = MIDNIGHT + 7200 * SECOND;
    let readings = std::cell::Cell::new(0);
    let clock = || begun + 20 * MINUTE * i64::from(readings.replace(1));
    let passed = shipment.pass.run(&clock);
    assert!(passed.problem.is_none() && passed.sent > 0 && !passed.more);
    // Readers that listed the minutes just before the hour arrived may still read them.
    assert_eq!(shipment.pass.run(&|| begun + 34 * MINUTE).removed, 0);
    assert!(shipment.pass.run(&|| begun + 35 * MINUTE).removed > 0);
}
