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
    /// otherwise the newest in `/usr/lib/postgresql/*`.
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
        let mut versions: Vec<(u32, PathBuf)> = std::fs::read_dir("/usr/lib/postgresql")
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|entry| {
                Some((entry.file_name().to_str()?.parse().ok()?, entry.path().join("bin")))
            })
            .collect();
        versions.sort();
        versions
            .into_iter()
            .rev()
            .find_map(|(_, bin)| Self::at(bin).ok())
            .ok_or_else(|| Error::NoBinaries("nothing in /usr/lib/postgresql".into()))
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

fn bindir(config: &Path) -> Option<PathBuf> {
    ask(config, "--bindir").map(PathBuf::from)
}

fn ask(config: &Path, option: &str) -> Option<String> {
    let output = Command::new(config).arg(option).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?.trim().to_string();
    (output.status.success() && !text.is_empty()).then_some(text)
}
