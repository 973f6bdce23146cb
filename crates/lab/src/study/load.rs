// SPDX-License-Identifier: PostgreSQL
//! The load of a cell: pgbench, or the study's own command.

use std::path::{Path, PathBuf};
use std::time::Duration;

use scratch::{Cluster, Load, RunningPgbench};

use super::file::{Arm, Builtin, Study};
use super::plan::LoadPoint;
use crate::engine::background::{last_lines, Background};
use crate::engine::words::Words;
use error::Error;

/// A running load.
#[derive(Debug)]
pub enum Running {
    /// pgbench, the prefix of its transaction logs, if any, and whether it ends by itself.
    Pgbench {
        run: RunningPgbench,
        log: Option<PathBuf>,
        ends: bool,
    },
    Command(Background),
}

/// One of pgbench's progress lines.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PgbenchProgress {
    /// Seconds since 1970.
    pub time: f64,
    /// Transactions per second since the previous line.
    pub tps: f64,
}

impl Running {
    /// Starts the load against `cluster`. With `log`, pgbench logs each transaction.
    pub fn start(
        study: &Study,
        arm: &Arm,
        point: &LoadPoint,
        cluster: &Cluster,
        words: &Words,
        log: bool,
    ) -> Result<Self, Error> {
        let workload = &study.workload;
        if let Some(command) = arm.command.as_ref().or(workload.command.as_ref()) {
            if arm.script.is_none() {
                return Ok(Self::Command(start_command(command, cluster, words)?));
            }
        }
        let script = arm.script.as_ref().or(workload.script.as_ref());
        let load = match (script, workload.builtin) {
            (Some(script), _) => {
                let think = workload.think.map_or(String::new(), |think| {
                    format!("\n\\sleep {} us\n", think.0.as_micros())
                });
                Load::Script(words.fill(script) + &think)
            }
            (None, Some(Builtin::SelectOnly)) => Load::Select,
            (None, Some(Builtin::SimpleUpdate)) => Load::SimpleUpdate,
            (None, _) => Load::TpcB,
        };
        let log = log.then(|| cluster.host().join("transactions"));
        let mut pgbench = cluster
            .pgbench()
            .load(load)
            .clients(point.clients)
            .jobs(workload.jobs.unwrap_or(2))
            .protocol(workload.protocol.name())
            .arg("-P")
            .arg("1")
            .arg("--progress-timestamp");
        if study.server.scale > 0 {
            pgbench = pgbench.arg("-s").arg(&study.server.scale.to_string());
        }
        pgbench = match workload.transactions {
            Some(transactions) => pgbench.transactions(transactions),
            None => pgbench.until_stopped(),
        };
        if let Some(rate) = point.rate {
            pgbench = pgbench.rate(rate);
        }
        if let Some(log) = &log {
            pgbench = pgbench.arg("-l").arg(&format!("--log-prefix={}", log.display()));
        }
        for option in &workload.options {
            pgbench = pgbench.arg(option);
        }
        Ok(Self::Pgbench { run: pgbench.spawn()?, log, ends: workload.transactions.is_some() })
    }

    /// Process ID.
    pub fn pid(&self) -> u32 {
        match self {
            Self::Pgbench { run, .. } => run.pid(),
            Self::Command(command) => command.pid(),
        }
    }

    /// Whether it still runs.
    pub fn running(&mut self) -> bool {
        match self {
            Self::Pgbench { run, .. } => run.running(),
            Self::Command(command) => command.running(),
        }
    }

    /// pgbench's progress lines so far; a command has none.
    pub fn progress(&self) -> Vec<PgbenchProgress> {
        match self {
            Self::Pgbench { run, .. } => lines(&run.so_far()),
            Self::Command(_) => Vec::new(),
        }
    }

    /// Describes a load that ended too early: `what` happened, and its errors or the end of its output.
    pub fn ended(&self, what: &str) -> String {
        match self {
            Self::Pgbench { run, .. } => {
                format!("the load {what}; pgbench printed:\n{}", errors(&run.so_far()))
            }
            Self::Command(command) => format!("the load {what}:\n{}", command.last_lines(8)),
        }
    }

