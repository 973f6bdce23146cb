// SPDX-License-Identifier: PostgreSQL
//! What a data directory's postmaster.pid says of the running server.

use std::path::Path;

/// The first lines of a running server's postmaster.pid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostmasterFile {
    /// Its first process.
    pub pid: u32,
    /// Its port.
    pub port: u16,
    /// The folder of its first socket; empty when it has none.
    pub socket_dir: String,
}

impl PostmasterFile {
    /// Of this data directory; none when no server runs there or it is not for us to read.
    pub fn read(data: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(data.join("postmaster.pid")).ok()?;
        let lines: Vec<&str> = text.lines().map(str::trim).collect();
        let pid: u32 = lines.first()?.parse().ok()?;
        scratch::alive(pid).then_some(Self {
            pid,
            port: lines.get(3)?.parse().ok()?,
            socket_dir: lines.get(4)?.to_string(),
        })
    }
}
