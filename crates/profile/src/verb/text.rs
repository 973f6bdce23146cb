// SPDX-License-Identifier: PostgreSQL
//! A profile as text.

use std::fmt::Write as _;
use std::io::Write as _;

use crate::sums::by_image;
use crate::{Profile, Scope, Stack};
use error::Error;
use view::table::{wrap, Table};
use view::units::{duration, percent, whole};

use super::tables;

/// Width of sentences if the output is not a terminal.
const WIDTH: usize = 100;
/// Number of images whose functions `--system` lists, and how many of them belong to the server.
const IMAGES: usize = 5;
const OURS: usize = 3;

/// Prints the profile.
pub fn print(profile: &Profile, rows: usize, color: bool) -> Result<(), Error> {
    let terminal = command::terminal_width();
    let widths = (terminal.unwrap_or(WIDTH), terminal.unwrap_or(usize::MAX));
    let mut out = view::escape::coloured_stdout(color);
    out.write_all(text(profile, rows, widths, color).as_bytes())?;
    Ok(out.flush()?)
}

/// It as text, its sentences and its tables of these widths.
pub fn text(
    profile: &Profile,
    rows: usize,
    (width, tables): (usize, usize),
    color: bool,
) -> String {
    let mut out = String::new();
    for line in head(profile) {
        for part in wrap(&line, width) {
            let _ = writeln!(out, "{part}");
        }
    }
    let mut section = |title: &str, table: Table| {
        if table.rows.is_empty() {
            return;
        }
        let title = if color { format!("\x1b[1m{title}\x1b[0m") } else { title.to_string() };
        let _ = write!(out, "\n{title}\n{}", table.text(tables));
    };
    section("Accounts: exact ledger, and samples of all sessions", tables::accounts(profile));
    let ours = |stack: &Stack| profile.is_ours(stack);
    match profile.scope {
        Scope::Server => {
            section("CPU samples of the server, by image", tables::images(profile, ours));
            section(
                "CPU samples of the server, by function",
                tables::functions(profile, rows, true, ours),
            );
        }
        Scope::System => {
            section("CPU samples of the machine, by image", tables::images(profile, |_| true));
            for image in listed(profile) {
                let of_image = |stack: &Stack| match profile.innermost(stack) {
                    Some(symbol) if symbol.is_kernel() => image == crate::KERNEL,
                    Some(symbol) => symbol.image == image,
                    None => false,
                };
                let title = format!("{} (percent of its samples)", Profile::short(image));
                section(&title, tables::functions(profile, rows, false, of_image));
            }
        }
    }
    out
}

/// The images whose functions are listed: those of the server's processes, then the largest others.
fn listed(profile: &Profile) -> Vec<&str> {
    let ours = by_image(profile, |stack| profile.is_ours(stack));
    let mut listed: Vec<&str> = Vec::new();
    for image in ours.into_iter().take(OURS).chain(by_image(profile, |_| true)) {
        if listed.len() < IMAGES && !listed.contains(&image.key) {
            listed.push(image.key);
        }
    }
    listed
}

/// The head: what was sampled, how much of it is known, and what is missing.
fn head(profile: &Profile) -> Vec<String> {
    let quality = &profile.quality;
    let of = |part: u64, all: u64| percent(part as f64 / all.max(1) as f64);
    let mut lines = vec![format!(
        "{}, {}: {} at {} Hz, {} CPUs, {} commands",
        profile.server,
        profile.host,
        duration(profile.seconds),
        profile.hertz,
        profile.cores,
        whole(profile.commands)
    )];
    let on_cpu = quality.cpu_samples as f64 / profile.hertz;
    let mut line =
        format!("On CPU: {} from {} samples", duration(on_cpu), whole(quality.cpu_samples));
    match profile.on_cpu_seconds {
        Some(kernel) => {
            let _ = write!(line, ", {} by kernel accounting", duration(kernel));
        }
        None => line.push_str("; kernel accounting is incomplete"),
    }
    if !profile.kernel {
        line.push_str(
            "; without time in the kernel, which this user may not sample (kernel.perf_event_paranoid)",
        );
    }
    lines.push(line);
    if quality.cpu_samples > 0 {
        lines.push(format!(
            "Account known exactly for {} % of these samples, changed before it was read for {} %, unknown \
             (process without a slot) for {} %",
            of(quality.account_known, quality.cpu_samples),
            of(quality.account_moved, quality.cpu_samples),
            of(quality.no_slot, quality.cpu_samples)
        ));
    }
    let agree = profile.ledger.iter().filter(|row| row.agrees(profile.commands));
    lines.push(format!(
        "Session samples agree with the ledger, within sampling error plus 2 us per command, in {} of {} \
         accounts ({} instants)",
        agree.count(),
        profile.ledger.len(),
        whole(quality.instants)
    ));
    lines.extend(warnings(profile));
    lines
}

/// Warnings about what is missing from the profile.
fn warnings(profile: &Profile) -> Vec<String> {
    let quality = &profile.quality;
    let mut lines = Vec::new();
    if quality.lost > 0 {
        lines.push(format!("! {} samples were lost; use a lower --hertz", whole(quality.lost)));
    }
    if quality.throttled > 0 {
        lines.push("! the kernel throttled the sampling; use a lower --hertz".to_string());
    }
    if quality.instants_missed > 0 {
        lines.push(format!(
            "! {} instants were skipped, because reading all sessions took longer than a period",
            whole(quality.instants_missed)
        ));
    }
    if quality.cut_stacks * 20 > quality.user_stacks {
        let names: Vec<&str> = quality.cut_in.iter().map(|file| Profile::short(file)).collect();
        lines.push(format!(
            "! {} % of the stacks are truncated, in code of {}",
            percent(quality.cut_stacks as f64 / quality.user_stacks.max(1) as f64),
            names.join(", ")
        ));
    }
    if profile.kernel && !quality.kernel_symbols {
        lines.push("! the kernel hides its function names (kernel.kptr_restrict)".to_string());
    }
    if !quality.stripped.is_empty() {
        let names: Vec<&str> = quality.stripped.iter().map(|file| Profile::short(file)).collect();
        lines.push(format!(
            "! no symbol table in {}: only exported functions have names, others have an address; install \
             the package with debug symbols",
            names.join(", ")
        ));
    }
    lines
}
