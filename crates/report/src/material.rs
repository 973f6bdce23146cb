// SPDX-License-Identifier: PostgreSQL
//! The material of a report, whatever its source: the sum as one interval, the statements, and the points in
//! time.

use recording::LogRow;
use segment::interval::SessionRow;
use segment::{Histogram, Interval, RelationRow};

use super::measured_cost::MeasuredCost;
use super::point::Point;
use super::sums::StatementParts;
use diagnose::choose_blocking;
use view::blocking::{Blocker, Forest};
use view::document::{Gap, Histories, Mark, MeasuredTime, Ranking};
use view::events::Row;
use view::io::{Device, RelationNames};
use view::settings::SettingChange;
use view::statements::{CurrentRow, StatementsTable};
use view::vacuum::Vacuum;

/// A Java client's recording.
#[derive(Debug, Clone)]
pub struct Client {
    /// Its program.
    pub program: String,
    /// Its virtual machine.
    pub java: String,
    /// Its activity, at points of its own.
    pub points: Vec<Point>,
}

/// Everything that a report shows.
#[derive(Debug, Clone)]
pub struct Material {
    /// Which time of which host; the facts are those from outside the intervals: the machine, the level over time, ...
    /// The sums are left to the document.
    pub measured: MeasuredTime,
    /// Everything as one interval.
    pub whole: Interval,
    /// The statements over the whole time.
    pub statements: Option<StatementsTable>,
    /// Who blocks whom now; `None` for a recording.
    pub blocking: Option<Forest>,
    /// The session for which others have waited most of the time; `None`: there is none, or it is a recording, whose
    /// sessions have all of them.
    pub blocker: Option<Blocker>,
    /// How far vacuum is behind now or, for a recording, at its worst; `None` if the server was not asked.
    pub vacuum: Option<Vacuum>,
    /// The activity of the sessions; `None` if it was not recorded.
    pub sessions: Option<SessionHistory>,
    /// What took the most time, over time; empty if that is known only for the whole time.
    pub rankings: Vec<Ranking>,
    /// What the statements with the most time did over time; `None` if not recorded.
    pub histories: Option<Histories>,
    /// The statements in points of time; `None` if they are known only for the whole time.
    pub statement_parts: Option<StatementParts>,
    /// The points of the charts.
    pub points: Vec<Point>,
    /// Commands handled and commits of each interval.
    pub moments: Vec<Moment>,
    /// Time to handle commands, over time.
    pub latency: Vec<Latency>,
    /// Events, oldest first.
    pub events: Vec<Row>,
    /// What the server logged, oldest first; empty if its log was not recorded.
    pub log: Vec<LogRow>,
    /// Other marks.
    pub marks: Vec<Mark>,
    /// Times in which nothing was measured.
    pub gaps: Vec<Gap>,
    /// Settings of the server, the machine and the recorder.
    pub settings: Vec<Setting>,
    /// Changes of the server's settings, oldest first.
    pub setting_changes: Vec<SettingChange>,
    /// Commands that `tally record` ran.
    pub runs: Vec<Run>,
    /// I/O on the files of each relation.
    pub relations: RelationTimes,
    /// The overhead of the level, if it was measured.
    pub cost: Option<MeasuredCost>,
    /// A Java client of the server, recorded at the same time.
    pub client: Option<Client>,
    /// The devices under the server.
    pub devices: Vec<Device>,
    /// Problems of the recording itself.
    pub problems: Vec<String>,
}

/// I/O on the files of relations.
#[derive(Debug, Clone, Default)]
pub struct RelationTimes {
    /// The relations, most time first; empty if not recorded.
    pub rows: Vec<RelationRow>,
    /// Their names, as far as the recorder learned them.
    pub names: RelationNames,
    /// Recorded time that they cover.
    pub seconds: f64,
}

/// One interval as it was recorded.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Moment {
    /// When it began, seconds since 1970.
    pub start: f64,
    /// Its length; 0 for a gap.
    pub seconds: f64,
    /// Commands of clients that were handled.
    pub commands: u64,
    /// Commits that wrote WAL; `None` if they were not recorded per interval.
    pub commits: Option<u64>,
}

/// Command latency in some seconds.
#[derive(Debug, Clone)]
pub struct Latency {
    /// Their start, seconds since 1970.
    pub start: f64,
    /// Their length.
    pub seconds: f64,
    /// Seconds per tick of the histogram's values.
    pub seconds_per_tick: f64,
    /// The commands that ended in this time.
    pub histogram: Histogram,
}

/// A setting.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// "server", "machine" or "recorder".
    pub group: String,
    /// Its name.
    pub name: String,
    /// Its value, in the server's own words.
    pub value: String,
    /// When it came into force within the report; `None` if it was in force from the start.
    pub changed: Option<f64>,
}

/// A command that `tally record` ran.
#[derive(Debug, Clone, PartialEq)]
pub struct Run {
    /// The command line.
    pub command: String,
    /// When it started, seconds since 1970.
    pub from: f64,
    /// When it ended; `None` if it is still running.
    pub to: Option<f64>,
    /// Its exit status; `None` if it is still running or was ended by a signal.
    pub exit_code: Option<i64>,
    /// What it printed.
    pub output: String,
}

impl Material {
    /// Who blocked whom when it was worst, and whose doing that was; `None`: it is as of now, or not known.
    pub fn blocking(&self) -> (Option<&Forest>, Option<&Blocker>) {
        let recorded = self.sessions.as_ref().and_then(|sessions| sessions.blockers.first());
        match recorded {
            Some(blocker) => (Some(&blocker.forest), Some(blocker)),
            None => choose_blocking(self.blocking.as_ref(), self.blocker.as_ref()),
        }
    }
}

/// The activity of the sessions.
#[derive(Debug, Clone, Default)]
pub struct SessionHistory {
    /// The active sessions, most time first.
    pub active: Vec<Active>,
    /// Sessions that blocked others and were not blocked themselves, those with most waiting time of others
    /// first.
    pub blockers: Vec<Blocker>,
    /// Sessions that were idle in a transaction, the longest first.
    pub open: Vec<Open>,
    /// The sessions, those observed the longest first: exact busy and CPU time and commands, and activities from
    /// samples.
    pub sessions: Vec<SessionRow>,
    /// The statements that sessions had been executing for long at the end.
    pub running: Vec<CurrentRow>,
}

/// The sessions of one application, user and database.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Active {
    /// "client backend", ...
    pub process: String,
    /// application_name.
    pub application: String,
    /// The user, if any.
    pub user: Option<String>,
    /// The database, if any.
    pub database: Option<String>,
    /// Number of processes.
    pub sessions: u64,
    /// Their time that was not idle.
    pub busy_seconds: f64,
    /// Of that, CPU time; `None`: samples could not tell it apart.
    pub cpu_seconds: Option<f64>,
    /// Time blocked by locks of others, from samples.
    pub blocked_seconds: f64,
    /// Time idle in a transaction, from samples.
    pub idle_in_transaction_seconds: f64,
    /// The four times above, in this order, in each point of the charts in which they were not idle.
    pub times: Vec<(usize, [f64; 4])>,
}

/// A session that was idle in a transaction.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Open {
    /// The process.
    pub pid: i64,
    /// application_name.
    pub application: String,
    /// The user, if any.
    pub user: Option<String>,
    /// The database, if any.
    pub database: Option<String>,
    /// The longest time.
    pub seconds: f64,
    /// When that was observed, seconds since 1970.
    pub until: f64,
    /// Its last statement, if known.
    pub query: Option<String>,
}
