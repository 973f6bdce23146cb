// SPDX-License-Identifier: PostgreSQL
//! One statement, as `--json` prints it.

use std::ops::Deref;
use std::sync::Arc;

use segment::sampling::{share_half_width, time_half_width};
use segment::statements::{MessageText, StatementCounters, Text};
use segment::{own, wait_names, Application, Statement, StatementKey};
use serde::Serialize;

use super::histogram::Bucket;
use super::{ActivityRow, Split};
use crate::json_id::id_or_null;
use crate::statement_example::StatementExample;

/// One statement.
#[derive(Debug, Clone, Default, Serialize)]
pub struct StatementFigures {
    /// Its key, which is stable from one reading to the next.
    #[serde(skip)]
    pub key: StatementKey,
    /// Whether these are messages in progress whose statement is not known yet; the key only distinguishes their
    /// rows.
    #[serde(skip)]
    pub unnamed: bool,
    /// The part of `seconds` that belongs to messages in progress whose statement is not known yet. It will move
    /// to another statement.
    #[serde(skip)]
    pub unnamed_seconds: f64,
    /// The query ID as PostgreSQL prints it; `None` if not identified. A string in JSON, because many parsers
    /// read numbers as floating point.
    #[serde(serialize_with = "id_or_null")]
    pub queryid: Option<i64>,
    /// Whether the client sent it; otherwise another statement executed it.
    pub toplevel: bool,
    /// Whether tally itself sent it.
    pub own: bool,
    /// The name of the database, or its OID if the name is unknown.
    pub database: String,
    /// The name of the user, or the OID if the name is unknown.
    pub user: String,
    /// The application_name of its sessions; `None`: statements are not told apart by it, or they have none.
    pub application: Application,
    /// Its text; `None` if unknown.
    pub query: Option<Arc<str>>,
    /// Whether the text is truncated.
    pub query_cut: bool,
    /// Length of the whole text, bytes.
    pub query_bytes: u32,
    /// Executions that succeeded.
    pub calls: u64,
    /// Server time: parse, plan, execute, commit ...
    pub seconds: f64,
    /// If `seconds` was estimated from samples: half the width of its 95 % interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub half_width_seconds: Option<f64>,
    /// Where `seconds` comes from, if the server is sampled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds_source: Option<SecondsSource>,
    /// The mean distance between the samples, and the time that they have seen, if the server is sampled.
    #[serde(skip)]
    pub samples: Option<StatementSamples>,
    /// Half the width of the 95 % interval of `share`, if the server is sampled.
    #[serde(skip)]
    pub share_half_width: Option<f64>,
    /// Its share of all statements' time; a nested statement's time is part of its callers' time.
    pub share: f64,
    /// `seconds` by class of activity.
    pub split: Split,
    /// `seconds` by phase and activity, longest first.
    pub activities: Vec<ActivityRow>,
    /// Executions.
    pub execution: Moments,
    /// Distribution of execution times, accurate to 6.25 %.
    pub quantiles: Quantiles,
    /// Plannings.
    pub planning: Moments,
    /// The counters of the statement; their fields can be used as if they were fields of this struct.
    #[serde(flatten)]
    pub counters: StatementCounters,
    /// Start of the first counted execution, seconds since 1970.
    pub first_seen: Option<f64>,
    /// Start of the last one.
    pub last_seen: Option<f64>,
    /// Histogram of execution times.
    pub histogram: Vec<Bucket>,
    /// Number of sessions that work for it now.
    pub running: u64,
    /// Ticks per second, for the histogram's buckets.
    #[serde(skip)]
    pub seconds_per_tick: f64,
}

/// The samples of a statement, seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct StatementSamples {
    /// The mean distance from one sample to the next.
    pub distance: f64,
    /// The time that they have seen.
    pub seconds: f64,
}

/// Where the time of a statement of a sampled server comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum SecondsSource {
    /// Estimated from samples.
    Samples,
    /// Execution and planning as pg_stat_statements counts them, which is exact.
    PgStatStatements,
}

/// Executions or plannings: count and times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Moments {
    /// Number of them.
    pub count: u64,
    /// Total time.
    pub seconds: f64,
    /// Mean time; `None` if there were none.
    pub mean_seconds: Option<f64>,
    /// Standard deviation; `None` if there were none.
    pub stddev_seconds: Option<f64>,
    /// Shortest time; `None` if unknown.
    pub min_seconds: Option<f64>,
    /// Longest time; `None` if unknown.
    pub max_seconds: Option<f64>,
}

impl From<segment::statements::Moments> for Moments {
    fn from(moments: segment::statements::Moments) -> Self {
        Self {
            count: moments.count,
            seconds: moments.seconds,
            mean_seconds: moments.mean,
            stddev_seconds: moments.stddev,
            min_seconds: moments.min,
            max_seconds: moments.max,
        }
    }
}

