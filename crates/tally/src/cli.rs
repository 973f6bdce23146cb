// SPDX-License-Identifier: PostgreSQL
//! The command line: one definition feeds the parser, `--help`, the man pages and the shell
//! completions.

use std::io::IsTerminal;

use clap::{ColorChoice, Parser, Subcommand};
use error::Error;

use verbs::{
    blocking, disable, doctor, enable, events, functions, level, ls, report, statements, status,
};

/// Show where a PostgreSQL server's time goes, exactly, live, on a stock server.
#[derive(Debug, Parser)]
#[command(name = "tally", version, max_term_width = 100, after_help = TARGET_HELP)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
    /// When to use colour.
    #[arg(long, global = true, value_name = "WHEN", default_value = "auto")]
    pub color: ColorChoice,
}

impl Cli {
    /// Whether to colour standard output. `NO_COLOR` is honoured.
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
This is the command that `make demo` builds. `make` builds the one with all verbs: object storage, many servers, \
pages in the browser, metrics, traces, profiles, studies, comparisons.";

#[cfg(feature = "full")]
const TARGET_HELP: &str = "\
TARGET is a segment's path (/dev/shm/pg_tally.*), a server's data directory, or a connection \
string or URI, with the flags -h, -p, -U, -d, the environment, service file and passfile of psql. You may \
omit it if exactly one server with pg_tally runs on this machine. A server elsewhere is read \
through the connection; its database needs the extension.

Exit status: 0 success, 1 failure, 2 usage error.

Examples:
  tally demo                              a scratch server, a load and the live view
  tally enable --mode session             enable pg_tally on a server, without a restart
  tally top                               the live view of that server
  tally statements                        the statements that take most time
  tally blocking                          who waits for whom, and what the culprit did
  tally events --follow                   notable events, as they happen
  tally level locks --for 60s             measure every lock, for a minute
  tally record -o run1 -- pgbench -T 60   record while a command runs
  tally report DIR -o report.html         a recording as one page
  tally profile -o flames.html            where the CPU time goes, and what sessions wait for
  tally serve                             a live page, and metrics for Prometheus
  tally diff A B                          what differs between two recordings
  tally fleet queries                     what can be asked about many servers at once
  tally cost                              what measuring costs
  tally trace PID                         everything that a session does, in order
  tally clock                             whether the machine's clock is reliable
  tally study run NAME --quick            run a built-in experiment in minutes
  tally storage run NAME --quick          time a copy or a backup on busy storage";

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show the live view on a scratch server loaded by pgbench
    Demo(demo::DemoArgs),
    /// Enable the extension on a server
    Enable(enable::EnableArgs),
    /// Disable the extension and leave nothing behind
    Disable(disable::DisableArgs),
    /// Show what is measured, what is not, and whether anything is missing
    Status(status::StatusArgs),
    /// List the segments on this machine
    Ls(ls::LsArgs),
    /// Show live where the time goes
    Top(top::TopArgs),
    /// Say what is wrong with a server: who or what it is, and what to do
    Doctor(doctor::DoctorArgs),
    /// Show who blocks whom: the session that others wait for, and what it did last
    Blocking(blocking::BlockingArgs),
    /// List the statements that take most time, and what each spends it on
    Statements(statements::StatementsArgs),
    /// List notable events: slow operations, who blocked whom, checkpoints, warnings
    Events(events::EventsArgs),
    /// Record everything to Parquet files: permanently, for a time, or while a command runs
    Record(record::RecordArgs),
    /// Report what a recording contains, as an HTML page, text or JSON
    Report(report::ReportArgs),
    /// Show or set how much is measured: permanently, for a time, or periodically
    Level(level::LevelArgs),
    /// Time functions of the server; list those that can be timed
    Functions(functions::FunctionsArgs),
    /// Verbs that the command of `make demo` lacks
    #[cfg(feature = "full")]
    #[command(flatten)]
    Full(crate::full::FullVerb),
}

impl Verb {
    /// TARGET as the connection flags complete it.
    pub fn complete_target(&mut self) -> Result<(), Error> {
        let (flags, target) = match self {
            Verb::Enable(args) => (&args.connection, &mut args.target),
            Verb::Disable(args) => (&args.connection, &mut args.target),
            Verb::Status(args) => (&args.connection, &mut args.target),
            // Of a recording, --host is not the server's.
            Verb::Top(args) if args.replay.is_some() => return Ok(()),
            Verb::Top(args) => (&args.connection, &mut args.target),
            Verb::Doctor(args) => (&args.connection, &mut args.target),
            Verb::Blocking(args) => (&args.connection, &mut args.target),
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
