// SPDX-License-Identifier: PostgreSQL
//! Looks up the names of tablespaces in the server, once for each new one, in a separate thread. A
//! server that refuses the connection is asked again later; until it answers, only numbers and paths are shown.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::{channel, Receiver};
use std::time::{Duration, Instant};

use device::LocationKind;
use segment::{Interval, Segment};

use crate::backoff::Backoff;
use crate::server::Access;
use view::io::{DevicesUnder, Tablespace, Tablespaces};

/// How long to wait for the first answer.
const PATIENCE: Duration = Duration::from_millis(500);

type Names = BTreeMap<u32, String>;

/// The names so far.
#[derive(Debug)]
pub struct TablespaceLookup {
    access: Option<Access>,
    /// Requested already, with or without a reply.
    asked: BTreeSet<u32>,
    names: Names,
    answer: Option<Receiver<Names>>,
    patience: Duration,
    backoff: Backoff,
}

impl TablespaceLookup {
    /// The lookup in the server of this segment.
    pub fn start(segment: &Segment) -> TablespaceLookup {
        TablespaceLookup {
            access: Access::of_segment(segment),
            asked: BTreeSet::new(),
            names: Names::new(),
            answer: None,
            patience: PATIENCE,
            backoff: Backoff::default(),
        }
    }

    /// The known names of the tablespaces in the interval and the devices.
    pub fn next(&mut self, interval: &Interval, devices: Option<&DevicesUnder>) -> Tablespaces {
        let mut all = BTreeMap::new();
        for row in &interval.files {
            if let Some(number) = row.tablespace.as_deref().and_then(|name| name.parse().ok()) {
                all.entry(number).or_insert(None);
            }
        }
        for place in devices.iter().flat_map(|devices| &devices.found.locations) {
            if let LocationKind::Tablespace { oid } = place.kind {
                let path = place.real_path.as_ref().unwrap_or(&place.path);
                all.insert(oid, Some(path.to_string_lossy().into_owned()));
            }
        }
        let is_new = all.keys().any(|number| !self.asked.contains(number));
        if self.answer.is_none() && is_new && self.backoff.is_due(Instant::now()) {
            self.asked.extend(all.keys());
            self.answer = self.access.clone().and_then(ask);
        }
        if let Some(names) = self.answer.as_ref().map(|answer| answer.recv_timeout(self.patience)) {
            use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
            match names {
                Ok(names) => {
                    self.backoff.note_answer();
                    (self.names, self.answer) = (names, None);
                }
                Err(Timeout) => {}
                Err(Disconnected) => {
                    self.backoff.note_refusal(Instant::now());
                    self.asked.clear();
                    self.answer = None;
                }
            }
            self.patience = Duration::ZERO;
        }
        let named =
            |(oid, location)| Tablespace { oid, name: self.names.get(&oid).cloned(), location };
        Tablespaces(all.into_iter().map(named).collect())
    }
}

/// `None`, or no answer, if the server refuses the connection.
fn ask(access: Access) -> Option<Receiver<Names>> {
    let (answer, answers) = channel();
    let work = move || {
        let sql = "/* tally */ select oid, spcname::text from pg_tablespace";
        let rows = access.connect(None).ok().and_then(|mut c| c.query(sql, &[]).ok());
        let name = |row: &pq::Row| Some((row.get(0).ok()?, row.get(1).ok()?));
        if let Some(rows) = rows {
            // The receiver may have ended.
            let _ = answer.send(rows.iter().filter_map(name).collect());
        }
    };
    std::thread::Builder::new().name("tablespaces".to_string()).spawn(work).ok()?;
    Some(answers)
}
