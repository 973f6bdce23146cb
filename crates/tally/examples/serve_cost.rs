// SPDX-License-Identifier: PostgreSQL
//! The CPU time and memory that serving takes: without requests, while a monitoring system reads the metrics
//! every second, and while a page is open.
//!
//!     cargo run --release -p tally --example serve_cost [SESSIONS [ROUNDS]]
//!
//! Runs a scratch server with SESSIONS (200) sessions, each with a TPC-B transaction every 1.5 seconds, and
//! `target/release/tally serve` with its defaults. A round has five seconds of each, in random order. Prints
//! the median CPU time of all threads and the maximum resident memory.

mod bench;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use scratch::Cluster;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The request of every second.
const ARMS: [(&str, Option<&str>); 3] = [
    ("no requests", None),
    ("/metrics every second", Some("/metrics")),
    ("the page's figures every second", Some("/report.json")),
];
const BLOCK: u32 = 5;
const SECOND: Duration = Duration::from_secs(1);

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let sessions: u32 = args.next().map_or(Ok(200), |text| text.parse())?;
    let rounds: u32 = args.next().map_or(Ok(12), |text| text.parse())?;
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut cluster = Cluster::builder()
        .library(root.join("pg_tally/pg_tally.so"))
        .setting("shared_preload_libraries", "pg_tally")
        .setting("max_connections", &(sessions + 20).to_string())
        .create()?;
    let segment = bench::segment(&mut cluster)?;
    cluster.start()?;
    cluster.pgbench_init(1)?;
    let length = SECOND * (BLOCK * ARMS.len() as u32 * rounds + 20);
    let load = cluster.pgbench().clients(sessions).rate(f64::from(sessions) / 1.5).duration(length);
    let mut load = load.spawn()?;
    std::thread::sleep(4 * SECOND);
    let serving = Serving::start(&root.join("target/release/tally"), &segment)?;
    // Waits until the page has figures.
    std::thread::sleep(4 * SECOND);
    let mut shares = vec![Vec::new(); ARMS.len()];
    let mut sizes = vec![0; ARMS.len()];
    let mut order: Vec<usize> = (0..ARMS.len()).collect();
    for _ in 0..rounds {
        order.shuffle(&mut rand::rng());
        for &arm in &order {
            let (begun, before) = (Instant::now(), bench::processor_ns(serving.child.id())?);
            for second in 1..=BLOCK {
                if let Some(path) = ARMS[arm].1 {
                    sizes[arm] = serving.get(path)?;
                }
                std::thread::sleep((SECOND * second).saturating_sub(begun.elapsed()));
            }
            let took = bench::processor_ns(serving.child.id())? - before;
            shares[arm].push(took as f64 * 1e-7 / begun.elapsed().as_secs_f64());
        }
    }
    println!("{sessions} sessions, {rounds} rounds, share of a core:");
    for (((name, _), shares), size) in ARMS.iter().zip(shares).zip(sizes) {
        println!("{name}: {}; {size} bytes", bench::median(shares, "%", 2));
    }
    let memory = bench::max_memory(serving.child.id()).unwrap_or_default();
    println!("maximum resident memory {memory}");
    if !load.running() {
        return Err("the load has ended before the last round".into());
    }
    load.kill();
    Ok(())
}

/// `tally serve` on a free port.
struct Serving {
    child: Child,
    address: String,
}

impl Serving {
    fn start(tally: &Path, segment: &PathBuf) -> Result<Serving> {
        let mut command = Command::new(tally);
        command.args(["serve", "--json", "--no-token", "--listen", "127.0.0.1:0"]).arg(segment);
        let mut child = command.stdout(Stdio::piped()).spawn()?;
        let mut line = String::new();
        if let Some(out) = child.stdout.take() {
            BufReader::new(out).read_line(&mut line)?;
        }
        let started: serde_json::Value = serde_json::from_str(&line)?;
        let page = started["page"].as_str().unwrap_or_default();
        let address = page.trim_start_matches("http://").trim_end_matches('/').to_string();
        Ok(Serving { child, address })
    }

    /// Number of bytes of the response.
    fn get(&self, path: &str) -> Result<usize> {
        let mut stream = TcpStream::connect(&self.address)?;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer)?;
        match answer.starts_with(b"HTTP/1.1 200") {
            true => Ok(answer.len()),
            false => Err(format!("{path}: {}", String::from_utf8_lossy(&answer)).into()),
        }
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        // Fails if it has already ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
