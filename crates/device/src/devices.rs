// SPDX-License-Identifier: PostgreSQL
//! Finds the devices under a data directory.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::backing::{Backing, NoDevice};
use crate::block::{btrfs_members, BlockDevice};
use crate::file_system::FileSystem;
use crate::locations::{candidates, usual, Location, LocationKind};
use crate::mounts::{Mount, Mounts};
use crate::number::DeviceNumber;
use crate::problem::Problem;
use crate::root::{FileIdentity, Root};
use crate::space_query::Pending;
use crate::system::System;

#[cfg(test)]
mod tests;

/// Maximum nesting of overlays and loop devices.
const MAX_DEPTH: u32 = 8;

/// Where a server's files are.
#[derive(Debug, Serialize)]
pub struct Devices {
    /// Its locations: the data directory first, then the WAL, the tablespaces by number, the log, and paths
    /// below the data directory that are on a different mount.
    pub locations: Vec<Location>,
    /// The mounts of the locations, and the mounts under overlays and loop devices.
    pub file_systems: Vec<FileSystem>,
    /// The block devices of the mounts, each followed by the devices that it consists of.
    pub devices: Vec<BlockDevice>,
    /// Notes on data that could not be read.
    pub notes: Vec<String>,
    #[serde(skip)]
    pub(crate) system: System,
    #[serde(skip)]
    pub(crate) server: Option<Server>,
    #[serde(skip)]
    pub(crate) pending: Pending,
}

/// The postmaster.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Server {
    pub pid: u32,
    /// Start time, clock ticks since boot, because a PID may be reused.
    pub started: u64,
    /// Whether its root could be opened, so that paths are relative to it.
    pub in_sight: bool,
}

impl Devices {
    /// Finds the devices under a data directory. With the postmaster's PID, paths and mounts are those of
    /// the postmaster, which in a container differ from ours.
    ///
    /// This may wait for network file systems. Each tablespace takes about ten microseconds. The result is
    /// valid until something is mounted, a tablespace is created or the server restarts, so resolve again from
    /// time to time.
    pub fn resolve(system: &System, data_directory: &Path, pid: Option<u32>) -> Devices {
        let mut notes = Vec::new();
        let mut server = pid.and_then(|pid| {
            let started = system.started(pid)?;
            Some(Server { pid, started, in_sight: true })
        });
        if pid.is_some() && server.is_none() {
            notes.push(Problem::Ended.to_string());
        }
        let namespaces = namespaces(system, &mut server, &mut notes);
        let data = match namespaces[0].root.is_own() {
            true => std::path::absolute(data_directory).unwrap_or_else(|_| data_directory.into()),
            false => Path::new("/").join(data_directory),
        };
        let mut resolver = Resolver {
            system,
            namespaces,
            file_systems: Vec::new(),
            by_mount: HashMap::new(),
            devices: Vec::new(),
            met: HashSet::new(),
        };
        let pid = server.map(|server| server.pid);
        let locations = resolver.locations(&data, pid, &mut notes);
        Devices {
            locations,
            file_systems: resolver.file_systems,
            devices: resolver.devices,
            notes,
            system: system.clone(),
            server,
            pending: Pending::default(),
        }
    }

    /// The location of this kind.
    pub fn location(&self, kind: &LocationKind) -> Option<&Location> {
        self.locations.iter().find(|location| location.kind == *kind)
    }

    /// The device with this number.
    pub fn device(&self, number: DeviceNumber) -> Option<&BlockDevice> {
        self.devices.iter().find(|device| device.number == number)
    }

    /// The block devices directly under a location, through overlays; none if they are unknown, which
    /// [`Devices::why_no_device`] explains.
    pub fn under(&self, location: &Location) -> Vec<&BlockDevice> {
        let numbers = location.file_system.map_or(&[][..], |at| self.bottom(at).backing.devices());
        numbers.iter().filter_map(|&number| self.device(number)).collect()
    }

    /// Why there is no device under a location.
    pub fn why_no_device(&self, location: &Location) -> Option<String> {
        let Some(at) = location.file_system else {
            return location.problem.as_ref().map(Problem::to_string);
        };
        match &self.bottom(at).backing {
            Backing::None { text, .. } => Some(text.clone()),
            _ => None,
        }
    }

    /// The file system at the bottom of overlays.
    pub(crate) fn bottom(&self, mut at: usize) -> &FileSystem {
        for _ in 0..MAX_DEPTH {
            match self.file_systems[at].backing {
                Backing::FileSystem { file_system, .. } => at = file_system,
                _ => break,
            }
        }
        &self.file_systems[at]
    }

