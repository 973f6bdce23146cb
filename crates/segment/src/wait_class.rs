// SPDX-License-Identifier: PostgreSQL
//! The class of an account.
//!
//! The writer stores the class in the directory entry of a name (`pg_tally/ledger/account_class.c`). If only the name
//! is known, as in a recording or a segment of an older writer, [`WaitClass::of_name`] derives the same class from it.

use serde::Serialize;

use crate::layout::account_class;
use crate::wait_prefixes::WAIT_PREFIXES;

/// The class of an account, which follows from the type of wait event.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum WaitClass {
    /// CPU, including waiting for a CPU.
    Cpu,
    /// File I/O.
    Io,
    /// Heavyweight locks.
    Lock,
    /// Lightweight locks.
    Lwlock,
    /// Waiting for the client.
    Client,
    /// Waiting for another process of the server.
    Ipc,
    /// Anything else.
    Other,
    /// Sleeping for a set time.
    Timeout,
    /// The idle main loop of a background process.
    Activity,
    /// Waiting for another session's buffer pin.
    BufferPin,
    /// Waiting in an extension.
    Extension,
}

/// The activity of sessions without a wait event, while samples come too late to distinguish CPU time
/// (`sampling.rs`). If it is more than a small part of the time without a wait event, there is no activity
/// "cpu", so no view shows it.
pub const UNKNOWN: &str = "unknown";
/// The part of the time without a wait event that may be unknown.
const UNKNOWN_LIMIT: f64 = 0.05;

/// Whether CPU time can be shown, if sessions had no wait event for so long, and so long while samples came too late.
pub fn tells_cpu_apart(cpu: f64, unknown: f64) -> bool {
    unknown <= UNKNOWN_LIMIT * (cpu + unknown)
}

impl WaitClass {
    /// The classes that are shown: [`WaitClass::shown_as`] returns one of them.
    pub const ALL: [WaitClass; 7] = [
        WaitClass::Cpu,
        WaitClass::Io,
        WaitClass::Lock,
        WaitClass::Lwlock,
        WaitClass::Client,
        WaitClass::Ipc,
        WaitClass::Other,
    ];

    /// The class in a directory entry; `None` if its writer had no classes.
    pub(crate) fn of_entry(class: u8) -> Option<WaitClass> {
        Some(match class {
            account_class::UNKNOWN => return None,
            account_class::CPU => WaitClass::Cpu,
            account_class::IO => WaitClass::Io,
            account_class::LOCK => WaitClass::Lock,
            account_class::LWLOCK => WaitClass::Lwlock,
            account_class::CLIENT => WaitClass::Client,
            account_class::IPC => WaitClass::Ipc,
            account_class::TIMEOUT => WaitClass::Timeout,
            account_class::ACTIVITY => WaitClass::Activity,
            account_class::BUFFER_PIN => WaitClass::BufferPin,
            account_class::EXTENSION => WaitClass::Extension,
            _ => WaitClass::Other,
        })
    }

    /// The class of an activity, derived from its name: "cpu", "IO:DataFileRead", ...
    pub fn of_name(activity: &str) -> WaitClass {
        if activity == "cpu" {
            return WaitClass::Cpu;
        }
        let known = WAIT_PREFIXES.iter().find(|(prefix, _)| activity.starts_with(prefix));
        known.and_then(|(_, class)| WaitClass::of_entry(*class)).unwrap_or(WaitClass::Other)
    }

    /// The beginnings of names that determine the class: "cpu", or of waits. An activity has the class of the first that
    /// fits; if none fits, [`WaitClass::Other`].
    pub fn prefixes() -> impl Iterator<Item = &'static str> {
        ["cpu"].into_iter().chain(WAIT_PREFIXES.iter().map(|(prefix, _)| *prefix))
    }

    /// The class in [`WaitClass::ALL`] to which time of this class is added.
    pub fn shown_as(self) -> WaitClass {
        if WaitClass::ALL.contains(&self) {
            self
        } else {
            WaitClass::Other
        }
    }

    /// The name of [`WaitClass::shown_as`]: "cpu", "io", ...
    pub fn name(self) -> &'static str {
        match self {
            WaitClass::Cpu => "cpu",
            WaitClass::Io => "io",
            WaitClass::Lock => "lock",
            WaitClass::Lwlock => "lwlock",
            WaitClass::Client => "client",
            WaitClass::Ipc => "ipc",
            _ => "other",
        }
    }
}

impl Serialize for WaitClass {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_on_files_is_io_and_every_other_call_is_not() {
        assert_eq!(WaitClass::of_name("Call:open"), WaitClass::Io);
        assert_eq!(WaitClass::of_name("Call:sem_wait"), WaitClass::Other);
        assert_eq!(WaitClass::of_name("cpu"), WaitClass::Cpu);
        assert_eq!(WaitClass::of_name("uninstrumented"), WaitClass::Other);
    }

    #[test]
    fn a_wait_for_a_buffer_has_the_same_class_on_every_version() {
        let same = [
            ("BufferPin:BufferPin", "Buffer:BufferCleanup", WaitClass::BufferPin),
            ("LWLock:BufferContent", "Buffer:BufferShared", WaitClass::Lwlock),
            ("LWLock:BufferContent", "Buffer:BufferExclusive", WaitClass::Lwlock),
        ];
        for (earlier, from_19, class) in same {
            assert_eq!([earlier, from_19].map(WaitClass::of_name), [class; 2]);
        }
    }

    #[test]
    fn classes_without_a_share_of_their_own_are_shown_as_other() {
        for class in (1..=11).filter_map(WaitClass::of_entry) {
            assert!(WaitClass::ALL.contains(&class.shown_as()), "{class:?}");
        }
        assert_eq!(WaitClass::of_entry(0), None);
        assert_eq!(WaitClass::of_entry(7).map(WaitClass::name), Some("other"));
    }
}
