// SPDX-License-Identifier: PostgreSQL
//! `tally`: shows where a PostgreSQL server's time goes, and what measuring costs.
//!
//! One module per verb. What verbs share is in crates: `live` (finding and reading a server), `view`
//! (tables, units, output), `report`, `study`, `storage`, `error`.

mod arguments;
mod blocking;
mod calls;
mod cli;
mod client;
mod clock;
mod connection;
mod cost;
mod dashboards;
mod demo;
mod diff;
mod disable;
mod doctor;
mod enable;
mod events;
mod exit;
mod fleet;
mod functions;
mod generate;
mod level;
mod ls;
mod methods;
mod otlp;
mod profile;
mod record;
mod report;
mod serve;
mod ship;
mod statements;
mod status;
mod stop;
mod storage;
mod study;
mod terminal;
mod top;
mod trace;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

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
        Verb::Ship(args) => ship::run(args),
        Verb::Upkeep(args) => ship::run_upkeep(args),
        Verb::Serve(args) => serve::run(args),
        Verb::Dashboards(args) => dashboards::run(args),
        Verb::Diff(args) => diff::run(args, color),
        Verb::Fleet(args) => fleet::run(args, color),
        Verb::Cost(args) => cost::run(args),
        Verb::Clock(args) => clock::run(args),
        Verb::Storage(args) => storage::run(args),
        Verb::Study(args) => study::run(args),
        Verb::Level(args) => level::run(args),
        Verb::Functions(args) => functions::run(args),
        Verb::Profile(args) => profile::run(args, color),
        Verb::Methods(args) => methods::run(args),
        Verb::Calls(args) => calls::run(args),
        Verb::Trace(args) => trace::run(args, color),
        Verb::Man(args) => generate::man(args, Cli::command()),
        Verb::Completions(args) => generate::completions(args, Cli::command()),
    })
}
