// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally fleet`.

use std::time::Duration;

use clap::{Args, Subcommand};
use fleet_sql::{Granularity, HostFilter, Query, Root, QUERIES};
use report::Edge;
use view::duration::within;

use super::asking::window;
use super::engine::Engine;

/// Arguments of `tally fleet`.
#[derive(Debug, Args)]
#[command(after_help = "\
The recordings are in a directory or bucket, as ROOT/v1/TABLE/cluster=C/host=H/date=D/NAME.parquet.

Examples:
  tally fleet queries
  tally fleet ask load --engine duckdb --root /srv/fleet --since -1h
  tally fleet ask regressions --engine duckdb --root /srv/fleet \\
    --against -2h..-1h
  tally fleet schema --engine clickhouse --root s3://bucket/fleet |
    clickhouse client --multiquery
  tally fleet schema --engine clickhouse --root s3://bucket/fleet \\
    --tables minute | clickhouse client --multiquery
  tally fleet refresh --root s3://bucket/fleet --tables minute --since -2d |
    clickhouse client --multiquery
  tally fleet ask p99 --engine http://clickhouse:8123
  tally fleet top --engine duckdb --root /srv/fleet
  tally fleet doctor --root s3://bucket/fleet --since -15min
  tally fleet sql statements --engine spark --root s3://bucket/fleet")]
pub struct FleetArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// The verbs of `tally fleet`.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the named queries
    Queries {
        /// Print JSON (docs/reference-json.md)
        #[arg(long)]
        json: bool,
    },
    /// Print the SQL that creates the views
    Schema {
        /// Engine: duckdb, clickhouse or spark
        #[arg(long, value_parser = Engine::parse)]
        engine: Engine,
        /// Directory or bucket of the recordings
        #[arg(long, value_parser = root)]
        root: Root,
        /// ClickHouse only: create tables that `tally fleet refresh` fills, with one row per minute or hour, and
        /// views on them
        #[arg(long, value_name = "minute|hour", value_parser = per)]
        tables: Option<Granularity>,
    },
    /// Print the SQL that adds new recordings to the tables of a ClickHouse server
    Refresh {
        /// Directory or bucket of the recordings
        #[arg(long, value_parser = root)]
        root: Root,
        /// Which tables: those with one row per minute, or per hour
        #[arg(long, value_name = "minute|hour", value_parser = per)]
        tables: Granularity,
        /// Only files from this time on: 14:30, 2026-03-01, or -2d (before now) [default: all files]
        #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = Edge::parse)]
        since: Option<Edge>,
        /// Only files up to this time [default: now]
        #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = Edge::parse)]
        until: Option<Edge>,
    },
    /// Print the SQL of a query
    Sql {
        /// Name of the query
        #[arg(value_name = "QUERY", value_parser = query)]
        name: &'static Query,
        /// Engine: duckdb, clickhouse or spark
        #[arg(long, value_parser = Engine::parse)]
        engine: Engine,
        /// Directory or bucket of the recordings; without it, the query uses the views
        #[arg(long, value_parser = root)]
        root: Option<Root>,
        /// Time range and hosts to query
        #[command(flatten)]
        period: Period,
    },
    /// Run a query on an engine and print the result
    Ask(AskArgs),
    /// Diagnose each host from its recording; list problems with the hosts that have them
    Doctor(FleetDoctorArgs),
    /// Show the queries live in a terminal, one pane each
    Top(FleetTopArgs),
}

/// Arguments of `tally fleet top`.
#[derive(Debug, Args)]
#[command(after_help = "\
On a terminal, this is a full-screen view. With --root, it begins with each host's worst problem \
(pane d); a digit selects another pane, Enter on a host restricts the view to that host, h lists all keys. Only the \
visible pane is refreshed. Without a terminal, or with --once, --count or --json, the results are printed: of all \
queries, or of the one in --view.

Examples:
  tally fleet top --engine duckdb --root /srv/fleet
  tally fleet top --engine http://clickhouse:8123 --since -1h --view statements
  tally fleet top --engine duckdb --root /srv/fleet --once --view blocking")]
pub struct FleetTopArgs {
    /// Engine, as in `tally fleet ask`
    #[arg(long, value_parser = Engine::parse)]
    pub engine: Engine,
    /// Directory or bucket of the recordings; without it, the server must have the views
    #[arg(long, value_parser = root)]
    pub root: Option<Root>,
    /// Start of the time range, which ends now: 14:30, 2026-03-01, or -2h [default: -15min]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = Edge::parse)]
    pub since: Option<Edge>,
    /// Only this cluster
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// Only this host
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// How often to run the query
    #[arg(long, short, value_name = "TIME", default_value = "30s", value_parser = pace)]
    pub interval: Duration,
    /// Pane to show first; in text output, the only query to print [default in text output: all]
    #[arg(long, value_name = "QUERY", value_parser = query)]
    pub view: Option<&'static Query>,
    /// Show only rows that contain this text
    #[arg(long, short, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Maximum rows to print
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Print the results once and exit
    #[arg(long)]
    pub once: bool,
    /// Print JSON, one line for each result (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
    /// Exit after N rounds; prints text unless --json is given
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "once", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
}

fn pace(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), Duration::from_secs(86_400))
}

/// Arguments of `tally fleet doctor`.
#[derive(Debug, Args)]
#[command(after_help = "\
Applies the rules of `tally doctor` to the recording of each host. Hosts with the same problem are listed \
together, the worst problem first and what bounds the load last. For a single host, the evidence and what to \
do are printed as well.

