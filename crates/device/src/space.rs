// SPDX-License-Identifier: PostgreSQL
//! The room on file systems. One of a network or of a user's program may take for ever to
//! answer; it is asked by a thread of its own, and once only until it has answered.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{channel, Receiver, TryRecvError};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::StatVfs;
use serde::Serialize;

use crate::backing::{Backing, NoDevice};
use crate::devices::Devices;
use crate::file_system::FileSystem;
use crate::problem::Problem;
use crate::view::View;

/// How long a reading waits for all slow file systems together.
const PATIENCE: Duration = Duration::from_millis(200);

/// The room on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Space {
    /// All of it.
    pub total_bytes: u64,
    /// What is not used.
    pub free_bytes: u64,
    /// Of that, what is not kept back for root.
    pub available_bytes: u64,
    /// All inodes; 0 where there is no limit.
    pub inodes: u64,
    /// Inodes that are not used.
    pub inodes_free: u64,
    /// Of those, what is not kept back for root.
    pub inodes_available: u64,
}

impl Space {
    pub(crate) fn of(stat: &StatVfs) -> Space {
        let bytes = |blocks: u64| blocks.saturating_mul(stat.f_frsize);
        Space {
            total_bytes: bytes(stat.f_blocks),
            free_bytes: bytes(stat.f_bfree),
            available_bytes: bytes(stat.f_bavail),
            inodes: stat.f_files,
            inodes_free: stat.f_ffree,
            inodes_available: stat.f_favail,
        }
    }
}

type Answer = Result<Space, Problem>;

/// File systems that were asked and have not answered, by mount.
#[derive(Debug, Default)]
pub(crate) struct Waiting(Mutex<HashMap<u64, Receiver<Answer>>>);

/// Ask every file system of the server.
pub(crate) fn take(devices: &Devices) -> HashMap<u64, Answer> {
    let own = Arc::new(View::own(&devices.system));
    let servers = match devices.server.filter(|server| server.in_sight) {
        Some(server) => View::of_process(&devices.system, server.pid).map(Arc::new),
        None => Ok(own.clone()),
    };
    let mut answers = HashMap::new();
    let mut slow = Vec::new();
    for (at, file_system) in devices.file_systems.iter().enumerate() {
        let id = file_system.mount_id;
        let view = if file_system.outside { Ok(&own) } else { servers.as_ref() };
        match view {
            Err(problem) => drop(answers.insert(id, Err(problem.clone()))),
            Ok(view) if may_hang(devices.bottom(at)) || may_hang(file_system) => {
                slow.push(Question {
                    id,
                    told_id: file_system.told_id,
                    view: view.clone(),
                    path: file_system.path.clone(),
                });
            }
            Ok(view) => drop(answers.insert(id, ask(view, &file_system.path, file_system.told_id))),
        }
    }
    devices.waiting.ask(slow, &mut answers);
    answers
}

fn may_hang(file_system: &FileSystem) -> bool {
    file_system.kind.starts_with("fuse")
        || matches!(
            file_system.backing,
            Backing::None { reason: NoDevice::Network | NoDevice::Program | NoDevice::Unknown, .. }
        )
}

/// What is mounted there by now may be another file system, whose room is not asked for.
fn ask(view: &View, path: &Path, told_id: Option<u64>) -> Answer {
    let seen = view.see(path)?;
    match seen.mount_id == told_id {
        true => seen.space(),
        false => Err(Problem::MountChanged),
    }
}

/// Of a file system that may not answer.
struct Question {
    id: u64,
    told_id: Option<u64>,
    view: Arc<View>,
    path: PathBuf,
}

impl Waiting {
    fn ask(&self, slow: Vec<Question>, answers: &mut HashMap<u64, Answer>) {
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let deadline = Instant::now() + PATIENCE;
        let ids: Vec<u64> = slow.iter().map(|question| question.id).collect();
        for Question { id, told_id, view, path } in slow {
            waiting.entry(id).or_insert_with(|| {
                let (answer, receiver) = channel();
                let work = move || drop(answer.send(ask(&view, &path, told_id)));
                // Without a thread the channel is closed, which is said below.
                drop(std::thread::Builder::new().name("space".into()).spawn(work));
                receiver
            });
        }
        for id in ids {
            let Some(receiver) = waiting.get(&id) else { continue };
            let left = deadline.saturating_duration_since(Instant::now());
            let answer = match receiver.try_recv() {
                Err(TryRecvError::Empty) => receiver.recv_timeout(left).ok(),
                other => other.ok(),
            };
            match answer {
                Some(answer) => {
                    waiting.remove(&id);
                    answers.insert(id, answer);
                }
                None => {
                    if receiver.try_recv() == Err(TryRecvError::Disconnected) {
                        waiting.remove(&id);
                    }
                    answers.insert(id, Err(Problem::NoAnswer));
                }
            }
        }
    }
}
