// SPDX-License-Identifier: PostgreSQL
//! The operating system user that runs the servers.

use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::Command;

use rustix::process::{getpgrp, getpid, setpgid, setsid};

use crate::error::Error;

/// The user that runs PostgreSQL: the caller, or another user if the caller is root.
#[derive(Debug, Clone)]
pub struct OsUser {
    /// The user to change to; `None` for the caller.
    other: Option<Other>,
}

#[derive(Debug, Clone)]
struct Other {
    name: String,
    uid: u32,
    gid: u32,
}

/// Starts the command in a new session without a terminal; in the caller's session, it could insert input (TIOCSTI).
fn detach(command: &mut Command) {
    // The leader of a process group cannot create a session, so no command has been made one before: see `apart`.
    let leave = || -> std::io::Result<()> { Ok(setsid().map(drop)?) };
    // SAFETY: between fork and exec, it only makes a system call.
    unsafe { command.pre_exec(leave) };
}

/// Starts the command in a process group of its own, which Ctrl-C in the terminal does not reach: a command of
/// [`OsUser::command`] has one if it has a session.
pub fn apart(command: &mut Command) -> &mut Command {
    let leave = || -> std::io::Result<()> {
        match getpgrp() == getpid() {
            true => Ok(()),
            false => Ok(setpgid(None, None)?),
        }
    };
    // SAFETY: between fork and exec, it only makes system calls.
    unsafe { command.pre_exec(leave) }
}

impl OsUser {
    /// The caller; for root `PGTALLY_USER`, or `postgres`.
    pub fn find() -> Result<Self, Error> {
        if !rustix::process::geteuid().is_root() {
            return Ok(Self { other: None });
        }
        let name = std::env::var("PGTALLY_USER").unwrap_or_else(|_| "postgres".into());
        // getent also finds users of directory services.
        let output = Command::new("getent")
            .args(["passwd", &name])
            .output()
            .map_err(|source| Error::Spawn { program: "getent".into(), source })?;
        let line = String::from_utf8_lossy(&output.stdout);
        let fields: Vec<&str> = line.trim_end().split(':').collect();
        let id = |at: usize| fields.get(at).and_then(|field| field.parse::<u32>().ok());
        match (id(2), id(3)) {
            (Some(uid), Some(gid)) if uid != 0 => {
                Ok(Self { other: Some(Other { name, uid, gid }) })
            }
            _ => Err(Error::NoUser(name)),
        }
    }

    /// The user's name, if the user is not the caller.
    pub fn name(&self) -> Option<&str> {
        self.other.as_ref().map(|other| other.name.as_str())
    }

    /// A command that runs as this user. Its working and home directory is the root directory, where no one can plant
    /// files: .psqlrc, .bashrc, .pgpass and the like in a directory that others may write would be read with this
    /// user's privileges.
    pub fn command(&self, program: &Path) -> Command {
        let mut command = Command::new(program);
        // The caller's connection settings must not reach a scratch server.
        for (name, _) in std::env::vars_os() {
            let text = name.to_string_lossy();
            // The other user can read the environment of its processes, so root's credentials must not be in it.
            let known = self.other.is_none() || passes(&text);
            if text.starts_with("PG") || !known {
                command.env_remove(&name);
            }
        }
        command.current_dir("/").env("HOME", "/").env("LC_ALL", "C.UTF-8");
        if let Some(other) = &self.other {
            // The standard library drops supplementary groups when root sets a UID.
            command.uid(other.uid).gid(other.gid).env("USER", &other.name);
            command.env("LOGNAME", &other.name);
            detach(&mut command);
        }
        command
    }

    /// Make this user the owner of a file or directory.
    pub fn chown(&self, path: &Path) -> Result<(), Error> {
        match &self.other {
            Some(other) => std::os::unix::fs::chown(path, Some(other.uid), Some(other.gid))
                .map_err(Error::file("cannot change the owner of", path)),
            None => Ok(()),
        }
    }
}

/// Whether an environment variable may be passed on: those that programs need to run, and those that tests set for
/// their libraries.
fn passes(name: &str) -> bool {
    const NAMES: [&str; 6] = ["PATH", "LANG", "TZ", "TMPDIR", "JAVA_HOME", "TERM"];
    const BEGINNINGS: [&str; 4] = ["LC_", "LD_", "ASAN_", "UBSAN_"];
    NAMES.contains(&name) || BEGINNINGS.iter().any(|begin| name.starts_with(begin))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_user_gets_no_credentials() {
        assert!(passes("PATH") && passes("LC_ALL") && passes("LD_LIBRARY_PATH"));
        for name in [
            "AWS_SECRET_ACCESS_KEY",
            "OTEL_EXPORTER_OTLP_HEADERS",
            "CLICKHOUSE_PASSWORD",
            "SSH_AUTH_SOCK",
        ] {
            assert!(!passes(name), "{name}");
        }
    }
}
