// SPDX-License-Identifier: PostgreSQL
//! Text in aligned columns.

use std::io::{self, Write};

use crate::escape::visible;

/// Rows of text whose columns line up when written.
#[derive(Debug, Default)]
pub struct Columns {
    rows: Vec<Vec<String>>,
}

impl Columns {
    /// A table with these headings.
    pub fn with_headings(headings: &[&str]) -> Self {
        Self { rows: vec![headings.iter().map(|text| text.to_string()).collect()] }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<String>) {
        self.rows.push(row.iter().map(|cell| visible(cell).into_owned()).collect());
    }

    /// Writes the rows with two blanks between columns. The columns in `right` are aligned right, as
    /// numbers are.
    pub fn write(&self, out: &mut impl Write, right: std::ops::Range<usize>) -> io::Result<()> {
        let width = |at: usize| {
            self.rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count()).max()
        };
        for row in &self.rows {
            let mut line = String::new();
            for (at, cell) in row.iter().enumerate() {
                let wide = width(at).unwrap_or(0);
                if at > 0 {
                    line.push_str("  ");
                }
                if right.contains(&at) {
                    line.push_str(&format!("{cell:>wide$}"));
                } else {
                    line.push_str(&format!("{cell:<wide$}"));
                }
            }
            writeln!(out, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_numbers_are_aligned_right() {
        let mut columns = Columns::with_headings(&["NAME", "N", "TEXT"]);
        columns.push(vec!["a".into(), "12345".into(), "x".into()]);
        let mut out = Vec::new();
        columns.write(&mut out, 1..2).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "NAME      N  TEXT\na     12345  x\n");
    }
}
