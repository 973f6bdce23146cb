// SPDX-License-Identifier: PostgreSQL
//! Queries the free space of file systems. A network or user-space file system may never respond, so a separate
//! thread queries it, and only once until it has responded.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::mpsc::{channel, Receiver, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::problem::Problem;
use crate::root::Root;
use crate::space::Space;

/// How long a reading waits for all slow file systems together.
const PATIENCE: Duration = Duration::from_millis(200);

/// The space on a file system, or why it is unknown.
pub(crate) type SpaceReply = Result<Space, Problem>;

/// The file system of a mount.
#[derive(Debug)]
pub(crate) struct Question {
    pub mount_id: u64,
    /// The kernel's unique number of this mount, if it reports one.
    pub unique_mount_id: Option<u64>,
    pub root: Arc<Root>,
    /// A path on it.
    pub path: PathBuf,
}

impl Question {
    /// Queries the space, however long it takes. A different file system may be mounted there by now.
    pub fn ask(&self) -> SpaceReply {
        let found = self.root.find(&self.path)?;
        match found.unique_mount_id == self.unique_mount_id {
            true => found.space(),
            false => Err(Problem::MountChanged),
        }
    }
}

/// Pending queries of slow file systems, by mount.
#[derive(Debug, Default)]
pub(crate) struct Pending(Mutex<HashMap<u64, Receiver<SpaceReply>>>);

impl Pending {
    /// Queries the space, but waits no longer than [`PATIENCE`]. A mount with a pending query is not queried
    /// again.
    pub fn ask(&self, questions: Vec<Question>) -> Vec<(u64, SpaceReply)> {
        let mut pending = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = Instant::now() + PATIENCE;
        let ids: Vec<u64> = questions.iter().map(|question| question.mount_id).collect();
        for question in questions {
            pending.entry(question.mount_id).or_insert_with(|| {
                let (answer, receiver) = channel();
                let work = move || drop(answer.send(question.ask()));
                // If no thread can be started, the channel is closed, which the loop below detects.
                drop(std::thread::Builder::new().name("space".into()).spawn(work));
                receiver
            });
        }
        let mut answers = Vec::new();
        for id in ids {
            let Some(receiver) = pending.get(&id) else { continue };
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = match receiver.try_recv() {
                Err(TryRecvError::Empty) => receiver.recv_timeout(left).ok(),
                other => other.ok(),
            };
            if answer.is_some() || receiver.try_recv() == Err(TryRecvError::Disconnected) {
                pending.remove(&id);
            }
            answers.push((id, answer.unwrap_or(Err(Problem::NoAnswer))));
        }
        answers
    }
}
