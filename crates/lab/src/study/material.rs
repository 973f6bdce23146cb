// SPDX-License-Identifier: PostgreSQL
//! The measurements of a part of a cell, and the reads computed from them.

use std::collections::BTreeMap;

use super::cell::{CellSeries, Values};
use super::expression::Expression;
use super::file::{Arm, Divisor, From, MeasuredProcesses, Read, ReadSource, Study, Take};
use super::plan::LoadPoint;
use super::processes::Usage;
use crate::engine::background::number_of;

/// The measurements of a cell or a part of one.
#[derive(Debug, Clone, Default)]
pub struct Material {
    /// Duration, seconds.
    pub seconds: f64,
    /// Number of transactions; `None` if the load does not report it.
    pub transactions: Option<f64>,
    /// Number of transactions in the time over which processes were measured.
    pub looked: Option<f64>,
    /// Number of commands that the server handled.
    pub commands: Option<f64>,
    /// CPU use of the server's processes.
    pub server: Usage,
    /// CPU use of the load's processes.
    pub load: Usage,
    /// CPU use of the instrument's processes, if there is one.
    pub instrument: Option<Usage>,
    /// CPU time of the whole machine, seconds.
    pub machine_seconds: Option<f64>,
    /// Figures from the interval and from queries, by the read's name, before any division.
    pub figures: Values,
    /// Latencies of transactions, ms, ascending.
    pub latencies: Option<Vec<f64>>,
    /// Duration of the whole load, seconds.
    pub run_seconds: Option<f64>,
    /// Cost of a clock reading, ns.
    pub clock_reading: Option<f64>,
    /// Output of the instrument.
    pub instrument_output: String,
    /// Output of the load.
    pub workload_output: String,
}

/// The inputs of values in addition to reads.
#[derive(Debug, Clone, Copy)]
pub struct ValueInputs<'a> {
    /// The arm, with its given values.
    pub arm: &'a Arm,
    /// The load.
    pub point: &'a LoadPoint,
    /// Duration of the cell or part, seconds.
    pub seconds: f64,
    /// Number of CPUs.
    pub cores: usize,
}

impl ValueInputs<'_> {
    fn value(&self, name: &str) -> Option<f64> {
        match name {
            "clients" => Some(f64::from(self.point.clients)),
            "rate" => self.point.rate,
            "seconds" => Some(self.seconds),
            "cores" => Some(self.cores as f64),
            _ => self.arm.given.get(name).copied(),
        }
    }

    /// Evaluates an expression over known reads; `None` if a name in it has no value.
    pub fn compute(&self, text: &str, known: &Values) -> Option<f64> {
        let of = |name: &str| known.get(name).copied().flatten().or_else(|| self.value(name));
        Expression::parse(text).ok()?.value(&of)
    }
}

/// All reads of a cell or a part of one. `series` is the cell's; a part has none.
pub fn evaluate(
    study: &Study,
    material: &Material,
    series: Option<&CellSeries>,
    given: ValueInputs<'_>,
) -> Values {
    let mut values = Values::new();
    for read in &study.reads {
        let value = match read.source() {
            Ok(ReadSource::Of(measured)) => material.measured(measured),
            Ok(ReadSource::Interval(_) | ReadSource::Sql(..)) => material.figure(read),
            Ok(ReadSource::Line(line, from)) => match from {
                From::Instrument => number_of(&material.instrument_output, line),
                From::Workload => number_of(&material.workload_output, line),
            },
            Ok(ReadSource::Value(text)) => given.compute(text, &values),
            Ok(ReadSource::Series(of, take)) => {
                series.and_then(|series| series.values.get(of)).and_then(|all| taken(all, take))
            }
            // The base's cell may not exist yet.
            Ok(ReadSource::OverBase(_)) | Err(_) => None,
        };
        values.insert(read.name.clone(), value.filter(|value| value.is_finite()));
    }
    values
}

impl Material {
    fn figure(&self, read: &Read) -> Option<f64> {
        let figure = self.figures.get(&read.name).copied().flatten()?;
        match read.per {
            None => Some(figure),
            Some(Divisor::Second) => Some(figure / self.seconds),
            Some(Divisor::Transaction) => Some(figure / self.transactions?),
            Some(Divisor::Command) => Some(figure / self.commands?),
        }
    }

