// SPDX-License-Identifier: PostgreSQL
//! Reads the counters of the devices under a server, and the kernel's I/O counters of its
//! processes, in a separate thread, because a mount that does not respond may block the reader.

use std::path::PathBuf;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::{Duration, Instant};

use device::{Devices, Problem, Reading, System};
use segment::Segment;

/// How long to wait for an answer.
const PATIENCE: Duration = Duration::from_millis(500);
/// After a device has been removed or a mount has changed, devices are resolved again this many times sooner.
const SOONER: u32 = 10;

/// The devices, and their counters.
pub type DeviceReading = (Arc<Devices>, Reading);

/// Watches the devices of one server.
#[derive(Debug)]
pub struct DeviceWatch {
    /// Whether to read the processes' counters in addition to the devices'.
    questions: Sender<bool>,
    answers: Receiver<DeviceReading>,
    /// A question is still without an answer.
    asked: bool,
    /// The last answer was late, so do not wait for the next one.
    late: bool,
}

impl DeviceWatch {
    /// Starts the thread for a segment's server. Devices are resolved again at each interval `anew`, because
    /// tablespaces come and go.
    pub fn start(segment: &Segment, anew: Duration) -> Result<DeviceWatch, String> {
        if segment.remote().is_some() {
            let why = "the server is read through a connection; run tally where the server runs";
            return Err(why.to_string());
        }
        let header = segment.header();
        let directory = PathBuf::from(&header.host);
        if !directory.is_absolute() {
            return Err("the segment names no data directory".to_string());
        }
        let pid = (segment.server_runs() == Some(true)).then_some(header.server_pid);
        DeviceWatch::start_at(directory, pid.filter(|pid| *pid != 0), anew)
    }

    /// Starts the thread for the server in a data directory; `pid` is its postmaster.
    fn start_at(
        directory: PathBuf,
        pid: Option<u32>,
        anew: Duration,
    ) -> Result<DeviceWatch, String> {
        let (questions, asked) = channel();
        let (answer, answers) = channel();
        std::thread::Builder::new()
            .name("devices".to_string())
            .spawn(move || work(&directory, pid, anew, &asked, &answer))
            .map_err(|error| format!("could not start reading devices: {error}"))?;
        Ok(DeviceWatch { questions, answers, asked: false, late: false })
    }

    /// Asks for the counters of the devices and, with `processes`, of the server's processes. Returns
    /// false if an earlier question is still without an answer.
    pub fn ask(&mut self, processes: bool) -> bool {
        // If the thread has ended, waiting for the answer reports it.
        !self.asked && {
            self.asked = self.questions.send(processes).is_ok();
            true
        }
    }

    /// The answer to the question, or the reason why there is none.
    pub fn answer(&mut self) -> Result<DeviceReading, String> {
        let patience = if self.late { Duration::ZERO } else { PATIENCE };
        match self.answers.recv_timeout(patience) {
            Ok(answer) => {
                (self.asked, self.late) = (false, false);
                Ok(answer)
            }
            Err(RecvTimeoutError::Timeout) => {
                self.late = true;
                Err("no device figures yet: a file system does not respond".to_string())
            }
            Err(RecvTimeoutError::Disconnected) => Err("devices are no longer read".to_string()),
        }
    }
}

/// Answer questions until the channel is closed.
fn work(
    directory: &std::path::Path,
    pid: Option<u32>,
    anew: Duration,
    questions: &Receiver<bool>,
    answers: &Sender<DeviceReading>,
) {
    let resolve = || Arc::new(Devices::resolve(&System::live(), directory, pid));
    let mut found = resolve();
    let mut looked = Instant::now();
    let mut stale = false;
    while let Ok(processes) = questions.recv() {
        if looked.elapsed() >= if stale { anew / SOONER } else { anew } {
            found = resolve();
            looked = Instant::now();
        }
        let reading = if processes { Reading::take(&found) } else { Reading::of_devices(&found) };
        stale = is_stale(&reading);
        if answers.send((found.clone(), reading)).is_err() {
            return;
        }
    }
}

/// Whether a device or a mount changed, so that the devices must be resolved again.
fn is_stale(reading: &Reading) -> bool {
    let moved = |problem: &Problem| matches!(problem, Problem::MountChanged | Problem::NotListed);
    reading.devices.values().any(|device| device.as_ref().is_err_and(moved))
        || reading.spaces.values().any(|space| space.as_ref().is_err_and(moved))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A watch of this process, and of the directory of temporary files.
    pub(crate) fn of_this_process() -> DeviceWatch {
        let anew = Duration::from_secs(60);
        DeviceWatch::start_at(std::env::temp_dir(), Some(std::process::id()), anew).unwrap()
    }

    #[test]
    fn processes_are_read_on_request() {
        let mut watch = of_this_process();
        for processes in [false, true] {
            assert!(watch.ask(processes));
            let (found, reading) = watch.answer().unwrap();
            assert!(!found.locations.is_empty());
            assert_eq!(reading.server.is_ok(), processes);
        }
    }

    #[test]
    fn a_thread_that_does_not_answer_is_reported_and_asked_only_once() {
        let (questions, asked) = channel();
        let (answer, answers) = channel();
        let mut watch = DeviceWatch { questions, answers, asked: false, late: false };
        let began = Instant::now();
        for round in 0..9 {
            assert_eq!(watch.ask(true), round == 0);
            assert!(watch.answer().unwrap_err().contains("does not respond"));
        }
        assert!(began.elapsed() < 2 * PATIENCE, "the watch waits only once");
        assert_eq!(asked.try_iter().count(), 1);
        drop(answer);
        assert!(watch.answer().unwrap_err().contains("no longer"));
    }
}
