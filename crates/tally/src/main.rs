// SPDX-License-Identifier: PostgreSQL
//! `tally`: shows where a PostgreSQL server's time goes, and what measuring costs.
//!
//! One module per verb. What verbs share is in crates: `live` (finding and reading a server), `view`
//! (tables, units, output), `report`, `study`, `storage`, `error`. Without the feature `full` it is the command of
//! `make demo` (Cargo.toml).

// Some functions have callers in other verbs alone.
#![cfg_attr(not(feature = "full"), allow(dead_code, unused_imports))]

mod blocking;
mod cli;
#[cfg(feature = "full")]
mod clock;
#[cfg(feature = "full")]
mod cost;
mod demo;
mod disable;
mod doctor;
mod enable;
mod events;
mod exit;
#[cfg(feature = "full")]
mod full;
mod functions;
#[cfg(feature = "full")]
mod generate;
mod level;
mod ls;
#[cfg(feature = "full")]
mod profile;
mod report;
mod ship;
mod statements;
mod status;
#[cfg(feature = "full")]
mod storage;
#[cfg(feature = "full")]
mod study;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Verb};

fn main() -> ExitCode {
    let mut cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return exit::usage(&error),
    };
    if let Err(error) = cli.verb.complete_target() {
        return exit::code(Err(error));
    }
    let color = cli.use_color();
    exit::code(match &cli.verb {
        Verb::Demo(args) => demo::run(args, color),
        Verb::Enable(args) => enable::run(args),
        Verb::Disable(args) => disable::run(args),
        Verb::Status(args) => status::run(args, color),
        Verb::Ls(args) => ls::run(args),
        Verb::Top(args) => top::run(args, color),
        Verb::Doctor(args) => doctor::run(args, color),
        Verb::Blocking(args) => blocking::run(args),
        Verb::Statements(args) => statements::run(args, color),
        Verb::Events(args) => events::run(args, color),
        Verb::Record(args) => record::run(args),
        Verb::Report(args) => report::run(args, color),
        Verb::Level(args) => level::run(args),
        Verb::Functions(args) => functions::run(args),
        #[cfg(feature = "full")]
        Verb::Full(verb) => verb.run(color, <Cli as clap::CommandFactory>::command),
    })
}
