// SPDX-License-Identifier: PostgreSQL
//! Compares our loop with pg_test_timing's, alternating between them: nanoseconds per loop, and the ratio.
//!
//!     cargo run --release -p clock --example pg_test_timing [ROUNDS [PROGRAM]]

use std::error::Error;
use std::process::Command;
use std::time::Duration;

use clock::kernel_clock::KERNEL_CLOCKS;
use clock::{measure, Setup, Source, ThisMachine};

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = std::env::args().skip(1);
    let rounds: usize = args.next().as_deref().unwrap_or("15").parse()?;
    let program = args.next().unwrap_or_else(|| "pg_test_timing".into());
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..rounds {
        // Alternate which comes first.
        let (a, b) = match round % 2 {
            0 => {
                let a = loop_ns();
                (a, loop_of(&program)?)
            }
            _ => {
                let b = loop_of(&program)?;
                (loop_ns(), b)
            }
        };
        println!("{a:8.2} {b:8.2}");
        ours.push(a);
        theirs.push(b);
        ratios.push(a / b);
    }
    let [ours, theirs, ratios] = [ours, theirs, ratios].map(|mut values| {
        values.sort_by(f64::total_cmp);
        // The median, and the order statistics that enclose it in 95 of 100 cases.
        let off = (0.98 * (values.len() as f64).sqrt()).ceil() as usize;
        let middle = values.len() / 2;
        let last = values.len() - 1;
        (values[middle], values[middle.saturating_sub(off)], values[(middle + off).min(last)])
    });
    for (name, (median, low, high)) in
        [("tally clock, ns", ours), ("pg_test_timing, ns", theirs), ("ratio", ratios)]
    {
        println!("{name:20} {median:8.3} ({low:.3} .. {high:.3})");
    }
    Ok(())
}

/// Our mean over one second, without testing other clocks.
fn loop_ns() -> f64 {
    let sources: Vec<Box<dyn Source>> = vec![Box::new(KERNEL_CLOCKS[0])];
    let setup =
        Setup { sources: &sources, reference: None, server: Some(0), platform: &ThisMachine };
    let findings = measure(&setup, Duration::from_millis(1_800), &mut |_, _| {});
    let steps = &findings.sources[0].steps;
    steps.total() as f64 / steps.count() as f64
}

fn loop_of(program: &str) -> Result<f64, Box<dyn Error>> {
    let output = Command::new(program).args(["-d", "1"]).output()?;
    let text = String::from_utf8(output.stdout)?;
    let line = text.lines().find(|line| line.starts_with("Per loop time")).ok_or("no loop time")?;
    Ok(line.split_whitespace().rev().nth(1).ok_or("no loop time")?.parse()?)
}
