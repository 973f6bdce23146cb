// SPDX-License-Identifier: PostgreSQL
//! `tally functions`: prints the times of timed functions and their calls of each other, lists functions that
//! can be probed, and sets which are probed.

use std::io::Write;
use std::time::{Duration, Instant};

use pq::{Client, Row};
use segment::functions::{EdgeRow, FunctionRow, PROBE_PREFIX};
use segment::{Interval, Probe, ProbeState, Segment};
use serde::Serialize;

use clap::Args;
use command::interval;
use command::ConnectionFlags;
use error::Error;
use live::extension;
use live::local_server::LocalServer;
use live::{server, target};
use view::functions;
use view::glob::matches;
use view::rows::RowOptions;
use view::table::Table;

/// Arguments of `tally functions`.
#[derive(Debug, Args)]
#[command(after_help = "\
Any exported function of the server and of its loaded libraries can be timed if its first \
instructions can be moved. --list and --set connect to the server; --set requires a superuser.

Examples:
  tally functions --list 'SimpleLru*'
  tally functions --set 'XLogFlush, SimpleLruReadPage*, heap_insert'
  tally functions --interval 10
  tally functions --tree
  tally functions --set ''")]
pub struct FunctionsArgs {
    /// Segment, data directory or connection string
    pub target: Option<String>,
    /// Connection options
    #[command(flatten)]
    pub connection: ConnectionFlags,
    /// List functions that can be timed, and why others cannot: a name or a glob with * and ?
    #[arg(long, value_name = "GLOB", group = "what")]
    pub list: Option<String>,
    /// Time these functions from now on: names and globs, separated by commas; an empty list stops timing
    #[arg(long, value_name = "LIST", group = "what")]
    pub set: Option<String>,
    /// Print who calls whom in one interval (requires pg_tally.function_edges = on)
    #[arg(long, group = "what")]
    pub tree: bool,
    /// Length of the interval: seconds, or with a unit (500ms, 2s, 1min)
    #[arg(long, short, value_name = "TIME", default_value = "1", value_parser = interval)]
    pub interval: Duration,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// How long new probes may take to appear after the reload.
const PATIENCE: Duration = Duration::from_secs(3);
/// How long the server may take to reload its configuration.
const RELOAD: Duration = Duration::from_millis(300);
const POLL: Duration = Duration::from_millis(50);

/// Shows, lists or sets timed functions.
pub fn run(args: &FunctionsArgs) -> Result<(), Error> {
    match (&args.list, &args.set) {
        (Some(glob), _) => list(args, glob),
        (_, Some(list)) => set(args, list),
        _ => show(args),
    }
}

/// An interval, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Functions<'i> {
    interval_seconds: f64,
    instrumented_seconds: f64,
    functions_probed: usize,
    functions: &'i [FunctionRow],
    edges: &'i [EdgeRow],
}

fn show(args: &FunctionsArgs) -> Result<(), Error> {
    let mut segment = target::open(args.target.as_deref())?;
    let before = segment.snapshot(None)?;
    std::thread::sleep(args.interval);
    segment.refresh()?;
    let after = segment.snapshot(Some(&before))?;
    let interval = Interval::between(&segment, Some(&before), &after);
    if args.json {
        return view::output::json(&Functions {
            interval_seconds: interval.interval_seconds,
            instrumented_seconds: interval.instrumented_seconds,
            functions_probed: interval.functions_probed,
            functions: &interval.functions,
            edges: &interval.edges,
        });
    }
    let mut out = view::escape::stdout();
    let note = functions::note(&interval);
    if let Some(note) = &note {
        writeln!(out, "{note}")?;
    }
    if args.tree && interval.edges.is_empty() {
        writeln!(
            out,
            "no call between timed functions was seen; they are counted if pg_tally.function_edges is on:\n  \
             ALTER SYSTEM SET pg_tally.function_edges = on; SELECT pg_reload_conf();"
        )?;
    }
    if note.is_some() {
        return Ok(());
    }
    if args.tree {
        return Ok(out.write_all(functions::tree(&interval).for_stdout().as_bytes())?);
    }
    Ok(out.write_all(
        functions::functions(&interval, &RowOptions::default()).for_stdout().as_bytes(),
    )?)
}

/// A function of the server or of a library, and whether it can be probed.
#[derive(Debug, Serialize)]
struct Candidate {
    name: String,
    module: String,
    bytes: i32,
    probeable: bool,
    /// Why it cannot be probed; empty if it can be.
    reason: String,
}

