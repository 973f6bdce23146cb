// SPDX-License-Identifier: PostgreSQL
//! What a report is made from, wherever that came from: the sum of everything as one interval,
//! the statements, and the points in time.

use segment::{Histogram, Interval, RelationRow};

use super::measured_cost::MeasuredCost;
use super::point::Point;
use view::document::{Fact, Gap, Mark};
use view::events::Row;
use view::io::Device;
use view::statements::Statements;

/// All of it.
#[derive(Debug, Clone)]
pub struct Material {
    /// The recording's directory.
    pub recording: String,
    /// The host that it was made on.
    pub host: String,
    /// What is told of begins, seconds since 1970,
    pub from: f64,
    /// and ends.
    pub to: f64,
    /// The shortest interval at which was recorded.
    pub interval_seconds: f64,
    /// The same of histograms and statements.
    pub detail_seconds: Option<f64>,
    /// Intervals.
    pub intervals: u64,
    /// Everything as one interval.
    pub whole: Interval,
    /// The statements over all of it.
    pub statements: Option<Statements>,
    /// The points of the charts.
    pub points: Vec<Point>,
    /// Every interval by itself: commands handled and commits.
    pub moments: Vec<Moment>,
    /// Command latency to handle, over time.
    pub latency: Vec<Latency>,
    /// Events, oldest first.
    pub events: Vec<Row>,
    /// What else is to be marked.
    pub marks: Vec<Mark>,
    /// Where nothing was measured.
    pub gaps: Vec<Gap>,
    /// Facts that the intervals do not tell: the machine, the level over time, ...
    pub facts: Vec<Fact>,
    /// Settings of the server, the machine and the recorder.
    pub settings: Vec<Setting>,
    /// Commands that were run beside it.
    pub runs: Vec<Run>,
    /// What was done to the files of each relation, most time first; none: not recorded.
    pub relations: Vec<RelationRow>,
    /// What a reading of the clock takes on the machine, seconds; `None` where it is not known.
    pub reading_seconds: Option<f64>,
    /// The cost of the level, where it has been measured.
    pub cost: Option<MeasuredCost>,
    /// The devices under the server.
    pub devices: Vec<Device>,
    /// What is wrong with the recording itself.
    pub problems: Vec<String>,
}

/// One interval as it was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moment {
    /// When it began, seconds since 1970.
    pub start: f64,
    /// Its length; 0: a gap.
    pub seconds: f64,
    /// Commands of clients that were handled.
    pub commands: u64,
    /// Commits that wrote WAL; `None`: not kept so finely.
    pub commits: Option<u64>,
}

/// Command latency in some seconds.
#[derive(Debug, Clone)]
pub struct Latency {
    /// When these begin, seconds since 1970.
    pub start: f64,
    /// How long they are.
    pub seconds: f64,
    /// Of the histogram's values.
    pub seconds_per_tick: f64,
    /// What ended in them.
    pub histogram: Histogram,
}

/// A setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Whose: "server", "machine", "recorder".
    pub group: String,
    /// Its name.
    pub name: String,
    /// Its value, in the server's own words.
    pub value: String,
    /// When it came into force within the report; `None`: it was so from the beginning.
    pub changed: Option<f64>,
}

/// A command that was run beside the recorder.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// Its words.
    pub command: String,
    /// When it began, seconds since 1970.
    pub from: f64,
    /// When it ended; `None`: not yet.
    pub to: Option<f64>,
    /// How it ended; `None`: not yet, or by a signal.
    pub exit_code: Option<i64>,
    /// What it printed.
    pub output: String,
}
