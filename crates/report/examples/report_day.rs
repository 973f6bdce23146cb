// SPDX-License-Identifier: PostgreSQL
//! How long a report of a recording takes, and how much memory:
//!
//!     cargo run --release -p report --example report_day DIR [FILE]
//!
//! Reads the recording in DIR and makes the document of its whole range, as `tally report` does. Prints the elapsed time,
//! the CPU time of all threads in user mode and in the kernel, the maximum resident memory, and the size of the document as
//! JSON, which it writes to FILE to compare versions. `cargo run --release -p recording --example day` makes a day.

use report::source::RecordingSelection;
use std::path::Path;
use std::time::Instant;

type Failed = Box<dyn std::error::Error>;

/// CPU time in user mode and in the kernel, seconds, in steps of 10 ms.
fn processor_seconds() -> Result<[f64; 2], Failed> {
    let stat = std::fs::read_to_string("/proc/self/stat")?;
    let fields: Vec<&str> =
        stat.rsplit(')').next().unwrap_or("").split_ascii_whitespace().collect();
    Ok([fields[11].parse::<f64>()? / 100.0, fields[12].parse::<f64>()? / 100.0])
}

/// Maximum resident memory, MB.
fn peak_mb() -> Result<f64, Failed> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kb = line.and_then(|line| line.split_ascii_whitespace().next()).ok_or("no VmHWM")?;
    Ok(kb.parse::<f64>()? / 1000.0)
}

fn main() -> Result<(), Failed> {
    let directory = std::env::args().nth(1).ok_or("usage: report_day DIR [FILE]")?;
    let begun = Instant::now();
    let selection = RecordingSelection {
        directory: Path::new(&directory),
        name: None,
        host: None,
        from: None,
        to: None,
        client: None,
    };
    let document = report::of_recording(&selection, None, None, &|_| {})?;
    let seconds = begun.elapsed().as_secs_f64();
    let [user, kernel] = processor_seconds()?;
    let peak = peak_mb()?;
    let json = serde_json::to_vec(&document)?;
    let size = json.len() as f64 * 1e-6;
    std::env::args().nth(2).map(|file| std::fs::write(file, json)).transpose()?;
    println!(
        "{seconds:.2} s elapsed, {user:.2} s CPU in user mode, {kernel:.2} s in the kernel, {peak:.0} MB, {size:.1} MB of JSON"
    );
    Ok(())
}