    fn measured(&self, measured: MeasuredProcesses) -> Option<f64> {
        let each = |amount: f64| Some(amount / self.looked.filter(|n| *n > 0.0)?);
        let micros = |seconds: f64| each(seconds * 1e6);
        let quantile = |share: f64| {
            let all = self.latencies.as_ref()?;
            // The smallest value that is not below this share of all values.
            let at = (share * all.len() as f64).ceil() as usize;
            all.get(at.saturating_sub(1)).copied()
        };
        match measured {
            MeasuredProcesses::Throughput => Some(self.transactions? / self.seconds),
            MeasuredProcesses::LatencyMean => {
                let all = self.latencies.as_ref()?;
                Some(all.iter().sum::<f64>() / all.len() as f64)
            }
            MeasuredProcesses::LatencyP50 => quantile(0.5),
            MeasuredProcesses::LatencyP90 => quantile(0.9),
            MeasuredProcesses::LatencyP95 => quantile(0.95),
            MeasuredProcesses::LatencyP99 => quantile(0.99),
            MeasuredProcesses::LatencyP999 => quantile(0.999),
            MeasuredProcesses::LatencyMax => quantile(1.0),
            MeasuredProcesses::Cpu => micros(self.server.cpu),
            // The total is exact; ticks give only the proportions.
            MeasuredProcesses::User => micros(self.server.cpu * self.server.user_share()?),
            MeasuredProcesses::Kernel => {
                micros(self.server.cpu * (1.0 - self.server.user_share()?))
            }
            MeasuredProcesses::Dispatches => each(self.server.dispatches),
            MeasuredProcesses::LoadCpu => micros(self.load.cpu),
            MeasuredProcesses::LoadDispatches => each(self.load.dispatches),
            MeasuredProcesses::InstrumentCpu => micros(self.instrument?.cpu),
            MeasuredProcesses::MachineCpu => micros(self.machine_seconds?),
            MeasuredProcesses::Seconds => self.run_seconds,
            MeasuredProcesses::Transactions => self.transactions,
            MeasuredProcesses::ClockReading => self.clock_reading,
        }
    }
}

fn taken(series: &[Option<f64>], take: Take) -> Option<f64> {
    let mut known: Vec<f64> = series.iter().copied().flatten().collect();
    known.sort_by(f64::total_cmp);
    let n = known.len() as f64;
    let mean = known.iter().sum::<f64>() / n;
    let quantile = |share: f64| known.get((share * (n - 1.0)).round() as usize).copied();
    match take {
        _ if known.is_empty() => None,
        Take::Mean => Some(mean),
        Take::Median => quantile(0.5),
        Take::Min => quantile(0.0),
        Take::Max => quantile(1.0),
        Take::P5 => quantile(0.05),
        Take::P95 => quantile(0.95),
        Take::Cv if known.len() < 2 => None,
        Take::Cv => {
            let squares: f64 = known.iter().map(|v| (v - mean).powi(2)).sum();
            Some((squares / (n - 1.0)).sqrt() / mean)
        }
    }
}

