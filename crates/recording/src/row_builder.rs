// SPDX-License-Identifier: PostgreSQL
//! Rows from frames.
//!
//! Times are rounded to nanoseconds. The remainder goes to the next interval of the same
//! series, so that the sum over any period is off by less than one nanosecond.

use crate::batch::Batch;
use crate::fingerprint::fingerprint;
use crate::range::time_us;
use crate::recorded_statement::RecordedStatementRow;
use crate::rows::{FrameRow, SessionsRow, StatementAccountRow, TextRow};
use crate::series::Series;
use crate::statement;
use crate::statistics::{HistogramRow, StatRow};
use segment::delta::Extreme;
use segment::directory::StatKind;
use segment::frame::FrameStat;
use segment::interval::is_idle;
use segment::statements::StatementRecord;
use segment::{Frame, Producer, StatementKey};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// Builds the rows of one recording.
#[derive(Debug, Default)]
pub struct RowBuilder {
    series: HashMap<(Arc<str>, Arc<segment::directory::Stat>), SeriesState>,
    /// Remainders of the times in the rows of intervals.
    remainder: HashMap<&'static str, f64>,
    /// The merged frames since the last detail.
    detail: Option<Frame>,
}

#[derive(Debug)]
struct SeriesState {
    series: Arc<Series>,
    /// The remainder, ns.
    remainder: f64,
}

/// Converts ticks to whole nanoseconds; `remainder` is added, and set to the new remainder.
fn whole(ticks: u64, ns_per_tick: f64, remainder: &mut f64) -> u64 {
    let exact = ticks as f64 * ns_per_tick + *remainder;
    let whole = exact.round().max(0.0);
    *remainder = exact - whole;
    whole as u64
}

impl RowBuilder {
    /// A builder without frames.
    pub fn new() -> RowBuilder {
        RowBuilder::default()
    }

    /// The rows of an interval for `frames`, `sessions` and `statistics`. The caller fills in the
    /// machine's figures.
    pub fn frame(&mut self, frame: &Frame, number: u64, server: u32) -> Batch {
        let time_us = time_us(frame.realtime_ns);
        let ns_per_tick = 1e9 / frame.clock.ticks_per_second;
        let mut batch = Batch::default();
        let sampled = is_sampled(frame);
        let mut row = FrameRow {
            frame: number,
            time_us,
            monotonic_ns: frame.monotonic_ns,
            server,
            level: frame.level.to_string().into(),
            level_left_ns: frame.level_end.map(|end| (end.left as f64 * ns_per_tick) as u64),
            level_then: frame.level_end.map(|end| end.then.to_string().into()),
            ticks_per_second: frame.clock.ticks_per_second,
            cores: u32::try_from(frame.cores).unwrap_or(u32::MAX),
            exact: frame.is_whole() && frame.uninstrumented_ticks() == 0 && !sampled,
            source: if sampled { "sampled" } else { "exact" }.into(),
            ended_sessions: frame.ended_sessions,
            torn_sessions: frame.torn_sessions as u64,
            nameless: frame.nameless,
            functions_probed: frame.functions_probed as u64,
            ..FrameRow::default()
        };
        for (name, ticks, to) in [
            ("interval", frame.ticks, &mut row.interval_ns),
            ("wall", frame.wall, &mut row.wall_ns),
            ("locks", frame.locks_ticks, &mut row.locks_ns),
            ("ended", frame.ended_ticks, &mut row.ended_ns),
        ] {
            *to = whole(ticks, ns_per_tick, self.remainder.entry(name).or_default());
        }
        row.set_overflows(&frame.overflow_in_interval);
        for statistic in &frame.statistics {
            let stat = self.stat_row(statistic, number, time_us, ns_per_tick);
            if statistic.stat.kind == StatKind::Account {
                if !is_idle(&statistic.stat) {
                    row.busy_ns += stat.total;
                }
                if &**statistic.stat.phase() == "off" {
                    row.uninstrumented_ns += stat.total;
                }
            } else if statistic.command().is_some_and(|(_, handle)| handle) {
                row.commands += stat.count;
            }
            batch.statistics.push(stat);
        }
        for population in &frame.population {
            *match population.state {
                "active" => &mut row.sessions_active,
                "idle" => &mut row.sessions_idle,
                "idle in transaction" => &mut row.sessions_idle_in_transaction,
                "background" => &mut row.sessions_background,
                _ => &mut row.sessions_dead,
            } += population.sessions;
            batch.sessions.push(SessionsRow {
                frame: number,
                time_us,
                process: population.process.clone(),
                state: population.state.into(),
                sessions: population.sessions,
            });
        }
        batch.frames.push(row);
        self.gather(frame);
        batch
    }

