// SPDX-License-Identifier: PostgreSQL
//! Arguments of `tally fleet`.

use std::time::Duration;

use clap::{Args, Subcommand};
use fleet_sql::{Only, Per, Query, Root, QUERIES};
use report::Edge;
use view::duration::within;

use super::asking::window;
use super::engine::Engine;

/// Arguments of `tally fleet`.
#[derive(Debug, Args)]
#[command(after_help = "\
The recordings lie in a directory or bucket, as ROOT/v1/TABLE/cluster=C/host=H/date=D/NAME.parquet.

Examples:
  tally fleet queries
  tally fleet ask load --engine duckdb --root /srv/fleet --since -1h
  tally fleet ask regressions --engine duckdb --root s3://bucket/fleet --since 14:00 --against 12:00..13:00
  tally fleet schema --engine clickhouse --root s3://bucket/fleet | clickhouse client --multiquery
  tally fleet schema --engine clickhouse --root s3://bucket/fleet --tables minute | clickhouse client --multiquery
  tally fleet refresh --root s3://bucket/fleet --tables minute --since -2d | clickhouse client --multiquery
  tally fleet ask p99 --engine http://clickhouse:8123
  tally fleet top --engine duckdb --root /srv/fleet
  tally fleet doctor --root s3://bucket/fleet --since -15min
  tally fleet sql statements --engine spark --root s3://bucket/fleet")]
pub struct FleetArgs {
    /// What to do.
    #[command(subcommand)]
    pub verb: Verb,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Verb {
    /// List the named queries
    Queries {
        /// Print JSON (docs/reference-json.md)
        #[arg(long)]
        json: bool,
    },
    /// Print the statements that create the views
    Schema {
        /// The engine: duckdb, clickhouse or spark
        #[arg(long, value_parser = Engine::parse)]
        engine: Engine,
        /// The directory or bucket of the recordings
        #[arg(long, value_parser = root)]
        root: Root,
        /// For ClickHouse: create tables that `tally fleet refresh` fills, with a row a minute or hour, and views over them
        #[arg(long, value_name = "minute|hour", value_parser = per)]
        tables: Option<Per>,
    },
    /// Print the statements that add new recordings to the tables of a ClickHouse server
    Refresh {
        /// The directory or bucket of the recordings
        #[arg(long, value_parser = root)]
        root: Root,
        /// Which tables: those with a row a minute, or an hour
        #[arg(long, value_name = "minute|hour", value_parser = per)]
        tables: Per,
        /// Only files from this time on: 14:30, 2026-03-01, or -2d (before now) [default: all]
        #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = Edge::parse)]
        since: Option<Edge>,
        /// Only files until this time [default: now]
        #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = Edge::parse)]
        until: Option<Edge>,
    },
    /// Print the text of a query
    Sql {
        /// The query
        #[arg(value_name = "QUERY", value_parser = query)]
        name: &'static Query,
        /// The engine: duckdb, clickhouse or spark
        #[arg(long, value_parser = Engine::parse)]
        engine: Engine,
        /// The directory or bucket of the recordings; without it, the query needs the views
        #[arg(long, value_parser = root)]
        root: Option<Root>,
        /// Of which time and hosts
        #[command(flatten)]
        period: Period,
    },
    /// Ask an engine and print the answer
    Ask(AskArgs),
    /// What is wrong, on which hosts: the diagnoses of each one's recording
    Doctor(FleetDoctorArgs),
    /// Show the answers in a terminal, a pane for each query, asked again at each interval
    Top(FleetTopArgs),
}

/// Arguments of `tally fleet top`.
#[derive(Debug, Args)]
#[command(after_help = "\
Full-screen on a terminal: a digit shows a pane, Enter on a host shows that host alone, h lists all \
keys. The engine is asked about the pane that is shown. Without a terminal, and with --once, --count \
or --json, the answers are printed, of all queries or that of --view.

Examples:
  tally fleet top --engine duckdb --root /srv/fleet
  tally fleet top --engine http://clickhouse:8123 --since -1h --interval 1min --view statements
  tally fleet top --engine duckdb --root s3://bucket/fleet --once --view blocking")]
pub struct FleetTopArgs {
    /// The engine, as of `tally fleet ask`
    #[arg(long, value_parser = Engine::parse)]
    pub engine: Engine,
    /// The directory or bucket of the recordings; without it, the server has the views
    #[arg(long, value_parser = root)]
    pub root: Option<Root>,
    /// From this time on, until now: 14:30, 2026-03-01, or -2h [default: -15min]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = Edge::parse)]
    pub since: Option<Edge>,
    /// Only this cluster
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// Only this host
    #[arg(long, value_name = "NAME")]
    pub host: Option<String>,
    /// How often to ask
    #[arg(long, short, value_name = "TIME", default_value = "30s", value_parser = pace)]
    pub interval: Duration,
    /// Pane to show first; as text, the only one to print [default as text: all]
    #[arg(long, value_name = "QUERY", value_parser = query)]
    pub view: Option<&'static Query>,
    /// Show only rows that contain this text
    #[arg(long, short, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Max. number of rows of an answer
    #[arg(long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
    /// Print the answers once and exit
    #[arg(long)]
    pub once: bool,
    /// Print JSON, a line each time (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
    /// Exit after N times; prints text unless --json is given
    #[arg(long, short = 'n', value_name = "N", conflicts_with = "once", value_parser = clap::value_parser!(u64).range(1..))]
    pub count: Option<u64>,
}

fn pace(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(1), Duration::from_secs(86_400))
}

