// SPDX-License-Identifier: PostgreSQL
//! A slow disk: a file system in memory, over the kernel's FUSE. The test sets how long each kind of
//! operation takes and which fail.
//!
//! The alternatives (dm-delay, nbd, throttling by a control group) need a block device, or delay more than one
//! operation on one file. Requires root and /dev/fuse. Tests that use it run in their own mount namespace, so
//! that no mount is left behind.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{ErrorKind, Read, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use rustix::io::{fcntl_setfd, FdFlags};

/// Delays and failures of the disk's operations.
#[derive(Debug, Clone, Copy, Default)]
pub struct Behaviour {
    /// Reads wait until this is false again.
    pub holds_reads: bool,
    /// Minimum duration of a sync.
    pub sync: Duration,
    /// Syncs fail (EIO).
    pub sync_fails: bool,
    /// Writes fail: no space left (ENOSPC).
    pub full: bool,
}

/// A mounted directory of files.
pub struct SlowDisk {
    path: PathBuf,
    shared: Arc<Shared>,
}

/// What the disk's thread and the test share.
#[derive(Default)]
struct Shared {
    behaviour: Mutex<Behaviour>,
    done: Mutex<Vec<(Operation, Duration)>>,
}

/// An operation on a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    Read,
    Sync,
}

impl SlowDisk {
    /// Mounts it at `path` with copies of the files of a directory, owned by that directory's owner. Prints the
    /// reason and returns None if mounting is not permitted.
    pub fn mount(path: &Path, files: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt;
        let device = match File::options().read(true).write(true).open("/dev/fuse") {
            Ok(device) => device,
            Err(error) => {
                println!("not tested: /dev/fuse: {error}");
                return None;
            }
        };
        fcntl_setfd(&device, FdFlags::empty()).unwrap();
        let options =
            format!("fd={},rootmode=40700,user_id=0,group_id=0,allow_other", device.as_raw_fd());
        let mut mount = Command::new("mount");
        mount.args(["-i", "-t", "fuse", "-o", &options, "slow"]).arg(path).stdin(Stdio::null());
        let output = mount.output().unwrap();
        fcntl_setfd(&device, FdFlags::CLOEXEC).unwrap();
        if !output.status.success() {
            println!("not tested: {}", String::from_utf8_lossy(&output.stderr));
            return None;
        }
        let owner = std::fs::metadata(files).unwrap();
        let mut folder = Folder { owner: (owner.uid(), owner.gid()), next: 2, ..Folder::default() };
        for entry in std::fs::read_dir(files).unwrap().flatten() {
            let data = std::fs::read(entry.path()).unwrap();
            folder.create(entry.file_name().into_encoded_bytes(), data);
        }
        let shared = Arc::<Shared>::default();
        let of_thread = shared.clone();
        std::thread::spawn(move || serve(device, folder, &of_thread));
        Some(Self { path: path.to_path_buf(), shared })
    }

    /// Changes the behaviour from now on.
    pub fn set(&self, behaviour: Behaviour) {
        *lock(&self.shared.behaviour) = behaviour;
    }

    /// The longest operation of a kind, from the arrival of its request until the response: less than what its
    /// process waited.
    pub fn longest(&self, operation: Operation) -> Duration {
        let done = lock(&self.shared.done);
        done.iter()
            .filter(|(of, _)| *of == operation)
            .map(|(_, length)| *length)
            .max()
            .unwrap_or_default()
    }
}

