// SPDX-License-Identifier: PostgreSQL
//! The recording of a Java client of the server.

use std::path::Path;

use error::Error;
use recording::{Range, Recording};
use segment::{stat_names, Producer};

use super::columns::{self, StatisticsOfRange};
use super::contributions::Purpose;
use crate::material::Client;

/// Reads the client's activity during the server's recording.
pub fn client(directory: &Path, range: Range) -> Result<Client, Error> {
    let recording = Recording::open(directory, None)?;
    let shown = directory.display();
    let own = recording.range();
    if own.to_us <= range.from_us || range.to_us <= own.from_us {
        return Err(Error::Failed(format!(
            "{shown} does not overlap the time of the server's recording; record both at the same time"
        )));
    }
    let range =
        recording.clip(Some(range.from_us.max(own.from_us)), Some(range.to_us.min(own.to_us)))?;
    let heads = recording.frame_rows(range)?;
    let columns = columns::Columns::fitting(&heads, range, columns::MAIN);
    let StatisticsOfRange { sum, points, .. } =
        columns::statistics(&recording, range, (&columns, Purpose::Charts), &heads)?;
    // A statistic has no row unless something happened: without a pause, only the recorder's word says what this is.
    let has_pauses =
        || sum.statistics.iter().any(|row| row.stat.name == stat_names::COLLECTION_PAUSE);
    if Producer::from_text(&sum.server.producer) != Producer::JavaAgent && !has_pauses() {
        return Err(Error::Failed(format!(
            "{shown} is not a recording of a Java client; record the segment of its agent: tally record \
             /dev/shm/pg_tally.java.PID -o DIR"
        )));
    }
    Ok(Client {
        // Without its arguments, which may contain passwords.
        program: sum.server.host.split(' ').next().unwrap_or_default().to_string(),
        java: sum.server.name.clone(),
        points,
    })
}
