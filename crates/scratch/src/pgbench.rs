// SPDX-License-Identifier: PostgreSQL
//! pgbench: described, run, and its closing lines read.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::Signal;

use crate::distinct;
use crate::process::signal;
use crate::program::tail;
use crate::{Error, OsUser};

/// What each client does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Load {
    /// pgbench's `select-only`.
    Select,
    /// pgbench's `tpcb-like`.
    TpcB,
    /// pgbench's `simple-update`.
    SimpleUpdate,
    /// So many statements, by the hundred, that are distinct to a server which ignores constants:
    /// reads of one row of [`crate::Cluster::fill`]'s table, each of two columns. At random, one a
    /// transaction; at most 100 hundreds, and by the simple protocol only.
    Distinct {
        /// How many hundreds.
        hundreds: u32,
    },
    /// A script in a file.
    File(PathBuf),
    /// A script as it stands.
    Script(String),
}

/// A run to be. Clients 1, jobs 1, 10 s, TPC-B and the simple protocol unless said otherwise.
#[derive(Debug, Clone)]
pub struct Pgbench {
    program: PathBuf,
    port: u16,
    home: PathBuf,
    os_user: OsUser,
    load: Load,
    clients: u32,
    jobs: u32,
    duration: Option<Duration>,
    transactions: Option<u64>,
    protocol: &'static str,
    rate: Option<f64>,
    extra: Vec<String>,
}

/// What pgbench printed at the end.
#[derive(Debug, Clone, PartialEq)]
pub struct PgbenchResult {
    /// Transactions per second, without the initial connection time.
    pub tps: f64,
    /// Transactions completed.
    pub transactions: u64,
    /// Transactions that failed (serialization, deadlock).
    pub failed: u64,
    /// Mean latency, in milliseconds.
    pub latency_ms: f64,
    /// Its standard deviation, in milliseconds, where pgbench gives it.
    pub latency_stddev_ms: Option<f64>,
    /// All of its output.
    pub output: String,
}

impl Pgbench {
    /// A run of `program` against the server whose socket is in `home`.
    pub(crate) fn new(program: PathBuf, home: &Path, port: u16, os_user: &OsUser) -> Self {
        Self {
            program,
            home: home.to_path_buf(),
            port,
            os_user: os_user.clone(),
            load: Load::TpcB,
            clients: 1,
            jobs: 1,
            duration: Some(Duration::from_secs(10)),
            transactions: None,
            protocol: "simple",
            rate: None,
            extra: Vec::new(),
        }
    }

    /// What each client does.
    pub fn load(mut self, load: Load) -> Self {
        self.load = load;
        self
    }

    /// Number of connections.
    pub fn clients(mut self, clients: u32) -> Self {
        self.clients = clients;
        self
    }

    /// Number of pgbench's own threads; never more than there are clients.
    pub fn jobs(mut self, jobs: u32) -> Self {
        self.jobs = jobs;
        self
    }

    /// How long; whole seconds, at least one.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self.transactions = None;
        self
    }

    /// A number of transactions per client instead of a time.
    pub fn transactions(mut self, per_client: u64) -> Self {
        self.transactions = Some(per_client);
        self.duration = None;
        self
    }

    /// `simple`, `extended` or `prepared`.
    pub fn protocol(mut self, protocol: &'static str) -> Self {
        self.protocol = protocol;
        self
    }

    /// Transactions per second to aim at, all clients together.
    pub fn rate(mut self, rate: f64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// A further argument, e.g. `-C`.
    pub fn arg(mut self, arg: &str) -> Self {
        self.extra.push(arg.into());
        self
    }

    fn command(&self) -> Result<(Command, Option<tempfile::NamedTempFile>), Error> {
        let mut command = self.os_user.command(&self.program, &self.home);
        command.args(["-n", "-U", "postgres", "-p", &self.port.to_string(), "-h"]);
        command.arg(&self.home);
        command.args(["-c", &self.clients.to_string(), "-M", self.protocol]);
        command.args(["-j", &self.jobs.clamp(1, self.clients.max(1)).to_string()]);
        if let Some(duration) = self.duration {
            command.args(["-T", &duration.as_secs().max(1).to_string()]);
        }
        if let Some(transactions) = self.transactions {
            command.args(["-t", &transactions.to_string()]);
        }
        if let Some(rate) = self.rate {
            command.args(["-R", &rate.to_string()]);
        }
        let mut kept = None;
        match &self.load {
            Load::Select => {
                command.args(["-b", "select-only"]);
            }
            Load::TpcB => {
                command.args(["-b", "tpcb-like"]);
            }
            Load::SimpleUpdate => {
                command.args(["-b", "simple-update"]);
            }
            Load::Distinct { hundreds } => kept = Some(self.script(&distinct::script(*hundreds))?),
            // The server's user may not be able to read the caller's file: hand it a copy.
            Load::File(path) => {
                let text =
                    std::fs::read_to_string(path).map_err(Error::file("cannot read", path))?;
                kept = Some(self.script(&text)?);
            }
            Load::Script(text) => kept = Some(self.script(text)?),
        }
        if let Some(file) = &kept {
            command.arg("-f").arg(file.path());
        }
        command.args(&self.extra).arg("postgres");
        Ok((command, kept))
    }

    fn script(&self, text: &str) -> Result<tempfile::NamedTempFile, Error> {
        let file = tempfile::Builder::new()
            .prefix("load.")
            .suffix(".sql")
            .tempfile_in(&self.home)
            .map_err(Error::file("cannot create a script in", &self.home))?;
        std::fs::write(file.path(), text).map_err(Error::file("cannot write", file.path()))?;
        self.os_user.chown(file.path())?;
        Ok(file)
    }

    /// Start it and go on.
    pub fn spawn(&self) -> Result<RunningPgbench, Error> {
        // Files, not pipes: nobody needs to read while it runs.
        let output = tempfile::tempfile().map_err(Error::file("cannot create", "a log"))?;
        let twin = || output.try_clone().map_err(Error::file("cannot create", "a log"));
        let (mut command, script) = self.command()?;
        let child = command
            .stdin(Stdio::null())
            .stdout(twin()?)
            .stderr(twin()?)
            .process_group(0)
            .spawn()
            .map_err(|source| Error::Spawn { program: self.program.clone(), source })?;
        Ok(RunningPgbench { child, output, status: None, _script: script })
    }

    /// Run it to its end.
    pub fn run(&self) -> Result<PgbenchResult, Error> {
        self.spawn()?.wait()
    }
}