/// Arguments of `tally fleet doctor`.
#[derive(Debug, Args)]
pub struct FleetDoctorArgs {
    /// The directory or bucket of the recordings
    #[arg(long, value_parser = root)]
    pub root: Root,
    /// Of which time and hosts
    #[command(flatten)]
    pub scope: Scope,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// A time, and hosts.
#[derive(Debug, Args)]
pub struct Scope {
    /// From this time on: 14:30, 2026-03-01, "2026-03-01 14:30", or -2h (before the end) [default: -1h]
    #[arg(long, value_name = "TIME", allow_hyphen_values = true, value_parser = Edge::parse)]
    pub since: Option<Edge>,
    /// Until this time [default: now]
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
    /// Its beginning and end, seconds since 1970.
    pub fn window(&self) -> (f64, f64) {
        window(self.since, self.until)
    }

    /// Which hosts.
    pub fn only(&self) -> Only {
        Only { cluster: self.cluster.clone(), host: self.host.clone() }
    }
}

/// Arguments of `tally fleet ask`.
#[derive(Debug, Args)]
pub struct AskArgs {
    /// The query
    #[arg(value_name = "QUERY", value_parser = query)]
    pub name: &'static Query,
    /// duckdb, clickhouse, the path of either program or of a Python that has chdb, or the URL of a ClickHouse
    /// server (user and password: CLICKHOUSE_USER, CLICKHOUSE_PASSWORD)
    #[arg(long, value_parser = Engine::parse)]
    pub engine: Engine,
    /// The directory or bucket of the recordings; without it, the server has the views
    #[arg(long, value_parser = root)]
    pub root: Option<Root>,
    /// Of which time and hosts
    #[command(flatten)]
    pub period: Period,
    /// Print JSON (docs/reference-json.md)
    #[arg(long, conflicts_with = "csv")]
    pub json: bool,
    /// Print CSV
    #[arg(long)]
    pub csv: bool,
}

/// Of which time and hosts.
#[derive(Debug, Args)]
pub struct Period {
    /// Of which time and hosts
    #[command(flatten)]
    pub scope: Scope,
    /// For regressions: the time to compare with [default: as long, just before --since]
    #[arg(long, value_name = "FROM..TO", allow_hyphen_values = true, value_parser = Against::parse)]
    pub against: Option<Against>,
    /// Max. number of rows
    #[arg(long, value_name = "N", default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: u32,
}

/// Another time, to compare with.
#[derive(Debug, Clone, Copy)]
pub struct Against {
    /// Its beginning; `None`: as long as the window before its end.
    pub from: Option<Edge>,
    /// Its end; `None`: the beginning of the window.
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

/// A query by its name.
fn query(name: &str) -> Result<&'static Query, String> {
    Query::of_name(name).ok_or_else(|| {
        let names: Vec<&str> = QUERIES.iter().map(|query| query.name).collect();
        format!("no query has this name; there are {}", names.join(", "))
    })
}

/// The length of a row.
fn per(name: &str) -> Result<Per, String> {
    Per::of_name(name).ok_or_else(|| "write minute or hour".into())
}

/// A root; a directory's path may be relative.
pub fn root(text: &str) -> Result<Root, String> {
    if text.contains("://") {
        return Root::parse(text);
    }
    let path = std::fs::canonicalize(text)
        .map_err(|error| format!("{text}: {error}; name the directory that has v1/"))?;
    let root = Root::parse(path.to_str().ok_or("the directory's name is not UTF-8")?)?;
    match std::path::Path::new(&root.of_table("frames")).is_dir() {
        true => Ok(root),
        false => Err(format!(
            "{text}: has no {}; name the directory that has v1/",
            root.of_table("frames")
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn either_end_of_a_time_to_compare_with_may_be_absent() {
        let ends = |text| Against::parse(text).map(|it| [it.from.is_some(), it.to.is_some()]).ok();
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
        assert!(root(text).unwrap_err().contains("name the directory that has v1/"));
        std::fs::create_dir_all(folder.path().join("v1/frames")).unwrap();
        assert!(root(text).unwrap().directory().is_some());
        assert!(root("s3://bucket/it").unwrap().directory().is_none());
    }
}
