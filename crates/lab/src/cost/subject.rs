// SPDX-License-Identifier: PostgreSQL

//! The measured server: a scratch server under pgbench, or the user's.

use std::time::{Duration, Instant};

use scratch::{Cluster, Load, RunningPgbench};
use segment::SegmentPath;

use super::CostArgs;
use crate::engine::background::last_lines;
use crate::study::cost::CostOf;
use command::Workload;
use error::Error;
use live::{instrumented, target};

/// Scale of pgbench's tables: 150 MB, which fit into [`SHARED_BUFFERS`].
const SCALE: u32 = 10;
const SHARED_BUFFERS: &str = "256MB";
/// Too small for the tables: nearly every page of a random row is read from the kernel's page cache.
const FEW_BUFFERS: &str = "2MB";
/// How long the load runs before the first slice.
const WARM_UP: Duration = Duration::from_secs(5);
/// How long the load may take to connect.
const PATIENCE: Duration = Duration::from_secs(60);

/// The measured server, and the unit that CPU time is divided by.
pub struct Subject {
    pub segment: SegmentPath,
    pub load: String,
    /// "transaction" or "command".
    pub unit: &'static str,
    /// Commands in one unit.
    pub commands_per_unit: f64,
    pgbench: Option<RunningPgbench>,
    /// Dropped after its load: fields are dropped in this order.
    _cluster: Option<Cluster>,
}

impl Subject {
    /// The user's own server, under its own load.
    pub fn of_target(args: &CostArgs) -> Result<Self, Error> {
        Ok(Self {
            segment: target::source(args.target.as_deref())?.file("tally cost")?.clone(),
            load: "its own load".into(),
            unit: "command",
            commands_per_unit: 1.0,
            pgbench: None,
            _cluster: None,
        })
    }

    /// A scratch server under a load that outlasts the measurement. Calls `say` at each step.
    pub fn scratch(args: &CostArgs, say: impl Fn(&str)) -> Result<Self, Error> {
        say("starting scratch server");
        let connections = args.clients + 20;
        let buffers = if args.workload == Workload::Misses { FEW_BUFFERS } else { SHARED_BUFFERS };
        let mut builder = Cluster::builder()
            .fsync(true)
            .setting("shared_buffers", buffers)
            .setting("max_connections", &connections.to_string());
        if args.of == CostOf::Statements {
            // On during both sides, so that its cost is not part of the figure.
            builder = builder.setting("compute_query_id", "on");
        }
        if let Some(max) = args.workload.max_statements() {
            builder = builder.setting("pg_tally.max_statements", &max.to_string());
        }
        for (name, value) in &args.settings {
            builder = builder.setting(name, value);
        }
        let (cluster, segment) = instrumented::start(builder)?;
        let (unit, commands_per_unit) = match &args.workload {
            Workload::Select
            | Workload::Txid
            | Workload::Distinct
            | Workload::Evicting
            | Workload::Misses => ("transaction", 1.0),
            // begin, update, select, update, update, insert, end
            Workload::TpcB => ("transaction", 7.0),
            Workload::File(_) => ("command", 1.0),
        };
        say("filling the tables");
        let load = Load::from(&args.workload);
        cluster.fill(&load, SCALE)?;
        let mut pgbench =
            cluster.pgbench().load(load).clients(args.clients).jobs(2).until_stopped().spawn()?;
        say("warming up");
        let began = Instant::now();
        while began.elapsed() < PATIENCE {
            if !pgbench.running() {
                return Err(why_ended(pgbench));
            }
            if cluster.backend_pids()?.len() >= args.clients as usize {
                break;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        let mut described = format!("pgbench {}", args.workload.name());
        for (name, value) in &args.settings {
            described += &format!(", {name} = {value}");
        }
        Ok(Self {
            segment,
            load: described,
            unit,
            commands_per_unit,
            pgbench: Some(pgbench),
            _cluster: Some(cluster),
        })
    }

    /// How long to let the load run before measuring.
    pub fn warm_up(&self) -> Duration {
        if self.pgbench.is_some() {
            WARM_UP
        } else {
            Duration::ZERO
        }
    }

    /// An error if the scratch server's load has ended.
    pub fn check(&mut self) -> Result<(), Error> {
        match self.pgbench.as_mut().is_some_and(|load| !load.running()) {
            true => self.pgbench.take().map_or(Ok(()), |pgbench| Err(why_ended(pgbench))),
            false => Ok(()),
        }
    }
}

/// Why the load ended.
fn why_ended(pgbench: RunningPgbench) -> Error {
    match pgbench.wait() {
        Err(error) => error.into(),
        Ok(result) => {
            let output = last_lines(&result.output, 8);
            Error::Failed(format!("the load ended early; pgbench printed:\n{output}"))
        }
    }
}
