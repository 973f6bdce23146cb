// SPDX-License-Identifier: PostgreSQL
//! A PostgreSQL server in an arm's directory, with a pgbench load and a recording of its ledger.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use rustix::process::Signal;

use crate::engine::background::Background as Process;
use crate::engine::words::Words;
use error::Error;
use live::instrumented;
use scratch::{Cluster, Load, OsUser, RunningPgbench};

use crate::storage::engine::now;
use crate::storage::file;
use crate::storage::log::{server_recording, Transactions};

/// A running server.
#[derive(Debug)]
pub struct Server {
    wanted: file::StorageServer,
    // Dropped in this order.
    load: Option<RunningPgbench>,
    recorder: Option<Process>,
    cluster: Cluster,
    recording: PathBuf,
    /// Bytes read of pgbench's output.
    read: usize,
}

impl Server {
    /// Starts a server with pg_tally and fills its tables; its recording goes to the run's directory.
    pub fn start(
        wanted: &file::StorageServer,
        place: &Path,
        folder: &Path,
        arm: &str,
        block: usize,
    ) -> Result<Server, Error> {
        let settings = wanted.settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        let builder = Cluster::builder()
            .fsync(true)
            .setting("max_connections", &(wanted.clients + 20).to_string())
            .directory(place)
            .settings(settings);
        let (cluster, _segment) = instrumented::start(builder)?;
        cluster.fill(&Load::TpcB, wanted.scale)?;
        cluster.psql("checkpoint")?;
        let recording = server_recording(folder, arm, block);
        Ok(Server {
            wanted: wanted.clone(),
            load: None,
            recorder: None,
            cluster,
            recording,
            read: 0,
        })
    }

    /// The OS user who runs the server and the victims.
    pub fn os_user(&self) -> OsUser {
        self.cluster.os_user().clone()
    }

    /// Sets the words in braces for the victims' commands.
    pub fn set_words(&self, words: &mut Words) {
        words.set("host", self.cluster.host().display());
        words.set("port", self.cluster.port());
        words.set("bin", self.cluster.binaries().program("").display());
        words.set("backup", self.cluster.host().join("backup").display());
    }

    /// Starts the load, which ends after `most`, and the recording.
    pub fn start_load(&mut self, most: Duration) -> Result<(), Error> {
        if self.recording.exists() {
            std::fs::remove_dir_all(&self.recording)?;
        }
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("record").arg(self.cluster.data_dir()).arg("-o").arg(&self.recording);
        self.recorder = Some(Process::start("tally record", command)?);
        let mut pgbench = self
            .cluster
            .pgbench()
            .load(Load::TpcB)
            .clients(self.wanted.clients)
            .jobs(2)
            .duration(most)
            .protocol("prepared")
            .arg("--progress=1");
        if let Some(rate) = self.wanted.rate {
            pgbench = pgbench.rate(rate);
        }
        self.load = Some(pgbench.spawn()?);
        Ok(())
    }

    /// The seconds that pgbench has reported since the last call.
    pub fn seconds(&mut self) -> Vec<Transactions> {
        let Some(load) = &self.load else { return Vec::new() };
        let text = load.so_far();
        let new = text.get(self.read..).unwrap_or_default();
        let whole = new.rfind('\n').map_or(0, |end| end + 1);
        self.read += whole;
        new[..whole]
            .lines()
            .filter_map(progress)
            .map(|transactions| Transactions { to: now(), ..transactions })
            .collect()
    }

    /// Ends the load and the recording, then the server. Fails if the load had ended by itself.
    pub fn finish(mut self) -> Result<(), Error> {
        let ended = self.load.as_mut().is_some_and(|load| !load.running());
        let output = self.load.as_ref().map(RunningPgbench::so_far).unwrap_or_default();
        self.load = None;
        if let Some(mut recorder) = self.recorder.take() {
            recorder.stop(Signal::INT)?;
            if !recorder.succeeded() {
                let text = recorder.last_lines(3);
                return Err(Error::Failed(format!("could not record the server: {text}")));
            }
        }
        match ended {
            true => Err(Error::Failed(format!(
                "the load on the server ended: {}",
                crate::engine::background::last_lines(&output, 3)
            ))),
            false => Ok(()),
        }
    }
}

/// A line of pgbench's progress: `progress: 3.0 s, 812.3 tps, lat 4.912 ms stddev 1.1, 0 failed`.
fn progress(line: &str) -> Option<Transactions> {
    let mut parts = line.strip_prefix("progress: ")?.split(", ");
    let rate = parts.nth(1)?.strip_suffix(" tps")?.parse().ok()?;
    let words = parts.next()?.strip_prefix("lat ")?;
    let ms: f64 = words.split(' ').next()?.parse().ok()?;
    Some(Transactions { rate, mean: ms * 1e-3, ..Transactions::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pgbenchs_progress_is_read() {
        let found = progress("progress: 3.0 s, 812.3 tps, lat 4.912 ms stddev 1.103, 0 failed");
        assert_eq!(
            found.map(|transactions| (transactions.rate, transactions.mean)),
            Some((812.3, 0.004912))
        );
        assert_eq!(progress("pgbench (15.20 (Debian))"), None);
        assert_eq!(
            progress("progress: 3.0 s, 0.0 tps, lat NaN").map(|transactions| transactions.rate),
            Some(0.0)
        );
    }
}
