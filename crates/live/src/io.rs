// SPDX-License-Identifier: PostgreSQL
//! Reads what the I/O pane shows for an interval in addition to its figures: events, the devices
//! under the server, and names.

use std::collections::VecDeque;
use std::time::Duration;

use device::Reading;
use segment::clients::ClientTotals;
use segment::{Interval, RelationRow, Segment};

use super::{relation_names, tablespaces};
use crate::devices::DeviceWatch;
use crate::tail::Tail;
use error::Error;
use view::deadlocks::Deadlock;
use view::io::{DevicesUnder, Io, StorageEvents};

/// Number of deadlocks to keep.
const DEADLOCKS: usize = 256;
/// How often devices are resolved again.
const DEVICES_ANEW: Duration = Duration::from_secs(10);

/// Watches the events of a segment and the devices of its server.
#[derive(Debug)]
pub(crate) struct IoWatch {
    tail: Tail,
    events: StorageEvents,
    deadlocks: VecDeque<Deadlock>,
    devices: Result<DeviceWatch, String>,
    /// The reading from which the devices' figures start.
    before: Option<Reading>,
    tablespaces: tablespaces::TablespaceLookup,
    names: relation_names::RelationNameLookup,
}

impl IoWatch {
    pub(crate) fn start(segment: &Segment) -> IoWatch {
        let mut devices = DeviceWatch::start(segment, DEVICES_ANEW);
        if let Ok(devices) = &mut devices {
            devices.ask(true);
        }
        IoWatch {
            tail: Tail::after(0),
            events: StorageEvents::default(),
            deadlocks: VecDeque::new(),
            devices,
            before: None,
            tablespaces: tablespaces::TablespaceLookup::start(segment),
            names: relation_names::RelationNameLookup::start(segment),
        }
    }

    /// What to show for this interval; `clients` are the totals at its end.
    pub(crate) fn next(
        &mut self,
        segment: &Segment,
        interval: &Interval,
        clients: &ClientTotals,
        relations: Option<Vec<RelationRow>>,
    ) -> Result<Io, Error> {
        for row in self.tail.rows(segment, false)? {
            self.deadlocks.extend(Deadlock::from_event(&row));
            let over = self.deadlocks.len().saturating_sub(DEADLOCKS);
            self.deadlocks.drain(..over);
            self.events.note(row);
        }
        let mut io = self.events.io(interval, clients);
        match &mut self.devices {
            Ok(devices) => match figures(devices, &mut self.before) {
                Ok(devices) => io.devices = Some(devices),
                Err(problem) => io.devices_problem = Some(problem),
            },
            Err(problem) => io.devices_problem = Some(problem.clone()),
        }
        io.relation_names = self.names.next(relations.as_deref().unwrap_or_default());
        io.relations = relations;
        io.tablespaces = self.tablespaces.next(interval, io.devices.as_ref());
        Ok(io)
    }

    /// The last deadlocks, oldest first.
    pub(crate) fn deadlocks(&self) -> Vec<Deadlock> {
        self.deadlocks.iter().cloned().collect()
    }
}

/// The devices, and their figures since the last call.
fn figures(
    devices: &mut DeviceWatch,
    before: &mut Option<Reading>,
) -> Result<DevicesUnder, String> {
    if !devices.ask(true) {
        // This is the answer to an earlier question; figures start from it.
        *before = Some(devices.answer()?.1);
        devices.ask(true);
    }
    let (found, now) = devices.answer()?;
    let figures = before.as_ref().map(|before| device::Interval::between(before, &now));
    *before = Some(now);
    Ok(DevicesUnder { found, figures })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::devices::tests::of_this_process;

    #[test]
    fn devices_have_figures_if_they_were_asked_for_before() {
        let (mut watch, mut before) = (of_this_process(), None);
        watch.ask(true);
        for _ in 0..3 {
            let devices = figures(&mut watch, &mut before).unwrap();
            assert!(devices.figures.is_some());
            assert!(!devices.found.locations.is_empty());
        }
    }
}