    fn stat_row(
        &mut self,
        statistic: &FrameStat,
        frame: u64,
        time_us: i64,
        ns_per_tick: f64,
    ) -> StatRow {
        let key = (statistic.process.clone(), statistic.stat.clone());
        let state = self.series.entry(key).or_insert_with(|| SeriesState {
            series: Arc::new(Series {
                process: statistic.process.clone(),
                stat: statistic.stat.clone(),
            }),
            remainder: 0.0,
        });
        let change = &statistic.total.change;
        let total = match statistic.stat.kind {
            StatKind::Value => change.total,
            _ => whole(change.total, ns_per_tick, &mut state.remainder),
        };
        StatRow {
            frame,
            time_us,
            series: state.series.clone(),
            count: change.count,
            total,
            amount: change.amount,
            follows: change.follows,
        }
    }

    /// Merge a frame into the next detail, without its sessions.
    fn gather(&mut self, frame: &Frame) {
        let light = || Frame { sessions: Vec::new(), ..frame.clone() };
        match &mut self.detail {
            Some(detail) => detail.merge(frame),
            None => self.detail = Some(light()),
        }
    }

    /// The rows of `histograms` since the last call, to be written with the interval of this number.
    pub fn histograms(&mut self, number: u64) -> Vec<HistogramRow> {
        let Some(frame) = self.detail.take() else {
            return Vec::new();
        };
        let time_us = time_us(frame.realtime_ns);
        let ns_per_tick = 1e9 / frame.clock.ticks_per_second;
        let row = |statistic: &FrameStat| {
            let scale = if statistic.stat.kind == StatKind::Value { 1.0 } else { ns_per_tick };
            let known = |extreme: Extreme| extreme.known().map(|n| (n as f64 * scale) as u64);
            let (min, max) = (known(statistic.total.change.min), known(statistic.total.change.max));
            let (buckets, counts): (Vec<u64>, Vec<u64>) =
                statistic.total.histogram.buckets().map(|(b, n)| (b as u64, n)).unzip();
            if max.is_none() && buckets.is_empty() {
                return None;
            }
            let series =
                &self.series.get(&(statistic.process.clone(), statistic.stat.clone()))?.series;
            let series = series.clone();
            Some(HistogramRow { frame: number, time_us, series, min, max, buckets, counts })
        };
        frame.statistics.iter().filter_map(row).collect()
    }

    /// Drop the frames of the next detail, because another run of the server begins.
    pub fn reset(&mut self) {
        self.detail = None;
    }
}

/// Whether an interval was estimated from samples of a server.
fn is_sampled(frame: &Frame) -> bool {
    Producer::from_text(&frame.server.producer) == Producer::Sampler
}

/// The rows of statements in a detail interval of `interval_ns` that ends with this interval, which has this number:
/// `statements`, `statement_accounts` and `statement_texts`. Of a sampled server, a statement that was only seen in samples
/// has a row in `statements`, too.
pub fn statement_rows(
    records: &[StatementRecord],
    last: &Frame,
    frame: u64,
    interval_ns: u64,
) -> Batch {
    let time_us = time_us(last.realtime_ns);
    let ns_per_tick = 1e9 / last.clock.ticks_per_second;
    let sampled = is_sampled(last);
    let mut batch = Batch::default();
    let mut texts = HashSet::new();
    for record in records {
        let ticks = record.parts.iter().filter(|_| sampled).map(|part| part.ticks).sum::<i64>();
        let row = RecordedStatementRow {
            frame,
            time_us,
            interval_ns,
            sampled_ns: (ticks as f64 * ns_per_tick).round() as u64,
            ..statement::row_of(record, ns_per_tick)
        };
        let is_counted = |row: &RecordedStatementRow| row.calls > 0 || row.plans > 0;
        if is_counted(&row) || row.sampled_ns > 0 || record.sums.counters.iter().any(|n| *n > 0) {
            batch.statements.push(row);
        }
        let StatementKey { database_id, user_id, toplevel, application, .. } = record.key;
        let queryid = record.key.query_id();
        for part in &record.parts {
            batch.statement_accounts.push(StatementAccountRow {
                frame,
                time_us,
                queryid,
                database_id,
                user_id,
                toplevel,
                application: application.name().unwrap_or_default().into(),
                account: part.account.clone(),
                count: part.count,
                total_ns: (part.ticks as f64 * ns_per_tick).round() as i64,
            });
        }
        let key = (queryid, database_id, user_id, toplevel);
        if let Some(text) = record.text.as_ref().filter(|_| texts.insert(key)) {
            batch.statement_texts.push(TextRow {
                frame,
                time_us,
                queryid,
                database_id,
                user_id,
                toplevel,
                text: text.shown.clone(),
                kept_bytes: text.kept,
                whole_bytes: text.whole,
                fingerprint: fingerprint(&text.shown).into(),
            });
        }
    }
    batch
}