/// Percentiles of execution times.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// Median.
    pub p50_seconds: Option<f64>,
    /// 90th percentile.
    pub p90_seconds: Option<f64>,
    /// 95th percentile.
    pub p95_seconds: Option<f64>,
    /// 99th percentile.
    pub p99_seconds: Option<f64>,
    /// 99.9th percentile.
    pub p999_seconds: Option<f64>,
}

impl Deref for StatementFigures {
    type Target = StatementCounters;

    fn deref(&self) -> &StatementCounters {
        &self.counters
    }
}

/// A name, or the OID if the name is unknown.
fn name(known: Option<&str>, id: u32) -> String {
    known.map_or_else(|| id.to_string(), String::from)
}

impl StatementFigures {
    /// Estimated from samples at this mean distance. Where pg_stat_statements has counted the time, that is taken,
    /// and the samples only divide it among activities.
    pub(super) fn set_sampled(&mut self, distance: f64) {
        let half_width = time_half_width(self.seconds, distance);
        self.samples = Some(StatementSamples { distance, seconds: self.seconds });
        let counted = self.execution.seconds + self.planning.seconds;
        if self.ends_soon(distance) && counted >= self.seconds - half_width {
            let scale = if self.seconds > 0.0 { counted / self.seconds } else { 0.0 };
            self.activities.iter_mut().for_each(|activity| activity.seconds *= scale);
            self.split = Split::from_activities(&self.activities);
            self.seconds = counted;
            self.seconds_source = Some(SecondsSource::PgStatStatements);
        } else {
            self.half_width_seconds = Some(half_width);
            self.seconds_source = Some(SecondsSource::Samples);
        }
    }

    /// Sets the half-width of its share in this time of all statements, which has this half-width: that of the quotient of
    /// independent parts, its own time and that of the others.
    pub(super) fn set_share_half_width(&mut self, all: f64, of_all: f64) {
        let own = self.half_width_seconds.unwrap_or(0.0);
        let others = (of_all * of_all - own * own).max(0.0).sqrt();
        let error = stats::joint_error(own * (1.0 - self.share), others * self.share);
        let half_width = error / all.max(1e-9);
        self.share_half_width = Some(half_width.min(1.0));
    }

    /// If the server is sampled: half the width of the 95 % interval of a part of its time. `None`, too, if no sample has seen
    /// it, so that nothing divides its time.
    pub fn part_half_width(&self, part: f64) -> Option<f64> {
        let samples = self.samples.filter(|samples| samples.seconds > 0.0)?;
        Some(match self.seconds_source? {
            SecondsSource::Samples => time_half_width(part, samples.distance),
            SecondsSource::PgStatStatements => self.share_of_time_half_width(part)? * self.seconds,
        })
    }

    /// The same for the share of that part in its time.
    pub fn share_of_time_half_width(&self, part: f64) -> Option<f64> {
        let samples = self.samples.filter(|samples| samples.seconds > 0.0)?;
        let share = (part / self.seconds.max(f64::MIN_POSITIVE)).clamp(0.0, 1.0);
        Some(share_half_width(share, samples.seconds, samples.distance))
    }

    /// Whether nearly all of its executions that an interval has a part of also end in it: pg_stat_statements counts an execution when
    /// it ends. One that is going on at some instant takes E\[x^2\] / E\[x\] on average, if executions take x.
    fn ends_soon(&self, distance: f64) -> bool {
        let Moments { mean_seconds: Some(mean), stddev_seconds: Some(deviation), .. } =
            self.execution
        else {
            return false;
        };
        mean * mean + deviation * deviation <= distance * mean
    }

    /// Whether samples could not tell its CPU time apart, so that it has none.
    pub fn hides_cpu(&self) -> bool {
        self.activities.iter().any(ActivityRow::is_unknown)
            && self.split.class(segment::WaitClass::Cpu) == 0.0
    }

    /// Executions that succeeded; `None`: samples do not show them, and pg_stat_statements does not count them.
    pub fn known_calls(&self) -> Option<u64> {
        (self.calls > 0 || self.seconds_source.is_none()).then_some(self.calls)
    }

    fn empty(
        key: StatementKey,
        text: Option<&Text>,
        source: &segment::StatementsReading,
    ) -> StatementFigures {
        StatementFigures {
            key,
            queryid: key.is_identified().then(|| key.query_id()),
            toplevel: key.toplevel,
            own: text.is_some_and(|text| own::is_statement(&text.shown)),
            database: name(source.database(key.database_id), key.database_id),
            user: name(source.user(key.user_id), key.user_id),
            application: key.application,
            query: text.map(|text| text.shown.clone()),
            query_cut: text.is_some_and(|text| text.is_cut()),
            query_bytes: text.map_or(0, |text| text.whole),
            seconds_per_tick: 1.0 / source.clock().ticks_per_second(),
            ..StatementFigures::default()
        }
    }

