// SPDX-License-Identifier: PostgreSQL
//! Reads what the storage pane shows for an interval: events, relations, and the devices under the
//! server.

use std::path::PathBuf;
use std::sync::mpsc::{channel, Receiver, RecvTimeoutError, Sender};
use std::sync::Arc;
use std::time::{Duration, Instant};

use device::{Devices, Problem, Reading, System};
use segment::clients::ClientTotals;
use segment::{Interval, Relations, Segment};

use super::{relation_names, tablespaces};
use crate::events::{Item, Tail};
use error::Error;
use view::events::rows;
use view::io::{DevicesUnder, Io, StorageEvents};

/// How long to wait for the devices: a network file system may not respond at all.
const PATIENCE: Duration = Duration::from_millis(500);
/// How often devices are resolved again; tablespaces come and go.
const ANEW: Duration = Duration::from_secs(10);
/// The same after a device was removed or a mount changed.
const ANEW_AT_ONCE: Duration = Duration::from_secs(1);

/// Watches the events of a segment and the devices of its server.
#[derive(Debug)]
pub struct Watch {
    tail: Tail,
    events: StorageEvents,
    relations: Option<Relations>,
    devices: Result<DeviceWatch, String>,
    tablespaces: tablespaces::Asker,
    names: relation_names::Asker,
}

impl Watch {
    /// Start. If relations cannot be read now, the first interval reports the error.
    pub fn start(segment: &Segment) -> Watch {
        let header = segment.header();
        let directory = PathBuf::from(&header.host);
        let devices = if directory.is_absolute() {
            let pid = (segment.server_runs() == Some(true)).then_some(header.server_pid);
            DeviceWatch::start(directory, pid.filter(|pid| *pid != 0))
        } else {
            Err("the segment names no data directory".to_string())
        };
        let relations = segment.relations().ok().flatten();
        let tablespaces = tablespaces::Asker::start(segment);
        let names = relation_names::Asker::start(segment);
        let (tail, events) = (Tail::after(0), StorageEvents::default());
        Watch { tail, events, relations, devices, tablespaces, names }
    }

    /// What to show for this interval; `clients` are the totals at its end.
    pub fn next(
        &mut self,
        segment: &Segment,
        interval: &Interval,
        clients: &ClientTotals,
    ) -> Result<Io, Error> {
        let found = self.tail.read(segment, Instant::now(), false)?;
        let events = found
            .into_iter()
            .filter_map(|item| match item {
                Item::Event(event) => Some(event),
                Item::Lost(_) => None,
            })
            .collect();
        rows(segment, events)?.into_iter().for_each(|row| self.events.note(row));
        let mut io = self.events.io(interval, clients);
        let relations = segment.relations()?;
        io.relations = relations.as_ref().map(|now| now.since(self.relations.as_ref()));
        self.relations = relations;
        match &mut self.devices {
            Ok(devices) => (io.devices, io.devices_problem) = devices.next(),
            Err(problem) => io.devices_problem = Some(problem.clone()),
        }
        io.relation_names = self.names.next(io.relations.as_deref().unwrap_or_default());
        io.tablespaces = self.tablespaces.next(interval, io.devices.as_ref());
        Ok(io)
    }
}

type Answer = (Arc<Devices>, Reading);

/// Resolves the devices and reads their counters in a thread of its own, which may block on a
/// mount that does not respond.
#[derive(Debug)]
struct DeviceWatch {
    ask: Sender<()>,
    answers: Receiver<Answer>,
    /// A question was asked and has no answer yet.
    asked: bool,
    /// The last answer was late; do not wait for the next one.
    late: bool,
    before: Option<Answer>,
}

impl DeviceWatch {
    fn start(directory: PathBuf, pid: Option<u32>) -> Result<DeviceWatch, String> {
        let (ask, questions) = channel();
        let (answer, answers) = channel();
        std::thread::Builder::new()
            .name("devices".to_string())
            .spawn(move || work(&directory, pid, &questions, &answer))
            .map_err(|error| format!("devices are not shown: {error}"))?;
        let mut watch = DeviceWatch { ask, answers, asked: false, late: false, before: None };
        watch.question();
        Ok(watch)
    }

    fn question(&mut self) {
        // If the thread has ended, waiting for the answer reports it.
        self.asked = self.asked || self.ask.send(()).is_ok();
    }

    /// The answer to the question asked last, or why there is none.
    fn answer(&mut self) -> Result<Answer, String> {
        let patience = if self.late { Duration::ZERO } else { PATIENCE };
        match self.answers.recv_timeout(patience) {
            Ok(answer) => {
                (self.asked, self.late) = (false, false);
                Ok(answer)
            }
            Err(RecvTimeoutError::Timeout) => {
                self.late = true;
                Err("devices are not known yet: a file system does not respond".to_string())
            }
            Err(RecvTimeoutError::Disconnected) => Err("devices are not read any more".to_string()),
        }
    }

    /// The devices and their figures since the last call.
    fn next(&mut self) -> (Option<DevicesUnder>, Option<String>) {
        if self.asked {
            // This answers an earlier question: figures start from it.
            match self.answer() {
                Ok(answer) => self.before = Some(answer),
                Err(problem) => return (None, Some(problem)),
            }
        }
        self.question();
        match self.answer() {
            Ok((found, now)) => {
                let figures =
                    self.before.as_ref().map(|(_, before)| device::Interval::between(before, &now));
                self.before = Some((found.clone(), now));
                (Some(DevicesUnder { found, figures }), None)
            }
            Err(problem) => (None, Some(problem)),
        }
    }
}

/// Answer questions until the channel is closed.
fn work(
    directory: &std::path::Path,
    pid: Option<u32>,
    questions: &Receiver<()>,
    answers: &Sender<Answer>,
) {
    let resolve = || Arc::new(Devices::resolve(&System::live(), directory, pid));
    let mut found = resolve();
    let mut looked = Instant::now();
    let mut stale = false;
    while questions.recv().is_ok() {
        if looked.elapsed() >= if stale { ANEW_AT_ONCE } else { ANEW } {
            found = resolve();
            looked = Instant::now();
        }
        let reading = Reading::take(&found);
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
mod tests {
    use super::*;

    #[test]
    fn devices_have_figures_from_the_second_reading_on() {
        let folder = std::env::temp_dir();
        let mut watch = DeviceWatch::start(folder, Some(std::process::id())).unwrap();
        for _ in 0..3 {
            let (devices, problem) = watch.next();
            let devices = devices.unwrap();
            assert_eq!(problem, None);
            assert!(devices.figures.is_some());
            assert!(!devices.found.locations.is_empty());
        }
    }

    #[test]
    fn a_thread_that_does_not_answer_is_reported_and_asked_only_once() {
        let (ask, questions) = channel();
        let (answer, answers) = channel();
        let mut watch = DeviceWatch { ask, answers, asked: false, late: false, before: None };
        watch.question();
        let began = Instant::now();
        for _ in 0..9 {
            let (devices, problem) = watch.next();
            assert!(devices.is_none() && problem.unwrap().contains("does not respond"));
        }
        assert!(began.elapsed() < 2 * PATIENCE, "the watch waits only once");
        assert_eq!(questions.try_iter().count(), 1);
        drop(answer);
        assert!(watch.next().1.unwrap().contains("any more"));
    }
}
