// SPDX-License-Identifier: PostgreSQL
//! Block devices as shown in /sys: partitions and their disks, volumes and their parts.

use std::os::unix::ffi::OsStringExt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::number::DeviceNumber;
use crate::problem::lossy_option;
use crate::system::System;

/// The kernel's unit for sizes and requests, whatever the device's own sector size.
pub(crate) const SECTOR_BYTES: u64 = 512;

/// The kind of a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceKind {
    /// A disk, physical or virtual.
    Disk,
    /// A partition of a disk.
    Partition,
    /// A volume of the device mapper: LVM, encryption, multipath.
    DeviceMapper,
    /// A software RAID of the kernel.
    Raid,
    /// A file as a device.
    Loop,
    /// Memory as a device: zram, brd.
    Memory,
    /// A device on another machine: nbd, rbd, drbd.
    Network,
}

/// One block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct BlockDevice {
    /// Its number.
    pub number: DeviceNumber,
    /// The kernel's name: `sda1`, `dm-0`.
    pub name: String,
    /// Its kind.
    pub kind: DeviceKind,
    /// The name of a device-mapper volume, or the level of a RAID.
    pub label: Option<String>,
    /// The disk of a partition.
    pub part_of: Option<DeviceNumber>,
    /// The devices that it consists of.
    pub made_of: Vec<DeviceNumber>,
    /// The file behind a loop device.
    #[serde(serialize_with = "lossy_option")]
    pub backing_file: Option<PathBuf>,
    /// The file system of that file: an index into [`crate::Devices::file_systems`].
    pub backing_file_system: Option<usize>,
    /// Its size, bytes.
    pub size_bytes: Option<u64>,
    /// Whether it is a rotating disk.
    pub rotational: Option<bool>,
    /// Whether it is read-only.
    pub read_only: Option<bool>,
    /// The manufacturer's name for the model.
    pub model: Option<String>,
    /// The current scheduler.
    pub scheduler: Option<String>,
    /// `write back` if it has a volatile cache, which a flush empties; otherwise `write through`.
    pub write_cache: Option<String>,
    /// Whether the kernel counts its requests; otherwise there are no figures.
    pub counted: bool,
}

/// The device's directory in /sys. Names there are links into the tree of buses.
fn directory(system: &System, number: DeviceNumber) -> Option<PathBuf> {
    system.sys.join(format!("dev/block/{number}")).canonicalize().ok()
}

/// The device number of such a directory.
pub(crate) fn number_of(directory: &Path) -> Option<DeviceNumber> {
    std::fs::read_to_string(directory.join("dev")).ok()?.parse().ok()
}

/// The sequence number of the disk, since Linux 5.15: a disk that is removed and added again gets a new one.
pub(crate) fn sequence(system: &System, number: DeviceNumber) -> Option<u64> {
    let directory = directory(system, number)?;
    let disk = if directory.join("partition").exists() { directory.parent()? } else { &directory };
    std::fs::read_to_string(disk.join("diskseq")).ok()?.trim_end().parse().ok()
}

impl BlockDevice {
    /// Reads a device; `None` if it is not in /sys.
    pub(crate) fn read(system: &System, number: DeviceNumber) -> Option<BlockDevice> {
        let directory = directory(system, number)?;
        let name = directory.file_name()?.to_string_lossy().replace('!', "/");
        let is_partition = directory.join("partition").exists();
        let disk = if is_partition { directory.parent()? } else { &directory };
        let word = |path: &str| text(&directory.join(path));
        let of_disk = |path: &str| text(&disk.join(path));
        let flag = |text: String| text != "0";
        let kind = kind(&directory, &name, is_partition);
        let mut made_of: Vec<DeviceNumber> = std::fs::read_dir(directory.join("slaves"))
            .into_iter()
            .flatten()
            .flatten()
            .filter_map(|slave| number_of(&slave.path()))
            .collect();
        made_of.sort_unstable();
        let backing_file =
            std::fs::read(directory.join("loop/backing_file")).ok().map(|mut path| {
                // The kernel appends one line feed; any others belong to the name.
                if path.last() == Some(&b'\n') {
                    path.pop();
                }
                PathBuf::from(std::ffi::OsString::from_vec(path))
            });
        Some(BlockDevice {
            number,
            kind,
            label: word("dm/name").or_else(|| word("md/level")),
            part_of: is_partition.then(|| number_of(disk)).flatten(),
            made_of,
            backing_file: backing_file.filter(|path| !path.as_os_str().is_empty()),
            backing_file_system: None,
            size_bytes: word("size").and_then(|n| n.parse::<u64>().ok()?.checked_mul(SECTOR_BYTES)),
            read_only: word("ro").map(flag),
            rotational: of_disk("queue/rotational").map(flag),
            model: of_disk("device/model"),
            scheduler: of_disk("queue/scheduler").map(|text| in_force(&text)),
            write_cache: of_disk("queue/write_cache"),
            counted: of_disk("queue/iostats").is_none_or(flag),
            name,
        })
    }
}

/// The text of a short file; `None` if it is empty.
fn text(path: &Path) -> Option<String> {
    let text = String::from_utf8_lossy(&std::fs::read(path).ok()?).trim().to_string();
    (!text.is_empty()).then_some(text)
}

fn kind(directory: &Path, name: &str, is_partition: bool) -> DeviceKind {
    let begins = |with: &[&str]| with.iter().any(|start| name.starts_with(start));
    if is_partition {
        DeviceKind::Partition
    } else if directory.join("dm").is_dir() {
        DeviceKind::DeviceMapper
    } else if directory.join("md").is_dir() {
        DeviceKind::Raid
    } else if begins(&["loop"]) {
        DeviceKind::Loop
    } else if begins(&["zram", "ram", "pmem"]) {
        DeviceKind::Memory
    } else if begins(&["nbd", "rbd", "drbd"]) {
        DeviceKind::Network
    } else {
        DeviceKind::Disk
    }
}

/// The scheduler in brackets among the available ones.
fn in_force(text: &str) -> String {
    let chosen =
        text.split_ascii_whitespace().find_map(|word| word.strip_prefix('[')?.strip_suffix(']'));
    chosen.unwrap_or(text).to_string()
}

/// The devices of the btrfs that a device with this name belongs to.
pub(crate) fn btrfs_members(system: &System, name: &str) -> Vec<DeviceNumber> {
    let volumes = std::fs::read_dir(system.sys.join("fs/btrfs")).into_iter().flatten().flatten();
    let mut members: Vec<DeviceNumber> = volumes
        .map(|volume| volume.path().join("devices"))
        .find(|devices| devices.join(name).exists())
        .and_then(|devices| std::fs::read_dir(devices).ok())
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|device| number_of(&device.path()))
        .collect();
    members.sort_unstable();
    members
}