    /// The figures of one reading, or of the difference of two.
    pub(super) fn from_statement(
        statement: &Statement,
        source: &segment::StatementsReading,
    ) -> StatementFigures {
        let activities = ActivityRow::all(statement.split(source.directory()));
        StatementFigures {
            calls: statement.calls(),
            seconds: statement.seconds(),
            split: Split::from_activities(&activities),
            activities,
            execution: statement.exec().into(),
            quantiles: Quantiles {
                p50_seconds: statement.quantile(0.50),
                p90_seconds: statement.quantile(0.90),
                p95_seconds: statement.quantile(0.95),
                p99_seconds: statement.quantile(0.99),
                p999_seconds: statement.quantile(0.999),
            },
            planning: statement.plan().into(),
            counters: statement.counters(),
            first_seen: statement.first_seen(),
            last_seen: statement.last_seen(),
            histogram: Bucket::all(statement.histogram(), source.clock()),
            ..StatementFigures::empty(statement.key, statement.text.as_ref(), source)
        }
    }

    /// A statement in progress for which nothing has been counted in the interval.
    pub(super) fn unfinished(
        key: StatementKey,
        source: &segment::StatementsReading,
    ) -> StatementFigures {
        StatementFigures::empty(
            key,
            source.get(&key).and_then(|statement| statement.text.as_ref()),
            source,
        )
    }

    /// Messages in progress with this text, whose statement is not known yet.
    pub(super) fn unnamed(
        key: StatementKey,
        message: &MessageText,
        source: &segment::StatementsReading,
    ) -> StatementFigures {
        let row = StatementFigures::empty(key, Some(&message.text), source);
        StatementFigures { unnamed: true, queryid: None, ..row }
    }

    /// Computes the figures that depend on the complete activities.
    pub(super) fn settle(&mut self) {
        self.activities.retain(|a| a.seconds > 0.0 || a.count > 0);
        self.activities.iter_mut().for_each(|a| a.seconds = a.seconds.max(0.0));
        self.activities.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        self.seconds = self.activities.iter().map(|a| a.seconds).fold(0.0, |sum, s| sum + s);
        self.split = Split::from_activities(&self.activities);
    }

    /// Its key, which is stable from one reading to the next.
    pub fn name(&self) -> String {
        let StatementKey { id, database_id, user_id, toplevel, application } = self.key;
        let application = application.name().unwrap_or_default();
        format!("{id} {database_id} {user_id} {toplevel} {application}").trim_end().to_string()
    }

    /// Server time per call, seconds.
    pub fn seconds_per_call(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.seconds / self.calls as f64)
    }

    /// Rows per execution.
    pub fn rows_per_call(&self) -> Option<f64> {
        (self.calls > 0).then(|| self.rows as f64 / self.calls as f64)
    }

    /// Its text, or a placeholder.
    pub fn text(&self) -> &str {
        match &self.query {
            Some(query) => query,
            None if self.queryid.is_none() => "(not identified)",
            None => "(text not kept)",
        }
    }

    /// Commands that show its plan; `None`: its text is unknown.
    pub fn example(&self) -> Option<StatementExample> {
        let text = self.query.as_deref().filter(|_| self.queryid.is_some())?;
        Some(StatementExample::for_text(text, self.query_cut))
    }

    /// Time in the activity of this name: "cpu" or `Type:Event`, canonical except for upper and lower case.
    pub fn seconds_in(&self, activity: &str) -> f64 {
        let is_wanted = |name: &str| wait_names::canonical(name).eq_ignore_ascii_case(activity);
        let wanted = self.activities.iter().filter(|a| is_wanted(&a.activity));
        wanted.map(|a| a.seconds).fold(0.0, |sum, s| sum + s)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CurrentRow, StatementsTable};
    use super::*;

    #[test]
    fn what_was_subtracted_leaves_no_negative_time_and_an_owner_is_that_of_its_slot() {
        let activity = |activity: &str, count, seconds| ActivityRow {
            phase: "execute".into(),
            activity: activity.into(),
            class: segment::WaitClass::of_name(activity),
            count,
            seconds,
        };
        let activities = vec![
            activity("cpu", 1, -1.0),
            activity("IO:DataFileRead", 0, 3.0),
            activity("Lock:tuple", 0, 0.0),
        ];
        let mut row = StatementFigures { activities, ..StatementFigures::default() };
        row.settle();
        let times: Vec<_> =
            row.activities.iter().map(|activity| (&*activity.activity, activity.seconds)).collect();
        assert_eq!((times, row.seconds), (vec![("IO:DataFileRead", 3.0), ("cpu", 0.0)], 3.0));
        assert_eq!(
            (row.split.class(segment::WaitClass::Io), row.split.class(segment::WaitClass::Cpu)),
            (3.0, 0.0)
        );
        let session = &crate::sample::interval().sessions[0];
        let (pid, slot, generation) = (session.pid, session.slot, session.generation);
        for (generation, is_of) in [(generation, true), (generation + 1, false)] {
            let current = vec![CurrentRow { pid, slot, generation, ..CurrentRow::default() }];
            let all = StatementsTable { current, ..StatementsTable::default() };
            assert_eq!(all.current_of(session).is_some(), is_of);
        }
    }
}

