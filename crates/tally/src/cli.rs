// SPDX-License-Identifier: PostgreSQL
//! The command line: one definition feeds the parser, `--help`, the man pages and the shell
//! completions.

use std::io::IsTerminal;

use clap::{ColorChoice, Parser, Subcommand};

use crate::{
    clock, cost, demo, diff, disable, enable, events, functions, generate, level, ls, record,
    report, serve, statements, status, study, top,
};

/// Where the time of a PostgreSQL server goes, exactly, on a stock server, live.
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
    /// Whether to colour what goes to standard output. `NO_COLOR` is honoured.
    pub fn use_color(&self) -> bool {
        match self.color {
            ColorChoice::Always => true,
            ColorChoice::Never => false,
            ColorChoice::Auto => {
                std::env::var_os("NO_COLOR").is_none_or(|value| value.is_empty())
                    && std::io::stdout().is_terminal()
            }
        }
    }
}

const TARGET_HELP: &str = "\
TARGET is a segment's path (/dev/shm/pg_tally.*), a server's data directory, or a connection
string or URI. It may be left out when exactly one server with pg_tally runs on this machine.

Exit status: 0 done, 1 failed, 2 wrong usage.

Examples:
  tally demo                      a scratch server, a load and the live view
  tally enable --mode session     put pg_tally to work on the server, without a restart
  tally top                       watch it
  tally statements                the statements that take most time
  tally events --follow           what is notable, as it happens
  tally level locks --for 60s     look at every lightweight lock, for a minute
  tally record -o run1 -- pgbench -T 60   keep all of it while a command runs
  tally report DIR -o report.html a recording as one page
  tally serve                     the same live for the browser, and metrics for Prometheus
  tally diff A B                  what differs between two recordings
  tally cost                      what the watching costs
  tally clock                     whether the clock behind it all can be relied on
  tally study run NAME --quick    an experiment, repeated here in minutes";

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// Show it all on a scratch server under pgbench; needs nothing but the build
    Demo(demo::DemoArgs),
    /// Put the extension to work on a server
    Enable(enable::EnableArgs),
    /// Take it out again and leave nothing behind
    Disable(disable::DisableArgs),
    /// What is covered and what not, and whether the instrument is sound
    Status(status::StatusArgs),
    /// List the segments on this machine
    Ls(ls::LsArgs),
    /// Watch live where the time goes
    Top(top::TopArgs),
    /// Which statements the time goes to, how it is distributed, and what each spends it on
    Statements(statements::StatementsArgs),
    /// What was notable: slow operations, who kept whom waiting, checkpoints, warnings
    Events(events::EventsArgs),
    /// Keep all of it on disk, as Parquet files; for good, for a while, or while a command runs
    Record(record::RecordArgs),
    /// What a recording holds, as one page for the browser, as text or as JSON
    Report(report::ReportArgs),
    /// Serve the report's charts live to browsers, and metrics to Prometheus
    Serve(serve::ServeArgs),
    /// What differs between two recordings, and what of that is more than noise
    Diff(diff::DiffArgs),
    /// Measure what a level costs, or the statements, by toggling it on live backends
    Cost(cost::CostArgs),
    /// Test the clocks that times are taken with: cost, resolution, steps back, skew, drift, gaps
    Clock(clock::ClockArgs),
    /// Ask a question of a server properly: arms, a workload, an order by lot, and what chance can do
    Study(study::StudyArgs),
    /// Set how much is looked at, for good, for a while or now and then; or say it
    Level(level::LevelArgs),
    /// Time functions of the server: what they took, what can be timed, and which are
    Functions(functions::FunctionsArgs),
    /// Print the man page, or write all of them into a folder
    #[command(hide = true)]
    Man(generate::ManArgs),
    /// Print a shell's completions
    #[command(hide = true)]
    Completions(generate::CompletionsArgs),
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;
    use view::Sort;

    #[test]
    fn the_definition_holds_together() {
        Cli::command().debug_assert();
    }

    #[test]
    fn rows_are_ordered_by_figures_and_by_activities() {
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
        assert_eq!(sort("nonsense"), None);
    }
}
