// SPDX-License-Identifier: PostgreSQL
//! Code shared by the verbs that read a client's segment: arguments, the head of their JSON, the measured
//! interval, and single calls.

pub mod call;
pub mod calls;
pub mod methods;
pub mod ring;
pub mod stream;

use std::time::Duration;

use clap::Args;
use error::Error;
use jiff::tz::TimeZone;
use live::target;
use segment::{Frame, Interval, Producer, Segment};
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

    /// The same to measure it: if its process has ended, as of its end.
    fn open_to_measure(&self) -> Result<(Segment, Option<ClientEnd>), Error> {
        let mut segment = self.open()?;
        let end = segment.end_with_process()?.map(|killed| match killed {
            true => ClientEnd::Killed,
            false => ClientEnd::Ended,
        });
        Ok((segment, end))
    }

    /// Opens the segment and measures it: for the given time from now, or since measuring began.
    pub fn measure(&self) -> Result<ClientMeasurement, Error> {
        let (mut segment, end) = self.open_to_measure()?;
        let before = match self.interval {
            Some(length) => {
                let before = segment.snapshot(None)?;
                std::thread::sleep(length);
                Some(before)
            }
            None => None,
        };
        let after = segment.snapshot(before.as_ref())?;
        let frame = Frame::between(&segment, before.as_ref(), &after);
        let interval = Interval::from_frame(&frame);
        Ok(ClientMeasurement { segment, frame, interval, end })
    }
}

/// What was measured of a client.
pub struct ClientMeasurement {
    /// Its segment.
    pub segment: Segment,
    /// The figures by kind of thread.
    pub frame: Frame,
    /// The same figures, added up.
    pub interval: Interval,
    /// How its process has ended; `None`: it runs, or that is unknown.
    pub end: Option<ClientEnd>,
}

/// How a client's process has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ClientEnd {
    /// By itself.
    Ended,
    /// It was killed, after the last call that its segment has.
    Killed,
}

/// The client and the interval, the head of `--json` output.
#[derive(Debug, Serialize)]
pub struct ClientHead<'s> {
    pid: u32,
    program: &'s str,
    java: &'s str,
    interval_seconds: f64,
    exact: bool,
    end: Option<ClientEnd>,
    /// The end of the interval, seconds since 1970.
    time: f64,
}

impl<'s> ClientHead<'s> {
    /// The head for what was measured.
    pub fn from_measured(measured: &'s ClientMeasurement) -> Self {
        let (header, interval) = (measured.segment.header(), &measured.interval);
        ClientHead {
            pid: header.server_pid,
            program: &header.host,
            java: &header.server,
            interval_seconds: interval.interval_seconds,
            exact: interval.exact,
            end: measured.end,
            time: measured.frame.realtime_ns as f64 * 1e-9,
        }
    }

    /// When and how its process has ended.
    fn ended(&self) -> String {
        let time = || view::events::local(self.time, &TimeZone::system());
        match self.end {
            None => String::new(),
            Some(ClientEnd::Ended) => format!(", ended at {}", time()),
            Some(ClientEnd::Killed) => format!(", killed; last call before {}", time()),
        }
    }

    /// A line that describes the client, and one with its work.
    pub fn lines(&self, done: &str) -> [String; 2] {
        let incomplete = if self.exact { "" } else { INCOMPLETE };
        [
            format!("{}  {}  pid {}{}", self.java, self.program, self.pid, self.ended()),
            format!("{done}{incomplete}"),
        ]
    }
}

/// Whether the client is a Java virtual machine, as its agent says, instead of a program that uses libpq.
pub fn is_java(segment: &Segment) -> bool {
    segment.producer() == Producer::JavaAgent
}
