// SPDX-License-Identifier: PostgreSQL
//! The number of a device, major:minor.

use std::fmt;
use std::str::FromStr;

use serde::{Serialize, Serializer};

/// The kernel's number of a device; in JSON `"8:1"`.
///
/// Major 0 is not a block device: the kernel uses it for file systems with no device or several devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DeviceNumber {
    /// The number of its driver.
    pub major: u32,
    /// Its number within the driver.
    pub minor: u32,
}

impl DeviceNumber {
    /// Whether no block device has this number.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_read_as_it_is_written() {
        let number: DeviceNumber = "259:3\n".parse().unwrap();
        assert_eq!((number.major, number.minor, number.is_anonymous()), (259, 3, false));
        assert_eq!(number.to_string(), "259:3");
        assert!("0:259".parse::<DeviceNumber>().unwrap().is_anonymous());
        for odd in ["", "8", "8:", ":1", "8:1:2", "a:1", "-1:1"] {
            assert!(odd.parse::<DeviceNumber>().is_err(), "{odd}");
        }
    }
}
