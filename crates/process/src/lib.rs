// SPDX-License-Identifier: PostgreSQL
//! Processes as shown in /proc: the only reader of /proc/PID/stat, schedstat and children.
//!
//! A missing or malformed file gives `None`, never a panic, because processes end while they are read. docs/adr says
//! why this is not the crate `procfs`.

use std::collections::BTreeSet;
use std::fs::File;
use std::net::{IpAddr, SocketAddr};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

/// A tree like /proc.
#[derive(Debug, Clone)]
pub struct Proc {
    root: PathBuf,
}

impl Default for Proc {
    /// This machine's /proc.
    fn default() -> Self {
        Self::at("/proc")
    }
}

impl Proc {
    /// The tree in this directory.
    pub fn at(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Its directory.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The path of a file of a process.
    pub fn path(&self, pid: u32, file: &str) -> PathBuf {
        self.root.join(format!("{pid}/{file}"))
    }

    /// All processes, unordered.
    pub fn pids(&self) -> impl Iterator<Item = u32> {
        let entries = std::fs::read_dir(&self.root).into_iter().flatten().flatten();
        entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
    }

    /// The status of a process; `None` if it has ended.
    pub fn stat(&self, pid: u32) -> Option<Stat> {
        Stat::parse(&std::fs::read(self.path(pid, "stat")).ok()?)
    }

    /// The scheduler's figures for a process's main thread.
    pub fn schedstat(&self, pid: u32) -> Option<Schedstat> {
        Schedstat::read(&self.path(pid, "schedstat"))
    }

    /// The children of a process, including zombies.
    pub fn children(&self, pid: u32) -> BTreeSet<u32> {
        let list = self.path(pid, &format!("task/{pid}/children"));
        // The kernel may omit a child while others end, but hardly the same one twice.
        let twice = [std::fs::read_to_string(&list), std::fs::read_to_string(&list)];
        if let [Ok(first), Ok(second)] = &twice {
            let words = first.split_ascii_whitespace().chain(second.split_ascii_whitespace());
            return words.filter_map(|word| word.parse().ok()).collect();
        }
        // A kernel without CONFIG_PROC_CHILDREN.
        self.pids()
            .filter(|&child| self.stat(child).is_some_and(|stat| stat.parent == pid))
            .collect()
    }

    /// The PID of a process in its own PID namespace, the innermost one.
    pub fn inner_pid(&self, pid: u32) -> Option<u32> {
        let status = std::fs::read_to_string(self.path(pid, "status")).ok()?;
        let pids = status.lines().find_map(|line| line.strip_prefix("NSpid:"))?;
        pids.split_ascii_whitespace().next_back()?.parse().ok()
    }

    /// One end of a TCP connection on this machine, given both ends; `None` if there is no such connection, or that end
    /// is on another machine.
    pub fn tcp_end(&self, end: SocketAddr, other: SocketAddr) -> Option<TcpEnd> {
        let table = if end.is_ipv4() { "net/tcp" } else { "net/tcp6" };
        TcpEnd::find(&std::fs::read_to_string(self.root.join(table)).ok()?, end, other)
    }

    /// Whether a process has this socket open; `None` if it has ended, or this user may not see that.
    pub fn holds(&self, pid: u32, socket: u64) -> Option<bool> {
        let wanted = format!("socket:[{socket}]");
        let files = std::fs::read_dir(self.path(pid, "fd")).ok()?.flatten();
        let mut links = files.filter_map(|file| std::fs::read_link(file.path()).ok());
        Some(links.any(|link| link.as_os_str() == &*wanted))
    }

    /// The command line of a process, arguments separated by spaces; empty if it has ended.
    pub fn title(&self, pid: u32) -> String {
        let line = std::fs::read(self.path(pid, "cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&line).replace('\0', " ").trim_end().to_string()
    }
}

/// An end of a TCP connection, /proc/net/tcp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TcpEnd {
    /// The user of the process that accepted or opened the connection.
    pub uid: u32,
    /// The socket's inode.
    pub inode: u64,
}

impl TcpEnd {
    fn find(table: &str, end: SocketAddr, other: SocketAddr) -> Option<TcpEnd> {
        let (end, other) = (hexadecimal(end), hexadecimal(other));
        table.lines().find_map(|line| {
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            if *fields.get(1)? != end || *fields.get(2)? != other {
                return None;
            }
            Some(TcpEnd { uid: fields.get(7)?.parse().ok()?, inode: fields.get(9)?.parse().ok()? })
        })
    }
}

/// The address in the format of that table: words of four bytes in this machine's byte order.
fn hexadecimal(end: SocketAddr) -> String {
    let octets = match end.ip() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    let word = |word: &[u8]| u32::from_ne_bytes([word[0], word[1], word[2], word[3]]);
    let address: String =
        octets.chunks_exact(4).map(|bytes| format!("{:08X}", word(bytes))).collect();
    format!("{address}:{:04X}", end.port())
}

/// Fields of /proc/PID/stat. Ticks are of sysconf(_SC_CLK_TCK), usually 10 ms.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// `R` running, `S` sleeping, `D` waiting for a device, `Z` ended but not reaped, `X` dead, ...
    pub state: u8,
    /// The parent's PID.
    pub parent: u32,
    /// Flags of the kernel's sched.h.
    pub flags: u64,
    /// CPU time in user mode, ticks.
    pub user_ticks: u64,
    /// CPU time in the kernel, ticks.
    pub system_ticks: u64,
    /// CPU time of reaped children, ticks.
    pub children_ticks: u64,
    /// Start time, ticks since boot, because a PID may be reused.
    pub started_ticks: u64,
}

impl Stat {
    /// Parses the contents of the file.
    pub fn parse(text: &[u8]) -> Option<Stat> {
        // The name in parentheses may contain anything, including parentheses.
        let name_end = text.iter().rposition(|&b| b == b')')?;
        let text = std::str::from_utf8(&text[name_end + 1..]).ok()?;
        let mut fields = text.split_ascii_whitespace();
        let state = *fields.next()?.as_bytes().first()?;
        let mut number = |skipped: usize| fields.nth(skipped)?.parse::<u64>().ok();
        Some(Stat {
            state,
            parent: u32::try_from(number(0)?).ok()?,
            flags: number(4)?,
            user_ticks: number(4)?,
            system_ticks: number(0)?,
            children_ticks: number(0)?.saturating_add(number(0)?),
            started_ticks: number(4)?,
        })
    }

