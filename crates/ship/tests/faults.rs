// SPDX-License-Identifier: PostgreSQL
//! The Nth system call of a pass fails, in the spool or in a directory as object storage, for N = 1, 2, ... until none
//! does.
//!
//! The error names a file or the bucket. Readers find the files that had arrived, with each interval once; the others
//! are in the spool. The next pass, by the same recorder or by a new one, leads to the same state as a pass without
//! faults, and does not send files again that have arrived.

mod support;

use faulty::{each_failed_read, each_fault, in_another_thread, under, FaultPlan};
use futures_util::stream::{self, BoxStream};
use futures_util::{FutureExt, StreamExt};
use object_store::local::LocalFileSystem;
use object_store::path::Path as ObjectPath;
use object_store::{
    CopyOptions, GetOptions, GetResult, ListResult, MultipartUpload, ObjectMeta, ObjectStore,
    PutMultipartOptions, PutOptions, PutPayload, PutResult, Result,
};
use recording::{Files, Range, Recording};
use ship::{Bucket, Error, Pass, Passed, Shipped, Spool};
use std::collections::BTreeMap;
use std::fmt;
use std::future::Future;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;
use support::recorder::{files, MIDNIGHT, SECOND};
use support::{origin, Shipment};

/// Changes of a directory are made under the plan of the thread that runs the pass.
#[derive(Debug)]
struct Directory(LocalFileSystem);

/// Completes a request that waits only for system calls.
fn done<T: Send>(request: impl Future<Output = T> + Send) -> T {
    in_another_thread(|| request.now_or_never().expect("made at once"))
}

impl fmt::Display for Directory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[async_trait::async_trait]
impl ObjectStore for Directory {
    async fn put_opts(
        &self,
        to: &ObjectPath,
        bytes: PutPayload,
        options: PutOptions,
    ) -> Result<PutResult> {
        done(self.0.put_opts(to, bytes, options))
    }

    async fn put_multipart_opts(
        &self,
        to: &ObjectPath,
        options: PutMultipartOptions,
    ) -> Result<Box<dyn MultipartUpload>> {
        self.0.put_multipart_opts(to, options).await
    }

    async fn get_opts(&self, from: &ObjectPath, options: GetOptions) -> Result<GetResult> {
        self.0.get_opts(from, options).await
    }

    fn delete_stream(
        &self,
        of: BoxStream<'static, Result<ObjectPath>>,
    ) -> BoxStream<'static, Result<ObjectPath>> {
        stream::iter(done(self.0.delete_stream(of).collect::<Vec<_>>())).boxed()
    }

    fn list(&self, prefix: Option<&ObjectPath>) -> BoxStream<'static, Result<ObjectMeta>> {
        self.0.list(prefix)
    }

    async fn list_with_delimiter(&self, prefix: Option<&ObjectPath>) -> Result<ListResult> {
        self.0.list_with_delimiter(prefix).await
    }

    async fn copy_opts(
        &self,
        from: &ObjectPath,
        to: &ObjectPath,
        options: CopyOptions,
    ) -> Result<()> {
        self.0.copy_opts(from, to, options).await
    }
}

/// A spool and a bucket, with their states before a pass and after one without faults.
struct SpoolAndBucket {
    folder: tempfile::TempDir,
    before: Vec<u64>,
    after: State,
}

/// The files of the spool's recording and of the bucket, the latter with their checksums.
#[derive(Debug, PartialEq, Eq)]
struct State {
    spool: Vec<PathBuf>,
    bucket: BTreeMap<PathBuf, u32>,
}

/// A copy with the same files (hard links), because the spool's log of sent files identifies them. Finished files are
/// never written to.
fn link(from: &Path, to: &Path) {
    for path in files(from) {
        let target = to.join(path.strip_prefix(from).unwrap());
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::hard_link(&path, &target).unwrap();
    }
}

impl SpoolAndBucket {
    /// The state after an hour in which three minutes were recorded, and `arrived` of these were sent. The hour was
    /// merged, and another minute has ended.
    fn new(arrived: usize) -> SpoolAndBucket {
        let mut both = SpoolAndBucket {
            // Thousands of files are synced.
            folder: tempfile::tempdir_in("/dev/shm").unwrap(),
            before: Vec::new(),
            after: State { spool: Vec::new(), bucket: BTreeMap::new() },
        };
        std::fs::create_dir(both.at("now")).unwrap();
        let mut shipment = Shipment::new(&both.spool(), &both.url(), MIDNIGHT);
        shipment.maker.seconds(60 * arrived + 1);
        shipment.all();
        if arrived == 0 {
            std::fs::remove_dir_all(both.at("now/bucket")).unwrap();
            std::fs::remove_dir_all(both.spool().join(recording::SHIP)).unwrap();
        }
        shipment.maker.seconds(60);
        shipment.maker.time_us += 3600 * SECOND;
        shipment.next_minute();
        shipment.next_minute();
        shipment.maker.writer.pause().unwrap();
        std::fs::rename(both.at("now"), both.at("before")).unwrap();
        both.reset();
        both.before = both.intervals();
        assert_eq!(both.before.is_empty(), arrived == 0);
        both.pass_completely();
        both.after = both.state();
        both
    }