#[cfg(test)]
mod sampled_tests {
    use super::*;

    const DISTANCE: f64 = 0.1;

    /// A statement with this sampled time, and so many executions of a length, by which they deviate, too.
    fn statement(sampled: f64, count: u64, length: f64) -> StatementFigures {
        let activity = ActivityRow {
            phase: "active".into(),
            activity: "IO:DataFileRead".into(),
            class: segment::WaitClass::Io,
            count: 0,
            seconds: sampled,
        };
        let some = (count > 0).then_some(length);
        let mut row = StatementFigures {
            calls: count,
            seconds: sampled,
            activities: vec![activity],
            execution: Moments {
                count,
                seconds: count as f64 * length,
                mean_seconds: some,
                stddev_seconds: some,
                ..Moments::default()
            },
            ..StatementFigures::default()
        };
        row.set_sampled(DISTANCE);
        row
    }

    #[test]
    fn the_time_of_short_executions_is_that_of_pg_stat_statements() {
        let row = statement(0.8, 1000, 0.001);
        assert_eq!(row.seconds_source, Some(SecondsSource::PgStatStatements));
        assert_eq!(
            (row.seconds, row.half_width_seconds, row.known_calls()),
            (1.0, None, Some(1000))
        );
        // Samples only divide it.
        assert!((row.activities[0].seconds - 1.0).abs() < 1e-9);
        assert!((row.split.class(segment::WaitClass::Io) - 1.0).abs() < 1e-9);
        // No sample has seen it.
        let row = statement(0.0, 10, 0.001);
        assert!((row.seconds - 0.01).abs() < 1e-9 && row.half_width_seconds.is_none());
    }

    #[test]
    fn the_parts_of_its_time_have_half_widths_unless_no_sample_has_seen_it() {
        let sampled = statement(1.0, 0, 0.0);
        assert_eq!(sampled.part_half_width(1.0), sampled.half_width_seconds);
        // Eight samples divide it.
        let counted = statement(0.8, 1000, 0.001);
        let [half, none] = [0.5, 0.0].map(|part| counted.part_half_width(part).unwrap());
        assert!(0.3 < half && half < 0.6 && 0.0 < none && none < half, "{half} {none}");
        assert_eq!(counted.share_of_time_half_width(0.5), Some(half));
        let unseen = statement(0.0, 10, 0.001);
        assert_eq!(
            (unseen.part_half_width(0.0), unseen.share_of_time_half_width(0.0)),
            (None, None)
        );
        assert_eq!(StatementFigures::default().part_half_width(1.0), None);
    }

    #[test]
    fn the_share_of_a_sampled_time_is_certain_only_without_others() {
        let half_width = |share: f64, of_all: f64| {
            let mut row = statement(1.0, 0, 0.0);
            row.share = share;
            row.set_share_half_width(1.0 / share, of_all);
            row.share_half_width.unwrap()
        };
        let own = statement(1.0, 0, 0.0).half_width_seconds.unwrap();
        assert_eq!(half_width(1.0, own), 0.0);
        assert!((half_width(0.5, own) - own / 4.0).abs() < 1e-9);
        assert!(half_width(0.5, 2.0 * own) > half_width(0.5, own));
    }

    #[test]
    fn the_time_of_long_ones_is_sampled_because_they_count_only_when_they_end() {
        for (sampled, count, length) in [(1.0, 1, 60.0), (1.0, 0, 0.0)] {
            let row = statement(sampled, count, length);
            assert_eq!(row.seconds_source, Some(SecondsSource::Samples));
            assert!(row.seconds == sampled && row.half_width_seconds.unwrap() > 0.0);
        }
    }

    #[test]
    fn time_that_pg_stat_statements_does_not_count_is_sampled() {
        // Commits, for example.
        let row = statement(9.0, 1000, 0.001);
        assert_eq!((row.seconds, row.seconds_source), (9.0, Some(SecondsSource::Samples)));
    }
}
