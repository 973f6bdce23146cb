// SPDX-License-Identifier: PostgreSQL
//! `tally upkeep`: applies retention and removes superseded files in a bucket.

use std::io::Write;
use std::time::Duration;

use clap::Args;
use error::Error;
use ship::{Bucket, Removed, Rules};
use view::duration::within;
use view::{escape, units};

/// Arguments of `tally upkeep`.
#[derive(Debug, Args)]
#[command(after_help = "\
Removes per-minute files 15 minutes after the merged file of their hour has been uploaded and, with \
--keep, removes old days. It is safe to run while recorders ship to the bucket and while queries \
run. Run it once a day.

Examples:
  tally upkeep s3://bucket/pgtally --keep 90d --dry-run
  tally upkeep s3://bucket/pgtally --keep 90d")]
pub struct UpkeepArgs {
    /// URL of the bucket and prefix
    pub url: String,
    /// Remove days older than this [default: keep all days]
    #[arg(long, value_name = "TIME", value_parser = keep)]
    pub keep: Option<Duration>,
    /// Only print what would be removed
    #[arg(long)]
    pub dry_run: bool,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

fn keep(text: &str) -> Result<Duration, String> {
    within(text, Duration::from_secs(86_400), Duration::from_secs(3650 * 86_400))
}

/// Cleans up a bucket.
pub fn run(args: &UpkeepArgs) -> Result<(), Error> {
    let bucket = Bucket::open(&args.url)?;
    let rules = Rules { keep: args.keep, dry_run: args.dry_run, ..Rules::default() };
    let removed = ship::upkeep(&bucket, rules, ship::now_us())?;
    let mut out = escape::stdout();
    if args.json {
        serde_json::to_writer(&mut out, &removed)?;
        writeln!(out)?;
        return Ok(());
    }
    let Removed { files, bytes, merged_files, merged_bytes, old_files, old_bytes } = removed;
    let of = |files: u64, bytes: u64| {
        format!("{} files ({})", units::whole(files), units::bytes(bytes as f64))
    };
    let verb = if args.dry_run { "would remove" } else { "removed" };
    writeln!(out, "{} in {}", of(files, bytes), bucket.url())?;
    writeln!(out, "{verb} {} that have been merged", of(merged_files, merged_bytes))?;
    if args.keep.is_some() {
        writeln!(out, "{verb} {} from old days", of(old_files, old_bytes))?;
    }
    Ok(())
}
