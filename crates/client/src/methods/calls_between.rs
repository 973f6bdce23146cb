// SPDX-License-Identifier: PostgreSQL
//! Who calls whom, in `tally methods`.

use std::io::Write;

use clap::Args;
use error::Error;
use segment::{Interval, ProbeState, Segment};
use serde::Serialize;
use view::method_edges::{self, CallsBetween, Of};

use crate::{is_java, ClientHead};

/// How the agent reports that it counts them.
const PROBE: &str = "edges";

/// Which of them.
#[derive(Debug, Args)]
#[group(multiple = false)]
pub struct CallsBetweenArgs {
    /// Who calls each method, or METHOD: a name or glob, with or without package and parameters
    #[arg(long, value_name = "METHOD", num_args = 0..=1, require_equals = true, default_missing_value = "*")]
    callers: Option<String>,
    /// Whom each method, or METHOD, calls
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

/// What `--json` prints of a choice.
#[derive(Debug, Serialize)]
struct Document<'r> {
    #[serde(flatten)]
    head: &'r ClientHead<'r>,
    edges: Vec<Edge<'r>>,
}

/// Whether the client counts calls between methods.
pub fn are_counted(segment: &Segment) -> Result<bool, Error> {
    let installed = |it: &segment::Probe| it.name == PROBE && it.state == ProbeState::Installed;
    Ok(segment.probes()?.iter().any(installed))
}

/// All of them, by callers; none if they are not counted.
pub fn all(segment: &Segment, interval: &Interval) -> Result<Vec<CallsBetween>, Error> {
    Ok(if are_counted(segment)? {
        method_edges::callers(&interval.functions, &interval.edges, "*")
    } else {
        Vec::new()
    })
}

impl CallsBetweenArgs {
    fn chosen(&self) -> Option<(Of, &str)> {
        let callees = self.callers.as_deref().map(|glob| (Of::Callees, glob));
        callees.or(self.callees.as_deref().map(|glob| (Of::Callers, glob)))
    }

    /// Whether they are asked for.
    pub fn are_wanted(&self) -> bool {
        self.chosen().is_some()
    }

    /// Prints the chosen ones below the head, or as JSON.
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
                "; start the agent with its option edges=on"
            } else {
                " for programs that use libpq"
            };
            return Err(Error::Failed(format!("calls between methods are not counted{remedy}")));
        }
        let known = |it| method_edges::fits(glob, &view::methods::method(it));
        if glob != "*" && !interval.functions.iter().any(known) {
            return Err(Error::Failed(format!(
                "no method \"{glob}\" was called to its end; * stands for any letters, and tally \
                 methods --json lists those that were called"
            )));
        }
        let rows = match of {
            Of::Callees => method_edges::callers(&interval.functions, &interval.edges, glob),
            Of::Callers => method_edges::callees(&interval.functions, &interval.edges, glob),
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
            return Ok(writeln!(out, "no calls of timed methods by them have ended")?);
        }
        let table = method_edges::table(&rows, of, top.unwrap_or(usize::MAX));
        Ok(out.write_all(table.for_stdout().as_bytes())?)
    }
}