impl Drop for SlowDisk {
    fn drop(&mut self) {
        self.set(Behaviour::default());
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

/// Runs the test of this name again, in its own mount namespace, and returns true. Returns false there.
pub fn rerun_in_mount_namespace(test: &str) -> bool {
    const INSIDE: &str = "PGTALLY_TEST_INSIDE";
    if std::env::var_os(INSIDE).is_some() {
        return false;
    }
    let mut command = Command::new("unshare");
    command.arg("--mount").arg(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--include-ignored", "--nocapture"]).env(INSIDE, "1");
    match command.output() {
        Ok(output) => {
            let text = String::from_utf8_lossy(&output.stdout);
            let errors = String::from_utf8_lossy(&output.stderr);
            if errors.starts_with("unshare: ") {
                println!("not tested: {errors}");
            } else {
                print!("{text}");
                assert!(output.status.success(), "{errors}");
                assert!(text.contains("1 passed"), "there is no test {test}");
            }
        }
        Err(error) => println!("not tested: unshare: {error}"),
    }
    true
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

/// A file's content.
#[derive(Default)]
struct Node {
    data: Vec<u8>,
}

/// The disk's only directory. Files have numbers, by which the kernel refers to them.
#[derive(Default)]
struct Folder {
    owner: (u32, u32),
    next: u64,
    names: BTreeMap<Vec<u8>, u64>,
    nodes: BTreeMap<u64, Node>,
}

const ROOT: u64 = 1;
const ENOENT: i32 = 2;
const EIO: i32 = 5;
const ENOSPC: i32 = 28;
const ENOSYS: i32 = 38;

impl Folder {
    fn create(&mut self, name: Vec<u8>, data: Vec<u8>) -> u64 {
        let number = self.next;
        self.next += 1;
        self.names.insert(name, number);
        self.nodes.insert(number, Node { data });
        number
    }

    /// struct fuse_attr
    fn attributes(&self, number: u64) -> Vec<u8> {
        let size = self.nodes.get(&number).map_or(0, |node| node.data.len() as u64);
        let mode: u32 = if number == ROOT { 0o040_700 } else { 0o100_600 };
        let mut out = Vec::new();
        for field in [number, size, size.div_ceil(512), 0, 0, 0] {
            out.extend(field.to_ne_bytes());
        }
        for field in [0, 0, 0, mode, 1, self.owner.0, self.owner.1, 0, 4096, 0] {
            out.extend(field.to_ne_bytes());
        }
        out
    }

    /// struct fuse_entry_out, with timeouts of 0: the kernel must not cache it
    fn entry(&self, number: u64) -> Vec<u8> {
        let mut out = number.to_ne_bytes().to_vec();
        out.extend([0; 32]);
        out.extend(self.attributes(number));
        out
    }

    /// struct fuse_attr_out
    fn attributes_out(&self, number: u64) -> Vec<u8> {
        let mut out = vec![0; 16];
        out.extend(self.attributes(number));
        out
    }

    /// An array of struct fuse_dirent
    fn list(&self, from: u64) -> Vec<u8> {
        let mut out = Vec::new();
        for (index, (name, number)) in self.names.iter().enumerate().skip(from as usize) {
            let offset = index as u64 + 1;
            out.extend(number.to_ne_bytes());
            out.extend(offset.to_ne_bytes());
            out.extend((name.len() as u32).to_ne_bytes());
            out.extend(8u32.to_ne_bytes());
            out.extend(name);
            out.resize(out.len().next_multiple_of(8), 0);
            if out.len() > 3000 {
                break;
            }
        }
        out
    }

    /// The answer to a request; Err is an errno.
    fn answer(&mut self, request: &Request<'_>, behaviour: &Behaviour) -> Result<Vec<u8>, i32> {
        let node = request.node;
        let name = |at: usize| request.text(at).to_vec();
        let find = |folder: &Self, name: &[u8]| folder.names.get(name).copied().ok_or(ENOENT);
        match request.opcode {
            // LOOKUP
            1 => Ok(self.entry(find(self, &name(0))?)),
            // GETATTR
            3 => Ok(self.attributes_out(node)),
            // SETATTR: only the size
            4 => {
                let size = request.u64(16) as usize;
                if let Some(node) = self.nodes.get_mut(&node).filter(|_| request.u32(0) & 8 != 0) {
                    node.data.resize(size, 0);
                }
                Ok(self.attributes_out(node))
            }
            // UNLINK; open files stay usable
            10 => self.names.remove(&name(0)).map(|_| Vec::new()).ok_or(ENOENT),
            // RENAME, RENAME2
            12 | 45 => {
                let names = if request.opcode == 12 { 8 } else { 16 };
                let from = name(names);
                let to = name(names + from.len() + 1);
                let number = self.names.remove(&from).ok_or(ENOENT)?;
                self.names.insert(to, number);
                Ok(Vec::new())
            }
            // OPEN, bypassing the kernel's cache
            14 => Ok(opened()),
            // READ
            15 => {
                let data = &self.nodes.get(&node).ok_or(ENOENT)?.data;
                let from = (request.u64(8) as usize).min(data.len());
                let to = (from + request.u32(16) as usize).min(data.len());
                Ok(data[from..to].to_vec())
            }
            // WRITE
            16 => {
                if behaviour.full {
                    return Err(ENOSPC);
                }
                let data = &mut self.nodes.get_mut(&node).ok_or(ENOENT)?.data;
                let (from, new) = (request.u64(8) as usize, &request.body[40..]);
                data.resize(data.len().max(from + new.len()), 0);
                data[from..from + new.len()].copy_from_slice(new);
                Ok([(new.len() as u32).to_ne_bytes(), [0; 4]].concat())
            }
            // STATFS
            17 => Ok(vec![0; 80]),
            // FSYNC
            20 => {
                if behaviour.sync_fails {
                    Err(EIO)
                } else {
                    Ok(Vec::new())
                }
            }
            // RELEASE, FLUSH, RELEASEDIR, FSYNCDIR, ACCESS
            18 | 25 | 29 | 30 | 34 => Ok(Vec::new()),
            // INIT: version 7.31
            26 => {
                let mut out = vec![0; 64];
                out[..4].copy_from_slice(&7u32.to_ne_bytes());
                out[4..8].copy_from_slice(&31u32.to_ne_bytes());
                out[20..24].copy_from_slice(&MAX_WRITE.to_ne_bytes());
                out[24..28].copy_from_slice(&1u32.to_ne_bytes());
                Ok(out)
            }
            // OPENDIR
            27 => Ok(vec![0; 16]),
            // READDIR
            28 => Ok(self.list(request.u64(8))),
            // CREATE
            35 => {
                let name = name(16);
                let number = match self.names.get(&name) {
                    Some(&number) => number,
                    None => self.create(name, Vec::new()),
                };
                Ok([self.entry(number), opened()].concat())
            }
            _ => Err(ENOSYS),
        }
    }
}

/// struct fuse_open_out
fn opened() -> Vec<u8> {
    const DIRECT_IO: u32 = 1;
    let mut out = vec![0; 16];
    out[8..12].copy_from_slice(&DIRECT_IO.to_ne_bytes());
    out
}

const MAX_WRITE: u32 = 128 * 1024;
/// struct fuse_in_header
const HEADER: usize = 40;

struct Request<'a> {
    opcode: u32,
    unique: u64,
    node: u64,
    body: &'a [u8],
}

impl<'a> Request<'a> {
    fn decode(bytes: &'a [u8]) -> Self {
        let header = Self { opcode: 0, unique: 0, node: 0, body: bytes };
        let (opcode, unique, node) = (header.u32(4), header.u64(8), header.u64(16));
        Self { opcode, unique, node, body: &bytes[HEADER..] }
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.body[at..at + 4].try_into().expect("four bytes"))
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.body[at..at + 8].try_into().expect("eight bytes"))
    }

    /// A zero-terminated name.
    fn text(&self, at: usize) -> &'a [u8] {
        self.body[at..].split(|&byte| byte == 0).next().unwrap_or(&[])
    }
}

