// SPDX-License-Identifier: PostgreSQL
//! `tally health`: prints what the server's catalogs say about it and no wait shows.

use std::io::Write;

use clap::Args;
use command::{ConnectionFlags, SamplingFlags};
use error::Error;
use live::vacuum;
use serde::Serialize;
use view::table::{wrap, Table};
use view::vacuum::Scope;

/// Arguments of `tally health`.
#[derive(Debug, Args)]
#[command(after_help = "\
Queries the catalogs once, in the eight busiest databases; covers tables and indexes of 1 MB or more. Most findings need no \
action; `tally doctor` names the problems.

Examples:
  tally health
  tally health -h db1 -U monitor
  tally health --json | jq '.health[] | select(.id == \"slots\") | .rows'")]
pub struct HealthArgs {
    /// Segment, data directory or connection string
    pub target: Option<String>,
    /// Connection options
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// How to sample a server
    #[command(flatten)]
    pub sampling: SamplingFlags,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// The output of `--json`.
#[derive(Debug, Serialize)]
struct HealthJson<'h> {
    server: &'h str,
    host: &'h str,
    /// The tables that have rows.
    health: &'h [Table],
}

/// Width of notes if the output is not a terminal.
const WIDTH: usize = 100;

/// Asks the server and prints the answer.
pub fn run(args: &HealthArgs) -> Result<(), Error> {
    let segment = args.sampling.source(args.target.as_deref())?.open()?;
    let answer = vacuum::read(&segment, Scope::Objects).map_err(|error| {
        Error::Failed(format!("could not ask the server for its health: {error}"))
    })?;
    let tables = view::health::tables(&answer.since(None));
    if args.json {
        let header = segment.header();
        let server = if header.server.is_empty() { &header.producer } else { &header.server };
        return view::output::json(&HealthJson { server, host: &header.host, health: &tables });
    }
    let width = command::terminal_width().map_or(WIDTH, |width| width.min(WIDTH));
    let mut out = view::escape::stdout();
    for (n, table) in tables.iter().enumerate() {
        if n > 0 {
            writeln!(out)?;
        }
        writeln!(out, "{}", table.title)?;
        out.write_all(table.for_stdout().as_bytes())?;
        for line in table.note.iter().flat_map(|note| wrap(note, width)) {
            writeln!(out, "{line}")?;
        }
    }
    Ok(out.flush()?)
}
