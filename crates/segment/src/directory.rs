// SPDX-License-Identifier: PostgreSQL
//! The names of statistics, and their parts.
//!
//! A name consists of tags joined by `::`, from general to specific. An account of the ledger is
//! `<phase>::<activity>`; the activity of a wait, `wait::LWLock:WALWrite`, is shown without its first
//! tag. A segment may have the same name twice (if a writer was killed while publishing it), so the
//! reader assigns its own numbers to statistics.

use crate::stat_names;
use crate::wait_class::WaitClass;
use std::collections::HashMap;
use std::sync::Arc;

/// A statistic's number in a [`Directory`].
pub type StatId = u32;

/// The kind of a statistic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum StatKind {
    /// Time of the closed ledger, in ticks.
    Account,
    /// A duration in ticks.
    Timer,
    /// A plain number.
    Value,
}

/// One statistic, identified by name and kind.
#[derive(Debug, Clone)]
pub struct Stat {
    /// The whole name.
    pub name: String,
    /// What it counts.
    pub kind: StatKind,
    /// "ticks", "bytes", ...
    pub unit: String,
    phase: Arc<str>,
    activity: Arc<str>,
    class: WaitClass,
}

impl PartialEq for Stat {
    fn eq(&self, other: &Stat) -> bool {
        self.name == other.name && self.kind == other.kind
    }
}

impl Eq for Stat {}

impl std::hash::Hash for Stat {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        (&self.name, self.kind).hash(state);
    }
}

/// Deliberate pauses of the server (src/backend/utils/activity/wait_event.c, class Timeout), and the wait of a walsender of logical
/// replication that has sent all there is, by both of its names.
pub const PAUSES: [&str; 7] = [
    "Client:WalSenderWaitForWAL",
    "Client:WalSenderWaitForWal",
    "Timeout:BaseBackupThrottle",
    "Timeout:CheckpointWriteDelay",
    "Timeout:RecoveryApplyDelay",
    "Timeout:VacuumDelay",
    "Timeout:VacuumTruncate",
];

impl Stat {
    /// A statistic with this name, whose class follows from the name.
    pub fn new(name: String, kind: StatKind, unit: String) -> Stat {
        let (phase, rest) = name.split_once("::").unwrap_or((&name, ""));
        let activity = rest.strip_prefix("wait::").unwrap_or(rest);
        let class = WaitClass::of_name(activity);
        Stat { phase: phase.into(), activity: activity.into(), class, name, kind, unit }
    }

    /// The same statistic with the class that the writer stored.
    pub(crate) fn with_class(self, class: Option<WaitClass>) -> Stat {
        Stat { class: class.unwrap_or(self.class), ..self }
    }

    /// The class of an account; meaningless for other statistics.
    pub fn class(&self) -> WaitClass {
        self.class
    }

    /// The phase of an account: the first tag of its name.
    pub fn phase(&self) -> &Arc<str> {
        &self.phase
    }

    /// The activity of an account: the rest of its name, without the tag `wait`.
    pub fn activity(&self) -> &Arc<str> {
        &self.activity
    }

    /// Whether it is an account of a wait, in which the process does not need a CPU.
    pub fn is_wait(&self) -> bool {
        self.name.split_once("::").is_some_and(|(_, a)| a.starts_with("wait::"))
    }

    /// Whether it is an account of a session between two messages of its client.
    pub(crate) fn is_between_messages(&self) -> bool {
        matches!(&*self.phase, "idle" | "idle in transaction")
    }

    /// Whether an account is idle time: waiting for the client between commands, the main loop of a background
    /// process, or a deliberate pause of the server.
    pub fn is_idle(&self) -> bool {
        (self.is_between_messages() && self.class == WaitClass::Client)
            || self.class == WaitClass::Activity
            || (matches!(self.class, WaitClass::Timeout | WaitClass::Client)
                && PAUSES.contains(&&*self.activity))
            || &*self.phase == "off"
    }

    /// Whether it is an account of CPU time, including waiting for a CPU.
    pub(crate) fn is_cpu(&self) -> bool {
        self.kind == StatKind::Account && self.class == WaitClass::Cpu
    }

    /// For `command::<Kind>::read` and `command::<Kind>::handle`: the kind, and whether it is
    /// `handle`.
    pub fn command(&self) -> Option<(&str, bool)> {
        let (kind, part) = self.name.strip_prefix(stat_names::COMMAND)?.rsplit_once("::")?;
        match part {
            stat_names::COMMAND_READ => Some((kind, false)),
            stat_names::COMMAND_HANDLE => Some((kind, true)),
            _ => None,
        }
    }
}

/// All statistics seen so far. It only grows, so numbers stay valid for later snapshots of the same
/// segment.
#[derive(Debug, Clone, Default)]
pub struct Directory {
    stats: Vec<Arc<Stat>>,
    by_name: HashMap<(String, u8), StatId>,
}

impl Directory {
    /// The number of the statistic with this name and kind, which is added if missing.
    pub(crate) fn intern(this: &mut Arc<Directory>, stat: Stat) -> StatId {
        let key = (stat.name.clone(), stat.kind as u8);
        if let Some(&id) = this.by_name.get(&key) {
            return id;
        }
        let directory = Arc::make_mut(this);
        let id = directory.stats.len() as StatId;
        directory.by_name.insert(key, id);
        directory.stats.push(Arc::new(stat));
        id
    }

    /// The statistic with this number.
    pub fn get(&self, id: StatId) -> Option<&Stat> {
        self.stats.get(id as usize).map(|stat| &**stat)
    }

    /// The same, as a shared reference.
    pub fn shared(&self, id: StatId) -> Option<&Arc<Stat>> {
        self.stats.get(id as usize)
    }

    /// Whether this is an account of the ledger.
    pub(crate) fn is_account(&self, id: StatId) -> bool {
        self.get(id).is_some_and(|stat| stat.kind == StatKind::Account)
    }

    /// Whether this is a session's wait for its client while it has no transaction.
    pub(crate) fn is_between_transactions(&self, id: StatId) -> bool {
        self.get(id).is_some_and(|stat| &*stat.phase == "idle" && stat.class == WaitClass::Client)
    }

    /// Number of statistics.
    pub fn len(&self) -> usize {
        self.stats.len()
    }

    /// Whether there are no statistics.
    pub fn is_empty(&self) -> bool {
        self.stats.is_empty()
    }
}
