// SPDX-License-Identifier: PostgreSQL
//! `tally ship`: sends a recording to a bucket. `tally upkeep`: removes from a bucket what is not needed any
//! more. The crate `ship` does both, and ships for `tally record`.

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

/// How often to try when the bucket does not answer, and for how long to wait in between.
const TRIES: u32 = 5;
const PAUSE: Duration = Duration::from_secs(2);

/// Arguments of `tally ship`.
#[derive(Debug, Args)]
#[command(after_help = "\
DIR is a recording, or the spool of a recorder that has ended. What the bucket has already is not \
sent again. `tally record -o URL` ships while it records. Credentials come from the environment \
(docs/shipping.md).

Examples:
  tally ship /srv/recording s3://bucket/pgtally
  tally ship /srv/recording gs://bucket/pgtally --cluster orders")]
pub struct ShipArgs {
    /// The recording's directory
    #[arg(value_name = "DIR")]
    pub directory: PathBuf,
    /// The bucket and prefix
    pub url: String,
    /// The cluster that the server is listed under
    #[arg(long, value_name = "NAME", default_value = "main")]
    pub cluster: String,
    /// Print JSON (docs/reference-json.md)
    #[arg(long)]
    pub json: bool,
}

/// What was sent; the fields of `--json`.
#[derive(Debug, Serialize)]
struct Sent<'s> {
    url: &'s str,
    cluster: &'s str,
    host: &'s str,
    files: u64,
    bytes: u64,
    files_left: u64,
}

/// Send a recording.
pub fn run(args: &ShipArgs) -> Result<(), Error> {
    let about = About::read(&args.directory)?;
    let origin = Origin::new(&args.cluster, &about.host)?;
    let bucket = Bucket::open(&args.url)?;
    let url = bucket.url().to_string();
    // What a killed recorder has left is moved to files, and nobody may record into it meanwhile.
    let about = About { begun_us: ship::now_us(), ..about };
    let writer = Writer::open(&args.directory, about, RetentionPolicy::default())?;
    let files = writer.files();
    // The recorder that continues a spool adds minutes to the hour.
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
            writeln!(out, "{left} files could not be merged and are not sent")?;
        }
    }
    Ok(())
}
