// SPDX-License-Identifier: PostgreSQL
//! The statements of rows of `statements` and `statement_accounts`, which are read column by column: making a row takes
//! longer than adding it up, and most of its columns are zero.

use crate::rows::RecordedStatementKey;
use crate::table::{Cell, Cells, Columns};
use segment::Application;
use std::sync::Arc;

/// The columns that say when a row was recorded, and of which statement it is, of all applications together.
pub(crate) const KEY: [&str; 6] =
    ["frame", "time", "queryid", "database_id", "user_id", "toplevel"];

/// The columns that say of which statement a row is.
pub(crate) struct KeyCells<'c> {
    queryid: &'c Cells,
    database_id: &'c Cells,
    user_id: &'c Cells,
    toplevel: &'c Cells,
    application: &'c [Arc<str>],
}

impl<'c> KeyCells<'c> {
    /// Those of a row group.
    pub fn new(columns: &'c Columns) -> KeyCells<'c> {
        let [queryid, database_id, user_id, toplevel] =
            ["queryid", "database_id", "user_id", "toplevel"].map(|name| columns.find(name));
        let application = match columns.find("application") {
            Cells::Text(texts) => texts.as_slice(),
            _ => &[],
        };
        KeyCells { queryid, database_id, user_id, toplevel, application }
    }

    /// The key of a row.
    pub fn key(&self, row: usize) -> RecordedStatementKey {
        let application = self.application.get(row).map_or("", |text| text);
        (
            Cell::get(self.queryid, row),
            Cell::get(self.database_id, row),
            Cell::get(self.user_id, row),
            Cell::get(self.toplevel, row),
            Application::from_name(application),
        )
    }
}
