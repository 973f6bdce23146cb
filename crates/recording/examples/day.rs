// SPDX-License-Identifier: PostgreSQL
//! Makes a long recording from a short real one: `day SOURCE DEST [HOURS [STATISTICS [STATEMENTS]]]`.
//!
//! Each second is one of the real ones, chosen by chance, and each of its figures is multiplied
//! by a number between 0.5 and 1.5, so that nothing repeats for the compression to find.
//! Statistics and statements are copied under other names until there are as many as asked for,
//! and all of them are active all the time. So its size is more than that of a real day.

use recording::{About, Batch, Intake, Keeping, Range, Recording, ServerRow, Writer};
use segment::directory::Stat;
use segment::statements::StatementRecord;
use segment::{Frame, Histogram, Statements};
use std::error::Error;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// 2026-03-01 00:00:00 UTC.
const BEGIN_US: i64 = 1_772_323_200_000_000;

struct Dice(u64);

impl Dice {
    fn throw(&mut self, below: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695);
        (self.0 >> 33) as usize % below.max(1)
    }

    fn vary(&mut self, n: u64) -> u64 {
        let factor = 0.5 + self.throw(1 << 20) as f64 / f64::from(1 << 20);
        ((n as f64 * factor).round() as u64).max(u64::from(n > 0))
    }
}

/// As many statistics as asked for: copies have a number at the end of their names.
fn widen(mut frame: Frame, statistics: usize) -> Frame {
    let real = frame.statistics.clone();
    let mut copy = 1;
    while frame.statistics.len() < statistics && !real.is_empty() {
        copy += 1;
        for it in &real {
            let name = format!("{} {copy}", it.stat.name);
            let stat = Stat::new(name, it.stat.kind, it.stat.unit.clone());
            let mut more = it.clone();
            more.stat = Arc::new(stat);
            frame.statistics.push(more);
        }
    }
    frame.statistics.truncate(statistics);
    frame
}

fn vary_histogram(histogram: &Histogram, dice: &mut Dice) -> Histogram {
    Histogram::of_buckets(histogram.buckets().map(|(bucket, n)| (bucket, dice.vary(n))))
}

/// One of the real intervals, every figure changed a little.
fn vary(frame: &Frame, dice: &mut Dice) -> Frame {
    let mut frame = frame.clone();
    for it in &mut frame.statistics {
        let change = &mut it.total.change;
        change.count = dice.vary(change.count);
        change.total = dice.vary(change.total);
        change.amount = dice.vary(change.amount / 8192) * 8192;
        change.follows = dice.vary(change.follows).min(change.count);
        it.total.histogram = vary_histogram(&it.total.histogram, dice);
    }
    frame
}

fn vary_statement(it: &StatementRecord, id: u64, dice: &mut Dice) -> StatementRecord {
    let mut record = it.clone();
    record.key.id = record.key.id.wrapping_add(id.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    record.exec.count = dice.vary(record.exec.count);
    record.exec.total = dice.vary(record.exec.total);
    record.counters.iter_mut().for_each(|n| *n = dice.vary(*n));
    record.histogram = vary_histogram(&record.histogram, dice);
    for part in &mut record.parts {
        part.count = dice.vary(part.count);
        part.ticks = dice.vary(part.ticks.unsigned_abs()) as i64;
    }
    record
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
    let about = real.about().clone();
    let detail = Duration::from_nanos(about.detail_ns);
    let seconds: Vec<Frame> = real
        .frames(Range::ALL, None)?
        .map(|frame| frame.map(|frame| widen(frame, statistics)))
        .collect::<Result<_, _>>()?;
    let details: Vec<Frame> = real
        .frames(Range::ALL, Some(detail))?
        .map(|frame| frame.map(|frame| widen(frame, statistics)))
        .collect::<Result<_, _>>()?;
    let mut records = Vec::new();
    for latency in real.statement_latencies(Range::ALL)? {
        let to_us = latency.time_us;
        let from_us = to_us - 1;
        if let Some(found) = real.statements(Range { from_us, to_us })? {
            records.push(Statements::records(None, &found));
        }
    }
    let busiest = seconds.iter().map(|frame| frame.statistics.len()).max().unwrap_or(0);
    println!(
        "{} real intervals with up to {busiest} statistics, {} details",
        seconds.len(),
        details.len()
    );
    let about = About { begun_us: BEGIN_US, interval_ns: 1_000_000_000, ..about };
    let server = ServerRow { clock: "tsc".into(), server: 1, ..real.servers()?[0].clone() };
    let begun = Instant::now();
    let mut writer = Writer::open(Path::new(dest), about, Keeping::default())?;
    writer.push(Batch { servers: vec![ServerRow { frame: 0, ..server }], ..Batch::default() })?;
    let mut intake = Intake::new();
    let mut dice = Dice(1);
    for second in 1..=hours as i64 * 3600 {
        let mut frame = vary(&seconds[dice.throw(seconds.len())], &mut dice);
        // The end of an interval is never exactly on the second.
        frame.realtime_ns =
            (BEGIN_US + second * 1_000_000) as u64 * 1000 + dice.throw(900_000) as u64;
        frame.monotonic_ns = frame.realtime_ns - BEGIN_US as u64 * 1000;
        let number = writer.next_frame();
        let mut batch = intake.frame(&frame, number, 1);
        if second % 10 == 0 {
            intake.forget();
            let spread = vary(&details[dice.throw(details.len())], &mut dice);
            let frame = Frame { realtime_ns: frame.realtime_ns, ..spread };
            intake.frame(&frame, number, 1);
            batch.histograms = intake.detail(number);
            if !records.is_empty() {
                let all = &records[dice.throw(records.len())];
                let rows: Vec<StatementRecord> = (0..statements as u64)
                    .zip(all.iter().cycle())
                    .map(|(id, it)| vary_statement(it, id, &mut dice))
                    .collect();
                let rate = frame.clock.ticks_per_second;
                let time_us = (frame.realtime_ns / 1000) as i64;
                let stamp = (number, time_us);
                batch.append(recording::statements(&rows, rate, stamp, 10_000_000_000));
            }
        }
        writer.push(batch)?;
    }
    writer.close()?;
    println!("written in {:.1} s", begun.elapsed().as_secs_f64());
    Ok(())
}
