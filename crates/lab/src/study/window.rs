// SPDX-License-Identifier: PostgreSQL
//! Measures a period: the CPU use of processes, the segment, the machine, and the server's views.

use std::time::Instant;

use pq::Client;
use segment::SegmentPath;
use serde_json::Value;

use super::cell::Values;
use super::file::{Divisor, ReadSource, Study, When};
use super::material::Material;
use super::processes::{Census, ProcessMeter};
use super::selector::Selector;
use error::Error;
use live::follower::{Figures, FollowOptions, Follower};
use live::host::{Disturbance, Watch};

/// What to measure.
#[derive(Debug, Clone, Copy)]
pub struct Watched<'a> {
    /// Process ID of the postmaster.
    pub server: u32,
    /// Process ID of the load.
    pub load: u32,
    /// Process ID of the instrument, if there is one.
    pub instrument: Option<u32>,
    /// The segment, if pg_tally is loaded.
    pub segment: Option<&'a SegmentPath>,
}

/// A period that is being measured.
pub struct Window<'a> {
    watched: Watched<'a>,
    began: Instant,
    server: ProcessMeter,
    load: ProcessMeter,
    instrument: ProcessMeter,
    census: Census,
    machine: Watch,
    follower: Option<Follower>,
    asked: Values,
}

/// The measurements of a period.
pub struct WindowMeasurements {
    /// The inputs of the reads.
    pub material: Material,
    /// Stolen time, frequency and other work of the machine.
    pub disturbance: Disturbance,
    /// CPU time of processes outside the study, percent of one CPU.
    pub foreign_percent: f64,
    /// The interval as in `tally top --json`; `None` if the study does not use it.
    pub interval: Option<Value>,
}

impl<'a> Window<'a> {
    /// Begins to measure. Queries use `client`.
    pub fn open(study: &Study, watched: Watched<'a>, client: &mut Client) -> Result<Self, Error> {
        let wanted = |start: &str| {
            study
                .reads
                .iter()
                .any(|read| read.interval.as_deref().is_some_and(|path| path.contains(start)))
        };
        let per_command = study.reads.iter().any(|read| read.per == Some(Divisor::Command));
        let listed = study.listings.iter().any(|listing| listing.worst.is_some());
        let segment = watched.segment.filter(|_| wanted("") || per_command || listed);
        let follow = |segment: &SegmentPath| {
            let (statements, storage) = (wanted("statements"), wanted("io."));
            let figures = Figures::Intervals;
            let wanted = FollowOptions { figures, statements, storage, ..FollowOptions::default() };
            Follower::open(segment.clone(), wanted)
        };
        let mut window = Self {
            watched,
            began: Instant::now(),
            server: ProcessMeter::default(),
            load: ProcessMeter::default(),
            instrument: ProcessMeter::default(),
            census: Census::default(),
            machine: Watch::start(),
            follower: segment.map(follow).transpose()?,
            asked: Values::new(),
        };
        for read in &study.reads {
            if let ReadSource::Sql(sql, When::Change) = read.source().map_err(Error::Usage)? {
                window.asked.insert(read.name.clone(), ask(client, sql)?);
            }
        }
        window.look();
        window.census = Census::take();
        window.began = Instant::now();
        window.machine = Watch::start();
        Ok(window)
    }

    /// Measures the processes. A process that ends later counts up to this call.
    pub fn look(&mut self) {
        let census = Census::take();
        self.server.look(&census.family(self.watched.server));
        self.load.look(&census.family(self.watched.load));
        if let Some(instrument) = self.watched.instrument {
            self.instrument.look(&census.family(instrument));
        }
    }

    /// Ends the period. Processes count up to the last call of [`Window::look`].
    pub fn close(
        &mut self,
        study: &Study,
        client: &mut Client,
    ) -> Result<WindowMeasurements, Error> {
        let disturbance = self.machine.disturbance();
        let foreign = Census::take().foreign_since(&self.census);
        let seconds = self.began.elapsed().as_secs_f64();
        let interval = match &mut self.follower {
            Some(follower) => Some(serde_json::to_value(follower.interval()?)?),
            None => None,
        };
        let mut figures = Values::new();
        for read in &study.reads {
            let figure = match read.source().map_err(Error::Usage)? {
                ReadSource::Interval(path) => match &interval {
                    Some(interval) => Selector::parse(path)
                        .and_then(|selector| selector.select(interval))
                        .map_err(|error| {
                            Error::Failed(format!("read \"{}\": {error}", read.name))
                        })?,
                    None => None,
                },
                ReadSource::Sql(sql, when) => {
                    let before = match when {
                        When::Change => self.asked.get(&read.name).copied().flatten(),
                        When::End => Some(0.0),
                    };
                    ask(client, sql)?.zip(before).map(|(now, before)| now - before)
                }
                _ => continue,
            };
            figures.insert(read.name.clone(), figure);
        }
        let commands = interval.as_ref().and_then(|interval| interval["commands_handled"].as_f64());
        let material = Material {
            seconds,
            commands,
            server: self.server.used(),
            load: self.load.used(),
            instrument: self.watched.instrument.map(|_| self.instrument.used()),
            machine_seconds: disturbance.busy_seconds,
            figures,
            ..Material::default()
        };
        let foreign_percent = 100.0 * foreign / seconds;
        Ok(WindowMeasurements { material, disturbance, foreign_percent, interval })
    }
}

/// The first column of a query's first row, as a number; `None` if it is null or there is no row.
fn ask(client: &mut Client, sql: &str) -> Result<Option<f64>, Error> {
    let first = client.texts(sql)?.into_iter().next();
    let Some(text) = first.and_then(|row| row.into_iter().next()?) else { return Ok(None) };
    text.parse()
        .map(Some)
        .map_err(|_| Error::Failed(format!("\"{sql}\" returned \"{text}\", which is not a number")))
}
