// SPDX-License-Identifier: PostgreSQL
//! The overhead of statement figures in a Java application: CPU time of its thread for a statement that returns
//! one row.
//!
//!     make agent; cargo run --release -p tally --example calls_cost [ROUNDS]
//!
//! A program executes statements on a scratch server. After every 500 statements, measuring is switched off and
//! on in its segment, off-on-on-off or on-off-off-on, so that disturbances of the machine affect both. A round
//! has 20 such groups of four for each of the agent's options, and for a program without the agent as the
//! control, each in a virtual machine of its own; 8 rounds take two minutes. Prints how much more CPU time a
//! statement takes with measuring on, with the half-width of its 95 % interval.

mod bench;

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use rand::Rng;
use scratch::Cluster;
use segment::Level;
use stats::Estimate;

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Options of the agent; `None` for the control, which runs without it.
const ARMS: [(&str, Option<&str>); 4] = [
    ("control", None),
    ("calls", Some("methods=none.None")),
    ("calls, histograms=off", Some("methods=none.None,histograms=off")),
    ("calls, and the driver's methods", Some("threads=16")),
];
const BLOCK: u32 = 500;
const FOURS: usize = 20;
/// Number of blocks before the measured ones, so that the code is compiled.
const WARM: usize = 40;

fn main() -> Result<()> {
    let rounds: u32 = std::env::args().nth(1).map_or(Ok(8), |text| text.parse())?;
    let port = std::net::TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let cluster = Cluster::builder()
        .setting("listen_addresses", "127.0.0.1")
        .setting("port", &port.to_string())
        .start()?;
    let url = format!("jdbc:postgresql://127.0.0.1:{port}/postgres?sslmode=disable");
    let mut differences = vec![Vec::new(); ARMS.len()];
    let mut off = vec![Vec::new(); ARMS.len()];
    for round in 0..rounds {
        for (arm, (_, options)) in ARMS.iter().enumerate() {
            let mut program = Program::start(*options, &url, cluster.user())?;
            for _ in 0..WARM {
                program.block(true)?;
            }
            let mut fours = Vec::new();
            for _ in 0..FOURS {
                let first: bool = rand::rng().random();
                let mut sums = [0.0; 2];
                for on in [first, !first, !first, first] {
                    sums[usize::from(on)] += program.block(on)? / 2.0;
                }
                fours.push(sums[1] - sums[0]);
                off[arm].push(sums[0]);
            }
            // Virtual machines differ in what they have compiled.
            differences[arm].push(fours.iter().sum::<f64>() / FOURS as f64);
        }
        eprint!("\rround {} of {rounds} ", round + 1);
    }
    eprintln!();
    for (arm, (name, _)) in ARMS.iter().enumerate() {
        let estimate = Estimate::of_repeats(&differences[arm]).ok_or("too few rounds")?;
        let (mean, half) = (estimate.mean, estimate.half_width);
        println!(
            "{name}: {mean:+.2} us ±{half:.2}; off: {}",
            bench::median(off[arm].clone(), "us", 2)
        );
    }
    Ok(())
}

/// A virtual machine that executes statements.
struct Program {
    child: Child,
    input: ChildStdin,
    lines: BufReader<ChildStdout>,
    /// The path of its segment, if it has one.
    segment: Option<tempfile::TempDir>,
}

impl Program {
    fn start(options: Option<&str>, url: &str, user: &str) -> Result<Program> {
        let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../client/java/target");
        let path =
            format!("{}:{}", built.join("test-classes").display(), built.join("lib/*").display());
        let mut command = Command::new("java");
        let mut segment = None;
        if let Some(options) = options {
            let folder = tempfile::tempdir_in("/dev/shm")?;
            command.arg(format!(
                "-javaagent:{}=file={},{options}",
                built.join("pgtally-agent.jar").display(),
                folder.path().join("segment").display()
            ));
            segment = Some(folder);
        }
        let mut child = command
            .args(["-cp", &path, "org.pgtally.test.CallCost", url, user])
            .env("PGPASSWORD", scratch::password())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?;
        let input = child.stdin.take().ok_or("no pipe")?;
        let lines = BufReader::new(child.stdout.take().ok_or("no pipe")?);
        Ok(Program { child, input, lines, segment })
    }

    /// CPU time of a statement in a block, measured or not, us.
    fn block(&mut self, on: bool) -> Result<f64> {
        // The agent creates its segment before the program starts, and the program answers from then on.
        if let Some(path) = self
            .segment
            .as_ref()
            .map(|folder| folder.path().join("segment"))
            .filter(|path| path.exists())
        {
            segment::set_level(&path, if on { Level::Waits } else { Level::Off })?;
        }
        writeln!(self.input, "{BLOCK}")?;
        let mut line = String::new();
        self.lines.read_line(&mut line)?;
        let ns: f64 = line
            .trim()
            .parse()
            .map_err(|_| "the program has ended; is client/java built (make agent)?")?;
        Ok(ns / f64::from(BLOCK) / 1e3)
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
