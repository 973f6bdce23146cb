// SPDX-License-Identifier: PostgreSQL
//! The only table type: columns with units, rows of typed cells. It becomes lines of a terminal and plain text
//! here, as well as JSON and CSV; [`crate::html`] makes HTML from it.

pub(crate) mod cell;
pub mod field;
mod layout;
mod model;
mod tone;

pub use cell::{number, span, time, Cell, Unit};
pub use layout::{bar, fit, fit_items, speaks_utf8, wrap, Layout};
pub use model::{csv, encoded, Column, Details, OverTime, PaneSection, Row, Table};
pub use tone::Tone;

#[cfg(test)]
mod tests {
    use super::model::repeated;
    use super::*;

    #[test]
    fn csv_quotes_what_needs_it() {
        let mut table = Table::with_headings(&["a, b", "c", "d"], 1..3);
        let text = "1.2 ± 0.1".into();
        let rounded = Cell::Rounded { text, exact: Some(1.2345), tone: Tone::Good };
        table.push(Tone::Plain, vec!["say \"x\"".into(), 1.into(), rounded]);
        assert_eq!(table.csv(), "\"a, b\",c,d\n\"say \"\"x\"\"\",1,1.2345\n");
    }

    #[test]
    fn no_two_columns_have_one_title() {
        let columns = ["", "COUNT", "", "MAX", "COUNT"];
        let columns = columns.map(|title| Column::new("", title, Unit::Count));
        assert_eq!(repeated(&columns), ["COUNT"]);
        assert_eq!(repeated(&columns[..4]), Vec::<&str>::new());
    }

    #[test]
    fn a_cell_links_to_an_address_with_the_values_of_its_row() {
        let column = Column::new("host", "HOST", Unit::Id).link("?cluster={cluster}&host={host}");
        let columns = vec![Column::new("cluster", "CLUSTER", Unit::Id), column.clone()];
        let row = |host: Cell| Row::new("", vec!["a b".into(), host]);
        let table = Table::from_rows(columns, Vec::new());
        let address = table.address(&row("\"x&".into()), &column);
        assert_eq!(address.as_deref(), Some("?cluster=a%20b&host=%22x%26"));
        assert_eq!(table.address(&row(Cell::Empty), &column), None);
        assert_eq!(table.address(&row("x".into()), &table.columns[0]), None);
    }

    #[test]
    fn columns_are_aligned_and_numbers_are_aligned_right() {
        let mut table = Table::with_headings(&["NAME", "N", "TEXT"], 1..2);
        table.push_texts(["a", "12345", "x"]);
        assert_eq!(table.to_string(), "NAME      N  TEXT\na     12345  x\n");
    }
}
