// SPDX-License-Identifier: PostgreSQL
//! recording.json: the description of a recording.

use crate::error::Error;
use crate::store::{self, ABOUT};
use files::Access;
use serde::{Deserialize, Serialize};
use std::path::Path;

/// The format that this version writes, and the latest that it reads.
pub const FORMAT: u32 = 2;

/// The contents of recording.json.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// The format of the data set.
    pub format: u32,
    /// The program that wrote it: "pgtally 0.3.0".
    pub made_by: String,
    /// The machine's name.
    pub host: String,
    /// The server: "PostgreSQL 15.20".
    pub server: String,
    /// The server's data directory, or the name of another recorded program.
    pub data_directory: String,
    /// The length of an interval, ns.
    pub interval_ns: u64,
    /// The length of a detail interval, ns.
    pub detail_ns: u64,
    /// Its start, microseconds since 1970.
    pub begun_us: i64,
}

/// Maximum number of bytes to read; the file has a few hundred.
const LARGEST: u64 = 1 << 20;

impl About {
    /// Read the file in a directory.
    pub fn read(directory: &Path) -> Result<About, Error> {
        let path = directory.join(ABOUT);
        let text = match files::read(&path, LARGEST) {
            Ok(text) => text,
            Err(error) => match error.kind() {
                std::io::ErrorKind::NotFound | std::io::ErrorKind::NotADirectory => {
                    return Err(Error::NotARecording { path: directory.to_path_buf() })
                }
                _ => return Err(Error::io(&path)(error)),
            },
        };
        // A later format may have other fields, so its number is read first.
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

    /// Write the file in a directory.
    pub(crate) fn write(&self, directory: &Path, access: Access) -> Result<(), Error> {
        // An equal file is not replaced, because shipping recognizes the recording by the file.
        if About::read(directory).is_ok_and(|found| found == *self) {
            return Ok(());
        }
        let path = directory.join(ABOUT);
        let text = serde_json::to_vec_pretty(self)
            .map_err(|e| Error::File { path: path.clone(), reason: e.to_string() })?;
        store::replace(&path, &text, access, true)
    }
}
