// SPDX-License-Identifier: PostgreSQL
//! Runs a study until its last cell or a signal. An interrupted run continues in the same directory.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};

use crate::engine::journal::{Journal, RunHead};
use crate::engine::order::Order;
use crate::engine::progress;
use error::Error;
use live::host::Watch;
use view::escape::say;

use crate::storage::arms::{arms, variant, Done, MeasuredArm};
use crate::storage::cell::{measure, CellEnd, Task};
use crate::storage::engine;

/// What to run, and where.
#[derive(Debug)]
pub struct StorageRunOptions {
    /// Text of the study's file.
    pub text: String,
    /// The directory of the run.
    pub folder: PathBuf,
    /// Whether to run the quick variant.
    pub quick: bool,
    /// Length of each cell, if it differs from the study's.
    pub length: Option<Duration>,
    /// Directory for the files of arms that set none.
    pub near: Option<PathBuf>,
}

/// Runs the cells that are missing from the directory. If interrupted, the error says how to continue.
pub fn run(wish: &StorageRunOptions) -> Result<(), Error> {
    // Create nothing if the background cannot run at all.
    let server = engine::version()?;
    let study = variant(&wish.text, wish.quick, wish.length).map_err(Error::Usage)?;
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT] {
        signal_hook::flag::register(signal, Arc::clone(&stop))?;
    }
    let near = wish.near.clone().unwrap_or_else(std::env::temp_dir);
    let near = near
        .canonicalize()
        .map_err(|error| Error::Usage(format!("{}: {error}", near.display())))?;
    let head = RunHead {
        quick: wish.quick,
        directories: wish.near.iter().cloned().collect(),
        seconds: wish.length.map(|length| length.as_secs_f64()),
        server,
        version: env!("CARGO_PKG_VERSION").into(),
    };
    let host = Watch::start().host("");
    let (mut journal, mut done) = Journal::open::<Done>(&wish.folder, &wish.text, head, host)?;
    let arms = arms(&study);
    let bar = progress::cells(arms.len() * study.repeats, done.len());
    let mut result = Ok(());
    'run: for (block, visits) in
        Order::new(arms.len(), 1, study.seed).take(study.repeats).enumerate()
    {
        for visit in visits {
            let MeasuredArm { name, title, arm } = &arms[visit.arm];
            let is_done = done.iter().any(|cell| cell.arm == *name && cell.block == block);
            let left_out = journal.kept.left_out.iter().any(|(known, _)| known == name);
            if is_done || left_out {
                continue;
            }
            let show = |text: &str| bar.set_message(format!("{title}: {text}"));
            let task = Task {
                study: &study,
                arm,
                name,
                block,
                folder: &wish.folder,
                near: &near,
                stop: &stop,
                show: &show,
            };
            match measure(task) {
                Ok(CellEnd::Complete) => {
                    let cell = Done { arm: name.clone(), block };
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
    ended(result, interrupted, (done.len(), arms.len() * study.repeats), &journal, &wish.folder)
}

/// Adds to the result how much is complete and how to continue.
fn ended(
    result: Result<(), Error>,
    interrupted: bool,
    (done, all): (usize, usize),
    journal: &Journal,
    folder: &Path,
) -> Result<(), Error> {
    let kept = format!(
        "{done} of {all} cells are complete in {}; run the same command again to continue",
        folder.display()
    );
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
