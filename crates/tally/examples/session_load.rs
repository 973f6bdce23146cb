// SPDX-License-Identifier: PostgreSQL
//! The time that loading the extension adds to a connection, compared with contrib libraries.
//!
//!     cargo run --release -p tally --example session_load [CONNECTIONS]
//!
//! Connects to one scratch server with different settings of session_preload_libraries, in random order: none,
//! pg_tally, and two contrib libraries: passwordcheck, which only sets one pointer and so shows the minimum cost
//! of a library, and auto_explain. Prints the time until the server is ready, and the difference from the
//! connection without a library in the same round: medians with 95 % intervals.

mod bench;

use std::path::PathBuf;
use std::time::Instant;

use bench::median;
use postgres::{Config, NoTls};
use rand::seq::SliceRandom;
use scratch::Cluster;

const ARMS: [&str; 4] = ["", "passwordcheck", "pg_tally", "auto_explain"];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rounds: usize = std::env::args().nth(1).map_or(Ok(1000), |text| text.parse())?;
    let library = std::env::var_os("PGTALLY_LIBRARY").map_or_else(
        || PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../pg_tally/pg_tally.so")),
        PathBuf::from,
    );
    let mut cluster = Cluster::builder().library(library).start()?;
    bench::segment(&mut cluster)?;

    // One session stays connected, so that the segment exists as it does on a busy server.
    let _resident = arm(&cluster, "pg_tally").connect(NoTls)?;

    let mut times: [Vec<f64>; ARMS.len()] = Default::default();
    let mut order = [0, 1, 2, 3];
    for _ in 0..rounds {
        order.shuffle(&mut rand::rng());
        for &at in &order {
            let config = arm(&cluster, ARMS[at]);
            let start = Instant::now();
            let client = config.connect(NoTls)?;
            times[at].push(start.elapsed().as_secs_f64() * 1e6);
            drop(client);
        }
    }
    for (name, times) in ARMS.iter().zip(&times) {
        let name = if name.is_empty() { "no library" } else { name };
        println!("{name:14} {}", median(times.clone(), "us", 0));
    }
    for (at, name) in ARMS.iter().enumerate().skip(1) {
        let differences = times[at].iter().zip(&times[0]).map(|(a, b)| a - b).collect();
        println!("{name:14} adds {}", median(differences, "us", 0));
    }
    Ok(())
}

fn arm(cluster: &Cluster, library: &str) -> Config {
    let mut config = cluster.config();
    config.options(&format!("-c session_preload_libraries={library}"));
    config
}
