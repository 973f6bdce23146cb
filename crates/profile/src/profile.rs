// SPDX-License-Identifier: PostgreSQL
//! A profile: what was sampled in some time of one server, and the exact ledger of the same time.
//!
//! Names are kept once, in lists; the rest refers to them by index.

use std::path::Path;

use error::Error;
use serde::{Deserialize, Serialize};

/// Bytes of a file that are read at most.
const LARGEST: u64 = 1 << 30;

/// The format of files; the first key of each.
pub const FORMAT: &str = "pgtally profile 1";

/// Whose CPU time was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The processes of the server.
    Server,
    /// All processes of the machine.
    System,
}

/// Samples of a server, and its ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`FORMAT`].
    pub format: String,
    /// When it ended, seconds since 1970.
    pub time: f64,
    /// How long it took.
    pub seconds: f64,
    /// Samples per second of each CPU, and of each session.
    pub hertz: f64,
    /// "PostgreSQL 15.20 ..."
    pub server: String,
    /// Its data directory.
    pub host: String,
    /// CPUs of the machine.
    pub cores: usize,
    /// Whose CPU time was sampled.
    pub scope: Scope,
    /// Whether the kernel's part was sampled too.
    pub kernel: bool,
    /// Commands that the clients sent meanwhile.
    pub commands: u64,
    /// Transactions meanwhile; `None`: the server was not asked.
    pub transactions: Option<u64>,
    /// How good it is.
    pub quality: Quality,
    /// On-CPU time of the server's processes according to the kernel; `None`: not known.
    pub on_cpu_seconds: Option<f64>,
    /// And time in which they waited for a CPU.
    pub run_queue_seconds: Option<f64>,
    /// Accounts: the exact time and the samples of each; most time first.
    pub ledger: Vec<LedgerRow>,
    /// Statements that samples have.
    pub statements: Vec<StatementText>,
    /// Kinds of processes that samples have.
    pub processes: Vec<Process>,
    /// Functions that stacks have.
    pub symbols: Vec<Symbol>,
    /// Samples of CPUs, by stack.
    pub stacks: Vec<Stack>,
    /// Samples of sessions, by account and statement: on a CPU or not.
    pub sessions: Vec<SessionSamples>,
}

/// How much of what was sampled is known.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Samples of the server's processes on a CPU.
    pub cpu_samples: u64,
    /// Of these, whose account is exactly known.
    pub account_known: u64,
    /// Whose account changed before it was read.
    pub account_moved: u64,
    /// Whose process has no slot in the segment.
    pub no_slot: u64,
    /// Samples of other processes.
    pub other_samples: u64,
    /// Samples that the kernel could not store.
    pub lost: u64,
    /// How often the kernel slowed the sampling down.
    pub throttled: u64,
    /// Samples whose stack in the process does not reach its beginning.
    pub cut_stacks: u64,
    /// Files in which most of them end: their code has no frame pointers.
    pub cut_in: Vec<String>,
    /// Samples whose stack in the process was found by unwind tables, since code on it keeps no frame pointers.
    #[serde(default)]
    pub unwound_stacks: u64,
    /// Samples with frames in the process.
    pub user_stacks: u64,
    /// Instants at which all sessions were read.
    pub instants: u64,
    /// Instants that were left out because reading took longer than a period.
    pub instants_missed: u64,
    /// Whether samplers ran before what they sampled (real-time priority).
    pub first: bool,
    /// Files without a symbol table: only exported functions have names.
    pub stripped: Vec<String>,
    /// Whether the kernel's functions have names.
    pub kernel_symbols: bool,
}

/// Phase and activity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Account {
    /// What the session did for its client; empty: not known.
    pub phase: String,
    /// "cpu", or the wait event as `Type:Event`.
    pub activity: String,
}

/// An account of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerRow {
    /// Which.
    #[serde(flatten)]
    pub account: Account,
    /// Its class: "cpu", "io", "lock", ...
    pub class: String,
    /// Whether this is idle time.
    pub idle: bool,
    /// Its time, exactly.
    pub seconds: f64,
    /// Samples of sessions.
    pub samples: u64,
    /// Its time as these samples estimate it.
    pub sampled_seconds: f64,
    /// Half-width of the 95 % interval of that.
    pub half_width_seconds: f64,
    /// Samples of CPUs.
    pub cpu_samples: u64,
}

/// The running account may be late at the boundaries of a command: the ledger reads the clock once there, and
/// charges the code between two of them to either.
const BOUNDARY_SECONDS: f64 = 2e-6;

impl LedgerRow {
    /// Whether the samples agree with the exact time, within their error; of an interval with that many commands.
    pub fn agrees(&self, commands: u64) -> bool {
        let allowed = self.half_width_seconds + BOUNDARY_SECONDS * commands as f64;
        (self.sampled_seconds - self.seconds).abs() <= allowed
    }
}

