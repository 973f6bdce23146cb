// SPDX-License-Identifier: PostgreSQL
//! The postmaster.pid of a running server's data directory.

use std::path::Path;

/// Maximum number of bytes to read; the server writes a few hundred.
const LONGEST: u64 = 1 << 16;

/// The first lines of a running server's postmaster.pid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostmasterFile {
    /// The postmaster's PID.
    pub pid: u32,
    /// Its port.
    pub port: u16,
    /// The directory of its first Unix-domain socket; empty if it has none.
    pub socket_dir: String,
}

impl PostmasterFile {
    /// The file of this data directory; `None` if no server runs there or the file is not readable.
    pub fn read(data: &Path) -> Option<Self> {
        let text = Self::text(data)?;
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let pid: u32 = lines.first()?.parse().ok()?;
        scratch::alive(pid).then_some(Self {
            pid,
            port: lines.get(3)?.parse().ok()?,
            socket_dir: lines.get(4)?.to_string(),
        })
    }

    /// The PID in the file, in the server's PID namespace, whether or not that process runs.
    pub(crate) fn named_in(data: &Path) -> Option<u32> {
        Self::text(data)?.lines().next()?.trim().parse().ok()
    }

    fn text(data: &Path) -> Option<String> {
        // The server's user may put a link or a pipe there.
        files::read_text(&data.join("postmaster.pid"), LONGEST).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_running_server_has_its_port_and_socket() {
        let data = tempfile::tempdir().unwrap();
        assert_eq!(PostmasterFile::read(data.path()), None);
        let pid = std::process::id();
        // The lines of miscadmin.h: pid, directory, start, port, socket, address, shared memory, status.
        let write = |pid: u32| {
            let text = format!("{pid}\n/data\n1700000000\n5433\n/run/pg\n*\n  17  4\nready   \n");
            std::fs::write(data.path().join("postmaster.pid"), text).unwrap();
        };
        write(pid);
        let expected = PostmasterFile { pid, port: 5433, socket_dir: "/run/pg".into() };
        assert_eq!(PostmasterFile::read(data.path()), Some(expected));
        // Above the kernel's largest pid.
        write(1 << 23);
        assert_eq!(PostmasterFile::read(data.path()), None);
    }
}
