// SPDX-License-Identifier: PostgreSQL
//! The overhead of `tally trace --nodes` for the traced session, and that of EXPLAIN ANALYZE: CPU time of the
//! session's process as counted by the kernel, for three queries on a table of 900,000 rows in memory.
//!
//!     cargo run --release -p tally --example nodes_cost [ROUNDS]
//!
//! Two sessions on one CPU execute the query in turn, one of them traced or with EXPLAIN ANALYZE, so that
//! disturbances of the CPU affect both; which one it is alternates from round to round. 12 rounds take six
//! minutes. Prints how much more CPU time that session took than the other, with the half-width of its 95 %
//! interval; in the control, neither is traced.

mod bench;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use postgres::Client;
use rand::seq::SliceRandom;
use rustix::process::Pid;
use rustix::thread::{sched_setaffinity, CpuSet};
use scratch::Cluster;
use stats::Estimate;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The arms: name, options of the trace, and a prefix of the query.
const ARMS: [(&str, Option<&[&str]>, &str); 5] = [
    ("control", None, ""),
    ("trace", Some(&[]), ""),
    ("trace --nodes", Some(&["--nodes"]), ""),
    ("EXPLAIN (ANALYZE, TIMING OFF)", None, "explain (analyze, timing off) "),
    ("EXPLAIN ANALYZE", None, "explain analyze "),
];
/// Queries, and how often a round has four executions of each.
const QUERIES: [(&str, &str, u32); 3] = [
    ("count of 900,000 rows", "select count(*) from rows", 10),
    ("the same, grouped", "select a % 100, count(*) from rows group by 1", 2),
    ("hash join of two such tables", "select count(*) from rows a join rows b using (a)", 1),
];

struct Session {
    client: Client,
    pid: u32,
}

impl Session {
    /// Its process stays on one CPU.
    fn new(cluster: &Cluster) -> Result<Session> {
        let mut client = cluster.connect()?;
        let pid = client.query_one("select pg_backend_pid()", &[])?.get::<_, i32>(0);
        let mut cpus = CpuSet::new();
        cpus.set(0);
        sched_setaffinity(Pid::from_raw(pid), &cpus)?;
        Ok(Session { client, pid: pid as u32 })
    }
}

fn main() -> Result<()> {
    let rounds: u32 = std::env::args().nth(1).map_or(Ok(12), |text| text.parse())?;
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut cluster = Cluster::builder()
        .library(root.join("pg_tally/pg_tally.so"))
        .setting("shared_preload_libraries", "pg_tally")
        .setting("max_parallel_workers_per_gather", "0")
        .setting("jit", "off")
        .setting("shared_buffers", "256MB")
        .setting("work_mem", "256MB")
        .create()?;
    let segment = bench::segment(&mut cluster)?;
    cluster.start()?;
    let mut client = cluster.connect()?;
    client.batch_execute("create table rows as select i a from generate_series(1, 900000) i")?;
    client.batch_execute("vacuum freeze analyze rows")?;
    let mut sessions = [Session::new(&cluster)?, Session::new(&cluster)?];

    let mut alone = vec![Vec::new(); QUERIES.len()];
    let mut logs = vec![vec![Vec::new(); ARMS.len()]; QUERIES.len()];
    let mut order: Vec<usize> = (0..ARMS.len()).collect();
    for round in 0..rounds {
        order.shuffle(&mut rand::rng());
        for &arm in &order {
            sessions.swap(0, 1);
            let (_, options, before) = ARMS[arm];
            let pid = sessions[0].pid;
            let mut trace = options.map(|option| start(&segment, pid, option)).transpose()?;
            for (at, (_, query, fours)) in QUERIES.iter().enumerate() {
                let sql = [format!("{before}{query}"), query.to_string()];
                let [with, without] = turns(&mut sessions, &sql, *fours)?;
                alone[at].push(without);
                logs[at][arm].push((with / without).ln());
            }
            if let Some(trace) = &mut trace {
                if let Some(status) = trace.try_wait()? {
                    return Err(format!("tally trace has ended: {status}").into());
                }
                trace.kill()?;
                trace.wait()?;
            }
        }
        eprint!("\rround {} of {rounds} ", round + 1);
    }
    eprintln!();
    println!("{rounds} rounds; CPU time of the session against the query alone");
    for (at, (name, ..)) in QUERIES.iter().enumerate() {
        println!("{name}, alone: {}", bench::median(alone[at].clone(), "ms", 2));
        for (arm, (way, ..)) in ARMS.iter().enumerate() {
            let estimate = Estimate::of_repeats(&logs[at][arm]).ok_or("too few rounds")?;
            let (mean, half) = (estimate.mean.exp_m1() * 100.0, estimate.half_width * 100.0);
            println!("  {way}: {mean:+.2} % ±{half:.2}");
        }
    }
    Ok(())
}

/// CPU time per execution of each session, ms. The order of four is first, second, second, first.
fn turns(sessions: &mut [Session; 2], sql: &[String; 2], fours: u32) -> Result<[f64; 2]> {
    for (session, sql) in sessions.iter_mut().zip(sql) {
        session.client.simple_query(sql)?; // the caches are warm, and the trace has begun
    }
    let used = |sessions: &[Session; 2]| -> Result<[u64; 2]> {
        Ok([bench::processor_ns(sessions[0].pid)?, bench::processor_ns(sessions[1].pid)?])
    };
    let before = used(sessions)?;
    for _ in 0..fours {
        for at in [0, 1, 1, 0] {
            sessions[at].client.simple_query(&sql[at])?;
        }
    }
    let after = used(sessions)?;
    Ok([0, 1].map(|at| (after[at] - before[at]) as f64 / f64::from(2 * fours) / 1e6))
}

/// A trace that waits for the session's next message.
fn start(segment: &Path, pid: u32, options: &[&str]) -> Result<Child> {
    let trace = Command::new(bench::program()?)
        .arg("trace")
        .arg(pid.to_string())
        .arg(segment)
        .args(options)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    std::thread::sleep(Duration::from_millis(300));
    Ok(trace)
}
