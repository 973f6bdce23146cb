// SPDX-License-Identifier: PostgreSQL
//! A recording of made-up seconds that is shipped pass by pass, and the resulting contents of the bucket.

#![allow(dead_code)] // Each test uses only a part of this module.

#[path = "../../../recording/tests/support/mod.rs"]
pub mod recorder;

pub mod cloud;
pub mod proxy;
#[path = "../../../tally/tests/support/python.rs"]
pub mod python;
pub mod server;

use recorder::Maker;
use recording::{Range, Recording, RetentionPolicy};
use segment::Frame;
use ship::layout::{grades, Object, Origin};
use ship::{Bucket, Pass, Passed, Shipped, Spool};
use std::path::Path;
use std::time::Duration;

pub fn origin() -> Origin {
    Origin::new("main", "machine").unwrap()
}

/// A recorder's spool, and the passes through it.
pub struct Shipment {
    pub maker: Maker,
    pub pass: Pass,
}

/// Hours are merged as soon as they have ended.
pub fn soon() -> RetentionPolicy {
    let never = Duration::from_secs(1 << 40);
    RetentionPolicy { details: Duration::ZERO, tens: never, sixties: never, retention: None }
}

impl Shipment {
    pub fn new(spool: &Path, url: &str, begin_us: i64) -> Shipment {
        Shipment::with_retention(spool, url, begin_us, soon())
    }

    pub fn with_retention(
        spool: &Path,
        url: &str,
        begin_us: i64,
        retention: RetentionPolicy,
    ) -> Shipment {
        let origin = origin();
        let bucket = Bucket::open(url).unwrap();
        let spool = Spool::open(spool).unwrap();
        let maker = Maker::with_retention(&spool.directory, retention, begin_us);
        let who = spool.claimant("machine");
        let pass = Pass::new(bucket, origin, &spool, who, maker.writer.files(), None).unwrap();
        Shipment { maker, pass }
    }

    /// Runs passes until there is nothing to do.
    pub fn all(&mut self) -> Passed {
        loop {
            let passed = self.pass.run(&ship::now_us);
            assert!(passed.problem.is_none(), "{:?}", passed.problem);
            if !passed.more {
                return passed;
            }
        }
    }

    /// Ends the minute; the hours that have ended are merged.
    pub fn next_minute(&mut self) {
        let minute = 60 * recorder::SECOND;
        self.maker.time_us += minute - self.maker.time_us.rem_euclid(minute);
        self.maker.second();
    }
}

/// Names of all objects with rows.
pub fn objects(bucket: &Bucket) -> Vec<Object> {
    let all = recording::TABLES.iter().flat_map(|table| bucket.list(table).unwrap());
    all.filter_map(|object| Object::parse(&object.key)).collect()
}

/// Number of objects that another object has replaced.
pub fn superseded(bucket: &Bucket) -> usize {
    let all = objects(bucket);
    let highest = grades(&all);
    all.iter().filter(|object| highest[&object.hour()] > object.grade).count()
}

/// The number of intervals that a reader finds in the bucket, and their sum.
pub fn read(url: &str) -> (usize, Option<Frame>) {
    let folder = tempfile::tempdir().unwrap();
    let shipped = Shipped::find(Bucket::open(url).unwrap(), None, None).unwrap();
    shipped.copy(i64::MIN, i64::MAX, folder.path()).unwrap();
    let Ok(recording) = Recording::open(folder.path(), None) else { return (0, None) };
    let frames = recording.frame_rows(Range::ALL).unwrap().len();
    (frames, Some(recording.sum(Range::ALL).unwrap()))
}
