// SPDX-License-Identifier: PostgreSQL
//! The finished files of a recording, for code that copies them elsewhere and removes them afterwards.
//!
//! [`Files`] may be used in any thread, concurrently with the writer that created it.

use crate::commit::Commit;
use crate::error::Error;
use crate::store::{DataFile, Store, ABOUT};
use crate::upkeep::remove_empty_days;
use crate::{About, TABLES};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The finished files of one host.
#[derive(Debug, Clone)]
pub struct Files {
    store: Store,
    /// Locked while files are replaced.
    replacing: Arc<Mutex<()>>,
}

impl Files {
    pub(crate) fn new(store: Store, replacing: Arc<Mutex<()>>) -> Files {
        Files { store, replacing }
    }

    /// The files of a recording without a writer.
    pub fn at_rest(directory: &Path) -> Result<Files, Error> {
        let about = About::read(directory)?;
        Ok(Files::new(Store::new(directory, &about.host), Arc::default()))
    }

    /// The path of recording.json.
    pub fn about(&self) -> PathBuf {
        self.store.directory.join(ABOUT)
    }

    /// All files with their tables, never in the middle of a replacement: of each merged hour, only the
    /// files that it was merged into.
    pub fn list(&self) -> Vec<(&'static str, DataFile)> {
        let _lock = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        TABLES
            .iter()
            .flat_map(|table| self.store.files(table).into_iter().map(|file| (*table, file)))
            .collect()
    }

    /// Remove these files.
    pub fn remove(&self, files: &[(&'static str, DataFile)]) -> Result<(), Error> {
        let _lock = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut commit = Commit::default();
        files.iter().for_each(|(_, file)| commit.remove(&self.store, &file.path));
        Commit::recover(&self.store)?;
        commit.execute(&self.store, false)?;
        remove_empty_days(&self.store, files);
        Ok(())
    }
}
