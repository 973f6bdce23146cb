// SPDX-License-Identifier: PostgreSQL
//! The file of a storage study, storage.toml. docs/storage-studies.md is its manual.

mod check;
mod model;
mod size;

pub use check::AGAIN;
pub use model::{
    Archive, Background, Class, Limit, Owed, Quick, StorageArm, StorageServer, StorageStudy,
    Victim, WarmUp,
};
pub use size::Size;

use crate::engine::experiment::StudyHeading;

impl StorageStudy {
    /// What it is about.
    pub fn heading(&self) -> StudyHeading {
        StudyHeading::new(&self.name, &self.title, &self.question, self.source.as_deref())
    }

    /// Parses and checks a study file. The error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let study: Self = toml::from_str(text).map_err(|error| error.to_string())?;
        check::check(&study)?;
        Ok(study)
    }

    /// The quick variant.
    pub fn quick(mut self) -> Self {
        let quick = std::mem::take(&mut self.quick);
        self.length = quick.length.unwrap_or(self.length);
        self.repeats = quick.repeats.unwrap_or(self.repeats);
        if let Some(load) = &mut self.background {
            load.rate = quick.rate.unwrap_or(load.rate);
            load.threads = quick.threads.unwrap_or(load.threads);
            load.files = quick.files.unwrap_or(load.files);
            load.warm_up = quick.warm_up.unwrap_or(load.warm_up);
        }
        if let (Some(archive), Some(size)) = (&mut self.archive, quick.archive) {
            archive.size = size;
        }
        if let (Some(server), Some(scale)) = (&mut self.server, quick.scale) {
            server.scale = scale;
        }
        for victim in &mut self.victims {
            if quick.at.is_some() || quick.every.is_some() {
                (victim.at, victim.every) = (quick.at.clone(), quick.every);
            }
        }
        if let Some(at) = quick.limits {
            for limit in self.arms.iter_mut().flat_map(|arm| &mut arm.limits) {
                if limit.at.is_some() {
                    limit.at = Some(at);
                }
            }
        }
        self
    }

    /// The start times of a victim, in seconds since measuring began.
    pub fn starts(&self, victim: &Victim) -> Vec<f64> {
        let length = self.length.0.as_secs_f64();
        if let Some(at) = &victim.at {
            return at.iter().map(|time| time.0.as_secs_f64()).filter(|at| *at < length).collect();
        }
        let every = victim.every.map_or(length, |every| every.0.as_secs_f64());
        (1..).map(|n| f64::from(n) * every).take_while(|at| *at < length).collect()
    }

    /// Roughly how long a run takes, in seconds: files, warm-up and victims without background are
    /// guesses.
    pub fn expected_seconds(&self) -> f64 {
        let warm_up = match self.background.as_ref().map(|load| load.warm_up) {
            Some(WarmUp::After(time)) => time.as_secs_f64(),
            Some(_) => 20.0,
            None => 5.0,
        };
        let cells = (self.arms.len() + usize::from(self.again)) * self.repeats;
        cells as f64 * (self.length.0.as_secs_f64() + warm_up + 15.0)
    }
}
