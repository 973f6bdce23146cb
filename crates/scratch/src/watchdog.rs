// SPDX-License-Identifier: PostgreSQL
//! Stops the server and removes the directories, however this process ends.

use std::path::Path;

use crate::error::Error;
use crate::undo::Undo;

/// The script reads lines `pid N` (the postmaster; 0: none) and `remove PATH`. The working directory
/// identifies the postmaster, because PIDs are reused. SIGQUIT is PostgreSQL's immediate shutdown.
const SCRIPT: &str = r#"
dir=$1; pid=0; extra=
while read -r word rest; do
    case $word in
        pid) pid=$rest ;;
        remove) extra="$extra
$rest" ;;
    esac
done <<LINES
$lines
LINES
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

/// The watchdog of one directory. Dropping it removes the directory, and waits until that is done.
#[derive(Debug)]
pub(crate) struct Watchdog(Undo);

impl Watchdog {
    /// Watch over `dir`.
    pub(crate) fn start(dir: &Path) -> Result<Self, Error> {
        Undo::start(SCRIPT, &[dir.as_os_str()]).map(Self)
    }

    /// Set the postmaster to stop; 0: none.
    pub(crate) fn server(&mut self, pid: u32) {
        self.0.send_line(&format!("pid {pid}"));
    }

    /// Add another path to remove at the end.
    pub(crate) fn remove(&mut self, path: &Path) {
        self.0.send_line(&format!("remove {}", path.display()));
    }
}
