// SPDX-License-Identifier: PostgreSQL
//! The command line: one definition feeds the parser, `--help`, the man pages and the shell
//! completions.

use std::io::IsTerminal;

use clap::{ColorChoice, Parser, Subcommand};
use error::Error;

use verbs::{
    blocking, disable, doctor, enable, events, functions, health, level, ls, report, statements,
    status,
};

/// Show where a PostgreSQL server's time goes, exactly and live, on an unmodified server
#[derive(Debug, Parser)]
#[command(name = "tally", version, max_term_width = 100, after_help = TARGET_HELP)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
    /// When to use colour
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
}

impl Cli {
    /// Whether to colour standard output. Respects `NO_COLOR`.
    pub fn use_color(&self) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                    && view::escape::process_stdout().is_terminal()
            }
        }
    }
}

#[cfg(not(feature = "full"))]
const TARGET_HELP: &str = "\
This is the reduced command that `make demo` builds. `make` builds the full command, which adds object storage, fleets, \
web pages, metrics, traces, profiles, studies and comparisons.";

#[cfg(feature = "full")]
const TARGET_HELP: &str = "\
TARGET is the path of a segment (/dev/shm/pg_tally.*), a server's data directory, or a connection \
string or URI. The flags -h, -p, -U and -d, the PG* environment variables, service files and password \
files work as in psql. Without TARGET, tally takes the server that psql would connect to, or else the only one on this machine. \
A server on another machine is read through the connection: exactly, if the database has the extension; \
otherwise top, doctor, blocking, health, statements, record, serve and mcp sample it (docs/any-server.md).

Exit status: 0 success, 1 failure, 2 usage error.

Examples:
  tally demo                              try the live view on a scratch server
  tally enable --mode session             enable pg_tally without a restart
  tally top                               show the server's activity live
  tally statements                        list the statements with the most time
  tally blocking                          show who waits for whom, and why
  tally health                            show replication, archiving, bloat
  tally events --follow                   print notable events as they happen
  tally level locks --for 60s             measure every lock for a minute
  tally record -o run1 -- pgbench -T 60   record while a command runs
  tally report DIR -o report.html         write the report as one HTML page
  tally profile -o flames.html            show where the CPU time goes
  tally serve                             serve a live page and metrics
  tally diff A B                          compare two recordings
  tally fleet queries                     list the queries about many servers
  tally cost                              measure the overhead of pgtally
  tally trace PID                         print what a session does, in order
  tally clock                             test the machine's clocks
  tally study run NAME --quick            run a built-in experiment in minutes
  tally storage run NAME --quick          time a copy on busy storage";

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Try the live view on a scratch server with a pgbench load
    Demo(demo::DemoArgs),
    /// Enable pg_tally on a server
    Enable(enable::EnableArgs),
    /// Disable pg_tally and remove everything it left on the server
    Disable(disable::DisableArgs),
    /// Show what is measured, what is not, and whether any data is missing
    Status(status::StatusArgs),
    /// List the segments on this machine
    Ls(ls::LsArgs),
    /// Show live where the server's time goes
    Top(top::TopArgs),
    /// Diagnose the server: problems, their causes, what to do
    Doctor(doctor::DoctorArgs),
    /// Show who blocks whom: the blocking session, what it did last, and who waits for it
    Blocking(blocking::BlockingArgs),
    /// Show the server's health from its catalogs: replication, archiving, wraparound, sizes, bloat, indexes
    Health(health::HealthArgs),
    /// List the statements that take the most time, and what they spend it on
    Statements(statements::StatementsArgs),
    /// List notable events: slow operations, blocked sessions, checkpoints, warnings
    Events(events::EventsArgs),
    /// Record to Parquet files: continuously, for a limited time, or while a command runs
    Record(record::RecordArgs),
    /// Report on a recording, as an HTML page, text or JSON
    Report(report::ReportArgs),
    /// Show or set the measuring level: until further notice, for a limited time, or periodically
    Level(level::LevelArgs),
    /// Time functions of the server, or list those that can be timed
    Functions(functions::FunctionsArgs),
    /// Verbs that the command of `make demo` lacks
    #[cfg(feature = "full")]
    #[command(flatten)]
    Full(crate::full::FullVerb),
}

impl Verb {
    /// Completes TARGET by the connection flags.
    pub fn complete_target(&mut self) -> Result<(), Error> {
        let (flags, target) = match self {
            Verb::Enable(args) => (&args.connection, &mut args.target),
            Verb::Disable(args) => (&args.connection, &mut args.target),
            Verb::Status(args) => (&args.connection, &mut args.target),
            // With a recording, --host names one of its machines, not a server.
            Verb::Top(args) if args.replay.is_some() => return Ok(()),
            Verb::Top(args) => (&args.connection, &mut args.target),
            Verb::Doctor(args) => (&args.connection, &mut args.target),
            Verb::Blocking(args) => (&args.connection, &mut args.target),
            Verb::Health(args) => (&args.connection, &mut args.target),
            Verb::Statements(args) => (&args.connection, &mut args.target),
            Verb::Events(args) => (&args.connection, &mut args.target),
            Verb::Record(args) => (&args.connection, &mut args.target),
            Verb::Level(args) => args.connection_and_target(),
            Verb::Functions(args) => (&args.connection, &mut args.target),
            #[cfg(feature = "full")]
            Verb::Full(verb) => match verb.connection_and_target() {
                Some(both) => both,
                None => return Ok(()),
            },
            Verb::Demo(_) | Verb::Ls(_) | Verb::Report(_) => return Ok(()),
        };
        flags.complete(target)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use view::Sort;

    #[test]
    fn the_command_line_definition_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn how_long_and_of_when_have_the_same_names_everywhere() {
        fn check(command: &clap::Command) {
            let shown = command.get_arguments().filter(|argument| !argument.is_hide_set());
            for name in shown.filter_map(clap::Arg::get_long) {
                let instead = match name {
                    "seconds" | "minutes" | "duration" | "time" => "for",
                    "from" | "start" => "since",
                    "to" | "end" => "until",
                    _ => continue,
                };
                panic!("{}: --{name} is called --{instead}", command.get_name());
            }
            command.get_subcommands().for_each(check);
        }
        check(&Cli::command());
    }

    #[test]
    fn statements_can_be_sorted_by_figures_and_activities() {
        let sort = |text: &str| {
            let cli = Cli::try_parse_from(["tally", "statements", "--sort", text]);
            cli.ok().map(|cli| match cli.verb {
                Verb::Statements(args) => args.sort,
                other => panic!("{other:?}"),
            })
        };
        assert_eq!(sort("p99"), Some(Sort::P99));
        assert_eq!(sort("calls"), Some(Sort::Count));
        assert_eq!(sort("count"), Some(Sort::Count));
        assert_eq!(sort("IO:WALSync"), Some(Sort::Activity("io:walsync".into())));
        assert_eq!(sort("IO:WalSync"), sort("IO:WALSync"), "as 17 and 15 name it");
        assert_eq!([sort("nonsense"), sort("IO:Nonsense")], [None, None]);
    }
}
