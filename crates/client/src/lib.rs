// SPDX-License-Identifier: PostgreSQL
//! Shared by the verbs that read a client's segment: arguments, the head of their JSON, the measured interval, and
//! single calls.

pub mod call;
pub mod calls;
pub mod methods;
pub mod ring;
pub mod stream;

use std::time::Duration;

use clap::Args;
use error::Error;
use live::target;
use segment::{Interval, Producer, Segment};
use serde::Serialize;

use command::interval;

/// A line if something was not measured.
const INCOMPLETE: &str =
    "\nIncomplete: a table was full, or measuring was off for a while; see tally status";

/// The client, and the time to measure.
#[derive(Debug, Args)]
pub struct ClientArgs {
    /// PID or segment of the client; optional if only one is running
    pub target: Option<String>,
    /// Measure for this long from now (500ms, 2s, 1min) [default: since measuring began]
    #[arg(long, short, value_name = "TIME", value_parser = interval)]
    pub interval: Option<Duration>,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

impl ClientArgs {
    /// Opens the segment.
    pub fn open(&self) -> Result<Segment, Error> {
        target::open_client(self.target.as_deref())
    }

    /// Opens the segment and measures it: for the given time from now, or since measuring began.
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

/// The client and the interval, the head of `--json` output.
#[derive(Debug, Serialize)]
pub struct ClientHead<'s> {
    pid: u32,
    program: &'s str,
    java: &'s str,
    interval_seconds: f64,
    exact: bool,
}

impl<'s> ClientHead<'s> {
    /// The head for an interval of this segment.
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

    /// A line that describes the client, and one with its work.
    pub fn lines(&self, done: &str) -> [String; 2] {
        let incomplete = if self.exact { "" } else { INCOMPLETE };
        [
            format!("{}  {}  pid {}", self.java, self.program, self.pid),
            format!("{done}{incomplete}"),
        ]
    }
}

/// Whether the client is a Java virtual machine, as its agent says, instead of a program that uses libpq.
pub fn is_java(segment: &Segment) -> bool {
    segment.producer() == Producer::JavaAgent
}
