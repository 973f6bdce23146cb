// SPDX-License-Identifier: PostgreSQL
//! The storage figures of an interval.

use crate::events::Row;
use crate::io::checkpoints::Running;
use crate::io::recorded::RecordedIo;
use crate::io::relation_names::RelationNames;
use crate::io::tablespaces::Tablespaces;
use segment::event_payload::Checkpoint;
use segment::RelationRow;
use serde::Serialize;
use std::sync::Arc;

/// The storage figures beyond those of the interval itself.
#[derive(Debug, Default, Serialize)]
pub struct Io {
    /// The running checkpoint.
    pub checkpoint_running: Option<Running>,
    /// The last completed checkpoint.
    pub checkpoint: Option<Checkpoint>,
    /// The latest slow operations, oldest first, as `tally events` prints them.
    pub slow: Vec<Row>,
    /// Operations on each relation's files, most time first; `None` if they were not recorded.
    pub relations: Option<Vec<RelationRow>>,
    /// The time that `relations` covers, in seconds, if it is longer than the interval, because a recording
    /// stores them by detail interval.
    pub relations_seconds: Option<f64>,
    /// Names of relations, if the server could be queried.
    pub relation_names: RelationNames,
    /// Tablespaces by OID.
    pub tablespaces: Tablespaces,
    /// The devices under the server.
    pub devices: Option<DevicesUnder>,
    /// Why the devices are unknown, or unknown for this interval.
    pub devices_problem: Option<String>,
    /// The recorded figures of devices, for a recorded interval.
    pub recorded: Option<RecordedIo>,
}

/// Where the server's files are, and the figures of those devices.
#[derive(Debug, Serialize)]
pub struct DevicesUnder {
    /// Paths, file systems and devices.
    #[serde(flatten)]
    pub found: Arc<device::Devices>,
    /// Their figures; `None` until there are two readings.
    pub figures: Option<device::Interval>,
}
