// SPDX-License-Identifier: PostgreSQL
//! Verbs that the command of `make demo` lacks: they need most of the libraries, and most of the compile time.

use clap::{Command, Subcommand};
use error::Error;

use client::{calls, methods};
use command::ConnectionFlags;
use serve::dashboards;

use ::profile::verb as profile;
use verbs::{clock, ship};

use lab::{cost, storage, study};

use crate::generate;

/// The verbs.
#[derive(Debug, Subcommand)]
pub enum FullVerb {
    /// Send a recording to object storage
    Ship(ship::ShipArgs),
    /// Apply retention and remove superseded files in object storage
    Upkeep(ship::UpkeepArgs),
    /// Serve a live report to browsers and metrics to Prometheus
    Serve(serve::ServeArgs),
    /// Write Grafana dashboards and Prometheus alert rules for the metrics of `tally serve`
    Dashboards(dashboards::DashboardsArgs),
    /// Serve the read-only verbs to an assistant over the Model Context Protocol
    Mcp(mcp::McpArgs),
    /// Compare two recordings and separate changes from noise
    Diff(diff::DiffArgs),
    /// Query the recordings of many servers: load, statements, regressions, outliers
    Fleet(fleet::FleetArgs),
    /// Measure the overhead of a level (or of statement statistics) by toggling it on live backends
    Cost(cost::CostArgs),
    /// Test the machine's clocks: cost, resolution, backward steps, skew, drift, gaps
    Clock(clock::ClockArgs),
    /// Run a controlled experiment: arms, a workload, randomised order, an A/A control
    Study(study::StudyArgs),
    /// Time commands, such as a backup, while storage is under a steady load
    Storage(storage::StorageArgs),
    /// Sample stacks and waits: CPU time by phase, activity, statement and function
    Profile(profile::ProfileArgs),
    /// List the methods of a Java application that take the most time: elapsed and CPU, inclusive and exclusive
    Methods(methods::MethodsArgs),
    /// List the statements of a Java application: time to execute, fetch and decode, round trips, rows
    Calls(calls::CallsArgs),
    /// Trace a session: print each message, statement, wait and commit, in order
    Trace(trace::TraceArgs),
    /// Print the man page, or write all man pages into a directory
    #[command(hide = true)]
    Man(generate::ManArgs),
    /// Print completions for a shell
    #[command(hide = true)]
    Completions(generate::CompletionsArgs),
}

impl FullVerb {
    /// Runs the verb; `command` returns the definition of the command line.
    pub fn run(&self, color: bool, command: fn() -> Command) -> Result<(), Error> {
        match self {
            Self::Ship(args) => ship::run(args),
            Self::Upkeep(args) => ship::run_upkeep(args),
            Self::Serve(args) => serve::run(args),
            Self::Dashboards(args) => dashboards::run(args),
            Self::Mcp(args) => mcp::run(args),
            Self::Diff(args) => diff::run(args, color),
            Self::Fleet(args) => fleet::run(args, color),
            Self::Cost(args) => cost::run(args),
            Self::Clock(args) => clock::run(args),
            Self::Storage(args) => storage::run(args),
            Self::Study(args) => study::run(args),
            Self::Profile(args) => profile::run(args, color),
            Self::Methods(args) => methods::run(args),
            Self::Calls(args) => calls::run(args),
            Self::Trace(args) => trace::run(args, color),
            Self::Man(args) => generate::man(args, command()),
            Self::Completions(args) => generate::completions(args, command()),
        }
    }

    /// The connection flags and the TARGET that they complete.
    pub fn connection_and_target(&mut self) -> Option<(&ConnectionFlags, &mut Option<String>)> {
        match self {
            // With --fleet, --host names one of the hosts, not a server.
            Self::Serve(args) if args.fleet.fleet => None,
            Self::Serve(args) => Some((&args.connection, &mut args.target)),
            Self::Mcp(args) => Some((&args.connection, &mut args.target)),
            Self::Profile(args) => Some((&args.connection, &mut args.target)),
            Self::Cost(args) => Some((&args.connection, &mut args.target)),
            Self::Trace(args) => Some(args.connection_and_target()),
            Self::Ship(_)
            | Self::Upkeep(_)
            | Self::Diff(_)
            | Self::Fleet(_)
            | Self::Clock(_)
            | Self::Study(_)
            | Self::Storage(_)
            | Self::Methods(_)
            | Self::Calls(_)
            | Self::Dashboards(_)
            | Self::Man(_)
            | Self::Completions(_) => None,
        }
    }
}
