// SPDX-License-Identifier: PostgreSQL
//! Arguments that several verbs take.

use std::borrow::Borrow;
use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, ValueEnum};
use error::Error;
use serde::Serialize;
use view::document::Document;
use view::duration::within;
use view::escape::{self, Lines};
use view::{output, page, text};

/// How much is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Level {
    /// Nothing; a probe is one load and one branch
    Off,
    /// Ledger: phases, waits, commands, statements, files
    Waits,
    /// Also lightweight and heavyweight locks: held, acquired, waited for
    Locks,
}

impl Level {
    /// The value of pg_tally.level.
    pub fn name(self) -> &'static str {
        match self {
            Self::Off => "off",
            Self::Waits => "waits",
            Self::Locks => "locks",
        }
    }
}

impl From<Level> for segment::Level {
    fn from(level: Level) -> Self {
        match level {
            Level::Off => Self::Off,
            Level::Waits => Self::Waits,
            Level::Locks => Self::Locks,
        }
    }
}

/// A workload for pgbench.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workload {
    /// pgbench's select-only
    Select,
    /// pgbench's TPC-B-like transaction
    TpcB,
    /// Assigns transaction ids only: one contended lock
    Txid,
    /// 5,000 distinct statements at random, which all fit into the table
    Distinct,
    /// 10,000, of which 5,000 fit
    Evicting,
    /// Select-only with almost no shared buffers: pages come from the kernel's cache
    Misses,
    /// The user's pgbench script
    File(PathBuf),
}

impl Workload {
    /// As written on the command line.
    pub fn name(&self) -> String {
        match self {
            Self::Select => "select".into(),
            Self::TpcB => "tpcb".into(),
            Self::Txid => "txid".into(),
            Self::Distinct => "distinct".into(),
            Self::Evicting => "evicting".into(),
            Self::Misses => "misses".into(),
            Self::File(path) => path.display().to_string(),
        }
    }

    /// pg_tally.max_statements, if the workload requires a value.
    pub fn max_statements(&self) -> Option<u32> {
        match self {
            Self::Distinct => Some(6_000),
            Self::Evicting => Some(5_000),
            _ => None,
        }
    }
}

impl std::str::FromStr for Workload {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "select" => Ok(Self::Select),
            "tpcb" => Ok(Self::TpcB),
            "txid" => Ok(Self::Txid),
            "distinct" => Ok(Self::Distinct),
            "evicting" => Ok(Self::Evicting),
            "misses" => Ok(Self::Misses),
            file if std::path::Path::new(file).is_file() => Ok(Self::File(file.into())),
            _ => Err("none of select, tpcb, txid, distinct, evicting, misses, nor a readable file"
                .into()),
        }
    }
}

impl From<&Workload> for scratch::Load {
    fn from(workload: &Workload) -> Self {
        match workload {
            Workload::Select | Workload::Misses => Self::Select,
            Workload::TpcB => Self::TpcB,
            Workload::Txid => Self::Script("select txid_current();\n".into()),
            Workload::Distinct => Self::Distinct { hundreds: 50 },
            Workload::Evicting => Self::Distinct { hundreds: 100 },
            Workload::File(path) => Self::File(path.clone()),
        }
    }
}

/// Parses the length of an interval: 100 ms to an hour.
pub fn interval(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_millis(100), Duration::from_secs(3600))
}

/// Parses a number above 0 and up to `max`.
pub fn positive(text: &str, max: f64) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(number) if number > 0.0 && number <= max => Ok(number),
        _ => Err(format!("must be a number above 0 and up to {max}")),
    }
}

/// Where a document goes, and in which form.
#[derive(Debug, Args)]
pub struct DocumentOutput {
    /// Write to this file: an HTML page unless --text or --json is given
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
    /// Whether a page is written.
    pub fn is_page(&self) -> bool {
        self.output.is_some() && !self.text && !self.json
    }

    /// Writes `data` as JSON, or the document that `document` makes of it.
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
            let style = text::Style { width: text::WIDTH, color: false, ..style };
            text::write(document().borrow(), &style, &mut Lines::new(&mut content))?;
        } else {
            content = page::page(document().borrow())?.into_bytes();
        }
        output::write(path, &content)
    }
}
