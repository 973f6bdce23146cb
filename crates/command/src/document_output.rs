// SPDX-License-Identifier: PostgreSQL
//! Where a document is written, and in which format.

use clap::Args;
use error::Error;
use serde::Serialize;
use std::borrow::Borrow;
use std::io::Write;
use std::path::PathBuf;
use view::document::Document;
use view::escape::Lines;
use view::{escape, output, page, text};

/// Where a document is written, and in which format.
#[derive(Debug, Args)]
pub struct DocumentOutput {
    /// Write to this file: .json and .txt by name, otherwise an HTML page, unless --text or --json is given
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// Print text [default without -o]
    #[arg(long, conflicts_with = "json")]
    pub text: bool,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

impl DocumentOutput {
    /// Whether the output is an HTML page.
    pub fn is_page(&self) -> bool {
        self.output.is_some() && !self.is_text() && !self.is_json()
    }

    fn is_json(&self) -> bool {
        self.json || !self.text && self.ends_in("json")
    }

    fn is_text(&self) -> bool {
        self.text || !self.json && self.ends_in("txt")
    }

    fn ends_in(&self, extension: &str) -> bool {
        self.output
            .as_ref()
            .is_some_and(|path| path.extension().is_some_and(|own| own == extension))
    }

    /// Writes `data` as JSON, or as the document that `document` makes from it.
    pub fn write<D: Borrow<Document>>(
        &self,
        data: &impl Serialize,
        document: impl FnOnce() -> D,
        color: bool,
    ) -> Result<(), Error> {
        let style = text::Style::of_terminal(color);
        let Some(path) = &self.output else {
            let mut out = escape::buffered_stdout(color);
            if self.json {
                serde_json::to_writer(&mut out, data)?;
                writeln!(out)?;
            } else {
                text::write(document().borrow(), &style, &mut out)?;
            }
            return Ok(out.flush()?);
        };
        let mut content = Vec::new();
        if self.is_json() {
            let json = serde_json::to_string(data)? + "\n";
            content.extend_from_slice(escape::json(&json).as_bytes());
        } else if !self.is_page() {
            let style =
                text::Style { width: text::WIDTH, tables: usize::MAX, color: false, ..style };
            text::write(document().borrow(), &style, &mut Lines::new(&mut content))?;
        } else {
            content = page::page(document().borrow())?.into_bytes();
        }
        output::write(path, &content)?;
        output::announce(path);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(path: Option<&str>, [text, json]: [bool; 2]) -> &'static str {
        let output = DocumentOutput { output: path.map(PathBuf::from), text, json };
        match [output.is_page(), output.is_text(), output.is_json()] {
            [true, false, false] => "page",
            [false, true, false] => "text",
            [false, false, true] => "json",
            [false, false, false] => "terminal",
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn the_name_of_the_file_says_which_format_unless_an_option_does() {
        let none = [false, false];
        let names = ["r.html", "r", "r.json", "r.txt", "json"];
        let formats = names.map(|name| format(Some(name), none));
        assert_eq!(formats, ["page", "page", "json", "text", "page"]);
        assert_eq!(format(Some("r.json"), [true, false]), "text");
        assert_eq!(format(Some("r.txt"), [false, true]), "json");
        assert_eq!(format(None, none), "terminal");
    }
}
