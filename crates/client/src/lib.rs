// SPDX-License-Identifier: PostgreSQL
//! What the verbs that read a client's segment share: arguments, the head of their JSON, what was measured, and its calls
//! one by one.

pub mod call;
pub mod calls;
pub mod methods;
pub mod ring;
pub mod stream;

use std::time::Duration;

use clap::Args;
use error::Error;
use live::target;
use segment::{Interval, Segment};
use serde::Serialize;

use command::interval;

/// A line if something was not measured.
const INCOMPLETE: &str = "\nIncomplete: something had no space; see tally status";

/// Which client, and when.
#[derive(Debug, Args)]
pub struct ClientArgs {
    /// A client's pid, or its segment; not needed if only one runs
    pub target: Option<String>,
    /// Only the calls that end in this time from now on (500ms, 2s, 1min); the default is since measuring began
    #[arg(long, short, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Duration>,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

impl ClientArgs {
    /// The segment.
    pub fn open(&self) -> Result<Segment, Error> {
        target::open_client(self.target.as_deref())
    }

    /// The segment, and what was measured in it: in the given time from now on, or since the beginning.
    pub fn measure(&self) -> Result<(Segment, Interval), Error> {
        let mut segment = self.open()?;
        let before = match self.interval {
            Some(length) => {
                let before = segment.snapshot(None)?;
                std::thread::sleep(length);
                Some(before)
            }
            None => None,
        };
        let after = segment.snapshot(before.as_ref())?;
        let interval = Interval::between(&segment, before.as_ref(), &after);
        Ok((segment, interval))
    }
}

/// The client and the interval, as `--json` prints them first.
#[derive(Debug, Serialize)]
pub struct ClientHead<'s> {
    pid: u32,
    program: &'s str,
    java: &'s str,
    interval_seconds: f64,
    exact: bool,
}

impl<'s> ClientHead<'s> {
    /// Of an interval of this segment.
    pub fn from_segment(segment: &'s Segment, interval: &Interval) -> Self {
        let header = segment.header();
        ClientHead {
            pid: header.server_pid,
            program: &header.host,
            java: &header.server,
            interval_seconds: interval.interval_seconds,
            exact: interval.exact,
        }
    }

    /// The client as a line, and what was done in it as the next.
    pub fn lines(&self, done: &str) -> [String; 2] {
        let incomplete = if self.exact { "" } else { INCOMPLETE };
        [
            format!("{}  {}  pid {}", self.java, self.program, self.pid),
            format!("{done}{incomplete}"),
        ]
    }
}

/// A virtual machine, whose agent says so, or a program that uses libpq.
pub fn is_java(segment: &Segment) -> bool {
    segment.header().server.starts_with("Java")
}
