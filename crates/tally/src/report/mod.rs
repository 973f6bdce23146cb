// SPDX-License-Identifier: PostgreSQL
//! `tally report`: what a recording holds, as one page, as text or as JSON.
//!
//! [`source`] reads the recording into [`material`]; [`assemble`] makes the [`document`] of it,
//! which says everything there is to say; [`html`] with [`page`], [`text`] and serde write it.

pub mod assemble;
mod charts;
pub mod cost;
pub mod document;
mod facts;
mod findings;
pub mod html;
mod latency;
mod marks;
pub mod material;
pub mod output;
pub mod page;
pub mod point;
mod range;
#[cfg(test)]
mod sample;
mod seeds;
mod source;
mod tables;
#[cfg(test)]
mod tests;
pub mod text;

use std::io::{self, BufWriter, IsTerminal, Write};
use std::path::Path;
use std::time::Duration;

use indicatif::ProgressBar;
use jiff::tz::TimeZone;

use crate::cli::ReportArgs;
use crate::error::Error;
use crate::model::table::speaks_utf8;
use document::Document;
use material::Material;
use source::Wanted;

pub use range::Edge;

/// Characters in a line where there is no terminal.
pub const WIDTH: usize = 132;

/// Make it, and print it or write it into a file.
pub fn run(args: &ReportArgs, color: bool) -> Result<(), Error> {
    let wanted = Wanted {
        directory: &args.directory,
        host: args.host.as_deref(),
        from: args.from,
        to: args.to,
    };
    let document = make(&wanted, args.cost.as_deref())?;
    let Some(path) = &args.output else {
        let mut out = BufWriter::new(crate::escape::stdout());
        if args.json {
            serde_json::to_writer(&mut out, &document)?;
            writeln!(out)?;
        } else {
            text::write(&document, &style(color), &mut out)?;
        }
        return Ok(out.flush()?);
    };
    let mut whole = Vec::new();
    if args.json {
        whole =
            (crate::escape::json(&serde_json::to_string(&document)?) + "\n").into_owned().into();
    } else if args.text {
        let style = text::Style { width: WIDTH, color: false, ..style(color) };
        text::write(&document, &style, &mut whole)?;
    } else {
        whole = page::page(&document)?.into_bytes();
    }
    output::write(path, &whole)
}

/// Write the page of all of a recording into `file`.
pub fn write_page(directory: &Path, file: &Path) -> Result<(), Error> {
    let document = make(&Wanted { directory, host: None, from: None, to: None }, None)?;
    output::write(file, page::page(&document)?.as_bytes())
}

/// Read the recording and say what there is to say, with a cost that was measured.
fn make(wanted: &Wanted<'_>, cost: Option<&Path>) -> Result<Document, Error> {
    let cost = cost.map(cost::Measured::read).transpose()?;
    let progress = ProgressBar::new_spinner();
    progress.enable_steady_tick(Duration::from_millis(100));
    let material = source::read(wanted, &|what| progress.set_message(what));
    progress.finish_and_clear();
    assemble::document(Material { cost, ..material? }, &TimeZone::system())
}

/// As standard output can show it.
pub fn style(color: bool) -> text::Style {
    let on_terminal = io::stdout().is_terminal();
    let size = on_terminal.then(|| ratatui::crossterm::terminal::size().ok()).flatten();
    text::Style {
        width: size.map_or(WIDTH, |(width, _)| usize::from(width)),
        ascii: on_terminal && !speaks_utf8(),
        color,
        zone: TimeZone::system(),
    }
}