    fn at(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn spool(&self) -> PathBuf {
        self.at("now/spool")
    }

    fn url(&self) -> String {
        format!("file://{}", self.at("now/bucket").display())
    }

    /// Restores the initial state.
    fn reset(&self) {
        let _ = std::fs::remove_dir_all(self.at("now"));
        link(&self.at("before"), &self.at("now"));
    }

    fn state(&self) -> State {
        let below = |name: &str| {
            let folder = self.at(name);
            let relative = move |path: &PathBuf| path.strip_prefix(&folder).unwrap().to_path_buf();
            files(&self.at(name)).into_iter().map(move |path| (relative(&path), path))
        };
        let mut spool: Vec<PathBuf> = below("now/spool").map(|(name, _)| name).collect();
        spool.retain(|path| !path.starts_with(recording::SHIP) && !path.starts_with("journal"));
        // The owner object has a time and an identity that differ each time.
        let bucket =
            below("now/bucket").filter(|(name, _)| !name.iter().any(|part| part == "owners"));
        let bucket = bucket
            .map(|(name, path)| (name, crc32fast::hash(&std::fs::read(path).unwrap())))
            .collect();
        State { spool, bucket }
    }

    /// A pass as in a recorder that was just started.
    fn pass(&self) -> Result<Pass, Error> {
        let spool = Spool::open(&self.spool())?;
        drop(Bucket::open(&self.url())?);
        let store = LocalFileSystem::new_with_prefix(self.at("now/bucket"))
            .unwrap_or_else(|error| panic!("{error}"));
        let bucket =
            Bucket::of_store(Arc::new(Directory(store)), ObjectPath::default(), self.url())?;
        let files = Files::at_rest(&spool.directory)?;
        let who = spool.claimant("machine");
        let mut pass = Pass::new(bucket, origin(), &spool, who, files, None)?;
        (pass.most, pass.keep, pass.grace) = (usize::MAX, Some(Duration::ZERO), Duration::ZERO);
        Ok(pass)
    }

    /// Runs passes without faults.
    fn pass_completely(&self) {
        assert_complete(&self.pass().unwrap().run(&ship::now_us));
    }

    /// The intervals that readers find in the bucket.
    fn intervals(&self) -> Vec<u64> {
        let Ok(shipped) = Shipped::find(Bucket::open(&self.url()).unwrap(), None, None) else {
            return Vec::new();
        };
        let folder = tempfile::tempdir_in("/dev/shm").unwrap();
        shipped.copy(i64::MIN, i64::MAX, folder.path()).unwrap();
        intervals(folder.path())
    }

    /// Checks that nothing is lost or duplicated.
    fn assert_whole(&self) {
        let shipped = self.intervals();
        assert!(shipped.is_sorted_by(|a, b| a < b), "{shipped:?}");
        let lost = self.before.iter().find(|number| !shipped.contains(number));
        assert_eq!(lost, None, "it had arrived");
        let local = intervals(&self.spool());
        assert!(local.is_sorted_by(|a, b| a < b), "{local:?}");
        let all = *local.last().unwrap();
        let lost = (1..=all).find(|number| !shipped.contains(number) && !local.contains(number));
        assert_eq!(lost, None, "it had not arrived");
        let missing = self.after.spool.iter().find(|path| !self.spool().join(path).exists());
        assert_eq!(missing, None, "it left the spool");
    }

    /// Runs a pass under the plan, from the start of a recorder.
    fn pass_with(&self, plan: FaultPlan) -> (Option<Pass>, Option<&'static str>) {
        self.reset();
        let (done, hit) = under(plan, || {
            let mut pass = self.pass()?;
            let passed = pass.run(&ship::now_us);
            Ok::<_, Error>((pass, passed))
        });
        let (pass, problem) = match done {
            Ok((pass, passed)) => (Some(pass), passed.problem),
            Err(error) => (None, Some(error)),
        };
        if let Some(error) = &problem {
            let text = error.to_string();
            assert!(hit.is_some(), "{text}");
            assert!(text.contains(&self.folder.path().display().to_string()), "{text}");
        } else {
            assert_eq!(self.state(), self.after, "a fault at {hit:?} had no consequence");
        }
        self.assert_whole();
        (pass, hit)
    }

    /// Checks that after the next pass, everything is as without a fault, and nothing is left to do.
    fn assert_complete(&self) {
        assert_eq!(self.state(), self.after);
        let passed = self.pass().unwrap().run(&ship::now_us);
        assert_complete(&passed);
        assert_eq!((passed.sent, passed.removed), (0, 0), "it was done before");
    }
}

fn assert_complete(passed: &Passed) {
    assert!(passed.problem.is_none() && !passed.more && passed.left == 0, "{passed:?}");
}

/// The numbers of the intervals of a recording, in its order.
fn intervals(folder: &Path) -> Vec<u64> {
    let recording = match Recording::open(folder, None) {
        Ok(recording) => recording,
        Err(recording::Error::Empty { .. }) => return Vec::new(),
        Err(error) => panic!("{error}"),
    };
    let frames = recording.frame_rows(Range::ALL).unwrap();
    assert_eq!(recording.problems(), Vec::<String>::new());
    frames.iter().map(|row| row.frame).collect()
}

/// A step with which writes end in every file.
const STEP: u64 = 4999;

#[test]
fn a_recorder_that_goes_on_after_a_failed_pass_completes_it() {
    for arrived in [0, 2] {
        let both = SpoolAndBucket::new(arrived);
        let pass = |plan| {
            let (pass, hit) = both.pass_with(plan);
            match pass {
                Some(mut pass) => assert_complete(&pass.run(&ship::now_us)),
                None => both.pass_completely(),
            }
            both.assert_complete();
            hit
        };
        each_fault(STEP, pass);
        each_failed_read(pass);
    }
}

#[test]
fn the_next_recorder_completes_a_failed_pass() {
    for arrived in [0, 2] {
        let both = SpoolAndBucket::new(arrived);
        let pass = |plan| {
            let (pass, hit) = both.pass_with(plan);
            drop(pass);
            both.pass_completely();
            both.assert_complete();
            hit
        };
        each_fault(STEP, pass);
        each_failed_read(pass);
    }
}
