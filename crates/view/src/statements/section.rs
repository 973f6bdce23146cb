// SPDX-License-Identifier: PostgreSQL
//! A part of a page.

use crate::table::Table;

/// A section of a page; the renderer wraps the lines and lays out the table.
#[derive(Debug)]
pub struct Section {
    /// Its title.
    pub title: String,
    /// Paragraphs.
    pub lines: Vec<String>,
    /// A table, if any.
    pub table: Option<Table>,
}
