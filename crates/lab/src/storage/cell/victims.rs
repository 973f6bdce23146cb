// SPDX-License-Identifier: PostgreSQL
//! The victims of a cell: starts them at their times, one at a time.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::engine::words::Words;
use scratch::OsUser;

use crate::storage::engine::now;
use crate::storage::file::StorageStudy;
use crate::storage::log::CellEvent;
use crate::storage::tree::forget;
use crate::storage::victim::{Running, VictimOutcome};

/// A victim that is due at a time, in seconds since measuring began.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Due {
    at: f64,
    victim: usize,
}

/// The victims of a cell.
pub struct Victims<'a> {
    study: &'a StorageStudy,
    words: Words,
    /// The OS user who runs them; `None` for the current user.
    os_user: Option<OsUser>,
    /// Files to drop from the page cache before each run.
    cold: Option<PathBuf>,
    /// In reverse order of their times.
    due: Vec<Due>,
    running: Option<(usize, Option<f64>, f64, Running)>,
    failed: Vec<CellEvent>,
}

impl<'a> Victims<'a> {
    /// The victims of a study.
    pub fn new(
        study: &'a StorageStudy,
        words: Words,
        os_user: Option<OsUser>,
        cold: Option<PathBuf>,
    ) -> Self {
        let starts =
            |(victim, planned)| study.starts(planned).into_iter().map(move |at| Due { at, victim });
        let mut due: Vec<Due> = study.victims.iter().enumerate().flat_map(starts).collect();
        due.sort_by(|a, b| b.at.total_cmp(&a.at).then(b.victim.cmp(&a.victim)));
        Self { study, words, os_user, cold, due, running: None, failed: Vec::new() }
    }

    /// Starts a victim now; `at` is its time in the study.
    pub fn start(&mut self, number: usize, at: Option<f64>) {
        let victim = &self.study.victims[number];
        let failed = |why: String| CellEvent::Victim {
            name: victim.name.clone(),
            at,
            ran: VictimOutcome { began: now(), failure: Some(why), ..VictimOutcome::default() },
        };
        if let Some(setup) = &victim.setup {
            let mut command = self.command(setup);
            let why = match command.output() {
                Ok(output) if output.status.success() => None,
                Ok(output) => {
                    let text = String::from_utf8_lossy(&output.stderr).trim().to_string();
                    Some(format!("setup failed ({}): {text}", output.status))
                }
                Err(error) => Some(format!("could not start setup: {error}")),
            };
            if let Some(why) = why {
                self.failed.push(failed(why));
                return;
            }
        }
        // Both with and without background.
        if let Some(folder) = &self.cold {
            forget(folder);
        }
        match Running::start(&victim.name, self.command(&victim.command), victim.limit.0) {
            Ok(running) => self.running = Some((number, at, now(), running)),
            Err(error) => self.failed.push(failed(error.to_string())),
        }
    }

    /// Starts the next victim if it is due and none is running.
    pub fn start_due(&mut self, passed: f64) {
        if self.running.is_some() || self.due.last().is_none_or(|due| due.at > passed) {
            return;
        }
        if let Some(Due { at, victim }) = self.due.pop() {
            self.start(victim, Some(at));
        }
    }

    /// Whether a victim is running.
    pub fn running(&self) -> bool {
        self.running.as_ref().is_some_and(|(.., running)| !running.ended())
    }

    /// Whether no victim is running and all ended ones have been reported.
    pub fn is_idle(&self) -> bool {
        self.running.is_none() && self.failed.is_empty()
    }

    /// The log lines of victims that have ended.
    pub fn ended(&mut self) -> Vec<CellEvent> {
        let mut lines = std::mem::take(&mut self.failed);
        if self.running.as_ref().is_some_and(|(.., running)| running.ended()) {
            if let Some((number, at, _, running)) = self.running.take() {
                let name = self.study.victims[number].name.clone();
                lines.push(CellEvent::Victim { name, at, ran: running.finish() });
            }
        }
        lines
    }

    /// Ends the running victim; [`Victims::ended`] then returns its line.
    pub fn stop(&mut self) {
        if let Some((number, at, _, running)) = self.running.take() {
            let name = self.study.victims[number].name.clone();
            self.failed.push(CellEvent::Victim { name, at, ran: running.stop() });
        }
    }

    /// The text for the progress line.
    pub fn shown(&self) -> Option<String> {
        let (number, _, began, _) = self.running.as_ref()?;
        Some(format!("; {} running for {:.0} s", self.study.victims[*number].name, now() - began))
    }

    fn command(&self, words: &[String]) -> Command {
        let filled = self.words.fill_all(words);
        let (program, arguments) = filled.split_first().map_or(("true", &[][..]), |(p, a)| (p, a));
        let mut command = match &self.os_user {
            Some(os_user) => os_user.command(Path::new(program)),
            None => Command::new(program),
        };
        command.args(arguments).env("LC_ALL", "C.UTF-8");
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn victims_come_in_the_order_of_their_times_then_of_the_study() {
        let victim = |name: &str, at: &str| {
            format!("[[victim]]\nname = \"{name}\"\ncommand = [\"true\"]\nat = [{at}]\n")
        };
        let text = "name = \"a\"\ntitle = \"A\"\nquestion = \"?\"\nfor = 9\n[background]\nrate = 1\nthreads = 4\n\
                    files = 1\nsizes = [{ size = \"8kB\", share = 1 }]\n[[arm]]\nname = \"x\"\n"
            .to_string()
            + &victim("one", "5, 2")
            + &victim("two", "2, 7");
        let study = StorageStudy::parse(&text).unwrap();
        let mut victims = Victims::new(&study, Words::default(), None, None);
        let order = std::iter::from_fn(|| victims.due.pop()).map(|due| (due.at, due.victim));
        assert_eq!(order.collect::<Vec<_>>(), [(2.0, 0), (2.0, 1), (5.0, 0), (7.0, 1)]);
    }
}
