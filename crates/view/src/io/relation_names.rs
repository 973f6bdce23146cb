// SPDX-License-Identifier: PostgreSQL
//! Names of relations by the file numbers in their file names, if the server could be queried.

use std::collections::BTreeMap;

use segment::RelationRow;
use serde::{Serialize, Serializer};

/// Identifies a relation's file: database (`None` if shared), tablespace, file number.
pub type RelationFile = (Option<u32>, u32, u32);

/// The known names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RelationNames(pub BTreeMap<RelationFile, String>);

impl RelationNames {
    /// The file of a row; `None` for the row of all others.
    pub fn file(row: &RelationRow) -> Option<RelationFile> {
        Some((row.database_id, row.tablespace?, row.relfilenode?))
    }

    /// The relation's name.
    pub fn get(&self, row: &RelationRow) -> Option<&str> {
        self.0.get(&Self::file(row)?).map(String::as_str)
    }
}

/// A name, as JSON contains it.
#[derive(Serialize)]
struct Named<'n> {
    database_id: Option<u32>,
    tablespace: u32,
    relfilenode: u32,
    name: &'n str,
}

impl Serialize for RelationNames {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(
            |(&(database_id, tablespace, relfilenode), name)| Named {
                database_id,
                tablespace,
                relfilenode,
                name,
            },
        ))
    }
}
