// SPDX-License-Identifier: PostgreSQL
//! Programs that a test creates and runs. A file that the tests' process writes is also open in whatever another
//! test starts meanwhile, and a file that is open for writing cannot be run (ETXTBSY). Therefore another process
//! writes them.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

fn install(from: &Path, to: &Path) -> Command {
    let mut install = Command::new("install");
    install.args(["-m", "755", "--"]).args([from, to]);
    install
}

/// Copies a program.
pub fn copy(from: impl AsRef<Path>, to: &Path) {
    assert!(install(from.as_ref(), to).status().unwrap().success(), "{}", to.display());
}

/// Makes a program from these bytes.
pub fn write(to: &Path, bytes: &[u8]) {
    let mut writer = install(Path::new("/dev/stdin"), to).stdin(Stdio::piped()).spawn().unwrap();
    writer.stdin.take().unwrap().write_all(bytes).unwrap();
    assert!(writer.wait().unwrap().success(), "{}", to.display());
}