Examples:
  tally fleet doctor --root s3://bucket/fleet --since -15min
  tally fleet doctor --root /srv/fleet --cluster shop --host db1
  tally fleet doctor --root /srv/fleet --json | jq '.hosts[].diagnoses[].text'")]
pub struct FleetDoctorArgs {
    /// Directory or bucket of the recordings
    #[arg(long, value_parser = root)]
    pub root: Root,
    /// Time range and hosts to diagnose
    #[command(flatten)]
    pub scope: Scope,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// A time range and a choice of hosts.
#[derive(Debug, Args)]
pub struct Scope {
    /// Start of the time range: 14:30, 2026-03-01, "2026-03-01 14:30", or -2h (before the end) [default: -1h]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = Edge::parse)]
    pub since: Option<Edge>,
    /// End of the time range [default: now]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = Edge::parse)]
    pub until: Option<Edge>,
    /// Only this cluster
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// Only this host
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
}

impl Scope {
    /// Its start and end, seconds since 1970.
    pub fn window(&self) -> (f64, f64) {
        window(self.since, self.until)
    }

    /// The selected cluster and host.
    pub fn only(&self) -> HostFilter {
        HostFilter { cluster: self.cluster.clone(), host: self.host.clone() }
    }
}

/// Arguments of `tally fleet ask`.
#[derive(Debug, Args)]
pub struct AskArgs {
    /// Name of the query (see `tally fleet queries`)
    #[arg(value_name = "QUERY", value_parser = query)]
    pub name: &'static Query,
    /// duckdb, clickhouse, the path of either program or of a Python with chdb, or the URL of a ClickHouse server
    /// (user and password: CLICKHOUSE_USER, CLICKHOUSE_PASSWORD)
    #[arg(long, value_parser = Engine::parse)]
    pub engine: Engine,
    /// Directory or bucket of the recordings; without it, the server must have the views
    #[arg(long, value_parser = root)]
    pub root: Option<Root>,
    /// Time range and hosts to query
    #[command(flatten)]
    pub period: Period,
    /// Print JSON (docs/reference-json.md)
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV
    #[arg(long)]
    pub csv: bool,
}

/// Time range and hosts to query.
#[derive(Debug, Args)]
pub struct Period {
    /// Time range and hosts to query
    #[command(flatten)]
    pub scope: Scope,
    /// For regressions: time range to compare with [default: equally long, just before --since]
    #[arg(long, value_name = "FROM..TO", allow_hyphen_values = true, value_parser = Against::parse)]
    pub against: Option<Against>,
    /// Maximum rows to print
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
}

/// A time range to compare with.
#[derive(Debug, Clone, Copy)]
pub struct Against {
    /// Its start; `None`: as long before its end as the window is long.
    pub from: Option<Edge>,
    /// Its end; `None`: the start of the window.
    pub to: Option<Edge>,
}

impl Against {
    fn parse(text: &str) -> Result<Against, String> {
        let Some((from, to)) = text.split_once("..") else {
            return Err(format!(
                "\"{text}\" is not a time range; write FROM..TO, such as 12:00..13:00 or -2h.."
            ));
        };
        let edge = |text: &str| (!text.is_empty()).then(|| Edge::parse(text)).transpose();
        Ok(Against { from: edge(from)?, to: edge(to)? })
    }
}

/// Looks up a query by name.
fn query(name: &str) -> Result<&'static Query, String> {
    Query::of_name(name).ok_or_else(|| {
        let names: Vec<&str> = QUERIES.iter().map(|query| query.name).collect();
        format!("no query has this name; the queries are {}", names.join(", "))
    })
}

/// Parses the length of a row.
fn per(name: &str) -> Result<Granularity, String> {
    Granularity::of_name(name).ok_or_else(|| "must be minute or hour".into())
}

/// Parses a root. The path of a directory may be relative.
pub fn root(text: &str) -> Result<Root, String> {
    if text.contains("://") {
        return Root::parse(text);
    }
    let path = std::fs::canonicalize(text).map_err(|error| {
        format!("could not open {text}: {error}; specify the directory that contains v1/")
    })?;
    let root = Root::parse(path.to_str().ok_or("the name of the directory is not valid UTF-8")?)?;
    match std::path::Path::new(&root.of_table("frames")).is_dir() {
        true => Ok(root),
        false => Err(format!(
            "{text} has no {}; specify the directory that contains v1/",
            root.of_table("frames")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_end_of_a_time_to_compare_with_may_be_absent() {
        let ends = |text| {
            Against::parse(text).map(|against| [against.from.is_some(), against.to.is_some()]).ok()
        };
        assert_eq!(
            [ends("-2h..-1h"), ends("-2h.."), ends("..-1h")],
            [Some([true; 2]), Some([true, false]), Some([false, true])]
        );
        assert_eq!([ends("-2h"), ends("x.."), ends("")], [None; 3]);
    }

    #[test]
    fn a_directory_without_recordings_is_no_root() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().to_str().unwrap();
        assert!(root(text).unwrap_err().contains("specify the directory that contains v1/"));
        std::fs::create_dir_all(folder.path().join("v1/frames")).unwrap();
        assert!(root(text).unwrap().directory().is_some());
        assert!(root("s3://bucket/it").unwrap().directory().is_none());
    }
}
