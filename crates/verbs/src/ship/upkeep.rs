// SPDX-License-Identifier: PostgreSQL
//! `tally upkeep`: removes from a bucket what is not needed any more.

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
Removes files of minutes that were merged to hours, a quarter of an hour after the hour has \
arrived, and with --keep the days before. It is safe while recorders ship there and while queries \
run. Run it once a day.

Examples:
  tally upkeep s3://bucket/pgtally --keep 90d --dry-run
  tally upkeep s3://bucket/pgtally --keep 90d")]
pub struct UpkeepArgs {
    /// The bucket and prefix
    pub url: String,
    /// Remove days older than this [default: keep all]
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

/// Do the upkeep of a bucket.
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
    writeln!(out, "{verb} {} that were merged", of(merged_files, merged_bytes))?;
    if args.keep.is_some() {
        writeln!(out, "{verb} {} of old days", of(old_files, old_bytes))?;
    }
    Ok(())
}
