// SPDX-License-Identifier: PostgreSQL
//! The number of a device, major:minor.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The number by which the kernel knows a device; in JSON `"8:1"`.
///
/// Major 0 is no block device: the kernel gives such numbers to file systems that have none,
/// or more than one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceNumber {
    /// Its driver.
    pub major: u32,
    /// The driver's number of it.
    pub minor: u32,
}

impl DeviceNumber {
    /// Whether it is the number of no block device.
    pub fn is_anonymous(self) -> bool {
        self.major == 0
    }
}

impl fmt::Display for DeviceNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.major, self.minor)
    }
}

impl FromStr for DeviceNumber {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let (major, minor) = text.trim_end().split_once(':').ok_or(())?;
        Ok(Self { major: major.parse().map_err(|_| ())?, minor: minor.parse().map_err(|_| ())? })
    }
}

impl Serialize for DeviceNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}
