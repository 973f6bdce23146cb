// SPDX-License-Identifier: PostgreSQL
//! Makes a long recording from a short real one:
//!
//!     cargo run --release -p recording --example day SOURCE DEST [HOURS [STATISTICS [STATEMENTS]]]
//!
//! The intervals of SOURCE are replayed in order, repeatedly, each as one second. Counts are drawn again
//! each time: a count n becomes a random number with mean and variance n. Times follow their counts and
//! vary by another tenth, and so do the buckets of histograms. So the course of the load is real, and
//! there are no repetitions to compress. If an average interval has fewer statistics, or an average
//! detail fewer statements, than requested, copies with other names and separate draws are added.
//! Devices, the kernel's figures and relations are replayed unchanged; events are omitted.

use recording::{
    About, Batch, DeviceRow, Range, Recording, RetentionPolicy, RowBuilder, ServerRow,
    SessionHistoryRow, Writer,
};
use segment::delta::Extreme;
use segment::directory::Stat;
use segment::statements::{StatementRecord, Unit, COUNTER};
use segment::{Frame, Histogram, RelationRow};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// 2026-03-01 00:00:00 UTC.
const BEGIN_US: i64 = 1_772_323_200_000_000;

struct Dice(u64);

impl Dice {
    /// A random number between 0 and 1.
    fn throw(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.0 >> 33) as f64 / f64::from(1u32 << 31)
    }

    /// A random count of about `n`, plus or minus its square root; zero stays zero, and other counts do
    /// not become zero.
    fn draw(&mut self, n: u64) -> u64 {
        if n == 0 {
            return 0;
        }
        let mean = n as f64;
        if mean < 30.0 {
            // The number of throws until their product falls below e^-n has a Poisson distribution.
            let (min, mut product, mut drawn) = ((-mean).exp(), self.throw(), 0);
            while product > min {
                product *= self.throw();
                drawn += 1;
            }
            return drawn.max(1);
        }
        let normal = (0..12).map(|_| self.throw()).sum::<f64>() - 6.0;
        (mean + mean.sqrt() * normal).round().max(1.0) as u64
    }

    /// `n` times `ratio`, plus or minus up to a tenth.
    fn near(&mut self, n: u64, ratio: f64) -> u64 {
        let factor = ratio * (0.9 + 0.2 * self.throw());
        ((n as f64 * factor).round() as u64).max(u64::from(n > 0))
    }
}

fn ratio(now: u64, then: u64) -> f64 {
    if then > 0 {
        now as f64 / then as f64
    } else {
        1.0
    }
}

fn scaled(n: u64, ratio: f64) -> u64 {
    (n as f64 * ratio).round() as u64
}

fn draw_histogram(histogram: &Histogram, dice: &mut Dice) -> Histogram {
    Histogram::of_buckets(histogram.buckets().map(|(bucket, n)| (bucket, dice.draw(n))))
}

/// One of the real intervals, with new draws.
fn draw_frame(frame: &Frame, dice: &mut Dice) -> Frame {
    let mut frame = frame.clone();
    for statistic in &mut frame.statistics {
        let change = &mut statistic.total.change;
        let count = dice.draw(change.count);
        let ratio = ratio(count, change.count);
        change.total = dice.near(change.total, ratio);
        // Keep whole pages.
        let unit = if change.amount % 8192 == 0 { 8192 } else { 1 };
        change.amount = scaled(change.amount / unit, ratio) * unit;
        change.follows = scaled(change.follows, ratio).min(count);
        change.count = count;
        for extreme in [&mut change.min, &mut change.max] {
            if let Extreme::Of(n) = extreme {
                *extreme = Extreme::Of(dice.near(*n, 1.0));
            }
        }
        statistic.total.histogram = draw_histogram(&statistic.total.histogram, dice);
    }
    frame
}

