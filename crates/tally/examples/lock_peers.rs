// SPDX-License-Identifier: PostgreSQL
//! The overhead of lock statistics by tool: CPU time and rate of pgbench's messages without any tool, with
//! pg_tally, with bpftrace on the server's own probes, and with pg_lw_lock_tracer if it is available.
//!
//!     cargo run --release -p tally --example lock_peers [ROUNDS [select|tpcb]]
//!
//! PGTALLY_LW_LOCK_TRACER is the command of pg_lw_lock_tracer without its -p. Both tracers require root. The arms
//! of a round run in random order, each with its own load. The effects are so large that the median of a few
//! rounds is enough.

mod bench;

use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rand::seq::SliceRandom;
use scratch::{Cluster, Load};
use segment::{Level, LevelSwitch, Segment};

const CLIENTS: u32 = 2;
const WARM_UP: Duration = Duration::from_secs(2);
/// Time for a tracer to attach its probes.
const ATTACH: Duration = Duration::from_secs(7);
const WINDOW: Duration = Duration::from_secs(5);

const ARMS: [&str; 5] =
    ["nothing", "pg_tally waits", "pg_tally locks", "bpftrace", "pg_lw_lock_tracer"];

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1);
    let rounds: usize = arguments.next().map_or(Ok(3), |text| text.parse())?;
    let load = match arguments.next().as_deref() {
        None | Some("select") => Load::Select,
        Some("tpcb") => Load::TpcB,
        Some(other) => return Err(format!("\"{other}\": select or tpcb").into()),
    };
    let root = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../.."));
    let mut cluster = Cluster::builder()
        .library(root.join("pg_tally/pg_tally.so"))
        .setting("shared_preload_libraries", "pg_tally")
        .setting("shared_buffers", "256MB")
        .fsync(true)
        .create()?;
    let path = &bench::segment(&mut cluster)?;
    cluster.start()?;
    cluster.pgbench_init(10)?;
    let postgres = std::fs::read_link(format!("/proc/{}/exe", cluster.postmaster_pid()?))?;

    let mut figures = vec![Vec::new(); ARMS.len()];
    let mut order: Vec<usize> = (0..ARMS.len()).collect();
    for _ in 0..rounds {
        order.shuffle(&mut rand::rng());
        for &arm in &order {
            let mut pgbench = cluster
                .pgbench()
                .load(load.clone())
                .clients(CLIENTS)
                .duration(WARM_UP + ATTACH + WINDOW * 2)
                .spawn()?;
            std::thread::sleep(WARM_UP);
            let level = LevelSwitch::open(path)?;
            level.set([Level::Off, Level::Waits, Level::Locks, Level::Off, Level::Off][arm]);
            let mut segment = Segment::open(path)?;
            let pids = backends(&mut segment)?;
            let mut tracer = match arm {
                3 => bpftrace(&postgres.display().to_string()),
                4 => lw_lock_tracer(&pids),
                _ => None,
            };
            std::thread::sleep(ATTACH);
            let figure = window(&mut segment, &pids)?;
            // A tracer that could not attach has ended by now; one that attached too late would leave no time to
            // measure.
            let attached =
                arm < 3 || matches!(tracer.as_mut().map(Child::try_wait), Some(Ok(None)));
            if attached && figure.1 > 0.0 {
                figures[arm].push(figure);
            }
            if let Some(mut tracer) = tracer {
                tracer.kill()?;
                tracer.wait()?;
            }
            pgbench.kill();
        }
    }
    for (arm, name) in ARMS.iter().enumerate() {
        let of = |f: fn(&(f64, f64)) -> f64| median(figures[arm].iter().map(f).collect());
        match (of(|x| x.0), of(|x| x.1)) {
            (Some(cpu), Some(rate)) => {
                println!("{name:18} {cpu:8.1} us of CPU per message {rate:9.0} messages/s  (median of {})", figures[arm].len());
            }
            _ => println!("{name:18} not available"),
        }
    }
    Ok(())
}

/// The backends that serve the load.
fn backends(segment: &mut Segment) -> Result<Vec<i32>> {
    let snapshot = segment.snapshot(None)?;
    let clients = snapshot.books.iter().filter(|b| b.identity.kind == "client backend");
    Ok(clients.map(|b| b.pid).collect())
}

/// CPU time per message in us, and messages per second.
fn window(segment: &mut Segment, pids: &[i32]) -> Result<(f64, f64)> {
    let start = Instant::now();
    let (cpu, messages) = (cpu_ns(pids)?, messages(segment, pids)?);
    std::thread::sleep(WINDOW);
    let cpu = cpu_ns(pids)? - cpu;
    let messages = self::messages(segment, pids)? - messages;
    Ok((cpu as f64 / 1e3 / messages as f64, messages as f64 / start.elapsed().as_secs_f64()))
}

fn cpu_ns(pids: &[i32]) -> Result<u64> {
    let mut sum = 0;
    for pid in pids {
        let text = std::fs::read_to_string(format!("/proc/{pid}/schedstat"))?;
        sum += text.split(' ').next().unwrap_or("").parse::<u64>()?;
    }
    Ok(sum)
}

fn messages(segment: &mut Segment, pids: &[i32]) -> Result<u64> {
    let snapshot = segment.snapshot(None)?;
    Ok(snapshot.books.iter().filter(|b| pids.contains(&b.pid)).map(|b| b.calls[0]).sum())
}

/// Acquisitions, holds and waits by lock, from the server's own probes.
fn bpftrace(postgres: &str) -> Option<Child> {
    let probe = |name: &str| format!("usdt:{postgres}:postgresql:lwlock__{name}");
    let program = format!(
        "{} {{ @since[tid, arg0] = nsecs; @acquired[str(arg0)] = count(); }} \
         {} /@since[tid, arg0]/ {{ @held[str(arg0)] = stats(nsecs - @since[tid, arg0]); delete(@since[tid, arg0]); }} \
         {} {{ @from[tid] = nsecs; }} \
         {} /@from[tid]/ {{ @waited[str(arg0)] = stats(nsecs - @from[tid]); delete(@from[tid]); }}",
        probe("acquire"),
        probe("release"),
        probe("wait__start"),
        probe("wait__done"),
    );
    start(Command::new("bpftrace").args(["-q", "--usdt-file-activation", "-e", &program]))
}

fn lw_lock_tracer(pids: &[i32]) -> Option<Child> {
    let command = std::env::var("PGTALLY_LW_LOCK_TRACER").ok()?;
    let mut words = command.split_whitespace();
    let mut tracer = Command::new(words.next()?);
    tracer.args(words);
    for pid in pids {
        tracer.arg("-p").arg(pid.to_string());
    }
    start(&mut tracer)
}

fn start(command: &mut Command) -> Option<Child> {
    let mut child =
        command.stdout(Stdio::null()).stderr(Stdio::null()).stdin(Stdio::null()).spawn().ok()?;
    std::thread::sleep(Duration::from_millis(500));
    matches!(child.try_wait(), Ok(None)).then_some(child)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}
