// SPDX-License-Identifier: PostgreSQL
//! One initdb per process: clusters are copies of its data directory.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, OnceLock};

use files::Access;

use crate::binaries::Binaries;
use crate::directory;
use crate::error::Error;
use crate::os_user::OsUser;
use crate::program::run;
use crate::watchdog::Watchdog;

struct Template {
    bin: PathBuf,
    data: PathBuf,
    /// Statics are never dropped, but the watchdog removes the directory when this process has ended.
    _watchdog: Watchdog,
}

const RANDOM: &str = "/dev/urandom";

static TEMPLATES: Mutex<Vec<Template>> = Mutex::new(Vec::new());

/// The superuser's password in the clusters of this process, required for TCP connections: everybody can reach a port,
/// and a superuser can run programs as the server's user.
pub fn password() -> &'static str {
    static PASSWORD: OnceLock<String> = OnceLock::new();
    PASSWORD.get_or_init(|| {
        let mut random = [0; 16];
        // Without random numbers, the password is empty, and no cluster is created.
        match File::open(RANDOM).and_then(|mut file| file.read_exact(&mut random)) {
            Ok(()) => random.iter().map(|byte| format!("{byte:02x}")).collect(),
            Err(_) => String::new(),
        }
    })
}

/// Fill the empty data directory `data`.
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
    // -a keeps modes, and file systems that can share blocks do so. The server's user does the copying, because that
    // user can change both directories meanwhile.
    let mut command = os_user.command(Path::new("cp"));
    run(command.args(["-a", "--reflink=auto", "--"]).arg(source.join(".")).arg(data), "cp")
}

fn make(binaries: &Binaries, os_user: &OsUser) -> Result<Template, Error> {
    let (dir, watchdog) = directory::create(os_user, None)?;
    let data = dir.join(directory::DATA);
    let program = binaries.program("initdb");
    let mut command = os_user.command(&program);
    if password().is_empty() {
        return Err(Error::file("cannot read", RANDOM)(std::io::ErrorKind::Unsupported.into()));
    }
    let mut file = files::temporary(&dir, "password.", "", Access::Owner)
        .map_err(Error::file("cannot create a file in", &dir))?;
    file.write_all(password().as_bytes()).map_err(Error::file("cannot write", file.path()))?;
    os_user.chown(file.path())?;
    command.arg("--pwfile").arg(file.path()).arg("-D").arg(&data).args([
        "--no-sync",
        "--auth-local=trust",
        "--auth-host=scram-sha-256",
        "--username=postgres",
        "--encoding=UTF8",
        "--locale=C.UTF-8",
    ]);
    run(&mut command, "initdb")?;
    Ok(Template { bin: binaries.dir().to_path_buf(), data, _watchdog: watchdog })
}
