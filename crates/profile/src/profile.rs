// SPDX-License-Identifier: PostgreSQL
//! A profile: samples of one server over a period, and the exact ledger of the same period.
//!
//! Names are stored once, in lists; everything else refers to them by index.

use std::path::Path;

use error::Error;
use serde::{Deserialize, Serialize};

/// Maximum number of bytes to read from a file.
const LARGEST: u64 = 1 << 30;

/// The format of files, and the first key of each file.
pub const FORMAT: &str = "pgtally profile 1";

/// The processes whose CPU time was sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Scope {
    /// The processes of the server.
    Server,
    /// All processes on the machine.
    System,
}

/// Samples of a server, and its ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// [`FORMAT`].
    pub format: String,
    /// When it ended, seconds since 1970.
    pub time: f64,
    /// Length, seconds.
    pub seconds: f64,
    /// Samples per second of each CPU, and of each session.
    pub hertz: f64,
    /// "PostgreSQL 15.20 ..."
    pub server: String,
    /// Its data directory.
    pub host: String,
    /// CPUs of the machine.
    pub cores: usize,
    /// The processes whose CPU time was sampled.
    pub scope: Scope,
    /// Whether the kernel was sampled too.
    pub kernel: bool,
    /// Commands that clients sent during the profile.
    pub commands: u64,
    /// Transactions during the profile; `None` if the server was not asked.
    pub transactions: Option<u64>,
    /// Quality of the samples.
    pub quality: Quality,
    /// On-CPU time of the server's processes according to the kernel; `None` if unknown.
    pub on_cpu_seconds: Option<f64>,
    /// Time in which they waited for a CPU, according to the kernel.
    pub run_queue_seconds: Option<f64>,
    /// Accounts with exact time and samples, most time first.
    pub ledger: Vec<LedgerRow>,
    /// Statements in samples.
    pub statements: Vec<StatementText>,
    /// Kinds of processes in samples.
    pub processes: Vec<Process>,
    /// Functions in stacks.
    pub symbols: Vec<Symbol>,
    /// Samples of CPUs, by stack.
    pub stacks: Vec<Stack>,
    /// Samples of sessions, on a CPU or not, by account and statement.
    pub sessions: Vec<SessionSamples>,
}

/// The quality of the samples.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Quality {
    /// Samples of the server's processes on a CPU.
    pub cpu_samples: u64,
    /// CPU samples whose account is known exactly.
    pub account_known: u64,
    /// CPU samples whose account changed before it was read.
    pub account_moved: u64,
    /// CPU samples whose process has no slot in the segment.
    pub no_slot: u64,
    /// Samples of other processes.
    pub other_samples: u64,
    /// Samples that the kernel could not store.
    pub lost: u64,
    /// How often the kernel throttled the sampling.
    pub throttled: u64,
    /// Samples whose user-space stack does not reach its beginning.
    pub cut_stacks: u64,
    /// Files in which most of these stacks end, because their code has no frame pointers.
    pub cut_in: Vec<String>,
    /// Samples whose user-space stack was unwound with tables, because of code without frame pointers.
    #[serde(default)]
    pub unwound_stacks: u64,
    /// Samples with user-space frames.
    pub user_stacks: u64,
    /// Instants at which all sessions were read.
    pub instants: u64,
    /// Instants that were skipped because reading took longer than a period.
    pub instants_missed: u64,
    /// Whether samplers ran before the processes that they sampled (real-time priority).
    pub first: bool,
    /// Files without a symbol table: only exported functions have names.
    pub stripped: Vec<String>,
    /// Whether the kernel's functions have names.
    pub kernel_symbols: bool,
}

/// Phase and activity.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Account {
    /// The phase of the session; empty if unknown.
    pub phase: String,
    /// "cpu", or the wait event as `Type:Event`.
    pub activity: String,
}

/// An account of the ledger.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct LedgerRow {
    /// The account.
    #[serde(flatten)]
    pub account: Account,
    /// Its class: "cpu", "io", "lock", ...
    pub class: String,
    /// Whether this is idle time.
    pub idle: bool,
    /// Exact time, seconds.
    pub seconds: f64,
    /// Samples of sessions.
    pub samples: u64,
    /// Time estimated from these samples, seconds.
    pub sampled_seconds: f64,
    /// Half-width of the 95 % interval of that estimate, seconds.
    pub half_width_seconds: f64,
    /// Samples of CPUs.
    pub cpu_samples: u64,
}

/// The running account may lag at the boundaries of a command: the ledger reads the clock once there, and charges
/// the code between two boundaries to either side.
const BOUNDARY_SECONDS: f64 = 2e-6;

impl LedgerRow {
    /// Whether the samples agree with the exact time, within their error, in an interval with this many commands.
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
    /// Its text; `None` if unknown.
    pub query: Option<String>,
}

/// A kind of process.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Process {
    /// "client backend", "checkpointer"; the command for processes outside the server.
    pub name: String,
    /// Whether they belong to the server.
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
    /// Whether it belongs to the kernel.
    pub fn is_kernel(&self) -> bool {
        self.image.starts_with(crate::KERNEL)
    }
}

/// Samples of CPUs with the same stack.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stack {
    /// Index in `processes`.
    pub process: usize,
    /// Its account; unknown if the phase is empty.
    #[serde(flatten)]
    pub account: Account,
    /// Index in `statements`; `None` if there is no statement, or it is unknown.
    pub statement: Option<usize>,
    /// Indices in `symbols`, innermost first.
    pub frames: Vec<usize>,
    /// Number of samples.
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
    /// Number of samples.
    pub samples: u64,
}

impl Profile {
    /// Reads a file.
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
        let statement =
            |index: Option<usize>| index.is_none_or(|index| index < self.statements.len());
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
            ("its format is", |profile| profile.format = "pgtally profile 0".into()),
            ("refers to names", |profile| profile.stacks[0].statement = Some(1)),
            ("refers to names", |profile| profile.stacks[0].process = 1),
            ("refers to names", |profile| profile.stacks[0].frames = vec![3]),
            ("refers to names", |profile| profile.sessions[0].statement = Some(1)),
            ("refers to names", |profile| profile.statements.clear()),
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