fn draw_statement(
    original: &StatementRecord,
    copy: u64,
    later_us: i64,
    dice: &mut Dice,
) -> StatementRecord {
    let mut record = original.clone();
    record.key.id = record.key.id.wrapping_add(copy.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    for times in [&mut record.sums.exec, &mut record.sums.plan] {
        let count = dice.draw(times.count);
        let ratio = ratio(count, times.count);
        times.count = count;
        times.total = dice.near(times.total, ratio);
        times.squares *= ratio * (0.9 + 0.2 * dice.throw());
        times.min = times.min.map(|n| dice.near(n, 1.0));
        times.max = times.max.map(|n| dice.near(n, 1.0));
    }
    let ratio = ratio(record.sums.exec.count, original.sums.exec.count);
    for (index, n) in record.sums.counters.iter_mut().enumerate() {
        *n = if COUNTER[index].unit == Unit::Ticks {
            dice.near(*n, ratio)
        } else {
            scaled(*n, ratio)
        };
    }
    record.sums.histogram = draw_histogram(&record.sums.histogram, dice);
    for part in &mut record.parts {
        part.count = scaled(part.count, ratio);
        part.ticks = dice.near(part.ticks.unsigned_abs(), ratio) as i64 * part.ticks.signum();
    }
    record.sums.last_us += later_us;
    record
}

/// A session's activity, with new draws; a session that was always busy stays so.
fn draw_session(
    row: &SessionHistoryRow,
    (frame, time_us): (u64, i64),
    dice: &mut Dice,
) -> SessionHistoryRow {
    let commands = dice.draw(row.commands);
    let ratio = ratio(commands, row.commands);
    let busy_ns = dice.near(row.busy_ns, ratio).min(row.interval_ns);
    SessionHistoryRow {
        frame,
        time_us,
        commands,
        since_ns: dice.near(row.since_ns, 1.0),
        transaction_ns: row.transaction_ns.map(|ns| dice.near(ns, 1.0)),
        busy_ns,
        cpu_ns: dice.near(row.cpu_ns, ratio).min(busy_ns),
        ..row.clone()
    }
}

/// The number of copies: this many of each, and another one of a part of them.
struct Copies {
    whole: u64,
    part: f64,
}

impl Copies {
    fn reaching(wanted: usize, on_average: f64) -> Copies {
        let times = (wanted as f64 / on_average.max(1e-9)).max(1.0);
        Copies { whole: times.floor() as u64, part: times.fract() }
    }

    /// The number of copies of the one with this name or number.
    fn draw(&self, name: u64) -> u64 {
        let place = (name.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 33) as f64 / f64::from(1u32 << 31);
        self.whole + u64::from(place < self.part)
    }
}

fn number(name: &str) -> u64 {
    name.bytes().fold(7, |sum, byte| sum.wrapping_mul(31).wrapping_add(u64::from(byte)))
}

/// Adds copies of statistics, which have a number at the end of their names.
fn widen(mut frame: Frame, copies: &Copies) -> Frame {
    for statistic in frame.statistics.clone() {
        for copy in 2..=copies.draw(number(&statistic.stat.name) ^ number(&statistic.process)) {
            let name = format!("{} {copy}", statistic.stat.name);
            let stat = Stat::new(name, statistic.stat.kind, statistic.stat.unit.clone());
            frame
                .statistics
                .push(segment::frame::FrameStat { stat: Arc::new(stat), ..statistic.clone() });
        }
    }
    frame
}

fn on_average(n: impl Iterator<Item = usize>) -> f64 {
    let (count, sum) = n.fold((0, 0), |(count, sum), n| (count + 1, sum + n));
    f64::from(u32::try_from(sum).unwrap_or(u32::MAX)) / f64::from(count.max(1))
}

/// The details of a detail interval.
struct Detail {
    spread: Frame,
    statements: Vec<StatementRecord>,
    relations: Vec<RelationRow>,
    /// The end of the detail interval.
    time_us: i64,
    host: Batch,
}

fn details(real: &Recording) -> Result<Vec<Detail>, Box<dyn Error>> {
    let detail_us = i64::try_from(real.about().detail_ns / 1000)?;
    let mut details = Vec::new();
    for spread in real.frames(Range::ALL, Some(Duration::from_nanos(real.about().detail_ns)))? {
        let spread = spread?;
        let time_us = recording::time_us(spread.realtime_ns);
        let range = Range { from_us: time_us - detail_us, to_us: time_us };
        let found = real.statements(range)?;
        let host = Batch {
            kernel: real.kernel(range)?,
            server_io: real.server_io(range)?,
            ..Batch::default()
        };
        details.push(Detail {
            spread,
            statements: found.map_or_else(Vec::new, |found| found.total_records()),
            relations: real.relations(range)?.unwrap_or_default().rows,
            time_us,
            host,
        });
    }
    Ok(details)
}

/// Writes one second after another.
struct Maker {
    writer: Writer,
    row_builder: RowBuilder,
    dice: Dice,
    /// Copies of statements.
    copies: Copies,
    detail_ns: u64,
}

impl Maker {
    fn second(
        &mut self,
        second: i64,
        frame: &Frame,
        devices: &[DeviceRow],
        sessions: &[SessionHistoryRow],
        detail: Option<&Detail>,
    ) -> Result<(), Box<dyn Error>> {
        let mut frame = draw_frame(frame, &mut self.dice);
        // Intervals never end exactly on the second.
        let end = (BEGIN_US + second * 1_000_000) as u64 * 1000;
        frame.realtime_ns = end + (self.dice.throw() * 900_000.0) as u64;
        frame.monotonic_ns = frame.realtime_ns - BEGIN_US as u64 * 1000;
        let number = self.writer.next_frame();
        let stamp = (number, recording::time_us(frame.realtime_ns));
        let mut batch = self.row_builder.frame(&frame, number, 1);
        batch.devices = devices.to_vec();
        batch.devices.iter_mut().for_each(|row| (row.frame, row.time_us) = stamp);
        batch.session_history =
            sessions.iter().map(|row| draw_session(row, stamp, &mut self.dice)).collect();
        if let Some(detail) = detail {
            self.row_builder.reset();
            let spread = draw_frame(&detail.spread, &mut self.dice);
            let spread = Frame { realtime_ns: frame.realtime_ns, ..spread };
            self.row_builder.frame(&spread, number, 1);
            batch.histograms = self.row_builder.histograms(number);
            let mut rows = Vec::new();
            for statement in &detail.statements {
                for copy in 0..self.copies.draw(statement.key.id) {
                    let later_us = stamp.1 - detail.time_us;
                    rows.push(draw_statement(statement, copy, later_us, &mut self.dice));
                }
            }
            batch.append(recording::statement_rows(&rows, &frame, number, self.detail_ns));
            batch.relations = recording::relation_rows(&detail.relations, stamp, self.detail_ns);
            batch.kernel.clone_from(&detail.host.kernel);
            batch.server_io.clone_from(&detail.host.server_io);
            batch.kernel.iter_mut().for_each(|row| (row.frame, row.time_us) = stamp);
            batch.server_io.iter_mut().for_each(|row| (row.frame, row.time_us) = stamp);
        }
        Ok(self.writer.push(batch)?)
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let number = |at: usize, default: usize| -> Result<usize, Box<dyn Error>> {
        args.get(at).map_or(Ok(default), |text| Ok(text.parse()?))
    };
    let (Some(source), Some(dest)) = (args.get(1), args.get(2)) else {
        return Err("usage: day SOURCE DEST [HOURS [STATISTICS [STATEMENTS]]]".into());
    };
    let (hours, statistics, statements) = (number(3, 24)?, number(4, 200)?, number(5, 500)?);
    let real = Recording::open(Path::new(source), None)?;
    let about = About { begun_us: BEGIN_US, interval_ns: 1_000_000_000, ..real.about().clone() };
    let mut details = details(&real)?;
    let seconds = real.frames(Range::ALL, None)?.collect::<Result<Vec<Frame>, _>>()?;
    let active = on_average(seconds.iter().map(|frame| frame.statistics.len()));
    let known = on_average(details.iter().map(|detail| detail.statements.len()));
    println!(
        "{} real intervals with {active:.1} active statistics on average, {} details with {known:.1} \
         statements and {:.1} relations",
        seconds.len(),
        details.len(),
        on_average(details.iter().map(|detail| detail.relations.len()))
    );
    let copies = Copies::reaching(statistics, active);
    let seconds: Vec<Frame> = seconds.into_iter().map(|frame| widen(frame, &copies)).collect();
    for detail in &mut details {
        detail.spread = widen(detail.spread.clone(), &copies);
    }
    let devices = real.devices(Range::ALL)?;
    let devices = |frame: &Frame| -> Vec<DeviceRow> {
        let time_us = recording::time_us(frame.realtime_ns);
        devices.iter().filter(|row| row.time_us == time_us).cloned().collect()
    };
    let sessions = real.session_history(Range::ALL)?;
    let sessions = |frame: &Frame| -> &[SessionHistoryRow] {
        let time_us = recording::time_us(frame.realtime_ns);
        let first = sessions.partition_point(|row| row.time_us < time_us);
        let after = sessions.partition_point(|row| row.time_us <= time_us);
        &sessions[first..after]
    };
    let begun = Instant::now();
    let mut writer = Writer::open(Path::new(dest), about, RetentionPolicy::default())?;
    let server = ServerRow { frame: 0, server: 1, ..real.servers()?[0].clone() };
    writer.push(Batch { servers: vec![server], ..Batch::default() })?;
    let mut maker = Maker {
        writer,
        row_builder: RowBuilder::new(),
        dice: Dice(1),
        copies: Copies::reaching(statements, known),
        detail_ns: real.about().detail_ns,
    };
    let mut details = details.iter().cycle();
    for (second, frame) in (1..=hours as i64 * 3600).zip(seconds.iter().cycle()) {
        let detail = if second % 10 == 0 { details.next() } else { None };
        maker.second(second, frame, &devices(frame), sessions(frame), detail)?;
    }
    maker.writer.close()?;
    println!("written in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}
