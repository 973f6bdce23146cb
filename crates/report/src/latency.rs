// SPDX-License-Identifier: PostgreSQL
//! Command latency over time: a heat map of the histograms of handling times.

use segment::layout::bucket_low;

use super::material::{Latency, Material};
use view::document::{Heatmap, Unit};

/// Maximum number of columns.
const COLUMNS: usize = 720;
/// Maximum number of rows.
const ROWS: usize = 64;

/// The heat map; `None` if no command was handled.
pub fn heatmap(material: &Material) -> Option<Heatmap> {
    let latency = &material.latency;
    let step = step(latency);
    // The clock's rate, when measured again, differs by a millionth; buckets are a sixteenth wide.
    let seconds_per_tick = latency.first()?.seconds_per_tick;
    let counts = columns(latency, step);
    let buckets = counts.iter().flat_map(|(_, column)| column.iter().flatten().map(|b| b.0));
    let (lowest, highest) = buckets.fold((usize::MAX, 0), |(l, h), b| (l.min(b), h.max(b)));
    if lowest > highest {
        return None;
    }
    let rows = |width: usize| highest / width - lowest / width + 1;
    let width = [1, 2, 4, 8, 16].into_iter().find(|&w| rows(w) <= ROWS).unwrap_or(32);
    let begin = lowest / width;
    let seconds = |row: usize| bucket_low((begin + row) * width) as f64 * seconds_per_tick;
    let column = |buckets: &Vec<(usize, u64)>| {
        let mut column: Vec<u64> = Vec::new();
        for (bucket, count) in buckets {
            let row = bucket / width - begin;
            if column.is_empty() {
                column.push(row as u64);
            }
            let at = row - column[0] as usize + 1;
            if column.len() <= at {
                column.resize(at + 1, 0);
            }
            column[at] = column[at].saturating_add(*count);
        }
        column
    };
    Some(Heatmap {
        id: "latency",
        section: "latency",
        title: "Command latency",
        note: Some(format!(
            "Client commands by handling time; each column covers {}. Colour: number of commands, \
             see the scale below.",
            view::units::duration(step)
        )),
        unit: Unit::Seconds,
        time: counts.iter().map(|(start, _)| *start).collect(),
        step_seconds: step,
        bounds: (0..=rows(width)).map(seconds).collect(),
        columns: counts.iter().map(|(_, buckets)| buckets.as_ref().map(column)).collect(),
    })
}

/// The length of a column: as recorded, or a multiple of it.
fn step(latency: &[Latency]) -> f64 {
    let (Some(first), Some(last)) = (latency.first(), latency.last()) else {
        return 1.0;
    };
    let longest = latency.iter().map(|l| l.seconds).fold(0.0, f64::max).max(1e-3);
    let all = last.start + last.seconds - first.start;
    longest * (all / longest / COLUMNS as f64).ceil().max(1.0)
}

/// The start of each column, and its buckets with their counts, lowest first; `None` if nothing was measured in
/// it.
type Column = (f64, Option<Vec<(usize, u64)>>);

fn columns(latency: &[Latency], step: f64) -> Vec<Column> {
    let Some(first) = latency.first().map(|l| l.start) else {
        return Vec::new();
    };
    // Uses the middle, so that a slightly early or late start makes no difference.
    let place = |l: &Latency| ((l.start + l.seconds / 2.0 - first) / step).max(0.0) as usize;
    let number = latency.iter().map(place).max().unwrap_or(0) + 1;
    let mut sums: Vec<Option<segment::Histogram>> = vec![None; number];
    for one in latency {
        if let Some(sum) = sums.get_mut(place(one)) {
            sum.get_or_insert_default().merge(&one.histogram);
        }
    }
    sums.into_iter()
        .enumerate()
        .map(|(at, sum)| (first + at as f64 * step, sum.map(|s| s.buckets().collect())))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use segment::Histogram;

    fn latency(start: f64, values: &[u64]) -> Latency {
        let mut histogram = Histogram::new();
        values.iter().for_each(|v| histogram.add(*v, 1));
        Latency { start, seconds: 10.0, seconds_per_tick: 1e-9, histogram }
    }

    #[test]
    fn every_command_is_in_its_row_and_column() {
        let mut material = super::super::sample::material();
        material.latency = vec![
            latency(0.0, &[1_000, 1_000_000]),
            latency(10.01, &[]),
            latency(30.0, &[2_000_000]),
        ];
        let map = heatmap(&material).unwrap();
        assert_eq!(map.time, [0.0, 10.0, 20.0, 30.0]);
        assert_eq!(map.columns[1], Some(vec![]));
        assert_eq!(map.columns[2], None);
        let cell = |column: usize, seconds: f64| {
            let row = map.bounds.windows(2).position(|b| b[0] <= seconds && seconds < b[1]);
            let column = map.columns[column].clone().unwrap();
            column.get(row.unwrap() - column[0] as usize + 1).copied().unwrap_or(0)
        };
        assert_eq!((cell(0, 1.001e-6), cell(0, 1.001e-3), cell(3, 2.001e-3)), (1, 1, 1));
        let all: u64 = map.columns.iter().flatten().flat_map(|c| c.iter().skip(1)).sum();
        assert_eq!(all, 3);
        material.latency.clear();
        assert!(heatmap(&material).is_none());
    }

    #[test]
    fn columns_and_rows_are_joined_where_there_are_too_many() {
        let mut material = super::super::sample::material();
        let recorded = |number: usize| -> Vec<Latency> {
            (0..number).map(|at| latency(10.0 * at as f64, &[1_000])).collect()
        };
        for (number, step, columns) in [(720, 10.0, 720), (721, 20.0, 361), (1441, 30.0, 481)] {
            material.latency = recorded(number);
            let map = heatmap(&material).unwrap();
            assert_eq!((map.step_seconds, map.columns.len()), (step, columns), "{number}");
            let all: u64 =
                map.columns.iter().flatten().flat_map(|column| column.iter().skip(1)).sum();
            assert_eq!(all, number as u64);
        }
        // 64 buckets from bucket 64 on have a row each, 65 have one for two.
        for (highest, rows) in [(127, 64), (128, 33), (319, 64)] {
            material.latency = vec![latency(0.0, &[bucket_low(64), bucket_low(highest)])];
            let map = heatmap(&material).unwrap();
            assert_eq!(map.bounds.len(), rows + 1, "{highest}");
            assert_eq!(map.bounds[0], bucket_low(64) as f64 * 1e-9);
        }
    }
}
