// SPDX-License-Identifier: PostgreSQL
//! Runs a study until its last cell or a signal. An interrupted run continues in the same directory.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::engine::journal::{Journal, RunHead};
use crate::engine::order::Order;
use crate::engine::progress;
use crate::engine::verb::study_help;
use clap::Args;
use error::Error;
use live::host::Watch;
use view::escape::say;

use crate::storage::arms::{arms, variant, CompletedCell, MeasuredArm};
use crate::storage::cell::{measure, CellEnd, Task};
use crate::storage::engine;

/// Arguments of `tally storage run`.
#[derive(Debug, Args)]
pub struct StorageRunArgs {
    /// Study
    #[arg(value_name = "NAME|FILE", help = study_help("storage"))]
    pub study: String,
    /// Directory for logs and results [default: storage-NAME in the current directory]
    #[arg(long, short, value_name = "DIR")]
    pub output: Option<PathBuf>,
    /// Directory for the files of arms that set none [default: the temporary directory]
    #[arg(long, value_name = "DIR")]
    pub directory: Option<PathBuf>,
    /// Length of each cell, such as 4h, instead of the study's
    #[arg(long = "for", value_name = "TIME", value_parser = cell_length)]
    pub length: Option<Duration>,
    /// Run the quick variant, which takes minutes
    #[arg(long)]
    pub quick: bool,
    /// Print the results as JSON (docs/reference-json.md) instead of the tables
    #[arg(long)]
    pub json: bool,
}

fn cell_length(text: &str) -> Result<Duration, String> {
    view::duration::within(text, Duration::from_secs(5), Duration::from_secs(30 * 86_400))
}

/// Runs the cells that are missing from the directory. If interrupted, the error says how to continue.
pub fn run(args: &StorageRunArgs, text: &str, folder: &Path) -> Result<(), Error> {
    // Create nothing if the background cannot run at all.
    let server = engine::version()?;
    let study = variant(text, args.quick, args.length).map_err(Error::Usage)?;
    let stop = command::stop_on_signals_and_quit()?;
    let near = args.directory.clone().unwrap_or_else(std::env::temp_dir);
    let near = near
        .canonicalize()
        .map_err(|error| Error::Usage(format!("{}: {error}", near.display())))?;
    let head = RunHead {
        directories: args.directory.iter().cloned().collect(),
        seconds: args.length.map(|length| length.as_secs_f64()),
        ..RunHead::new(args.quick, server)
    };
    let host = Watch::start().host("");
    let (mut journal, mut done) = Journal::open::<CompletedCell>(folder, text, head, host)?;
    let arms = arms(&study);
    let bar = progress::cells(arms.len() * study.repeats, done.len());
    let mut result = Ok(());
    'run: for (block, visits) in
        Order::new(arms.len(), 1, study.seed).take(study.repeats).enumerate()
    {
        for visit in visits {
            let MeasuredArm { name, title, arm } = &arms[visit.arm];
            let is_done = done.iter().any(|cell| cell.arm == *name && cell.block == block);
            let left_out = journal.kept.left_out(name).is_some();
            if is_done || left_out {
                continue;
            }
            let show = |text: &str| bar.set_message(format!("{title}: {text}"));
            let task = Task {
                study: &study,
                arm,
                name,
                block,
                folder,
                near: &near,
                stop: &stop,
                show: &show,
            };
            match measure(task) {
                Ok(CellEnd::Complete) => {
                    let cell = CompletedCell { arm: name.clone(), block };
                    journal.add(&cell)?;
                    done.push(cell);
                    bar.set_position(done.len() as u64);
                }
                Ok(CellEnd::LeftOut(why)) => {
                    bar.suspend(|| say(&format!("skipping arm \"{name}\": {why}")));
                    journal.leave_out(name, &why)?;
                }
                Ok(CellEnd::Interrupted) => break 'run,
                Err(error) => {
                    result = Err(Error::Failed(format!("arm \"{name}\": {error}")));
                    break 'run;
                }
            }
        }
    }
    bar.finish_and_clear();
    let interrupted = stop.load(Ordering::Relaxed);
    ended(result, interrupted, (done.len(), arms.len() * study.repeats), &journal)
}

/// Adds to the result how much is complete and how to continue.
fn ended(
    result: Result<(), Error>,
    interrupted: bool,
    (done, all): (usize, usize),
    journal: &Journal,
) -> Result<(), Error> {
    let kept = journal.progress(done, all);
    match result {
        _ if interrupted => Err(Error::Failed(format!("interrupted; {kept}"))),
        Err(error) => Err(Error::Failed(format!("{error}\n{kept}"))),
        Ok(()) if done == 0 => Err(Error::Failed(match journal.kept.left_out.first() {
            Some((arm, why)) => {
                format!("none of the arms can run on this machine; \"{arm}\": {why}")
            }
            None => "the study has nothing to measure".into(),
        })),
        Ok(()) => Ok(()),
    }
}