    /// Whether the process is running, unlike a zombie.
    pub fn is_alive(&self) -> bool {
        !matches!(self.state, b'Z' | b'X')
    }
}

/// The scheduler's figures for a thread, /proc/PID/schedstat.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedstat {
    /// Time on a CPU, ns.
    pub on_cpu_ns: u64,
    /// Time ready to run and waiting for a CPU, ns.
    pub run_queue_ns: u64,
    /// How often it was dispatched to a CPU.
    pub dispatches: u64,
}

impl Schedstat {
    /// Reads the open file of a process or thread; `None` if it has ended.
    pub fn read_open(schedstat: &File) -> Option<Schedstat> {
        let mut bytes = [0u8; 80];
        let length = schedstat.read_at(&mut bytes, 0).ok()?;
        Schedstat::parse(&bytes[..length])
    }

    /// Reads a file; `None` also if the kernel lacks CONFIG_SCHED_INFO.
    pub fn read(path: &Path) -> Option<Schedstat> {
        Schedstat::parse(&std::fs::read(path).ok()?)
    }

    /// Parses the contents of the file.
    pub fn parse(text: &[u8]) -> Option<Schedstat> {
        let text = std::str::from_utf8(text).ok()?;
        let mut numbers = text.split_ascii_whitespace().map(|number| number.parse().ok());
        let mut next = || numbers.next()?;
        Some(Schedstat { on_cpu_ns: next()?, run_queue_ns: next()?, dispatches: next()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STAT: &str = "12 (a) b) c) S 7 1 1 0 -1 64 0 0 0 0 11 12 13 14 20 0 1 0 777 0 0";

    #[test]
    fn a_process_name_may_hold_parentheses_and_blanks() {
        let stat = Stat::parse(STAT.as_bytes()).expect("a status");
        assert_eq!((stat.state, stat.parent, stat.flags), (b'S', 7, 64));
        assert_eq!((stat.user_ticks, stat.system_ticks, stat.children_ticks), (11, 12, 27));
        assert_eq!((stat.started_ticks, stat.is_alive()), (777, true));
        for (state, alive) in [("R", true), ("D", true), ("Z", false), ("X", false)] {
            let text = STAT.replace(" S ", &format!(" {state} "));
            assert_eq!(
                Stat::parse(text.as_bytes()).map(|stat| stat.is_alive()),
                Some(alive),
                "{state}"
            );
        }
        let expected = Schedstat { on_cpu_ns: 1, run_queue_ns: 2, dispatches: 3 };
        assert_eq!(Schedstat::parse(b"1 2 3\n"), Some(expected));
    }

    #[test]
    fn an_end_of_a_connection_is_its_processs() {
        use std::net::{TcpListener, TcpStream};
        let (proc, own) = (Proc::default(), std::process::id());
        for address in ["127.0.0.1:0", "[::1]:0"] {
            // A machine may have no IPv6.
            let Ok(listener) = TcpListener::bind(address) else { continue };
            let ours = TcpStream::connect(listener.local_addr().expect("it")).expect("connected");
            let (theirs, _) = listener.accept().expect("a connection");
            let ends = (theirs.local_addr().expect("it"), ours.local_addr().expect("it"));
            let (end, other) = (proc.tcp_end(ends.0, ends.1), proc.tcp_end(ends.1, ends.0));
            let (end, other) = (end.expect("an end"), other.expect("the other"));
            let me = std::os::unix::fs::MetadataExt::uid(
                &std::fs::metadata(proc.path(own, "")).expect("it"),
            );
            assert_eq!((end.uid, other.uid), (me, me));
            assert_ne!(end.inode, other.inode);
            for end in [end, other] {
                assert_eq!(proc.holds(own, end.inode), Some(true));
            }
            drop(theirs);
            assert_eq!(proc.holds(own, end.inode), Some(false));
            assert_eq!(proc.holds(0, end.inode), None);
            assert_eq!(TcpEnd::find("", ends.0, ends.1), None);
        }
    }

    #[test]
    fn malformed_files_are_none_and_no_panic() {
        for end in 0..STAT.len() - 8 {
            assert_eq!(Stat::parse(&STAT.as_bytes()[..end]), None, "{end}");
        }
        for text in [&b") ("[..], b"1 )(", b"1 (x)", b"1 (\xff) S \xff", b")"] {
            assert_eq!(Stat::parse(text), None);
        }
        for text in [&b""[..], b"1", b"1 2", b"1 2 x", b"\xff"] {
            assert_eq!(Schedstat::parse(text), None);
        }
    }

    #[test]
    fn this_process_is_its_parents_child_and_has_run() {
        let (proc, own) = (Proc::default(), std::process::id());
        let stat = proc.stat(own).expect("a status");
        assert!(stat.is_alive());
        assert!(proc.pids().any(|pid| pid == own) && !proc.title(own).is_empty());
        assert!(proc.children(stat.parent).contains(&own));
        assert!(proc.inner_pid(own).is_some_and(|pid| pid <= own));
        assert!(proc.schedstat(own).is_none_or(|figures| figures.on_cpu_ns > 0));
    }

    #[test]
    fn without_lists_of_children_every_process_is_read() {
        let root = tempfile::tempdir().expect("a directory");
        for (pid, parent) in [(10, 1), (11, 10), (12, 10), (13, 11)] {
            std::fs::create_dir(root.path().join(pid.to_string())).expect("a directory");
            let text = STAT.replace("S 7 ", &format!("S {parent} "));
            std::fs::write(root.path().join(format!("{pid}/stat")), text).expect("a file");
        }
        let proc = Proc::at(root.path());
        assert_eq!(proc.children(10), BTreeSet::from([11, 12]));
        std::fs::write(root.path().join("10/cmdline"), "postgres:\0a b\0\0").expect("a file");
        assert_eq!((proc.title(10).as_str(), proc.title(11).as_str()), ("postgres: a b", ""));
    }

    #[test]
    fn the_cpu_time_of_this_thread_is_readable_and_grows() {
        let file = File::open("/proc/thread-self/schedstat").unwrap();
        let before = Schedstat::read_open(&file).unwrap().on_cpu_ns;
        let began = std::time::Instant::now();
        while began.elapsed() < std::time::Duration::from_millis(30) {
            std::hint::black_box(0);
        }
        assert!(Schedstat::read_open(&file).unwrap().on_cpu_ns > before);
    }
}
