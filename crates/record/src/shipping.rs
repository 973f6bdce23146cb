// SPDX-License-Identifier: PostgreSQL
//! The destination of a recording: a directory, or a spool that is shipped to a bucket (crate `ship`).

use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use recording::{Files, GapRow, MarkRow};
use serde::Serialize;
use ship::layout::Origin;
use ship::{Bucket, Dropped, Pass, Shipper, ShippingNews, Spool};

use error::Error;
use live::machine;
use view::units;

use command::size;

/// Maximum time for the bucket to respond at the start, and to receive the last files at the end.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the spool keeps files that were sent: until intervals of a minute have been sent, which is after a week.
const KEEP: Duration = Duration::from_secs(8 * 86_400);
/// Successive recordings of the same host use separate ranges of numbers for intervals and servers.
const FRAMES_PER_GENERATION: u64 = 1 << 32;
const SERVERS_PER_GENERATION: u32 = 1 << 16;

/// Options for shipping a recording.
#[derive(Debug, Args)]
pub struct ShippingArgs {
    /// With a bucket URL: cluster to list the server under [default: main]
    #[arg(long, value_name = "NAME")]
    pub cluster: Option<String>,
    /// With a bucket URL: directory for files not sent yet [default: in the state directory of the user or service]
    #[arg(long, value_name = "DIR")]
    pub spool: Option<PathBuf>,
    /// With a bucket URL: maximum size of the files not sent yet [default: 2GB]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    pub spool_limit: Option<u64>,
    /// With a bucket URL: replace another recorder that ships the same host of the cluster
    #[arg(long)]
    pub take_over: bool,
}

/// Where to record, and where to ship the recording.
#[derive(Debug)]
pub struct Destination {
    /// The directory of the recording.
    pub directory: PathBuf,
    /// Where and how to ship it; `None`: it stays local.
    pub shipping: Option<Shipping>,
}

/// Shipping to a bucket, before and after it has begun.
#[derive(Debug)]
pub struct Shipping {
    target: Target,
    bucket: Option<Bucket>,
    origin: Origin,
    spool: Spool,
    generation: Option<u32>,
    limit: u64,
    keep: Duration,
    shipper: Option<Shipper>,
    problem: Option<String>,
}

/// The bucket, as in the summary (docs/reference-json.md).
#[derive(Debug, Clone, Serialize)]
pub struct Target {
    /// The address.
    pub url: String,
    /// The cluster.
    pub cluster: String,
    /// The host.
    pub host: String,
    /// Files that are not sent yet.
    pub files_left: u64,
}

impl ShippingArgs {
    /// The bucket that the output names, if it is a URL. This makes no request.
    pub fn bucket(&self, output: &Path) -> Result<Option<(Bucket, Origin)>, Error> {
        if let Some(url) = output.to_str().filter(|text| ship::is_url(text)) {
            let cluster = self.cluster.as_deref().unwrap_or("main");
            let origin = Origin::new(cluster, &machine::host())?;
            return Ok(Some((Bucket::open(url)?, origin)));
        }
        let given = [
            ("--cluster", self.cluster.is_some()),
            ("--spool", self.spool.is_some()),
            ("--spool-limit", self.spool_limit.is_some()),
            ("--take-over", self.take_over),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((name, _)) => Err(Error::Usage(format!(
                "{name} requires a bucket URL as --output (s3://BUCKET/PREFIX)"
            ))),
            None => Ok(None),
        }
    }
}

impl Destination {
    /// The directory, or a spool for the bucket. Fails if another recorder ships this host to the bucket. `messages`
    /// receives messages for the user.
    pub fn find(
        output: &Path,
        bucket: Option<(Bucket, Origin)>,
        args: &ShippingArgs,
        retention: Option<Duration>,
        messages: &mut Vec<String>,
    ) -> Result<Destination, Error> {
        let Some((bucket, origin)) = bucket else {
            return Ok(Destination { directory: output.to_path_buf(), shipping: None });
        };
        let directory = match &args.spool {
            Some(directory) => directory.clone(),
            None => {
                let variable = |name: &str| std::env::var_os(name).map(PathBuf::from);
                ship::default_directory(variable, bucket.url(), &origin.cluster).ok_or_else(
                    || Error::Usage("no home directory found; set --spool DIR".into()),
                )?
            }
        };
        let spool = Spool::open(&directory)?;
        spool.mark()?;
        let who = spool.claimant(&machine::host());
        let claim = || ship::claim(&bucket, &origin, &who, args.take_over, ship::now_us());
        let claim = bucket.within(PATIENCE, claim);
        let generation = match claim {
            Ok(claim) => Some(claim.generation(&bucket, &origin)?),
            Err(error) if error.may_pass() && !args.take_over => {
                messages.push(format!(
                    "{error}; recording into {} and retrying",
                    spool.directory.display()
                ));
                None
            }
            Err(error) => return Err(error.into()),
        };
        let target = Target {
            url: bucket.url().to_string(),
            cluster: origin.cluster.clone(),
            host: origin.host.clone(),
            files_left: 0,
        };
        let shipping = Shipping {
            target,
            bucket: Some(bucket),
            origin,
            spool,
            generation,
            limit: args.spool_limit.unwrap_or(2 << 30),
            keep: retention.unwrap_or(KEEP),
            shipper: None,
            problem: None,
        };
        Ok(Destination { directory, shipping: Some(shipping) })
    }
}

