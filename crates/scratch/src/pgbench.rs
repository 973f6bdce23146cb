// SPDX-License-Identifier: PostgreSQL
//! pgbench: options, runs and results.

use std::fs::File;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use files::Access;
use rustix::process::Signal;

use crate::distinct;
use crate::error::Error;
use crate::os_user::{apart, OsUser};
use crate::process::signal;
use crate::program::tail;

/// The length of a run that is stopped or dropped; longer than any measurement.
const UNTIL_STOPPED: Duration = Duration::from_secs(7 * 86_400);

/// What each client does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Load {
    /// pgbench's `select-only`.
    Select,
    /// pgbench's `tpcb-like`.
    TpcB,
    /// pgbench's `simple-update`.
    SimpleUpdate,
    /// Statements that differ even if constants are ignored: each reads two columns of one row of the
    /// table that [`crate::Cluster::fill`] creates, one randomly chosen statement per transaction. Simple
    /// protocol only.
    Distinct {
        /// Number of statements, in hundreds; 1 to 100.
        hundreds: u32,
    },
    /// A script in a file.
    File(PathBuf),
    /// The text of a script.
    Script(String),
}

/// The options of a run. Defaults: 1 client, 1 job, 10 s, TPC-B, simple protocol.
#[derive(Debug, Clone)]
pub struct Pgbench {
    program: PathBuf,
    port: u16,
    home: PathBuf,
    host: PathBuf,
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

/// The result of a run.
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
    /// Its standard deviation, in milliseconds, if pgbench reports it.
    pub latency_stddev_ms: Option<f64>,
    /// All of its output.
    pub output: String,
}

impl Pgbench {
    /// A run of `program` against the server whose socket is in `host`; scripts are created in `home`.
    pub(crate) fn new(
        program: PathBuf,
        home: &Path,
        host: &Path,
        port: u16,
        os_user: &OsUser,
    ) -> Self {
        Self {
            program,
            home: home.to_path_buf(),
            host: host.to_path_buf(),
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

    /// Number of pgbench's threads; limited to the number of clients.
    pub fn jobs(mut self, jobs: u32) -> Self {
        self.jobs = jobs;
        self
    }

    /// The length of the run; whole seconds, at least one.
    pub fn duration(mut self, duration: Duration) -> Self {
        self.duration = Some(duration);
        self.transactions = None;
        self
    }

    /// Run until stopped or dropped. A fixed length would race with whatever happens during the run.
    pub fn until_stopped(self) -> Self {
        self.duration(UNTIL_STOPPED)
    }

    /// Number of transactions per client, instead of a length.
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

    /// The target rate of all clients together, transactions per second.
    pub fn rate(mut self, rate: f64) -> Self {
        self.rate = Some(rate);
        self
    }

    /// An additional argument, e.g. `-C`.
    pub fn arg(mut self, arg: &str) -> Self {
        self.extra.push(arg.into());
        self
    }

    fn command(&self) -> Result<(Command, Option<tempfile::NamedTempFile>), Error> {
        let mut command = self.os_user.command(&self.program);
        command.current_dir(&self.home);
        command.args(["-n", "-U", "postgres", "-p", &self.port.to_string(), "-h"]);
        command.arg(&self.host);
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
            Load::Select => drop(command.args(["-b", "select-only"])),
            Load::TpcB => drop(command.args(["-b", "tpcb-like"])),
            Load::SimpleUpdate => drop(command.args(["-b", "simple-update"])),
            Load::Distinct { hundreds } => kept = Some(self.script(&distinct::script(*hundreds))?),
            // Copy the file, because the server's user may not be allowed to read the caller's file.
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
        let mut file = files::temporary(&self.home, "load.", ".sql", Access::Owner)
            .map_err(Error::file("cannot create a script in", &self.home))?;
        file.write_all(text.as_bytes()).map_err(Error::file("cannot write", file.path()))?;
        self.os_user.chown(file.path())?;
        Ok(file)
    }

    /// Start the run without waiting for it to end.
    pub fn spawn(&self) -> Result<RunningPgbench, Error> {
        // A file rather than a pipe, which would have to be read during the run.
        let output = tempfile::tempfile().map_err(Error::file("cannot create", "a log"))?;
        let twin = || output.try_clone().map_err(Error::file("cannot create", "a log"));
        let (mut command, script) = self.command()?;
        command.stdin(Stdio::null()).stdout(twin()?).stderr(twin()?);
        let child = apart(&mut command)
            .spawn()
            .map_err(|source| Error::Spawn { program: self.program.clone(), source })?;
        Ok(RunningPgbench { child, output, status: None, _script: script })
    }

    /// Run pgbench and wait for it to end.
    pub fn run(&self) -> Result<PgbenchResult, Error> {
        self.spawn()?.wait()
    }
}

/// A run in progress. Dropping this value ends the run.
#[derive(Debug)]
pub struct RunningPgbench {
    child: Child,
    output: File,
    status: Option<ExitStatus>,
    _script: Option<tempfile::NamedTempFile>,
}

impl RunningPgbench {
    /// The PID of pgbench.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether pgbench is still running.
    pub fn running(&mut self) -> bool {
        if self.status.is_none() {
            self.status = self.child.try_wait().ok().flatten();
        }
        self.status.is_none()
    }

    /// Kill pgbench; its connections close.
    pub fn kill(&mut self) {
        if self.running() {
            signal(self.pid(), Signal::KILL);
            self.status = self.child.wait().ok();
        }
    }

    /// End a run that has begun its transactions as if its time were over: clients finish their transactions, and
    /// pgbench writes its logs and results. pgbench itself uses SIGALRM for this.
    pub fn stop(self) -> Result<PgbenchResult, Error> {
        signal(self.pid(), Signal::ALARM);
        self.wait()
    }

    /// Its output so far.
    pub fn so_far(&self) -> String {
        let length = self.output.metadata().map_or(0, |meta| meta.len());
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(0)];
        // Read at a position, because pgbench shares the offset in the file.
        let read = self.output.read_at(&mut bytes, 0).unwrap_or(0);
        String::from_utf8_lossy(&bytes[..read]).into_owned()
    }

    /// Wait for the run to end, and parse its results.
    pub fn wait(mut self) -> Result<PgbenchResult, Error> {
        let status = match self.status {
            Some(status) => status,
            None => self
                .child
                .wait()
                .map_err(|source| Error::Spawn { program: "pgbench".into(), source })?,
        };
        self.status = Some(status);
        let output = self.so_far();
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
    /// Parse pgbench's output.
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
    fn the_results_of_pgbench_are_parsed() {
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