    /// Waits for its end, or ends a load that does not end by itself. Fails if the load failed.
    pub fn finish(self) -> Result<Finished, Error> {
        match self {
            Self::Pgbench { run, log, ends } => {
                let result = if ends { run.wait()? } else { run.stop()? };
                let transactions = result.transactions as f64;
                Ok(Finished {
                    output: result.output,
                    transactions: Some(transactions),
                    seconds: Some(transactions / result.tps),
                    log,
                })
            }
            Self::Command(mut command) => {
                while command.running() {
                    std::thread::sleep(Duration::from_millis(10));
                }
                if command.succeeded() {
                    return Ok(Finished { output: command.output(), ..Finished::default() });
                }
                Err(Error::Failed(format!(
                    "the workload's command failed; end of its output:\n{}",
                    command.last_lines(10)
                )))
            }
        }
    }
}

/// The results of a load that has ended.
#[derive(Debug, Default)]
pub struct Finished {
    /// Its output.
    pub output: String,
    /// Number of transactions; `None` for a command.
    pub transactions: Option<f64>,
    /// Duration computed from pgbench's own tps; `None` for a command.
    pub seconds: Option<f64>,
    /// Prefix of the names of its transaction logs.
    pub log: Option<PathBuf>,
}

fn start_command(
    command: &[String],
    cluster: &Cluster,
    words: &Words,
) -> Result<Background, Error> {
    let filled = words.fill_all(command);
    let [program, arguments @ ..] = &filled[..] else {
        return Err(Error::Failed("the workload's command is empty".into()));
    };
    let mut command = cluster.os_user().command(Path::new(program));
    command.current_dir(cluster.host());
    command.args(arguments);
    for (name, value) in [
        ("PGHOST", cluster.host().display().to_string()),
        ("PGPORT", cluster.port().to_string()),
        ("PGUSER", cluster.user().to_string()),
        ("PGDATABASE", "postgres".to_string()),
        // For clients that connect by TCP.
        ("PGPASSWORD", scratch::password().to_string()),
    ] {
        command.env(name, value);
    }
    Background::start(program, command).map_err(|error| {
        Error::Failed(format!("could not run the workload's command {program}: {error}"))
    })
}

/// The first errors printed by pgbench, before its results of several lines; otherwise its last lines.
fn errors(output: &str) -> String {
    let errors: Vec<&str> =
        output.lines().filter(|line| line.starts_with("pgbench: error: ")).take(4).collect();
    match errors.is_empty() {
        true => last_lines(output, 8),
        false => errors.join("\n"),
    }
}

/// The complete lines "progress: 1763765000.123 s, 1234.5 tps, ..." of growing output.
fn lines(output: &str) -> Vec<PgbenchProgress> {
    output
        .split_inclusive('\n')
        .filter(|line| line.ends_with('\n'))
        .filter_map(|line| {
            let rest = line.strip_prefix("progress: ")?;
            let (time, rest) = rest.split_once(" s, ")?;
            let (tps, _) = rest.split_once(" tps")?;
            Some(PgbenchProgress { time: time.parse().ok()?, tps: tps.parse().ok()? })
        })
        .collect()
}

/// Number of transactions between the line `from` and the last one: each line's tps times its duration.
pub fn transactions(lines: &[PgbenchProgress], from: usize) -> f64 {
    lines.get(from..).map_or(0.0, |lines| {
        lines.windows(2).map(|pair| pair[1].tps * (pair[1].time - pair[0].time)).sum()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_errors_of_a_load_are_reported_not_the_results_below() {
        let output = "pgbench (15.20)\nprogress: 1.0 s, 2.0 tps\npgbench: error: client 0 aborted: ERROR: x\n\
                      transaction type: a\nnumber of clients: 1\npgbench: error: Run was aborted\n";
        let all = "pgbench: error: client 0 aborted: ERROR: x\npgbench: error: Run was aborted";
        assert_eq!(errors(output), all);
        assert_eq!(errors("a\nb\n"), "a\nb");
    }

    #[test]
    fn progress_is_read_up_to_the_last_complete_line() {
        let output =
            "pgbench (15.20)\nprogress: 100.000 s, 10.0 tps, lat 1 ms stddev 0, 0 failed\n\
                      progress: 101.500 s, 20.0 tps, lat 1 ms\nprogress: 102.5 s, 30";
        let lines = lines(output);
        assert_eq!(lines.len(), 2);
        assert_eq!(transactions(&lines, 0), 30.0);
        assert_eq!(transactions(&lines, 1), 0.0);
        assert_eq!(transactions(&lines, 7), 0.0);
    }
}
