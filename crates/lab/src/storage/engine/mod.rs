// SPDX-License-Identifier: PostgreSQL
//! The background load: fio, with one job per thread, and its reports.
//!
//! Threads do not use `time_based`, because fio would then never leave a file that it reads or writes sequentially;
//! they loop endlessly instead. `invalidate=0` keeps fio from dropping a file's pages from the cache whenever it
//! opens the file.

mod document;
mod schedule;
mod threads;

use files::Access;
use std::io::{BufReader, ErrorKind, Write};
use std::path::Path;
use std::process::Command;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use rustix::process::Signal;

use crate::engine::background::Background as Process;
use error::Error;

use crate::storage::file::Background;
use document::{Document, Totals};
use schedule::{owed, responses, At};
use threads::Thread;

pub use schedule::Responses;
pub use threads::apportioned;

/// Time of day, seconds since 1970: the clock of fio's reports.
pub fn now() -> f64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

/// Work of the background between two reports.
#[derive(Debug, Clone, Default)]
pub struct Work {
    /// Start, seconds since 1970.
    pub from: f64,
    /// End, seconds since 1970.
    pub to: f64,
    /// Operations that became due.
    pub wanted: u64,
    /// Completed reads.
    pub reads: u64,
    /// Completed writes.
    pub writes: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Bytes written.
    pub written_bytes: u64,
    /// Operations that should have been issued by the end but were not.
    pub owed: u64,
    /// Response times of reads from their scheduled start.
    pub read_responses: Responses,
    /// Response times of writes from their scheduled start.
    pub write_responses: Responses,
    /// Durations of reads from when they were issued.
    pub read_durations: Responses,
    /// Durations of writes from when they were issued.
    pub write_durations: Responses,
    /// Errors that ended threads.
    pub errors: Vec<i64>,
}

/// A running fio.
#[derive(Debug)]
pub struct Engine {
    process: Process,
    threads: Vec<Thread>,
    documents: Receiver<Document>,
    messages: Receiver<String>,
    last: Option<(f64, Vec<Totals>)>,
    began: Vec<Option<f64>>,
    /// Operations of each thread due by the last report.
    due: Vec<u64>,
    /// The job file, removed when fio ends.
    _job: tempfile::NamedTempFile,
}

