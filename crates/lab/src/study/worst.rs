// SPDX-License-Identifier: PostgreSQL
//! Lists where the time went in the part of a cell in which a read was worst.

use std::collections::BTreeMap;

use serde_json::Value;

use super::cell::Values;
use super::file::{Better, Study};
use view::table::Table;

/// The worst part so far for each listing of the study, in its order.
pub struct Worst<'a> {
    study: &'a Study,
    parts: Vec<Option<WorstPart>>,
}

/// A part of a cell.
struct WorstPart {
    value: f64,
    from: f64,
    to: f64,
    interval: Value,
}

/// The operations of a statistic that ended in the part, and their time in the part, seconds.
#[derive(Default)]
struct Total {
    count: f64,
    seconds: f64,
    max: Option<f64>,
}

impl<'a> Worst<'a> {
    /// Starts without any part.
    pub fn new(study: &'a Study) -> Self {
        Self { study, parts: study.listings.iter().map(|_| None).collect() }
    }

    /// Considers a part that has ended. If several parts are equal, it keeps the last, because
    /// operations that lasted through all of them end in it.
    pub fn see(&mut self, values: &Values, interval: Option<&Value>, from: f64, to: f64) {
        let Some(interval) = interval else { return };
        for (listing, kept) in self.study.listings.iter().zip(&mut self.parts) {
            let read = listing.worst.as_ref().and_then(|name| self.study.read(name));
            let Some(read) = read else { continue };
            let Some(value) = values.get(&read.name).copied().flatten() else { continue };
            let is_worse = kept.as_ref().is_none_or(|part| match read.better {
                Some(Better::Less) => value >= part.value,
                _ => value <= part.value,
            });
            if is_worse {
                *kept = Some(WorstPart { value, from, to, interval: interval.clone() });
            }
        }
    }

    /// Writes the text of each listing that shows a worst part.
    pub fn write(&self, listings: &mut [String]) {
        for ((listing, kept), text) in self.study.listings.iter().zip(&self.parts).zip(listings) {
            let (Some(part), Some(name)) = (kept, &listing.worst) else { continue };
            let title = self.study.read(name).map_or(name.as_str(), |read| read.title());
            let WorstPart { value, from, to, .. } = part;
            *text = format!(
                "from {from:.1} s to {to:.1} s: {title} {value:.0}\n{}",
                table(&part.interval, listing.lines)
            );
        }
    }
}

/// A table of the interval's statistics, sorted by total time.
fn table(interval: &Value, lines: usize) -> String {
    let mut totals: Vec<(String, Total)> = totals(interval).into_iter().collect();
    totals.retain(|(_, total)| total.seconds > 0.0);
    totals.sort_by(|(_, a), (_, b)| b.seconds.total_cmp(&a.seconds));
    let mut columns =
        Table::with_headings(&["name", "count", "total, ms", "average, ms", "max, ms"], 1..5);
    let ms = |seconds: Option<f64>| seconds.map_or(String::new(), |s| format!("{:.1}", s * 1e3));
    for (name, total) in totals.into_iter().take(lines) {
        let average = (total.count > 0.0).then(|| total.seconds / total.count);
        columns.push_texts(vec![
            name,
            format!("{:.0}", total.count),
            ms(Some(total.seconds)),
            ms(average),
            ms(total.max),
        ]);
    }
    columns.to_string().trim_end().to_string()
}