/// Answers requests one at a time, as a disk does, until it is unmounted.
fn serve(mut device: File, mut folder: Folder, shared: &Shared) {
    let mut buffer = vec![0; MAX_WRITE as usize + 4096];
    loop {
        let read = match device.read(&mut buffer) {
            Ok(read) if read >= HEADER => read,
            Err(error) if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::NotFound) => {
                continue;
            }
            _ => return,
        };
        let request = Request::decode(&buffer[..read]);
        // FORGET, INTERRUPT, BATCH_FORGET: nothing to answer
        if matches!(request.opcode, 2 | 36 | 42) {
            continue;
        }
        let began = Instant::now();
        let operation = match request.opcode {
            15 => Some(Operation::Read),
            20 => Some(Operation::Sync),
            _ => None,
        };
        while operation == Some(Operation::Read) && lock(&shared.behaviour).holds_reads {
            std::thread::sleep(Duration::from_millis(1));
        }
        let behaviour = *lock(&shared.behaviour);
        if operation == Some(Operation::Sync) {
            std::thread::sleep(behaviour.sync);
        }
        let (error, body) = match folder.answer(&request, &behaviour) {
            Ok(body) => (0, body),
            Err(errno) => (-errno, Vec::new()),
        };
        let mut out = ((16 + body.len()) as u32).to_ne_bytes().to_vec();
        out.extend(error.to_ne_bytes());
        out.extend(request.unique.to_ne_bytes());
        out.extend(body);
        if let Some(operation) = operation {
            lock(&shared.done).push((operation, began.elapsed()));
        }
        // NotFound: the process was killed meanwhile.
        if device.write_all(&out).is_err_and(|error| error.kind() != ErrorKind::NotFound) {
            return;
        }
    }
}