/// The series of a cell from the values of its parts, for the reads that have one.
pub fn series(study: &Study, times: &[f64], parts: &[Values]) -> CellSeries {
    let of = |read: &Read| -> Vec<Option<f64>> {
        parts.iter().map(|values| values.get(&read.name).copied().flatten()).collect()
    };
    let values: BTreeMap<String, Vec<Option<f64>>> = study
        .reads
        .iter()
        .filter(|read| read.series)
        .map(|read| (read.name.clone(), of(read)))
        .collect();
    CellSeries { times: times.to_vec(), values }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn study(reads: &str) -> Study {
        let head = "name = \"a\"\ntitle = \"A\"\nquestion = \"?\"\n[measure]\nevery = 1\n\
                    [[arm]]\nname = \"one\"\ngiven = { readings = 50 }\n[[arm]]\nname = \"two\"\n\
                    [workload]\nbuiltin = \"select-only\"\n";
        Study::parse(&format!("{head}{reads}")).unwrap()
    }

    const OF: [&str; 11] = [
        "user",
        "load_cpu",
        "load_dispatches",
        "instrument_cpu",
        "machine_cpu",
        "latency_mean",
        "latency_p50",
        "latency_p90",
        "latency_p95",
        "latency_p999",
        "latency_max",
    ];
    const TAKE: [&str; 6] = ["mean", "median", "min", "max", "p5", "p95"];

    fn values(reads: impl AsRef<str>, material: &Material) -> Values {
        let study = study(reads.as_ref());
        let series = CellSeries {
            times: vec![1.0, 2.0, 3.0],
            values: BTreeMap::from([
                ("tps".into(), vec![Some(10.0), None, Some(30.0)]),
                ("commits".into(), (0..=20).rev().map(|n| Some(f64::from(n))).collect()),
            ]),
        };
        let point = LoadPoint { clients: 4, rate: None };
        let given = ValueInputs { arm: &study.arms[0], point: &point, seconds: 10.0, cores: 2 };
        evaluate(&study, material, Some(&series), given)
    }

    #[test]
    fn reads_are_computed_from_what_was_measured() {
        let material = Material {
            seconds: 10.0,
            transactions: Some(2000.0),
            looked: Some(1000.0),
            commands: Some(4000.0),
            load: Usage { cpu: 0.25, dispatches: 3000.0, ..Usage::default() },
            instrument: Some(Usage { cpu: 0.125, ..Usage::default() }),
            machine_seconds: Some(2.0),
            server: Usage { cpu: 0.5, user: 3.0, kernel: 1.0, dispatches: 4000.0 },
            latencies: Some((1..=100).map(f64::from).collect()),
            figures: BTreeMap::from(
                ["flushes", "by_command", "by_transaction"].map(|name| (name.into(), Some(500.0))),
            ),
            instrument_output: "held 7\n".into(),
            ..Material::default()
        };
        let values = values(
            "[[read]]\nname = \"tps\"\nof = \"throughput\"\nseries = true\n\
             [[read]]\nname = \"cpu\"\nof = \"cpu\"\n[[read]]\nname = \"kernel\"\nof = \"kernel\"\n\
             [[read]]\nname = \"dispatches\"\nof = \"dispatches\"\n\
             [[read]]\nname = \"p99\"\nof = \"latency_p99\"\n\
             [[read]]\nname = \"flushes\"\ninterval = \"commits.flushes\"\nper = \"second\"\n\
             [[read]]\nname = \"none\"\nsql = \"select 1\"\n[[read]]\nname = \"held\"\nline = \"held\"\n\
             [[read]]\nname = \"each\"\nvalue = \"tps * seconds / readings / clients\"\n\
             [[read]]\nname = \"cv\"\nseries_of = \"tps\"\ntake = \"cv\"\n\
             [[read]]\nname = \"by_command\"\ninterval = \"x\"\nper = \"command\"\n\
             [[read]]\nname = \"by_transaction\"\ninterval = \"x\"\nper = \"transaction\"\n\
             [[read]]\nname = \"commits\"\nof = \"transactions\"\nseries = true\n"
                .to_string()
                + &OF.map(|of| format!("[[read]]\nname = \"{of}_\"\nof = \"{of}\"\n")).concat()
                + &TAKE.map(|take| format!("[[read]]\nname = \"{take}_\"\nseries_of = \"commits\"\ntake = \"{take}\"\n")).concat(),
            &material,
        );
        let expected = [
            ("tps", Some(200.0)),
            ("cpu", Some(500.0)),
            ("kernel", Some(125.0)),
            ("dispatches", Some(4.0)),
            ("p99", Some(99.0)),
            ("flushes", Some(50.0)),
            ("none", None),
            ("held", Some(7.0)),
            ("each", Some(10.0)),
            ("cv", Some(200.0f64.sqrt() / 20.0)),
            ("by_command", Some(0.125)),
            ("by_transaction", Some(0.25)),
            ("user_", Some(375.0)),
            ("load_cpu_", Some(250.0)),
            ("load_dispatches_", Some(3.0)),
            ("instrument_cpu_", Some(125.0)),
            ("machine_cpu_", Some(2000.0)),
            ("latency_mean_", Some(50.5)),
            ("latency_p50_", Some(50.0)),
            ("latency_p90_", Some(90.0)),
            ("latency_p95_", Some(95.0)),
            ("latency_p999_", Some(100.0)),
            ("latency_max_", Some(100.0)),
            ("mean_", Some(10.0)),
            ("median_", Some(10.0)),
            ("min_", Some(0.0)),
            ("max_", Some(20.0)),
            ("p5_", Some(1.0)),
            ("p95_", Some(19.0)),
        ];
        for (name, value) in expected {
            assert_eq!(values[name], value, "{name}");
        }
    }

    #[test]
    fn without_measurements_no_read_has_a_value() {
        let values = values(
            "[[read]]\nname = \"tps\"\nof = \"throughput\"\nseries = true\n\
             [[read]]\nname = \"cpu\"\nof = \"cpu\"\n[[read]]\nname = \"p99\"\nof = \"latency_p99\"\n",
            &Material { latencies: Some(Vec::new()), ..Material::default() },
        );
        assert!(values.values().all(Option::is_none), "{values:?}");
    }
}
