// SPDX-License-Identifier: PostgreSQL
//! From a data directory to the devices under it.

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
use crate::root::{Found, Root};
use crate::space_query::Pending;
use crate::system::System;

#[cfg(test)]
mod tests;

/// An overlay on an overlay on a loop device is not laid deeper than this.
const DEEPEST: u32 = 8;

/// Where a server's files lie.
#[derive(Debug, Serialize)]
pub struct Devices {
    /// Its locations: the data directory first, the WAL, the tablespaces by number, the log, and
    /// what lies elsewhere though it seems to be in the data directory.
    pub locations: Vec<Location>,
    /// The mounts that these lie on, and those that lie under other ones.
    pub file_systems: Vec<FileSystem>,
    /// The block devices that these lie on, each followed by those that it is made of.
    pub devices: Vec<BlockDevice>,
    /// What could not be looked at.
    pub notes: Vec<String>,
    #[serde(skip)]
    pub(crate) system: System,
    #[serde(skip)]
    pub(crate) server: Option<Server>,
    #[serde(skip)]
    pub(crate) pending: Pending,
}

/// The server's first process.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Server {
    pub pid: u32,
    /// When it started, by the kernel's count; it tells whether the pid is still this one's.
    pub started: u64,
    /// Whether its root could be looked at, so that paths are of there.
    pub in_sight: bool,
}

impl Devices {
    /// Find the devices under a data directory. With the pid of the server's first process
    /// paths and mounts are those that it sees, which in a container are not ours.
    ///
    /// What is mounted over a network may let this wait. With thousands of tablespaces it takes
    /// some ten microseconds for each. The answer holds until something is mounted, a
    /// tablespace is made or the server restarts: resolve again now and then.
    pub fn resolve(system: &System, data_directory: &Path, pid: Option<u32>) -> Devices {
        let mut notes = Vec::new();
        let mut server = pid.and_then(|pid| {
            let started = system.started(pid)?;
            Some(Server { pid, started, in_sight: true })
        });
        if pid.is_some() && server.is_none() {
            notes.push(Problem::Ended.to_string());
        }
        let worlds = worlds(system, &mut server, &mut notes);
        let data = match worlds[0].view.is_own() {
            true => std::path::absolute(data_directory).unwrap_or_else(|_| data_directory.into()),
            false => Path::new("/").join(data_directory),
        };
        let mut assembly = Assembly {
            system,
            worlds,
            file_systems: Vec::new(),
            by_mount: HashMap::new(),
            devices: Vec::new(),
            met: HashSet::new(),
        };
        let pid = server.map(|server| server.pid);
        let locations = assembly.locations(&data, pid, &mut notes);
        Devices {
            locations,
            file_systems: assembly.file_systems,
            devices: assembly.devices,
            notes,
            system: system.clone(),
            server,
            pending: Pending::default(),
        }
    }

    /// The location of a kind.
    pub fn location(&self, kind: &LocationKind) -> Option<&Location> {
        self.locations.iter().find(|location| location.kind == *kind)
    }

    /// The device of a number.
    pub fn device(&self, number: DeviceNumber) -> Option<&BlockDevice> {
        self.devices.iter().find(|device| device.number == number)
    }

    /// The block devices directly under a location, through an overlay if need be; none when they
    /// cannot be known, which [`Devices::why_no_device`] explains.
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

    /// The file system on which this one lies in the end.
    pub(crate) fn bottom(&self, mut at: usize) -> &FileSystem {
        for _ in 0..DEEPEST {
            match self.file_systems[at].backing {
                Backing::FileSystem { file_system, .. } => at = file_system,
                _ => break,
            }
        }
        &self.file_systems[at]
    }

    /// The devices on which file systems of locations lie. What these are made of is not in it, so
    /// their requests may be added up.
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

/// A root and the mounts that are seen from it.
struct World {
    view: Root,
    mounts: Mounts,
}

/// The server's, and ours where it is another one.
fn worlds(system: &System, server: &mut Option<Server>, notes: &mut Vec<String>) -> Vec<World> {
    let mut table = |path: PathBuf| match std::fs::read(&path) {
        Ok(bytes) => bytes,
        Err(error) => {
            notes.push(format!("{} cannot be read: {}", path.display(), Problem::from(error)));
            Vec::new()
        }
    };
    let ours = table(system.proc.root().join("self/mountinfo"));
    let own = World { view: Root::own(system), mounts: Mounts::parse(&ours) };
    let Some(server) = server else { return vec![own] };
    let theirs = table(system.proc.path(server.pid, "mountinfo"));
    match Root::of_process(system, server.pid) {
        Ok(view) if view.is_own() && theirs == ours => vec![own],
        Ok(view) => vec![World { view, mounts: Mounts::parse(&theirs) }, own],
        Err(problem) => {
            server.in_sight = false;
            // The same table is the same sight, whether we may look or not.
            if theirs != ours {
                notes.push(format!(
                    "the server has mounts of its own which could not be looked at ({problem}): \
                     what follows is of the mounts of this process"
                ));
            }
            vec![own]
        }
    }
}

/// Devices in the making.
struct Assembly<'a> {
    system: &'a System,
    worlds: Vec<World>,
    file_systems: Vec<FileSystem>,
    by_mount: HashMap<(usize, u64), usize>,
    devices: Vec<BlockDevice>,
    met: HashSet<DeviceNumber>,
}