fn list(args: &FunctionsArgs, glob: &str) -> Result<(), Error> {
    let mut client = server::connect_target(args.target.as_deref())?;
    let function = probeable(&mut client)?;
    let rows = client.query(
        &format!("select name, module, bytes, probeable, reason from {function}($1) order by 2, 1"),
        &[&glob],
    )?;
    let candidate = |row: &Row| -> Result<Candidate, Error> {
        Ok(Candidate {
            name: row.get(0)?,
            module: row.get(1)?,
            bytes: row.get(2)?,
            probeable: row.get(3)?,
            reason: row.get::<Option<String>>(4)?.unwrap_or_default(),
        })
    };
    let candidates: Vec<Candidate> = rows.iter().map(candidate).collect::<Result<_, _>>()?;
    if args.json {
        return view::output::json(&candidates);
    }
    if candidates.is_empty() {
        return Err(Error::Failed(format!(
            "no function of the server matches \"{glob}\"; * matches any characters, ? matches one; \
             static functions have no exported name"
        )));
    }
    let mut columns = Table::with_headings(&["NAME", "MODULE", "BYTES", "PROBEABLE"], 2..3);
    for candidate in &candidates {
        let can = if candidate.probeable {
            "yes".to_string()
        } else {
            format!("no: {}", candidate.reason)
        };
        columns.push_texts(vec![
            candidate.name.clone(),
            candidate.module.clone(),
            candidate.bytes.to_string(),
            can,
        ]);
    }
    Ok(view::escape::stdout().write_all(columns.to_string().as_bytes())?)
}

/// The SQL function that lists candidates: the extension's, or a temporary one if the extension does not exist in
/// this database.
fn probeable(client: &mut Client) -> Result<&'static str, Error> {
    if extension::has_function(client, "probeable")? {
        return Ok("tally.probeable");
    }
    server::require_superuser(client)?;
    client.batch_execute(
        "create function pg_temp.probeable(glob text, out name text, out module text, \
             out bytes integer, out probeable boolean, out reason text) \
         returns setof record as 'pg_tally', 'pg_tally_probeable' language c strict",
    )?;
    Ok("pg_temp.probeable")
}

/// The result of `--set`, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Setting<'l> {
    functions: &'l str,
    probes: Vec<Probe>,
}

fn set(args: &FunctionsArgs, list: &str) -> Result<(), Error> {
    let mut client = server::connect_target(args.target.as_deref())?;
    server::require_superuser(&mut client)?;
    let local = LocalServer::of_connection(&mut client)?;
    // Unless the library is loaded, the server rejects the setting's name.
    client.batch_execute("LOAD 'pg_tally'")?;
    if list.trim().is_empty() {
        client.batch_execute("ALTER SYSTEM RESET pg_tally.functions")?;
    } else {
        let quoted = list.replace('\'', "''");
        client.batch_execute(&format!("ALTER SYSTEM SET pg_tally.functions = '{quoted}'"))?;
    }
    client.batch_execute("select pg_reload_conf()")?;
    let segment_path = local.as_ref().map(LocalServer::segment_path);
    let probes = match segment_path.filter(|path| path.is_owners()) {
        Some(path) => settled(&Segment::open(path)?, &globs(list))?,
        None => Vec::new(),
    };
    if args.json {
        return view::output::json(&Setting { functions: list, probes });
    }
    let mut out = view::escape::stdout();
    if list.trim().is_empty() {
        return Ok(writeln!(out, "no functions are timed from now on")?);
    }
    writeln!(out, "pg_tally.functions = '{list}'; each process applies it when it next runs")?;
    let (installed, left_out): (Vec<_>, Vec<_>) =
        probes.iter().partition(|probe| probe.state == ProbeState::Installed);
    if local.is_some() {
        writeln!(out, "  timed      {} functions", installed.len())?;
    }
    for probe in left_out {
        writeln!(out, "  left out   {}: {}", probe.name, probe.reason)?;
    }
    if local.is_none() {
        writeln!(out, "the server is on another machine; run `tally status` to see the probes")?;
    } else if probes.is_empty() {
        writeln!(
            out,
            "no process has installed these probes yet; `tally status` shows the probes, and the server's \
             log names unknown functions"
        )?;
    }
    Ok(())
}

fn globs(list: &str) -> Vec<&str> {
    list.split(',').map(str::trim).filter(|glob| !glob.is_empty()).collect()
}

/// The probes of these functions, once each glob has one or the time is up.
fn settled(segment: &Segment, globs: &[&str]) -> Result<Vec<Probe>, Error> {
    // Probes that exist now may belong to the previous list.
    std::thread::sleep(RELOAD);
    let began = Instant::now();
    loop {
        let probes: Vec<Probe> = segment
            .probes()?
            .into_iter()
            .filter_map(|probe| {
                Some(Probe { name: probe.name.strip_prefix(PROBE_PREFIX)?.to_string(), ..probe })
            })
            .filter(|probe| globs.iter().any(|glob| matches(glob, &probe.name)))
            .collect();
        let all = globs.iter().all(|glob| probes.iter().any(|probe| matches(glob, &probe.name)));
        if all || began.elapsed() > PATIENCE {
            return Ok(probes);
        }
        std::thread::sleep(POLL);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_of_globs_is_split_at_commas() {
        assert_eq!(globs(" a, b*,, c "), ["a", "b*", "c"]);
    }
}