/// A run in progress. Dropping it ends it.
#[derive(Debug)]
pub struct RunningPgbench {
    child: Child,
    output: File,
    status: Option<ExitStatus>,
    _script: Option<tempfile::NamedTempFile>,
}

impl RunningPgbench {
    /// Its pid.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it still runs.
    pub fn running(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_none()
    }

    /// End it; its connections close.
    pub fn kill(&mut self) {
        if self.running() {
            signal(self.pid(), Signal::KILL);
            self.status = self.child.wait().ok();
        }
    }

    /// What it has printed so far.
    pub fn so_far(&self) -> String {
        let length = self.output.metadata().map_or(0, |meta| meta.len());
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        // By position: the offset in the file is pgbench's as well.
        let read = self.output.read_at(&mut bytes, 0).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }

    /// What it printed; its offset in the file is ours too, so only when it has ended.
    fn output(&mut self) -> String {
        let mut bytes = Vec::new();
        let _ = self.output.seek(SeekFrom::Start(0));
        let _ = self.output.read_to_end(&mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Wait for its end and read its closing lines.
    pub fn wait(mut self) -> Result<PgbenchResult, Error> {
        let status = match self.status {
            Some(status) => status,
            None => self
                .child
                .wait()
                .map_err(|source| Error::Spawn { program: "pgbench".into(), source })?,
        };
        self.status = Some(status);
        let output = self.output();
        if !status.success() {
            let program = "pgbench".into();
            return Err(Error::Program { program, status, output: tail(&output, 30) });
        }
        PgbenchResult::parse(&output)
    }
}

impl Drop for RunningPgbench {
    fn drop(&mut self) {
        self.kill();
    }
}

impl PgbenchResult {
    /// Read pgbench's closing lines.
    pub fn parse(output: &str) -> Result<Self, Error> {
        let number = |label: &'static str| {
            output
                .lines()
                .find_map(|line| line.strip_prefix(label))
                .and_then(|rest| {
                    let rest = rest.trim_start_matches([' ', '=', ':']);
                    rest.split([' ', '/', '(']).next()?.parse::<f64>().ok()
                })
                .ok_or_else(|| Error::PgbenchOutput { missing: label, output: tail(output, 30) })
        };
        Ok(Self {
            tps: number("tps")?,
            transactions: number("number of transactions actually processed")? as u64,
            failed: number("number of failed transactions").unwrap_or(0.0) as u64,
            latency_ms: number("latency average").unwrap_or(f64::NAN),
            latency_stddev_ms: number("latency stddev").ok(),
            output: output.to_string(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_closing_lines_of_pgbench_are_read() {
        let result = PgbenchResult::parse(
            "pgbench (15.20)\nnumber of transactions actually processed: 12345/20000\n\
             number of failed transactions: 7 (0.057%)\nlatency average = 0.812 ms\n\
             latency stddev = 0.101 ms\ninitial connection time = 3.2 ms\n\
             tps = 1234.567890 (without initial connection time)\n",
        )
        .unwrap();
        assert_eq!(result.transactions, 12345);
        assert_eq!(result.failed, 7);
        assert_eq!(result.tps, 1234.56789);
        assert_eq!(result.latency_ms, 0.812);
        assert_eq!(result.latency_stddev_ms, Some(0.101));
    }

    #[test]
    fn output_without_a_result_is_an_error_that_shows_it() {
        let error = PgbenchResult::parse("pgbench: error: no").unwrap_err().to_string();
        assert!(error.contains("tps") && error.contains("pgbench: error: no"), "{error}");
    }
}