    /// The devices directly under the locations' file systems, without the devices that these consist of, so
    /// that requests can be summed.
    pub(crate) fn tops(&self) -> Vec<DeviceNumber> {
        let mut tops: Vec<DeviceNumber> = self
            .locations
            .iter()
            .filter_map(|location| location.file_system)
            .flat_map(|at| self.bottom(at).backing.devices())
            .copied()
            .collect();
        tops.sort_unstable();
        tops.dedup();
        tops
    }
}

/// A root and the mounts below it.
struct Namespace {
    root: Root,
    mounts: Mounts,
}

/// The server's namespace, and ours if it differs.
fn namespaces(
    system: &System,
    server: &mut Option<Server>,
    notes: &mut Vec<String>,
) -> Vec<Namespace> {
    let mut table = |path: PathBuf| match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => {
            notes.push(format!("could not read {}: {}", path.display(), Problem::from(error)));
            Vec::new()
        }
    };
    let ours = table(system.proc.root().join("self/mountinfo"));
    let own = Namespace { root: Root::own(system), mounts: Mounts::parse(&ours) };
    let Some(server) = server else { return vec![own] };
    let theirs = table(system.proc.path(server.pid, "mountinfo"));
    match Root::of_process(system, server.pid) {
        Ok(root) if root.is_own() && theirs == ours => vec![own],
        Ok(root) => vec![Namespace { root, mounts: Mounts::parse(&theirs) }, own],
        Err(problem) => {
            server.in_sight = false;
            // Equal tables belong to the same namespace, whether or not we may open its root.
            if theirs != ours {
                notes.push(format!(
                    "could not read the server's mounts ({problem}); showing the mounts of \
                     this process"
                ));
            }
            vec![own]
        }
    }
}

/// Builds [`Devices`].
struct Resolver<'a> {
    system: &'a System,
    namespaces: Vec<Namespace>,
    file_systems: Vec<FileSystem>,
    by_mount: HashMap<(usize, u64), usize>,
    devices: Vec<BlockDevice>,
    met: HashSet<DeviceNumber>,
}