/// A statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatementText {
    /// Its query identifier.
    pub query_id: i64,
    /// Its text; `None`: not known.
    pub query: Option<String>,
}

/// Processes of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Process {
    /// "client backend", "checkpointer"; of other processes their command.
    pub name: String,
    /// Whether they are the server's.
    pub server: bool,
}

/// A function.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Symbol {
    /// Its name.
    pub name: String,
    /// Its file; "kernel", or "kernel [module]".
    pub image: String,
}

impl Symbol {
    /// Whether it is the kernel's.
    pub fn is_kernel(&self) -> bool {
        self.image.starts_with(crate::KERNEL)
    }
}

/// Samples of CPUs with the same stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Index in `processes`.
    pub process: usize,
    /// Its account; with an empty phase: not known.
    #[serde(flatten)]
    pub account: Account,
    /// Index in `statements`; `None`: of no statement, or not known.
    pub statement: Option<usize>,
    /// Indices in `symbols`, innermost first.
    pub frames: Vec<usize>,
    /// How many.
    pub samples: u64,
}

/// Samples of sessions with the same account and statement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SessionSamples {
    /// The account.
    #[serde(flatten)]
    pub account: Account,
    /// Index in `statements`.
    pub statement: Option<usize>,
    /// How many.
    pub samples: u64,
}

impl Profile {
    /// Read a file.
    pub fn read(path: &Path) -> Result<Profile, Error> {
        let named = |why: &dyn std::fmt::Display| {
            Error::Failed(format!("could not read the profile {}: {why}", path.display()))
        };
        let bytes = files::read_named(path, LARGEST).map_err(|error| named(&error))?;
        #[derive(Deserialize)]
        struct Head {
            format: String,
        }
        let head: Head = serde_json::from_slice(&bytes)
            .map_err(|error| named(&format!("{error}; `tally profile -o FILE.json` writes one")))?;
        if head.format != FORMAT {
            return Err(named(&format!("its format is {:?}, not {FORMAT:?}", head.format)));
        }
        let profile: Profile = serde_json::from_slice(&bytes).map_err(|error| named(&error))?;
        match profile.is_consistent() {
            true => Ok(profile),
            false => Err(named(&"it refers to names that are missing")),
        }
    }

    fn is_consistent(&self) -> bool {
        let statement = |it: Option<usize>| it.is_none_or(|it| it < self.statements.len());
        self.sessions.iter().all(|session| statement(session.statement))
            && self.stacks.iter().all(|stack| {
                statement(stack.statement)
                    && stack.process < self.processes.len()
                    && stack.frames.iter().all(|frame| *frame < self.symbols.len())
            })
    }

    /// The name of an image without its directory.
    pub fn short(image: &str) -> &str {
        image.rsplit('/').next().unwrap_or(image)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::profile;

    #[test]
    fn a_file_is_read_unless_it_is_of_another_format_or_refers_to_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("profile.json");
        let read = |profile: &Profile| {
            std::fs::write(&path, serde_json::to_vec(profile).unwrap()).unwrap();
            Profile::read(&path).map_err(|error| error.to_string())
        };
        assert_eq!(read(&profile()).unwrap().stacks, profile().stacks);
        type Fault = fn(&mut Profile);
        let faults: [(&str, Fault); 6] = [
            ("its format is", |it| it.format = "pgtally profile 0".into()),
            ("refers to names", |it| it.stacks[0].statement = Some(1)),
            ("refers to names", |it| it.stacks[0].process = 1),
            ("refers to names", |it| it.stacks[0].frames = vec![3]),
            ("refers to names", |it| it.sessions[0].statement = Some(1)),
            ("refers to names", |it| it.statements.clear()),
        ];
        for (number, (why, fault)) in faults.into_iter().enumerate() {
            let mut profile = profile();
            fault(&mut profile);
            let error = read(&profile).unwrap_err();
            assert!(error.contains(why) && error.contains("profile.json"), "{number}: {error}");
        }
        assert_eq!((Profile::short("/a/b"), Profile::short("kernel")), ("b", "kernel"));
    }

    #[test]
    fn samples_agree_within_their_error_and_that_of_the_ledgers_boundaries() {
        let row = |sampled_seconds| LedgerRow { sampled_seconds, ..profile().ledger[0].clone() };
        // 0.4 s exactly, with a half-width of 0.1 s, and 2 us for each command.
        for (sampled, commands, agrees) in [
            (0.49, 0, true),
            (0.31, 0, true),
            (0.51, 0, false),
            (0.29, 0, false),
            (0.51, 10_000, true),
        ] {
            assert_eq!(row(sampled).agrees(commands), agrees, "{sampled} {commands}");
        }
    }
}