impl Assembly<'_> {
    fn locations(
        &mut self,
        data: &Path,
        pid: Option<u32>,
        notes: &mut Vec<String>,
    ) -> Vec<Location> {
        let mut locations = usual(self.system, &self.worlds[0].view, data, pid, notes);
        locations.iter_mut().for_each(|location| self.settle(location));
        let home = locations[0].file_system;
        let Some(real) = locations[0].real_path.clone() else { return locations };
        let mut met: HashSet<PathBuf> =
            locations.iter().filter_map(|location| location.real_path.clone()).collect();
        let world = &self.worlds[0];
        for mut location in candidates(&world.view, data, &real, world.mounts.below(&real)) {
            self.settle(&mut location);
            let elsewhere = location.file_system.is_some() && location.file_system != home;
            if elsewhere && location.real_path.clone().is_some_and(|path| met.insert(path)) {
                locations.push(location);
            }
        }
        locations
    }

    /// Find the file system of a location.
    fn settle(&mut self, location: &mut Location) {
        match self.worlds[0].view.find(&location.path) {
            Ok(seen) => {
                location.real_path = Some(seen.path.clone());
                match self.file_system(0, &seen, 0) {
                    Ok(at) => location.file_system = Some(at),
                    Err(problem) => location.problem = Some(problem),
                }
            }
            Err(problem) => location.problem = Some(problem),
        }
    }

    /// The file system on which something lies, and all that is under it.
    fn file_system(&mut self, world: usize, seen: &Found, depth: u32) -> Result<usize, Problem> {
        // The kernel's number of the mount holds in every table; a table may leave mounts out
        // that lie outside of its root.
        let told = |id| self.worlds.iter().find_map(|world| world.mounts.by_id(id));
        let mount = seen
            .mount_id
            .and_then(told)
            .or_else(|| self.worlds[world].mounts.of_path(&seen.path))
            .cloned()
            .or_else(|| self.unlisted(seen))
            .ok_or(Problem::NoMount)?;
        if let Some(&at) = self.by_mount.get(&(world, mount.id)) {
            return Ok(at);
        }
        let at = self.file_systems.len();
        self.by_mount.insert((world, mount.id), at);
        self.file_systems.push(FileSystem::of(&mount, world > 0, seen));
        self.file_systems[at].backing = self.backing(world, &mount, depth);
        Ok(at)
    }

    /// The mount of a file that no table shows: after a chroot into a folder that is no mount
    /// point, the tables leave out what that folder lies on. The first process's may show it.
    fn unlisted(&self, seen: &Found) -> Option<Mount> {
        let number = seen.device?;
        let table = std::fs::read(self.system.proc.path(1, "mountinfo")).unwrap_or_default();
        let first = Mounts::parse(&table);
        if let Some(mount) = seen.mount_id.and_then(|id| first.by_id(id)) {
            return Some(mount.clone());
        }
        let tables = self.worlds.iter().map(|world| &world.mounts).chain([&first]);
        let twin = tables.into_iter().find_map(|mounts| mounts.by_number(number));
        let source = match (twin, BlockDevice::read(self.system, number)) {
            (Some(twin), _) => twin.source.clone(),
            (None, Some(device)) => Path::new("/dev").join(device.name),
            (None, None) if !number.is_anonymous() => number.to_string().into(),
            (None, None) => "a mount that is not listed here".into(),
        };
        let kind = twin.map_or(seen.kind(), |twin| &twin.kind);
        Some(Mount::unlisted(seen.mount_id, number, source, kind, seen.read_only()))
    }

    fn backing(&mut self, world: usize, mount: &Mount, depth: u32) -> Backing {
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
                .and_then(|upper| Some((self.elsewhere(world, &upper, depth)?, upper)))
                .map_or_else(
                    || none(NoDevice::Overlay),
                    |(file_system, path)| Backing::FileSystem { file_system, path },
                ),
            "btrfs" => self.btrfs(world, mount, depth).unwrap_or_else(|| match mount.listed {
                true => none(NoDevice::Hidden),
                false => none(NoDevice::Unknown),
            }),
            kind => none(NoDevice::by_kind(kind)),
        }
    }

    /// The file system of a path that somebody named who may have seen other mounts: whoever
    /// mounted an overlay or bound a file to a loop device. A container's is of the host.
    fn elsewhere(&mut self, world: usize, path: &Path, depth: u32) -> Option<usize> {
        if depth >= DEEPEST {
            return None;
        }
        (world..self.worlds.len()).find_map(|world| {
            let seen = self.worlds[world].view.find(path).ok()?;
            self.file_system(world, &seen, depth + 1).ok()
        })
    }

    /// A btrfs has a number of its own even when it has but one device.
    fn btrfs(&mut self, world: usize, mount: &Mount, depth: u32) -> Option<Backing> {
        let source = self.worlds[world]
            .view
            .find(&mount.source)
            .map_or_else(|_| mount.source.clone(), |seen| seen.path);
        let name = source.strip_prefix("/dev").ok()?.to_string_lossy().replace('/', "!");
        let mut devices = btrfs_members(self.system, &name);
        devices.retain(|&number| self.device(number, depth));
        match devices.as_slice() {
            [] => None,
            &[device] => Some(Backing::Device { device }),
            more => {
                let text = format!(
                    "btrfs spreads its data over {} devices; which of them holds a file is not known",
                    more.len()
                );
                Some(Backing::Devices { devices, text })
            }
        }
    }

    /// Note a device down, and what it is made of; `false` when /sys does not show it.
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
