// SPDX-License-Identifier: PostgreSQL
//! A finished table: its fields, and its form as CSV.

/// How a field is coloured.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tone {
    /// Neither good nor bad.
    Plain,
    /// A resolved change for the better.
    Good,
    /// A resolved change for the worse.
    Bad,
    /// Inconclusive, or of the A/A control.
    Faint,
}

/// A field of a table.
#[derive(Debug, Clone)]
pub struct Field {
    /// Rounded, for people.
    pub text: String,
    /// Unrounded, for CSV.
    pub exact: String,
    /// Its colour.
    pub tone: Tone,
}

/// A finished table.
#[derive(Debug, Clone)]
pub struct Shown {
    /// Its heading.
    pub title: String,
    /// Headings of the columns.
    pub headings: Vec<String>,
    /// Number of leading fields of a row that name it.
    pub names: usize,
    /// Rows, each with a field for every heading.
    pub rows: Vec<Vec<Field>>,
}

impl Field {
    /// A plain field.
    pub fn of(text: String, exact: String) -> Self {
        Self { text, exact, tone: Tone::Plain }
    }

    /// A field with the same text in CSV.
    pub fn name(text: &str) -> Self {
        Self::of(text.into(), text.into())
    }

    /// A figure that is absent.
    pub fn none() -> Self {
        Self { text: "-".into(), exact: String::new(), tone: Tone::Faint }
    }
}

impl Shown {
    /// As CSV, a line of headings first.
    pub fn csv(&self) -> String {
        let headings = std::iter::once(self.headings.iter().map(String::as_str).collect());
        let rows =
            self.rows.iter().map(|row| row.iter().map(|field| field.exact.as_str()).collect());
        csv(headings.chain(rows))
    }
}

/// Records as CSV (RFC 4180), but with lines ended by a newline alone.
pub fn csv<F: AsRef<[u8]>>(records: impl IntoIterator<Item = Vec<F>>) -> String {
    let mut writer = csv::WriterBuilder::new().flexible(true).from_writer(Vec::new());
    for record in records {
        // Writing to memory cannot fail.
        let _ = writer.write_record(record);
    }
    String::from_utf8_lossy(&writer.into_inner().unwrap_or_default()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn csv_quotes_what_needs_it() {
        let field = |text: &str| Field::name(text);
        let shown = Shown {
            title: "t".into(),
            headings: vec!["a, b".into(), "c".into()],
            names: 1,
            rows: vec![vec![field("say \"x\""), field("1")]],
        };
        assert_eq!(shown.csv(), "\"a, b\",c\n\"say \"\"x\"\"\",1\n");
    }
}
