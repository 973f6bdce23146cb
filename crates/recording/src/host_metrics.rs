// SPDX-License-Identifier: PostgreSQL
//! Metrics of the machine, added up over a range.

use crate::error::Error;
use crate::range::Range;
use crate::recording::Recording;
use crate::rollup;
use crate::rows::{DeviceRow, ServerIoRow};
use crate::table::Table;
use std::collections::HashMap;
use std::hash::Hash;

impl Recording {
    /// The sums of each device under the server, by name; `interval_ns` is the recorded time.
    pub fn device_sums(&self, range: Range) -> Result<Vec<DeviceRow>, Error> {
        let mut sums = self.sums(range, |row: &DeviceRow| row.device.clone())?;
        sums.sort_by(|a, b| a.device.cmp(&b.device));
        Ok(sums)
    }

    /// Reads and writes of the server's processes according to /proc/PID/io; `None`: not recorded.
    pub fn server_io_sum(&self, range: Range) -> Result<Option<ServerIoRow>, Error> {
        Ok(self.sums(range, |_: &ServerIoRow| ())?.pop())
    }

    fn sums<R: Table, K: Hash + Eq>(
        &self,
        range: Range,
        key: impl Fn(&R) -> K,
    ) -> Result<Vec<R>, Error> {
        let mut sums = HashMap::new();
        for row in self.rows::<R>(range)? {
            rollup::total(&mut sums, key(&row), row);
        }
        Ok(sums.into_values().collect())
    }
}
