// SPDX-License-Identifier: PostgreSQL
//! `tally`: shows where a PostgreSQL server's time goes, and what the measuring costs.
//!
//! Only arguments and dispatch: large verbs are crates of their own, short ones are modules of `verbs`. Without
//! the feature `full`, this is the command of `make demo` (Cargo.toml).

mod cli;
mod exit;
#[cfg(feature = "full")]
mod full;
#[cfg(feature = "full")]
mod generate;
#[cfg(test)]
mod tests;

use std::process::ExitCode;

use clap::Parser;

use cli::{Cli, Verb};
use verbs::{
    blocking, disable, doctor, enable, events, functions, health, level, ls, report, statements,
    status,
};

fn main() -> ExitCode {
    pq::adopt_system();
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
        Verb::Health(args) => health::run(args),
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
