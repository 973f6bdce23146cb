// SPDX-License-Identifier: PostgreSQL
//! Studies of servers: a study is a file; it runs in randomised order with an A/A control and ends in an
//! answer with its statistics. docs/studies.md is the manual.
//!
//! How a run works: `file` parses the study, and `plan` expands it. `order` draws the blocks, `run`
//! executes them and `journal` stores each cell. In the restart design `measure` measures a cell on the
//! arm's own `server`, under a `load`, through `window`s. In the toggle design `toggle` switches arms on
//! one server. `answer` computes figures from the cells; `tables` and `charts` show them; `page` and
//! `text` write them.

mod answer;
mod cell;
mod charts;
mod clock_source;
pub mod cost;
mod expression;
mod file;
mod fit_table;
mod gate;
mod instrument;
mod kind;
mod latency;
mod listing;
mod live;
mod load;
mod material;
mod measure;
mod page;
mod plan;
mod processes;
mod run;
mod selector;
mod server;
mod storage;
mod tables;
mod text;
mod toggle;
mod usl;
mod views;
mod window;
mod worst;

pub use file::Study;

use crate::engine::verb::ExperimentVerb;
use clap::Args;
use error::Error;
use kind::ServerStudies;

/// Arguments of `tally study`.
#[derive(Debug, Args)]
#[command(after_help = "\
A study is a file, study.toml (docs/studies.md), or the name of a built-in study (`tally study \
list`). Studies run on scratch servers.

Examples:
  tally study list
  tally study show commit-delay
  tally study run commit-delay --quick
  tally study run ./study.toml -o results
  tally study report results")]
pub struct StudyArgs {
    /// Action
    #[command(subcommand)]
    pub what: ExperimentVerb<ServerStudies>,
}

/// Lists, shows, runs or reports studies.
pub fn run(args: &StudyArgs) -> Result<(), Error> {
    args.what.run()
}
