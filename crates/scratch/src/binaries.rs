// SPDX-License-Identifier: PostgreSQL
//! The directory of PostgreSQL's programs.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::error::Error;

/// An installed PostgreSQL.
#[derive(Debug, Clone)]
pub struct Binaries {
    bin: PathBuf,
}

impl Binaries {
    /// The installation that `PG_CONFIG` names, otherwise that of the `pg_config` in the path if it has a server,
    /// otherwise the newest that packages have installed.
    pub fn find() -> Result<Self, Error> {
        if let Some(config) = std::env::var_os("PG_CONFIG") {
            let bin = bindir(Path::new(&config)).ok_or_else(|| {
                Error::NoBinaries(format!("could not run {} (PG_CONFIG)", config.to_string_lossy()))
            })?;
            return Self::at(bin);
        }
        if let Some(found) = bindir(Path::new("pg_config")).and_then(|bin| Self::at(bin).ok()) {
            return Ok(found);
        }
        newest(Path::new("/usr")).ok_or_else(|| {
            Error::NoBinaries("nothing in /usr/lib/postgresql or /usr/pgsql-NN".into())
        })
    }

    /// The installation whose programs are in `bin`.
    pub fn at(bin: impl Into<PathBuf>) -> Result<Self, Error> {
        let bin = bin.into();
        for program in ["postgres", "initdb"] {
            if !bin.join(program).exists() {
                return Err(Error::NoBinaries(format!("{program} not found in {}", bin.display())));
            }
        }
        Ok(Self { bin })
    }

    /// The directory of the programs.
    pub fn dir(&self) -> &Path {
        &self.bin
    }

    /// The path of a program.
    pub fn program(&self, name: &str) -> PathBuf {
        self.bin.join(name)
    }

    /// A value of this installation's `pg_config`, e.g. of `--pkglibdir`.
    pub fn config(&self, option: &str) -> Option<String> {
        ask(&self.program("pg_config"), option)
    }
}

/// The newest installation of packages: of Debian's, in lib/postgresql/NN, or of PGDG's for Red Hat and its relatives,
/// in pgsql-NN.
fn newest(usr: &Path) -> Option<Binaries> {
    let versions_in = |folder: PathBuf, prefix: &'static str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
        entries.filter_map(move |entry| {
            let name = entry.file_name();
            let major: u32 = name.to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((major, entry.path().join("bin")))
        })
    };
    let debian = versions_in(usr.join("lib/postgresql"), "");
    let pgdg = versions_in(usr.to_path_buf(), "pgsql-");
    let mut versions: Vec<(u32, PathBuf)> = debian.chain(pgdg).collect();
    versions.sort();
    versions.into_iter().rev().find_map(|(_, bin)| Binaries::at(bin).ok())
}

fn bindir(config: &Path) -> Option<PathBuf> {
    ask(config, "--bindir").map(PathBuf::from)
}

fn ask(config: &Path, option: &str) -> Option<String> {
    let output = Command::new(config).arg(option).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_string();
    (output.status.success() && !text.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn install(usr: &Path, folder: &str, programs: &[&str]) {
        let bin = usr.join(folder).join("bin");
        std::fs::create_dir_all(&bin).unwrap();
        for program in programs {
            std::fs::write(bin.join(program), "").unwrap();
        }
    }

    #[test]
    fn the_newest_server_of_packages_is_found_where_debian_and_pgdg_have_it() {
        let usr = tempfile::tempdir().unwrap();
        let usr = usr.path();
        let found = || newest(usr).map(|found| found.dir().strip_prefix(usr).unwrap().to_owned());
        assert_eq!(found(), None);
        install(usr, "lib/postgresql/9", &["postgres", "initdb"]);
        install(usr, "pgsql-15", &["postgres", "initdb"]);
        // A client alone, and directories that are no versions.
        install(usr, "lib/postgresql/18", &["psql"]);
        install(usr, "pgsql-beta", &["postgres", "initdb"]);
        install(usr, "lib/postgresql/common", &["postgres", "initdb"]);
        assert_eq!(found(), Some(PathBuf::from("pgsql-15/bin")));
        install(usr, "lib/postgresql/16", &["postgres", "initdb"]);
        assert_eq!(found(), Some(PathBuf::from("lib/postgresql/16/bin")));
    }
}
