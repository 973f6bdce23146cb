// SPDX-License-Identifier: PostgreSQL
//! A trace as a page: each message opens into a waterfall, drawn from the JSON lines; the totals follow as text.

use std::path::PathBuf;

use error::Error;
use segment::Traced;
use view::document::Trace;

use super::json::Json;
use super::story::{Story, Unit};
use super::summary::TraceSummary;
use super::{Context, Sink};

/// The sink, which has the page when the trace is over.
pub struct TracePage {
    lines: Json<Vec<u8>>,
    trace: Trace,
    summary: TraceSummary,
    title: String,
    page: String,
    path: Option<PathBuf>,
}

impl TracePage {
    /// A sink for a page with this title, written to `path`.
    pub fn new(title: String, path: Option<PathBuf>) -> TracePage {
        TracePage {
            lines: Json::new(Vec::new()),
            trace: Trace::default(),
            summary: TraceSummary::default(),
            title,
            page: String::new(),
            path,
        }
    }

    /// Keeps the written lines.
    fn take(&mut self) -> Result<(), Error> {
        let lines = std::mem::take(&mut self.lines.out);
        let lines = std::str::from_utf8(&lines).unwrap_or_default();
        Ok(lines.lines().try_for_each(|line| self.trace.push(line))?)
    }

    /// The page, once the trace is over.
    pub fn into_page(self) -> String {
        self.page
    }
}

impl Sink for TracePage {
    fn session(&mut self, context: &mut Context, who: &Traced) -> Result<(), Error> {
        self.lines.session(context, who)?;
        self.take()
    }

    fn unit(&mut self, context: &mut Context, who: &Traced, unit: &Unit) -> Result<(), Error> {
        self.summary.add(context, who.pid, unit);
        if self.trace.is_full() {
            self.trace.left_out += unit.items.len() as u64;
            return Ok(());
        }
        self.lines.unit(context, who, unit)?;
        self.take()
    }

    fn flush(&mut self) -> Result<(), Error> {
        Ok(())
    }

    fn finish(&mut self, context: &mut Context, stories: &[Story]) -> Result<(), Error> {
        self.lines.finish(context, stories)?;
        self.take()?;
        let mut text = Vec::new();
        self.summary.end();
        self.summary.print(&mut text, context, stories)?;
        let text = String::from_utf8_lossy(&text);
        self.page = view::page::waterfall(&self.title, text.trim_start(), &self.trace)?;
        self.path.iter().try_for_each(|path| view::output::write(path, self.page.as_bytes()))
    }
}