impl Destination {
    /// The error for a directory that cannot be recorded into, with a remedy if the directory is a spool.
    pub fn explain(&self, error: recording::Error) -> Error {
        use recording::Error::{Locked, OtherServer};
        match error {
            // The default directory depends on the bucket and cluster.
            Locked { .. } | OtherServer { .. } if self.shipping.is_some() => {
                Error::Failed(format!(
                    "{error} with --spool; a second server on this machine needs its own --cluster"
                ))
            }
            error => error.into(),
        }
    }
}

impl Shipping {
    /// The first interval and server of a new recording.
    pub fn first_numbers(&self) -> (u64, u32) {
        let earlier = self.generation.unwrap_or(1).saturating_sub(1);
        let servers = earlier.saturating_mul(SERVERS_PER_GENERATION);
        (u64::from(earlier) * FRAMES_PER_GENERATION + 1, servers)
    }

    /// Begin to ship the files of the spool.
    pub fn begin(&mut self, files: Files) -> Result<(), Error> {
        let Some(bucket) = self.bucket.take() else { return Ok(()) };
        let who = self.spool.claimant(&machine::host());
        let origin = self.origin.clone();
        let mut pass = Pass::new(bucket, origin, &self.spool, who, files, self.generation)?;
        (pass.limit, pass.keep) = (self.limit, Some(self.keep));
        self.shipper = Some(Shipper::start(pass)?);
        Ok(())
    }

    /// Why nothing can be sent now.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// What happened since the last call: messages for the user, and rows.
    pub fn news(&mut self) -> (Vec<String>, Vec<MarkRow>, Vec<GapRow>) {
        let news = self.shipper.as_ref().map(Shipper::news).unwrap_or_default();
        self.heard(news)
    }

    fn heard(&mut self, news: Vec<ShippingNews>) -> (Vec<String>, Vec<MarkRow>, Vec<GapRow>) {
        let (mut messages, mut marks, mut gaps) = (Vec::new(), Vec::new(), Vec::new());
        for item in news {
            match item {
                ShippingNews::Failed(text) => {
                    messages.push(format!("shipping interrupted: {text}"));
                    self.problem = Some(text);
                }
                ShippingNews::Recovered => {
                    messages.push("shipping again".to_string());
                    self.problem = None;
                }
                ShippingNews::Dropped(dropped) => {
                    let (text, gap) = rows_of(&dropped, self.limit);
                    messages.push(text.clone());
                    marks.push(MarkRow {
                        kind: "dropped".into(),
                        text: text.into(),
                        ..MarkRow::default()
                    });
                    gaps.push(gap);
                }
            }
        }
        (messages, marks, gaps)
    }

    /// Send the last files. Returns the bucket with the number of files left, and messages for the user.
    pub fn finish(mut self) -> (Target, Vec<String>) {
        let Some(shipper) = self.shipper.take() else { return (self.target, Vec::new()) };
        let (left, news) = shipper.finish(PATIENCE);
        let (mut messages, ..) = self.heard(news);
        if left > 0 {
            messages.push(format!(
                "{left} files are not sent yet; they are in {}. To send them, continue the recording or run \
                 `tally ship`",
                self.spool.directory.display()
            ));
        }
        (Target { files_left: left, ..self.target }, messages)
    }
}

fn rows_of(dropped: &Dropped, limit: u64) -> (String, GapRow) {
    let Dropped { from_us, to_us, files, bytes } = *dropped;
    let text = format!(
        "the spool exceeded its limit of {}: {files} files ({}) from {} to {} were removed without being sent",
        units::bytes(limit as f64),
        units::bytes(bytes as f64),
        recording::format_utc(from_us),
        recording::format_utc(to_us)
    );
    let gap = GapRow {
        from_us,
        time_us: to_us,
        reason: "removed from the full spool".into(),
        ..GapRow::default()
    };
    (text, gap)
}
