// SPDX-License-Identifier: PostgreSQL
//! Calls between methods, for `tally methods`.

use std::io::Write;

use clap::Args;
use error::Error;
use segment::{Interval, ProbeState, Segment};
use serde::Serialize;
use view::method_edges::{self, CallsBetween, EdgeSide};

use crate::{is_java, ClientHead};

/// The probe by which the agent reports that it counts these calls.
const PROBE: &str = "edges";

/// The calls to print.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct CallsBetweenArgs {
    /// Show the callers of each method, or of METHOD: a name or glob, with or without package and parameters
    #[arg(long, value_name = "METHOD", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    callers: Option<String>,
    /// Show the methods that each method, or METHOD, calls
    #[arg(long, value_name = "METHOD", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    callees: Option<String>,
}

/// A row, as `--json` prints it.
#[derive(Debug, Serialize)]
pub struct Edge<'r> {
    caller: Option<&'r str>,
    callee: &'r str,
    calls: u64,
    seconds: f64,
    share: Option<f64>,
}

impl<'r> From<&'r CallsBetween> for Edge<'r> {
    fn from(row: &'r CallsBetween) -> Self {
        Edge {
            caller: row.caller.as_deref(),
            callee: &row.callee,
            calls: row.calls,
            seconds: row.seconds,
            share: row.share,
        }
    }
}

/// The output of `--json` for a selection.
#[derive(Debug, Serialize)]
struct Document<'r> {
    #[serde(flatten)]
    head: &'r ClientHead<'r>,
    edges: Vec<Edge<'r>>,
}

/// Whether the client counts calls between methods.
pub fn are_counted(segment: &Segment) -> Result<bool, Error> {
    let installed =
        |probe: &segment::Probe| probe.name == PROBE && probe.state == ProbeState::Installed;
    Ok(segment.probes()?.iter().any(installed))
}

/// All calls, by caller; none if they are not counted.
pub fn all(segment: &Segment, interval: &Interval) -> Result<Vec<CallsBetween>, Error> {
    Ok(if are_counted(segment)? {
        method_edges::callers(&interval.functions, &interval.edges, "*")
    } else {
        Vec::new()
    })
}

impl CallsBetweenArgs {
    fn chosen(&self) -> Option<(EdgeSide, &str)> {
        let callees = self.callers.as_deref().map(|glob| (EdgeSide::Callees, glob));
        callees.or(self.callees.as_deref().map(|glob| (EdgeSide::Callers, glob)))
    }

    /// Whether the user asked for them.
    pub fn are_wanted(&self) -> bool {
        self.chosen().is_some()
    }

    /// Prints the selected calls below the head, or as JSON.
    pub fn print(
        &self,
        (segment, interval): (&Segment, &Interval),
        (head, done): (&ClientHead<'_>, &str),
        json: bool,
        top: Option<usize>,
    ) -> Result<(), Error> {
        let Some((of, glob)) = self.chosen() else { return Ok(()) };
        if !are_counted(segment)? {
            let remedy = if is_java(segment) {
                "; start the agent with edges=on"
            } else {
                " for programs that use libpq"
            };
            return Err(Error::Failed(format!("calls between methods are not counted{remedy}")));
        }
        let known = |name| method_edges::fits(glob, &view::methods::method(name));
        if glob != "*" && !interval.functions.iter().any(known) {
            return Err(Error::Failed(format!(
                "no method \"{glob}\" has completed a call; * matches any characters, and `tally methods \
                 --json` lists the methods that were called"
            )));
        }
        let rows = match of {
            EdgeSide::Callees => method_edges::callers(&interval.functions, &interval.edges, glob),
            EdgeSide::Callers => method_edges::callees(&interval.functions, &interval.edges, glob),
        };
        if json {
            let edges = rows.iter().map(Edge::from).collect();
            return view::output::json(&Document { head, edges });
        }
        let mut out = view::escape::stdout();
        for line in head.lines(done) {
            writeln!(out, "{line}")?;
        }
        if rows.is_empty() {
            return Ok(writeln!(out, "these methods have completed no calls of timed methods")?);
        }
        let table = method_edges::table(&rows, of, top.unwrap_or(usize::MAX));
        Ok(out.write_all(table.for_stdout().as_bytes())?)
    }
}
