// SPDX-License-Identifier: PostgreSQL
//! Cleaning up after a process that had no chance to do so itself.
//!
//! A shell waits at the end of a pipe whose other end only this process holds. Whatever ends
//! this process closes the pipe; the shell then stops the server, removes the directories
//! and goes. PR_SET_PDEATHSIG would not do: it follows the thread rather than the process
//! and is cleared by the change of user.

use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::Error;

/// Lines it understands: `pid N` (the server; 0 none), `remove PATH`. The server is known by
/// its working directory, so that a reused pid is left alone. SIGQUIT is PostgreSQL's
/// immediate shutdown.
const SCRIPT: &str = r#"
trap '' INT TERM HUP QUIT PIPE
dir=$1; pid=0; extra=
while read -r word rest; do
    case $word in
        pid) pid=$rest ;;
        remove) extra="$extra
$rest" ;;
    esac
done
runs() { [ "$pid" != 0 ] && [ "$(readlink "/proc/$pid/cwd")" = "$dir/data" ]; }
n=0
runs && kill -QUIT "$pid"
while runs; do
    n=$((n + 1))
    [ $n -eq 50 ] && kill -KILL "$pid"
    [ $n -eq 100 ] && break
    sleep 0.1
done
for n in 1 2 3 4 5; do
    rm -rf -- "$dir" && break
    sleep 0.2
done
printf '%s\n' "$extra" | while IFS= read -r path; do
    [ -n "$path" ] && rm -rf -- "$path"
done
"#;

/// The watchdog of one directory. Dropping it makes it do its work, and waits for that.
#[derive(Debug)]
pub(crate) struct Watchdog {
    child: Child,
    pipe: Option<ChildStdin>,
}

impl Watchdog {
    /// Start one for `dir`.
    pub(crate) fn start(dir: &Path) -> Result<Self, Error> {
        let mut child = Command::new("/bin/sh")
            .args(["-c", SCRIPT, "tally-watchdog"])
            .arg(dir)
            .current_dir("/")
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            // Its own group: Ctrl-C in the terminal must not reach it.
            .process_group(0)
            .spawn()
            .map_err(|source| Error::Spawn { program: "/bin/sh".into(), source })?;
        let pipe = child.stdin.take();
        Ok(Self { child, pipe })
    }

    /// The server to stop; 0 for none.
    pub(crate) fn server(&mut self, pid: u32) {
        self.tell(&format!("pid {pid}\n"));
    }

    /// Something else to remove at the end.
    pub(crate) fn remove(&mut self, path: &Path) {
        self.tell(&format!("remove {}\n", path.display()));
    }

    fn tell(&mut self, line: &str) {
        if let Some(pipe) = &mut self.pipe {
            // A watchdog that is gone can only have been killed on purpose.
            let _ = pipe.write_all(line.as_bytes());
        }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.pipe = None;
        let _ = self.child.wait();
    }
}