/// The version of the installed fio. The error says how to install it.
pub fn version() -> Result<String, Error> {
    let output = Command::new("fio").arg("--version").output().map_err(missing)?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

fn missing(error: std::io::Error) -> Error {
    Error::Failed(match error.kind() {
        ErrorKind::NotFound => {
            "fio is not installed; it generates the background load (Debian: apt-get install fio)"
                .into()
        }
        _ => format!("fio: {error}"),
    })
}

/// The job file, with one job per thread.
fn job_file(load: &Background, threads: &[Thread], files: &Path, most: Duration) -> String {
    let mut text = format!(
        "[global]\nopendir={}\nioengine=psync\nthread=1\ndirect={}\nbs={}\nrate_process=linear\n\
         allow_file_create=0\nfallocate=none\ninvalidate=0\nopenfiles=16\nloops=1000000000\n\
         runtime={}\ndisable_slat=1\ndisable_clat=1\nlat_percentiles=1\nrandseed=1\n",
        files.display(),
        u8::from(load.direct),
        load.block.0,
        most.as_secs(),
    );
    for (number, thread) in threads.iter().enumerate() {
        let (pattern, service) = match (thread.reads, thread.sequential) {
            (true, true) => ("read", "random:1000000000"),
            (false, true) => ("write", "random:1000000000"),
            (true, false) => ("randread", "random\nnorandommap=1"),
            (false, false) => ("randwrite", "random\nnorandommap=1"),
        };
        let rate = (thread.rate * load.block.0 as f64).round().max(1.0);
        let offset = thread.offset * 1e6;
        text += &format!(
            "[thread{number}]\nrw={pattern}\nfile_service_type={service}\nrate={rate:.0}\n\
             startdelay={offset:.0}us\n"
        );
    }
    text
}

impl Engine {
    /// Checks that fio can run this background.
    pub fn check(load: &Background) -> Result<(), String> {
        threads::plan_threads(load).map(drop)
    }

    /// Starts the background on the files below a directory; it ends by itself after `most`.
    pub fn start(load: &Background, files: &Path, most: Duration) -> Result<Engine, Error> {
        let threads = threads::plan_threads(load).map_err(Error::Usage)?;
        // Next to the files, so that it is removed with them even if this process is killed.
        let folder = files.parent().unwrap_or(files);
        let mut job = files::temporary(folder, "tally-fio.", ".fio", Access::Owner)?;
        job.write_all(job_file(load, &threads, files, most).as_bytes())?;
        let mut command = Command::new("fio");
        command
            .args(["--output-format=json+", "--status-interval=1", "--eta=never"])
            .arg(job.path());
        let (process, output) = Process::start_reading("fio", command).map_err(missing)?;
        let (document, documents) = channel();
        let (message, messages) = channel();
        std::thread::Builder::new().name("fio".into()).spawn(move || {
            // Once the engine is dropped nobody listens, and fio ends too.
            document::read(
                BufReader::new(output),
                now,
                |report| drop(document.send(report)),
                |text| drop(message.send(text.to_string())),
            );
        })?;
        let (began, due) = (vec![None; threads.len()], vec![0; threads.len()]);
        Ok(Engine { process, threads, documents, messages, last: None, began, due, _job: job })
    }

    /// Numbers of reading and writing threads.
    pub fn directions(&self) -> (usize, usize) {
        let readers = self.threads.iter().filter(|thread| thread.reads).count();
        (readers, self.threads.len() - readers)
    }

    /// The work since the last report, if another one comes within `wait`. Fails if fio has ended.
    pub fn work(&mut self, wait: Duration) -> Result<Option<Work>, Error> {
        let until = Instant::now() + wait;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.documents.recv_timeout(left) {
                Ok(document) => {
                    if let Some(work) = self.take(document) {
                        return Ok(Some(work));
                    }
                }
                Err(RecvTimeoutError::Timeout) => return Ok(None),
                Err(RecvTimeoutError::Disconnected) => return Err(self.failed()),
            }
        }
    }

    /// Stops fio. Returns the work since the last report.
    pub fn stop(mut self) -> Result<Option<Work>, Error> {
        // After this signal it prints a last report.
        self.process.stop(Signal::INT)?;
        let mut whole: Option<Work> = None;
        while let Ok(document) = self.documents.recv_timeout(Duration::from_secs(2)) {
            if let Some(work) = self.take(document) {
                whole = Some(match whole {
                    Some(before) => before.and(work),
                    None => work,
                });
            }
        }
        Ok(whole)
    }

    fn failed(&mut self) -> Error {
        let mut text: Vec<String> = self.messages.try_iter().collect();
        let errors = self.process.last_lines(3);
        text.extend((!errors.is_empty()).then_some(errors));
        text.retain(|line| !line.contains("opendir added"));
        Error::Failed(format!("the background load ended: {}", text.join("; ")))
    }

    fn take(&mut self, document: Document) -> Option<Work> {
        let time = document.time;
        let totals = document.threads();
        if totals.len() != self.threads.len() {
            return None;
        }
        for (began, totals) in self.began.iter_mut().zip(&totals) {
            // The start is the report's time minus the run time, both in milliseconds.
            *began = match (*began, totals.began) {
                (Some(known), Some(new)) => Some(known.min(new)),
                (known, new) => known.or(new),
            };
        }
        let (then, before) = self.last.replace((time, totals.clone())).unwrap_or_else(|| {
            let first = self.began.iter().flatten().copied().fold(time, f64::min);
            (first, vec![Totals::default(); self.threads.len()])
        });
        let mut work = Work { from: then, to: time, ..Work::default() };
        for ((((thread, began), counted), old), new) in
            self.threads.iter().zip(&self.began).zip(&mut self.due).zip(&before).zip(&totals)
        {
            work.errors.extend(new.error.filter(|_| old.error.is_none()));
            let Some(began) = *began else { continue };
            let new = Totals { began: Some(began), ..new.clone() };
            let old = Totals { began: Some(began), ..old.clone() };
            let done = new.operations.saturating_sub(old.operations);
            let bytes = new.bytes.saturating_sub(old.bytes);
            // A thread whose first operation is slow becomes known late: operations due meanwhile count now.
            let due = schedule::due(thread, began, time).max(*counted);
            work.wanted += due - std::mem::replace(counted, due);
            work.owed += owed(thread, &new, time);
            let (old_at, new_at) = (At { time: then, totals: &old }, At { time, totals: &new });
            let all = responses(thread, began, old_at, new_at);
            if thread.reads {
                work.reads += done;
                work.read_bytes += bytes;
                work.read_responses.merge(&all);
            } else {
                work.writes += done;
                work.written_bytes += bytes;
                work.write_responses.merge(&all);
            }
            let durations = match thread.reads {
                true => &mut work.read_durations,
                false => &mut work.write_durations,
            };
            for (ns, count) in &new.durations {
                let known = old.durations.get(ns).copied().unwrap_or(0);
                durations.add(*ns as f64 * 1e-9, count.saturating_sub(known));
            }
        }
        Some(work)
    }
}

impl Work {
    /// Completed operations.
    pub fn made(&self) -> u64 {
        self.reads + self.writes
    }

    /// Length, in seconds.
    pub fn seconds(&self) -> f64 {
        self.to - self.from
    }

    /// Response times of all operations.
    pub fn responses(&self) -> Responses {
        let mut all = self.read_responses.clone();
        all.merge(&self.write_responses);
        all
    }

    /// Durations of all operations.
    pub fn durations(&self) -> Responses {
        let mut all = self.read_durations.clone();
        all.merge(&self.write_durations);
        all
    }

    /// This work and the work that followed it.
    pub fn and(mut self, later: Work) -> Work {
        self.to = later.to;
        self.wanted += later.wanted;
        self.reads += later.reads;
        self.writes += later.writes;
        self.read_bytes += later.read_bytes;
        self.written_bytes += later.written_bytes;
        self.owed = later.owed;
        self.read_responses.merge(&later.read_responses);
        self.write_responses.merge(&later.write_responses);
        self.read_durations.merge(&later.read_durations);
        self.write_durations.merge(&later.write_durations);
        self.errors.extend(later.errors);
        self
    }
}
