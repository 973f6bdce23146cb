// SPDX-License-Identifier: PostgreSQL
//! `tally ship`: sends a recording to a bucket. `tally upkeep`: applies retention and removes superseded files in
//! a bucket. The crate `ship` does the work of both, and ships for `tally record`.

mod upkeep;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use error::Error;
use recording::{About, RetentionPolicy, Writer};
use serde::Serialize;
use ship::layout::Origin;
use ship::{Bucket, Pass, Spool};
use view::{escape, units};

pub use upkeep::{run as run_upkeep, UpkeepArgs};

/// How often to try if the bucket does not respond.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(2);

/// Arguments of `tally ship`.
#[derive(Debug, Args)]
#[command(after_help = "\
DIR is a recording, or the spool of a recorder that has ended. Files that are already in the bucket \
are not sent again. `tally record -o URL` ships while it records. Credentials come from the environment \
(docs/shipping.md).

Examples:
  tally ship /srv/recording s3://bucket/pgtally
  tally ship /srv/recording gs://bucket/pgtally --cluster orders")]
pub struct ShipArgs {
    /// Directory of the recording
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// URL of the bucket and prefix
    pub url: String,
    /// Cluster to list the server under
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub cluster: String,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// The files that were sent; the fields of `--json`.
#[derive(Debug, Serialize)]
struct Sent<'s> {
    url: &'s str,
    cluster: &'s str,
    host: &'s str,
    files: u64,
    bytes: u64,
    files_left: u64,
}

/// Sends a recording.
pub fn run(args: &ShipArgs) -> Result<(), Error> {
    let about = About::read(&args.directory)?;
    let origin = Origin::new(&args.cluster, &about.host)?;
    let bucket = Bucket::open(&args.url)?;
    let url = bucket.url().to_string();
    // Converts what a killed recorder left to files; nobody may record into the directory meanwhile.
    let about = About { begun_us: ship::now_us(), ..about };
    let writer = Writer::open(&args.directory, about, RetentionPolicy::default())?;
    let files = writer.files();
    // A recorder that continues a spool adds more minutes to the hour.
    let is_spool = Spool::is_at(&args.directory);
    let ended = if is_spool { writer.pause() } else { writer.close() };
    ended?;
    let spool = Spool::open(&args.directory)?;
    let who = spool.claimant(&live::machine::host());
    let mut pass = Pass::new(bucket, origin.clone(), &spool, who, files, None)?;
    let (mut sent, mut bytes, mut tries) = (0, 0, 0);
    let left = loop {
        let passed = pass.run(&ship::now_us);
        (sent, bytes) = (sent + passed.sent, bytes + passed.bytes);
        let left = passed.left;
        match passed.problem {
            None if passed.more => {}
            None => break left,
            Some(error) if error.may_pass() && tries < TRIES => {
                tries = if passed.sent > 0 { 0 } else { tries + 1 };
                std::thread::sleep(PAUSE);
            }
            Some(error) => return Err(error.into()),
        }
    };
    let mut out = escape::stdout();
    if args.json {
        let sent = Sent {
            url: &url,
            cluster: &origin.cluster,
            host: &origin.host,
            files: sent,
            bytes,
            files_left: left,
        };
        serde_json::to_writer(&mut out, &sent)?;
        writeln!(out)?;
    } else {
        writeln!(
            out,
            "sent {} files ({}) to {url} as cluster {}, host {}",
            units::whole(sent),
            units::bytes(bytes as f64),
            origin.cluster,
            origin.host
        )?;
        if left > 0 {
            writeln!(out, "{left} files could not be merged and were not sent")?;
        }
    }
    Ok(())
}
