// SPDX-License-Identifier: PostgreSQL
//! Texts of an answer as they fit into a line of a table.

use view::table::{fit, Cell, Table};

/// Max. characters of a statement in a table where something else takes the remaining width.
const STATEMENT: usize = 48;

/// Makes a line of each text, and cuts statements that are not the column with the remaining width.
pub fn one_line(table: &mut Table) {
    for (at, column) in table.columns.iter().enumerate() {
        let is_cut = column.key == "statement" && !column.elastic;
        for cell in table.rows.iter_mut().filter_map(|row| row.cells.get_mut(at)) {
            let Cell::Text(text) = cell else { continue };
            let line = view::statements::one_line(text);
            *cell = match is_cut && line.chars().count() > STATEMENT {
                true => fit(&line, STATEMENT, false).into(),
                false => line.into(),
            };
        }
    }
}