impl Resolver<'_> {
    fn locations(
        &mut self,
        data: &Path,
        pid: Option<u32>,
        notes: &mut Vec<String>,
    ) -> Vec<Location> {
        let mut locations = usual(self.system, &self.namespaces[0].root, data, pid, notes);
        locations.iter_mut().for_each(|location| self.settle(location));
        let home = locations[0].file_system;
        let Some(real) = locations[0].real_path.clone() else { return locations };
        let mut met: HashSet<PathBuf> =
            locations.iter().filter_map(|location| location.real_path.clone()).collect();
        let namespace = &self.namespaces[0];
        for mut location in candidates(&namespace.root, data, &real, namespace.mounts.below(&real))
        {
            self.settle(&mut location);
            let elsewhere = location.file_system.is_some() && location.file_system != home;
            if elsewhere && location.real_path.clone().is_some_and(|path| met.insert(path)) {
                locations.push(location);
            }
        }
        locations
    }

    /// Finds the file system of a location.
    fn settle(&mut self, location: &mut Location) {
        match self.namespaces[0].root.find(&location.path) {
            Ok(found) => {
                location.real_path = Some(found.path.clone());
                match self.file_system(0, &found, 0) {
                    Ok(at) => location.file_system = Some(at),
                    Err(problem) => location.problem = Some(problem),
                }
            }
            Err(problem) => location.problem = Some(problem),
        }
    }

    /// The file system of a file, and everything under it.
    fn file_system(
        &mut self,
        namespace: usize,
        found: &FileIdentity,
        depth: u32,
    ) -> Result<usize, Problem> {
        // The kernel's number of a mount is the same in every table; a table may omit mounts outside
        // its root.
        let by_id = |id| self.namespaces.iter().find_map(|namespace| namespace.mounts.by_id(id));
        let mount = found
            .mount_id
            .and_then(by_id)
            .or_else(|| self.namespaces[namespace].mounts.of_path(&found.path))
            .cloned()
            .or_else(|| self.unlisted(found))
            .ok_or(Problem::NoMount)?;
        if let Some(&at) = self.by_mount.get(&(namespace, mount.id)) {
            return Ok(at);
        }
        let at = self.file_systems.len();
        self.by_mount.insert((namespace, mount.id), at);
        self.file_systems.push(FileSystem::from_mount(&mount, namespace > 0, found));
        self.file_systems[at].backing = self.backing(namespace, &mount, depth);
        Ok(at)
    }

    /// A mount that no table lists: after a chroot into a directory that is not a mount point, the tables
    /// omit the mount of that directory. The table of process 1 may list it.
    fn unlisted(&self, found: &FileIdentity) -> Option<Mount> {
        let number = found.device?;
        let table = std::fs::read(self.system.proc.path(1, "mountinfo")).unwrap_or_default();
        let first = Mounts::parse(&table);
        if let Some(mount) = found.mount_id.and_then(|id| first.by_id(id)) {
            return Some(mount.clone());
        }
        let tables = self.namespaces.iter().map(|namespace| &namespace.mounts).chain([&first]);
        let twin = tables.into_iter().find_map(|mounts| mounts.by_number(number));
        let source = match (twin, BlockDevice::read(self.system, number)) {
            (Some(twin), _) => twin.source.clone(),
            (None, Some(device)) => Path::new("/dev").join(device.name),
            (None, None) if !number.is_anonymous() => number.to_string().into(),
            (None, None) => "an unlisted mount".into(),
        };
        let kind = twin.map_or(found.kind(), |twin| &twin.kind);
        Some(Mount::unlisted(found.mount_id, number, source, kind, found.read_only()))
    }

    fn backing(&mut self, namespace: usize, mount: &Mount, depth: u32) -> Backing {
        let none = |reason| Backing::none(reason, &mount.kind, &mount.source);
        if !mount.number.is_anonymous() {
            return match self.device(mount.number, depth) {
                true => Backing::Device { device: mount.number },
                false => none(NoDevice::Hidden),
            };
        }
        match mount.kind.as_str() {
            "overlay" => mount
                .super_option("upperdir")
                .and_then(|upper| Some((self.elsewhere(namespace, &upper, depth)?, upper)))
                .map_or_else(
                    || none(NoDevice::Overlay),
                    |(file_system, path)| Backing::FileSystem { file_system, path },
                ),
            "btrfs" => self.btrfs(namespace, mount, depth).unwrap_or_else(|| match mount.listed {
                true => none(NoDevice::Hidden),
                false => none(NoDevice::Unknown),
            }),
            kind => none(NoDevice::by_kind(kind)),
        }
    }

    /// The file system of a path that may be in another namespace: the upper directory of a container's
    /// overlay and the file of a loop device are the host's.
    fn elsewhere(&mut self, namespace: usize, path: &Path, depth: u32) -> Option<usize> {
        if depth >= MAX_DEPTH {
            return None;
        }
        (namespace..self.namespaces.len()).find_map(|namespace| {
            let found = self.namespaces[namespace].root.find(path).ok()?;
            self.file_system(namespace, &found, depth + 1).ok()
        })
    }

    /// A btrfs has an anonymous number even if it has only one device.
    fn btrfs(&mut self, namespace: usize, mount: &Mount, depth: u32) -> Option<Backing> {
        let source = self.namespaces[namespace]
            .root
            .find(&mount.source)
            .map_or_else(|_| mount.source.clone(), |found| found.path);
        let name = source.strip_prefix("/dev").ok()?.to_string_lossy().replace('/', "!");
        let mut devices = btrfs_members(self.system, &name);
        devices.retain(|&number| self.device(number, depth));
        match devices.as_slice() {
            [] => None,
            &[device] => Some(Backing::Device { device }),
            more => {
                let text = format!(
                    "btrfs spreads data over {} devices; which device holds a file is unknown",
                    more.len()
                );
                Some(Backing::Devices { devices, text })
            }
        }
    }

    /// Adds a device and the devices that it consists of; `false` if it is not in /sys.
    fn device(&mut self, number: DeviceNumber, depth: u32) -> bool {
        if self.met.contains(&number) {
            return true;
        }
        let Some(device) = BlockDevice::read(self.system, number) else { return false };
        self.met.insert(number);
        let at = self.devices.len();
        let below: Vec<DeviceNumber> =
            device.made_of.iter().copied().chain(device.part_of).collect();
        let file = device.backing_file.clone();
        self.devices.push(device);
        for number in below {
            self.device(number, depth);
        }
        if let Some(file) = file {
            self.devices[at].backing_file_system = self.elsewhere(0, &file, depth);
        }
        true
    }
}
