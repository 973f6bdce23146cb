// SPDX-License-Identifier: PostgreSQL
//! Processes as /proc shows them.

/// A process of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Its pid.
    pub pid: u32,
    /// Its title, e.g. "postgres: checkpointer".
    pub title: String,
}

/// State letter and parent of a process, from /proc/PID/stat.
fn state_and_parent(pid: u32) -> Option<(char, u32)> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may hold anything, so look for its end from behind.
    let mut fields = stat[stat.rfind(')')? + 1..].split_ascii_whitespace();
    Some((fields.next()?.chars().next()?, fields.next()?.parse().ok()?))
}

/// Whether a process runs; one that has ended and waits for its parent does not.
pub fn alive(pid: u32) -> bool {
    matches!(state_and_parent(pid), Some((state, _)) if state != 'Z' && state != 'X')
}

/// The running children of a process, by pid.
pub fn children(parent: u32) -> Vec<Process> {
    let mut found: Vec<Process> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<u32>().ok())
        .filter(|&pid| {
            matches!(state_and_parent(pid), Some((state, of)) if of == parent && state != 'Z')
        })
        .map(|pid| Process { pid, title: title(pid) })
        .collect();
    found.sort_by_key(|process| process.pid);
    found
}

fn title(pid: u32) -> String {
    let line = std::fs::read(format!("/proc/{pid}/cmdline")).unwrap_or_default();
    let text = String::from_utf8_lossy(&line).replace('\0', " ");
    text.trim_end().to_string()
}

/// Send a signal; a process that is gone is no error.
pub(crate) fn signal(pid: u32, signal: rustix::process::Signal) {
    if let Some(pid) = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process(pid, signal);
    }
}
