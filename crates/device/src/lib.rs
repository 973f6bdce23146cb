// SPDX-License-Identifier: PostgreSQL
//! The devices under a server, found without a connection to it.
//!
//! [`Devices::resolve`] finds where a server's files are: each location (data directory, WAL, tablespaces, log)
//! is on a mount, a file system and usually a block device, which may consist of others. If the device is unknown,
//! the result gives the reason. [`Reading::take`] reads the kernel's counters of these devices and of the server's
//! processes, and [`Interval::between`] computes the figures of an interval from two readings.
//!
//! Nothing here writes, connects to the server or needs more rights than reading its data directory and
//! /proc/PID/io. A failure to read is a [`Problem`] and never fatal. The kernel's files are found under the two
//! roots of a [`System`], so that tests can provide their own.

mod backing;
mod block;
mod devices;
mod diskstats;
mod file_system;
mod group_io;
mod interval;
mod locations;
mod mounts;
mod number;
mod problem;
mod reading;
mod root;
mod space;
mod space_query;
mod system;

pub use backing::{Backing, NoDevice};
pub use block::{BlockDevice, DeviceKind};
pub use devices::Devices;
pub use diskstats::{DiskCounters, Requests};
pub use file_system::FileSystem;
pub use group_io::{GroupCounters, IoCounters, ProcessCounters};
pub use interval::{DeviceFigures, DeviceRow, Interval, IoFigures, ProcessRow, ServerIo, SpaceRow};
pub use locations::{Location, LocationKind};
pub use number::DeviceNumber;
pub use problem::Problem;
pub use reading::Reading;
pub use space::Space;
pub use system::System;
