// SPDX-License-Identifier: PostgreSQL
//! One initdb per process: clusters are copies of its data directory.

use std::path::{Path, PathBuf};
use std::sync::Mutex;

use crate::binaries::Binaries;
use crate::directory;
use crate::error::Error;
use crate::os_user::OsUser;
use crate::program::run;
use crate::watchdog::Watchdog;

struct Template {
    bin: PathBuf,
    data: PathBuf,
    /// Statics are never dropped: the watchdog removes the directory when this process has ended.
    _watchdog: Watchdog,
}

static TEMPLATES: Mutex<Vec<Template>> = Mutex::new(Vec::new());

/// Fill the data directory `data`, which is empty.
pub(crate) fn copy_to(binaries: &Binaries, os_user: &OsUser, data: &Path) -> Result<(), Error> {
    let mut templates = TEMPLATES.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let source = match templates.iter().find(|template| template.bin == binaries.dir()) {
        Some(template) => template.data.clone(),
        None => {
            let template = make(binaries, os_user)?;
            let data = template.data.clone();
            templates.push(template);
            data
        }
    };
    drop(templates);
    // -a keeps modes; file systems that can share the blocks. The server's user copies, who can change both directories
    // meanwhile.
    let mut command = os_user.command(Path::new("cp"), Path::new("/"));
    run(command.args(["-a", "--reflink=auto", "--"]).arg(source.join(".")).arg(data), "cp")
}

fn make(binaries: &Binaries, os_user: &OsUser) -> Result<Template, Error> {
    let (dir, watchdog) = directory::create(os_user, None)?;
    let data = dir.join(directory::DATA);
    let program = binaries.program("initdb");
    let mut command = os_user.command(&program, &dir);
    command.arg("-D").arg(&data).args([
        "--no-sync",
        "--auth=trust",
        "--username=postgres",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
    ]);
    run(&mut command, "initdb")?;
    Ok(Template { bin: binaries.dir().to_path_buf(), data, _watchdog: watchdog })
}
