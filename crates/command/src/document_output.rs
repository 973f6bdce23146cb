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
    /// Write to this file, as an HTML page unless --text or --json is given
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
        self.output.is_some() && !self.text && !self.json
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
        if self.json {
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
