// SPDX-License-Identifier: PostgreSQL
//! A trace as a page: each message opens into its waterfall, drawn from the JSON lines; below them the sums as text.

use std::path::PathBuf;

use error::Error;
use segment::Traced;
use serde::Serialize;
use serde_json::value::RawValue;

use super::json::Json;
use super::story::{Story, Unit};
use super::summary::Summary;
use super::{Context, Sink};

/// Bytes of lines that a page takes; a browser needs some ten times as much for them.
const MOST_BYTES: usize = 32 << 20;

/// What the page's script draws (web/src/waterfall/model.ts).
#[derive(Debug, Serialize)]
pub struct Drawn<'l> {
    /// When the trace began, seconds since 1970.
    pub began: f64,
    /// Lines for which there was no room.
    pub left_out: u64,
    /// As `--json` prints them.
    pub lines: Vec<&'l RawValue>,
}

/// The sink: it has the page when the trace is over.
pub struct Page {
    lines: Json<Vec<u8>>,
    left_out: u64,
    summary: Summary,
    title: String,
    page: String,
    path: Option<PathBuf>,
}

impl Page {
    /// For a page with this title, written to `path`.
    pub fn new(title: String, path: Option<PathBuf>) -> Page {
        Page {
            lines: Json::new(Vec::new()),
            left_out: 0,
            summary: Summary::default(),
            title,
            page: String::new(),
            path,
        }
    }

    /// The page, once the trace is over.
    pub fn into_page(self) -> String {
        self.page
    }
}

impl Sink for Page {
    fn session(&mut self, context: &mut Context, who: &Traced) -> Result<(), Error> {
        self.lines.session(context, who)
    }

    fn unit(&mut self, context: &mut Context, who: &Traced, unit: &Unit) -> Result<(), Error> {
        self.summary.add(context, unit);
        if self.lines.out.len() > MOST_BYTES {
            self.left_out += unit.items.len() as u64;
            return Ok(());
        }
        self.lines.unit(context, who, unit)
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn finish(&mut self, context: &mut Context, stories: &[Story]) -> Result<(), Error> {
        self.lines.finish(context, stories)?;
        let mut text = Vec::new();
        self.summary.print(&mut text, context, stories)?;
        let lines = std::str::from_utf8(&self.lines.out).unwrap_or_default();
        let lines = lines.lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        let began = context.origin_realtime_ns as f64 * 1e-9;
        let drawn = Drawn { began, left_out: self.left_out, lines };
        let text = String::from_utf8_lossy(&text);
        self.page = view::page::waterfall(&self.title, text.trim_start(), &drawn)?;
        self.path.iter().try_for_each(|path| view::output::write(path, self.page.as_bytes()))
    }
}
