// SPDX-License-Identifier: PostgreSQL
//! What recording.json says.

use crate::error::Error;
use crate::store::{self, ABOUT};
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The format that this version writes, and the latest that it reads.
pub const FORMAT: u32 = 1;

/// What a recording is of.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The format of the data set.
    pub format: u32,
    /// Who wrote it: "pgtally 0.1.0".
    pub made_by: String,
    /// The machine.
    pub host: String,
    /// The server: "PostgreSQL 15.20".
    pub server: String,
    /// The data directory, or what else is measured.
    pub data_directory: String,
    /// Length of an interval, ns.
    pub interval_ns: u64,
    /// Length of a detail interval, ns.
    pub detail_ns: u64,
    /// When it was begun, microseconds since 1970.
    pub begun_us: i64,
}

impl About {
    /// Read it.
    pub fn read(directory: &Path) -> Result<About, Error> {
        let path = directory.join(ABOUT);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) => match error.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                    return Err(Error::NotARecording { path: directory.to_path_buf() })
                }
                _ => return Err(Error::io(&path)(error)),
            },
        };
        // A later format may have other fields; its number comes first.
        #[derive(Deserialize)]
        struct Format {
            format: u32,
        }
        let damaged = |error: serde_json::Error| Error::Damaged {
            path: path.clone(),
            reason: error.to_string(),
        };
        let Format { format } = serde_json::from_slice(&text).map_err(damaged)?;
        if format > FORMAT {
            let path = directory.to_path_buf();
            return Err(Error::Newer { path, found: format, known: FORMAT });
        }
        serde_json::from_slice(&text).map_err(damaged)
    }

    /// Write it.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), Error> {
        let path = directory.join(ABOUT);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|e| Error::File { path: path.clone(), reason: e.to_string() })?;
        store::replace(&path, &text, true)
    }
}
