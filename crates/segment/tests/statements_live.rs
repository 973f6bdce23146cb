// SPDX-License-Identifier: PostgreSQL
//! Statements read while libtally's own writers record them: each execution is counted once, wherever
//! it is on its way from a cache to the table.
#![allow(missing_docs)]

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use segment::{Segment, StatementKey, StatementsReading};

const KEYS: usize = 300;
const WRITERS: &str = "4";

/// One test at a time, because the writers need the CPUs.
static ALONE: Mutex<()> = Mutex::new(());

/// Each test continues until it has seen this much.
const ENOUGH: u32 = 50;
const PATIENCE: Duration = Duration::from_secs(120);

/// The writers, which end with the test.
struct Writers {
    process: Child,
    progress: File,
    segment: Segment,
    _folder: tempfile::TempDir,
    _alone: MutexGuard<'static, ()>,
}

/// The executions of each statement so far.
#[derive(Debug, PartialEq, Eq)]
struct Progress {
    epoch: u64,
    begun: Vec<u64>,
    done: Vec<u64>,
}

fn compile(into: &Path) -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let library = here.join("../../libtally");
    let program = into.join("writer");
    let sources = std::fs::read_dir(library.join("src")).unwrap().map(|file| file.unwrap().path());
    let compiler = std::env::var("CC").unwrap_or_else(|_| "cc".to_string());
    let status = Command::new(compiler)
        .args(["-std=gnu11", "-O2", "-Wall", "-Wextra", "-I"])
        .arg(library.join("include"))
        .arg("-o")
        .arg(&program)
        .arg(here.join("tests/writer/statements.c"))
        .args(sources.filter(|path| path.extension().is_some_and(|e| e == "c")))
        .status()
        .unwrap();
    assert!(status.success(), "the writers' program does not compile");
    program
}

impl Writers {
    fn start(mode: &str) -> Writers {
        let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
        let folder = tempfile::Builder::new().tempdir_in("/dev/shm").unwrap();
        let program = compile(folder.path());
        let path = folder.path().join("pg_tally.1.2");
        let progress_path = folder.path().join("progress");
        let progress =
            File::options().read(true).write(true).create_new(true).open(&progress_path).unwrap();
        let mut process = Command::new(program)
            .args([&path, &progress_path])
            .args([mode, WRITERS])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
        assert_eq!(line, "ready\n");
        let segment = Segment::open(&path).unwrap();
        Writers { process, progress, segment, _folder: folder, _alone: alone }
    }

    fn progress(&self) -> Progress {
        let mut bytes = vec![0; 8 * (2 + 2 * KEYS)];
        self.progress.read_exact_at(&mut bytes, 0).unwrap();
        let words: Vec<u64> = bytes
            .chunks_exact(8)
            .map(|chunk| u64::from_ne_bytes(chunk.try_into().unwrap()))
            .collect();
        let each = |first: usize| words[first..].iter().step_by(2).copied().collect();
        Progress { epoch: words[1], begun: each(2), done: each(3) }
    }

    fn read(&mut self) -> StatementsReading {
        self.segment.statements().unwrap().unwrap()
    }

    /// Let the writers end, and check that they ended well.
    fn stop(&mut self) {
        self.progress.write_all_at(&1u64.to_ne_bytes(), 0).unwrap();
        assert!(self.process.wait().unwrap().success());
    }
}

impl Drop for Writers {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The executions of each statement, according to the number of calls; all other figures must be consistent
/// with it.
fn calls(statements: &StatementsReading) -> Vec<u64> {
    let executions = |number: usize| {
        let key = StatementKey {
            id: 1 + number as u64,
            database_id: 5,
            user_id: 10,
            toplevel: true,
            ..StatementKey::default()
        };
        let Some(found) = statements.get(&key) else { return 0 };
        let (calls, ticks) = (found.calls(), 100 * (1 + number as u64));
        let sum = (found.exec().seconds * 1e9).round() as u64;
        assert_eq!(sum, calls * ticks, "statement {number}");
        assert_eq!(found.histogram().count(), calls, "statement {number}");
        let parts: Vec<_> = found.parts().iter().map(|p| (p.count, p.ticks)).collect();
        let expected = if calls > 0 { vec![(calls, calls * ticks)] } else { Vec::new() };
        assert_eq!(parts, expected, "statement {number}");
        if let Some(text) = &found.text {
            assert_eq!(&*text.shown, "select $1");
        }
        calls
    };
    (0..KEYS).map(executions).collect()
}

#[test]
fn each_execution_is_counted_once_during_flushes() {
    let mut writers = Writers::start("phases");
    let begin = Instant::now();
    let mut exact = 0;
    while exact < ENOUGH {
        assert!(begin.elapsed() < PATIENCE, "timeout after {exact} readings");
        let before = writers.progress();
        let read = writers.read();
        if before.epoch % 2 == 1 || writers.progress() != before || read.torn() > 0 {
            continue;
        }
        // No statement was executed meanwhile, and many local entries were flushed.
        assert_eq!(before.begun, before.done);
        assert_eq!(read.evicted(), 0);
        assert_eq!(calls(&read), before.done, "reading {exact} of epoch {}", before.epoch);
        exact += 1;
    }
    writers.stop();
    println!("{exact} readings in {} epochs", writers.progress().epoch / 2);
    assert_eq!(calls(&writers.read()), writers.progress().done);
}

#[test]
fn no_execution_is_counted_twice_or_missed_while_all_runs() {
    let mut writers = Writers::start("running");
    let begin = Instant::now();
    let (mut readings, mut torn, mut last) = (0, 0, vec![0; KEYS]);
    while readings < 2 * ENOUGH {
        assert!(begin.elapsed() < PATIENCE, "timeout after {readings} readings, {torn} torn");
        let done = writers.progress().done;
        let read = writers.read();
        let begun = writers.progress().begun;
        if read.torn() > 0 {
            torn += 1;
            continue;
        }
        let read = calls(&read);
        for number in 0..KEYS {
            let (min, max) = (done[number].max(last[number]), begun[number]);
            let found = read[number];
            assert!(
                (min..=max).contains(&found),
                "statement {number}: {found}, not {min} to {max}, in reading {readings}"
            );
        }
        last = read;
        readings += 1;
    }
    writers.stop();
    println!("{readings} readings, {torn} torn, {} executions", last.iter().sum::<u64>());
    assert_eq!(calls(&writers.read()), writers.progress().done);
}
