// SPDX-License-Identifier: PostgreSQL
//! Makes the texts of a result fit into one line of a table.

use view::table::{fit, Cell, Table};

/// Maximum length of a statement, in characters, if another column takes the remaining width.
const STATEMENT: usize = 48;

/// Makes each text one line, and cuts statements whose column does not take the remaining width.
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