fn totals(interval: &Value) -> BTreeMap<String, Total> {
    let mut totals: BTreeMap<String, Total> = BTreeMap::new();
    let rows = |name: &str| interval[name].as_array().into_iter().flatten();
    let mut add = |name: String, timing: &Value| {
        let number = |field: &str| timing[field].as_f64();
        let total = totals.entry(name).or_default();
        total.count += number("count").unwrap_or(0.0);
        total.seconds += number("seconds").unwrap_or(0.0);
        total.max = total.max.into_iter().chain(number("max_seconds")).reduce(f64::max);
    };
    let text = |row: &Value, field: &str| row[field].as_str().unwrap_or_default().to_string();
    for row in rows("files") {
        add(format!("file::{}::{}", text(row, "file"), text(row, "operation")), row);
    }
    for row in rows("waits").filter(|row| row["idle"] != Value::Bool(true)) {
        add(format!("wait::{}", text(row, "activity")), row);
    }
    // Only handling, because reading a command is waiting for the client.
    for row in rows("commands") {
        add(format!("command::{}::handle", text(row, "kind")), &row["handle"]);
    }
    for row in rows("functions") {
        add(format!("function::{}", text(row, "name")), &row["inclusive"]);
    }
    totals
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn study(listing: &str) -> Result<Study, String> {
        study_where("more", listing)
    }

    fn study_where(better: &str, listing: &str) -> Result<Study, String> {
        Study::parse(&format!(
            "name = \"a\"\ntitle = \"A\"\nquestion = \"?\"\n[measure]\nevery = 1\n\
             [[arm]]\nname = \"one\"\n[[arm]]\nname = \"two\"\n\
             [workload]\nbuiltin = \"select-only\"\n\
             [[read]]\nname = \"tps\"\nof = \"throughput\"\nseries = true\nbetter = \"{better}\"\n\
             [[read]]\nname = \"cpu\"\nof = \"cpu\"\n\
             [[listing]]\ntitle = \"L\"\n{listing}"
        ))
    }

    #[test]
    fn the_part_with_the_lowest_throughput_is_listed_by_total_time() {
        let study = study("worst = \"tps\"\nlines = 3").unwrap();
        let mut worst = Worst::new(&study);
        let sync = |seconds: f64| {
            json!({
                "files": [
                    {"file": "wal", "operation": "sync", "count": 1, "seconds": seconds, "max_seconds": seconds},
                    {"file": "main", "operation": "read", "count": 4, "seconds": 0.001, "max_seconds": 0.0005},
                    {"file": "main", "operation": "read", "count": 4, "seconds": 0.003, "max_seconds": 0.002},
                ],
                "waits": [
                    {"activity": "LWLock:WALWrite", "idle": false, "count": 0, "seconds": 7.5, "max_seconds": null},
                    {"activity": "Client:ClientRead", "idle": true, "count": 9, "seconds": 99.0, "max_seconds": 1.0},
                ],
                "commands": [],
                "functions": [],
            })
        };
        for (at, (tps, seconds)) in
            [(800.0, 0.1), (0.0, 0.2), (0.0, 2.0), (5.0, 0.3)].into_iter().enumerate()
        {
            let values = Values::from([("tps".to_string(), Some(tps))]);
            worst.see(&values, Some(&sync(seconds)), at as f64, at as f64 + 1.0);
        }
        let mut listings = vec![String::new()];
        worst.write(&mut listings);
        let lines: Vec<&str> = listings[0].lines().collect();
        assert_eq!(
            lines,
            [
                "from 2.0 s to 3.0 s: tps 0",
                "name                   count  total, ms  average, ms  max, ms",
                "wait::LWLock:WALWrite      0     7500.0",
                "file::wal::sync            1     2000.0       2000.0   2000.0",
                "file::main::read           8        4.0          0.5      2.0",
            ]
        );
    }

    #[test]
    fn a_worst_part_needs_a_read_with_a_series_and_a_direction() {
        for (listing, named) in [("worst = \"cpu\"", "series"), ("worst = \"cqu\"", "cqu")] {
            let error = study(listing).unwrap_err();
            assert!(error.contains(named), "{error}");
        }
    }

    #[test]
    fn where_less_is_better_the_highest_is_worst_and_commands_and_functions_are_listed() {
        let study = study_where("less", "worst = \"tps\"\nlines = 9").unwrap();
        let mut worst = Worst::new(&study);
        let timing = |seconds: f64| json!({"count": 2, "seconds": seconds, "max_seconds": seconds});
        for (at, tps) in [3.0, 9.0, 1.0].into_iter().enumerate() {
            let interval = json!({
                "files": [], "waits": [],
                "commands": [{"kind": "Query", "read": timing(70.0), "handle": timing(tps)}],
                "functions": [{"name": "f", "inclusive": timing(0.5), "exclusive": timing(0.25)}],
            });
            let values = Values::from([("tps".to_string(), Some(tps))]);
            worst.see(&values, Some(&interval), at as f64, at as f64 + 1.0);
        }
        let mut listings = vec![String::new()];
        worst.write(&mut listings);
        let words: Vec<Vec<&str>> =
            listings[0].lines().map(|line| line.split_whitespace().collect()).collect();
        assert_eq!(words[0].join(" "), "from 1.0 s to 2.0 s: tps 9");
        assert_eq!(words[2], ["command::Query::handle", "2", "9000.0", "4500.0", "9000.0"]);
        assert_eq!(words[3], ["function::f", "2", "500.0", "250.0", "500.0"]);
    }
}
