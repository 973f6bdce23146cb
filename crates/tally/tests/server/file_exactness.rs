// SPDX-License-Identifier: PostgreSQL
//! File operations are counted exactly: for each kind of file and operation, the calls, failures, bytes
//! and sequential accesses agree with what strace shows for the same processes.
//!
//! Runs at least 20,000 operations, and each kind of them; PGTALLY_OPERATIONS sets another number. The expected
//! kind of file and operation are derived from strace's output alone. If strace may not trace, the test prints a
//! message and passes.

use crate::support;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

use crate::support::file_kinds::FileKinds;
use crate::support::gate::{self, Gate};
use crate::support::readings::{differences, get, Counts, OfProcess, Readings, ENDED};
use crate::support::strace::{Call, Strace};
use crate::support::{rest, storage};
use segment::{RelationRow, Relations, Segment};

const SESSIONS: u32 = 4;
const CALLS: &str = "pread64,pwrite64,preadv,pwritev,preadv2,pwritev2,read,write,readv,writev,fsync,fdatasync,\
    sync_file_range,fadvise64,ftruncate,truncate,fallocate,open,openat,creat,close,unlink,unlinkat,rename,\
    renameat,renameat2,syncfs,sync,sendfile,copy_file_range,splice";

/// Operations, each of which must have occurred.
const EXPECTED: [(&str, &str); 14] = [
    ("main", "read write extend sync writeback prefetch truncate open close unlink"),
    ("fsm", "read write extend open close"),
    ("vm", "write extend open close"),
    ("init", "write open close unlink"),
    ("main@pg_global", "read"),
    ("main@1", "read write extend sync open close unlink"),
    ("temporary", "read write open close unlink"),
    ("temporary@1", "read write open close unlink"),
    ("temporary relation", "read write extend open close unlink"),
    ("wal", "write sync open close rename"),
    ("slru Xact", "write sync open close"),
    ("control", "write sync"),
    ("shared memory", "extend truncate close"),
    ("other", "open read close write"),
];

/// One counter: process, kind of file, operation, and what is counted.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    pid: i32,
    kind: String,
    operation: String,
    what: OperationKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum OperationKind {
    Done,
    Failed,
    Bytes,
    Sequential,
}

impl OfProcess for Key {
    fn pid(&self) -> i32 {
        self.pid
    }

    fn of_process(&self, pid: i32) -> Self {
        Self { pid, ..self.clone() }
    }
}

/// What our probes counted, summed over phases; ended processes are summed up.
fn ours(segment: &mut Segment) -> Counts<Key> {
    let snapshot = segment.snapshot(None).unwrap();
    let mut counts = Counts::new();
    let living = snapshot.books.iter().map(|book| (book.pid, book));
    for (pid, book) in living.chain(snapshot.groups.iter().map(|group| (ENDED, group))) {
        for head in &book.heads {
            let Some(stat) = snapshot.directory.get(head.stat) else { continue };
            let tags: Vec<&str> = stat.name.split("::").collect();
            let ["file", kind, operation, _] = tags[..] else { continue };
            let failed = operation.strip_suffix(" failed");
            let mut add = |what, number| {
                let operation = failed.unwrap_or(operation).to_string();
                let key = Key { pid, kind: kind.to_string(), operation, what };
                *counts.entry(key).or_default() += number;
            };
            add(
                if failed.is_some() { OperationKind::Failed } else { OperationKind::Done },
                head.count,
            );
            add(OperationKind::Bytes, head.amount);
            add(OperationKind::Sequential, head.follows);
        }
    }
    counts
}

/// The opener of a descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Origin {
    /// The server.
    Server,
    /// A library, which closes it too.
    Library,
    /// A library, for the server (shm_open).
    Lent,
}

/// An open descriptor of a process, as strace shows it.
#[derive(Debug, Clone)]
struct Descriptor {
    path: PathBuf,
    origin: Origin,
    used: bool,
    /// The position at which sequential access continues; None if it was set before the trace started.
    read_end: Option<i64>,
    write_end: Option<i64>,
}

/// Counts for a relation's fork: name of its files, operation, what is counted.
type OfRelation = BTreeMap<(String, &'static str, OperationKind), u64>;

/// Operations that are counted for each relation.
const OF_RELATIONS: [&str; 5] = ["read", "write", "extend", "sync", "truncate"];

/// Relations without an entry of their own.
const OTHERS: &str = "(others)";

/// The name of the fork's files.
fn name_of(row: &RelationRow) -> String {
    let key = row.key;
    let folder = match key.tablespace {
        0 => return OTHERS.into(),
        1663 => format!("base/{}", key.database),
        1664 => "global".into(),
        other => format!("{other}/{}", key.database),
    };
    let temporary = key.backend.checked_sub(1).map_or(String::new(), |n| format!("t{n}_"));
    let fork = ["", "_fsm", "_vm", "_init"][key.fork as usize];
    format!("{folder}/{temporary}{}{fork}", key.relfilenode)
}

/// What we counted for each relation between two readings.
fn of_relations(now: &Relations, then: &Relations) -> OfRelation {
    let mut counts = OfRelation::new();
    for row in now.since(Some(then)) {
        let name = name_of(&row);
        let all = [&row.read, &row.write, &row.extend, &row.sync, &row.truncate];
        for (operation, timing) in OF_RELATIONS.into_iter().zip(all) {
            counts.insert((name.clone(), operation, OperationKind::Done), timing.count);
            counts.insert((name.clone(), operation, OperationKind::Bytes), timing.bytes);
        }
        counts.insert((name, "", OperationKind::Failed), row.failed);
    }
    counts.retain(|_, count| *count > 0);
    counts
}

/// strace's calls, converted to our counters.
struct Expectation<'a> {
    places: &'a FileKinds,
    /// The server's major version.
    major: u32,
    living: BTreeSet<i32>,
    open: HashMap<(i32, i32), Descriptor>,
    sizes: HashMap<PathBuf, i64>,
    counts: Counts<Key>,
    relations: OfRelation,
    /// Relations that have been unlinked.
    unlinked: BTreeSet<String>,
    /// Operations that we may or may not have counted: first accesses through descriptors older than the trace
    /// (whether they were sequential is unknown), and calls of processes that are too young.
    unknown: Counts<Key>,
    /// Calls that the server itself did not make, by kind.
    others: BTreeMap<String, u64>,
}

impl<'a> Expectation<'a> {
    fn new(
        places: &'a FileKinds,
        major: u32,
        sizes: HashMap<PathBuf, i64>,
        living: BTreeSet<i32>,
    ) -> Self {
        let (open, counts, unknown) = (HashMap::new(), Counts::new(), Counts::new());
        let (relations, unlinked) = (OfRelation::new(), BTreeSet::new());
        let others = BTreeMap::new();
        Self { places, major, living, open, sizes, counts, relations, unlinked, unknown, others }
    }

    /// Accepts our count as far as it is uncertain.
    fn allow_unknown(&mut self, ours: &Counts<Key>) {
        for (key, &unknown) in &self.unknown {
            let theirs = self.counts.entry(key.clone()).or_default();
            *theirs = get(ours, key).clamp(*theirs, *theirs + unknown);
        }
    }

    /// The table keeps unlinked relations while it has free entries for others: their missing operations are
    /// among the others.
    fn allow_moved(&mut self, ours: &OfRelation) {
        let mut moved = OfRelation::new();
        for ((name, operation, what), theirs) in &mut self.relations {
            let key = (name.clone(), *operation, *what);
            let missing = theirs.saturating_sub(get(ours, &key));
            if missing > 0 && self.unlinked.contains(name) {
                *theirs -= missing;
                *moved.entry((OTHERS.to_string(), key.1, key.2)).or_default() += missing;
            }
        }
        self.relations.extend(moved);
    }

    /// Registers a descriptor that is open when the trace begins.
    fn inherit(&mut self, pid: i32, fd: i32, path: PathBuf) {
        let origin = if path.starts_with("/dev/shm") { Origin::Library } else { Origin::Server };
        let (read_end, write_end) = (None, None);
        let descriptor = Descriptor { path, origin, used: true, read_end, write_end };
        self.open.insert((pid, fd), descriptor);
    }

    fn key(&self, pid: i32, path: &Path, operation: &str, what: OperationKind) -> Key {
        let pid = if self.living.contains(&pid) { pid } else { ENDED };
        Key { pid, kind: self.places.kind(path), operation: operation.into(), what }
    }

    fn add(&mut self, call: &Call, path: &Path, operation: &str) {
        let what = if call.result.is_some_and(|n| n >= 0) {
            OperationKind::Done
        } else {
            OperationKind::Failed
        };
        self.add_count(call, path, operation, what, 1);
        self.add_of_relation(path, operation, OperationKind::Done, 1);
        if what == OperationKind::Failed {
            self.add_of_relation(path, operation, OperationKind::Failed, 1);
        }
    }

    fn add_count(
        &mut self,
        call: &Call,
        path: &Path,
        operation: &str,
        what: OperationKind,
        count: u64,
    ) {
        let key = self.key(call.pid, path, operation, what);
        // Servers without OpenSSL read random numbers there, even before a new process has a slot.
        let early = path == Path::new("/dev/urandom");
        let counts = if early { &mut self.unknown } else { &mut self.counts };
        *counts.entry(key).or_default() += count;
    }

    fn add_of_relation(&mut self, path: &Path, operation: &str, what: OperationKind, count: u64) {
        let operation = OF_RELATIONS.into_iter().find(|known| *known == operation);
        let (Some(operation), Some(name)) = (operation, self.places.relation(path)) else { return };
        let operation = if what == OperationKind::Failed { "" } else { operation };
        *self.relations.entry((name, operation, what)).or_default() += count;
    }

    fn other(&mut self, call: &Call, path: &Path) {
        let known =
            ["pg_internal.init", "PG_VERSION", "out.copy", "pg_tally.", "PostgreSQL.", "pgsql_tmp"];
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
        let folder =
            call.arguments.iter().any(|flags| flags.contains("O_DIRECTORY")) || path.is_dir();
        let name = known.into_iter().find(|known| name.starts_with(known)).unwrap_or(name);
        let name = if folder { "(folder)" } else { name };
        *self.others.entry(format!("{} {name}", call.name)).or_default() += 1;
    }

    fn call(&mut self, call: &Call) {
        match call.name.as_str() {
            "open" | "openat" | "creat" => self.opened(call),
            "close" => self.closed(call),
            "unlink" | "truncate" => self.named(call, 0, &call.name),
            "unlinkat" => self.named(call, 1, "unlink"),
            "rename" => self.named(call, 1, "rename"),
            // arm64 has only these
            "renameat" | "renameat2" => self.named(call, 3, "rename"),
            _ => self.done(call),
        }
    }

    /// A call with a path.
    fn named(&mut self, call: &Call, index: usize, operation: &str) {
        let path = self.places.whole(call.text(index).unwrap());
        // shm_unlink and rmdir
        if path.starts_with("/dev/shm") || call.arguments.iter().any(|flag| flag == "AT_REMOVEDIR")
        {
            return self.other(call, &path);
        }
        self.add(call, &path, operation);
        if operation == "unlink" && call.result == Some(0) {
            self.sizes.remove(&path);
            self.unlinked.extend(self.places.relation(&path));
        }
        if operation == "truncate" && call.result == Some(0) {
            self.sizes.insert(path, call.number(1).unwrap());
        }
    }

    fn opened(&mut self, call: &Call) {
        let name = call.text(1).unwrap();
        let path = self.places.whole(name);
        let flags = &call.arguments[2];
        let origin = if name.starts_with("/dev/shm/PostgreSQL.") {
            Origin::Lent
        } else if flags.contains("O_CLOEXEC") && !self.places.is_data(&path)
            || flags.contains("O_DIRECTORY")
            || self.places.is_stream(&path)
        {
            Origin::Library
        } else {
            Origin::Server
        };
        match origin {
            Origin::Server => self.add(call, &path, "open"),
            _ => self.other(call, &path),
        }
        let Some(fd) = call.result.filter(|&fd| fd >= 0) else { return };
        if flags.contains("O_TRUNC") || (flags.contains("O_CREAT") && flags.contains("O_EXCL")) {
            self.sizes.insert(path.clone(), 0);
        }
        let (read_end, write_end) = (Some(-1), Some(-1));
        let descriptor = Descriptor { path, origin, used: false, read_end, write_end };
        self.open.insert((call.pid, fd as i32), descriptor);
    }

    fn closed(&mut self, call: &Call) {
        let Some(path) = call.descriptor_file().filter(|path| path.starts_with('/')) else {
            return;
        };
        let path = PathBuf::from(path);
        match self.open.remove(&(call.pid, call.descriptor().unwrap())) {
            Some(Descriptor { path, origin: Origin::Server, .. })
            | Some(Descriptor { path, origin: Origin::Lent, used: true, .. }) => {
                self.add(call, &path, "close");
            }
            _ => self.other(call, &path),
        }
    }

    /// A call with a descriptor.
    fn done(&mut self, call: &Call) {
        let Some(file) = call.descriptor_file().filter(|path| path.starts_with('/')) else {
            return;
        };
        let at = (call.pid, call.descriptor().unwrap());
        // A descriptor older than the trace is the server's own.
        let descriptor = self.open.entry(at).or_insert_with(|| Descriptor {
            path: PathBuf::from(file),
            origin: Origin::Server,
            used: true,
            read_end: None,
            write_end: None,
        });
        let path = descriptor.path.clone();
        // The segment is pg_tally's own.
        if descriptor.origin == Origin::Library || file.starts_with("/dev/shm/pg_tally.") {
            return self.other(call, &path);
        }
        descriptor.used = true;
        let operation = match call.name.as_str() {
            "pread64" | "preadv" | "read" => "read",
            "pwrite64" | "pwritev" | "write" => "write",
            "fsync" | "fdatasync" => "sync",
            "sync_file_range" => "writeback",
            "fadvise64" if call.arguments.iter().any(|a| a == "POSIX_FADV_WILLNEED") => "prefetch",
            "fadvise64" => "writeback",
            "ftruncate" => "truncate",
            "fallocate" => "extend",
            other => panic!("{other}: {call:?}"),
        };
        let placed = matches!(call.name.as_str(), "pread64" | "preadv" | "pwrite64" | "pwritev");
        let bytes = call.result.filter(|&n| n > 0 && matches!(operation, "read" | "write"));
        let offset = if placed { call.number(call.arguments.len() - 1) } else { None };
        // A write past a relation's end extends it.
        let size = self.sizes.entry(path.clone()).or_default();
        let kind = self.places.kind(&path);
        // Before 16 the server writes an index's init fork without extending it first.
        let relation = match kind.split('@').next().unwrap_or("") {
            "main" | "fsm" | "vm" | "temporary relation" => true,
            "init" => self.major >= 16,
            _ => false,
        };
        let behind = relation && offset.is_some_and(|offset| offset >= *size);
        let operation = if operation == "write" && behind { "extend" } else { operation };
        match operation {
            "write" | "extend" if placed => {
                *size = (*size).max(offset.unwrap() + bytes.unwrap_or(0));
            }
            "write" => *size += bytes.unwrap_or(0),
            "truncate" if call.result == Some(0) => *size = call.number(1).unwrap(),
            _ => (),
        }
        self.add(call, &path, operation);
        let Some(bytes) = bytes else { return };
        self.add_count(call, &path, operation, OperationKind::Bytes, bytes as u64);
        self.add_of_relation(&path, operation, OperationKind::Bytes, bytes as u64);
        let Some(offset) = offset else { return };
        let descriptor = self.open.get_mut(&at).unwrap();
        let end =
            if operation == "read" { &mut descriptor.read_end } else { &mut descriptor.write_end };
        let before = end.replace(offset + bytes);
        let key = self.key(call.pid, &path, operation, OperationKind::Sequential);
        match before {
            Some(end) if end == offset => *self.counts.entry(key).or_default() += 1,
            Some(_) => (),
            None => *self.unknown.entry(key).or_default() += 1,
        }
    }
}

/// Adds the sizes of all files in a directory.
fn sizes(folder: &Path, into: &mut HashMap<PathBuf, i64>) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let Ok(kind) = entry.file_type() else { continue };
        if kind.is_dir() {
            sizes(&entry.path(), into);
        } else if let Ok(meta) = entry.metadata() {
            into.insert(entry.path(), meta.len() as i64);
        }
    }
}

/// Total of operations, failed ones included.
fn done(counts: &Counts<Key>) -> u64 {
    let done = |key: &&Key| matches!(key.what, OperationKind::Done | OperationKind::Failed);
    counts.keys().filter(done).map(|key| counts[key]).sum()
}

fn sum(counts: &Counts<Key>, kind: &str, operation: &str, what: OperationKind) -> u64 {
    let of =
        |key: &&Key| key.kind.starts_with(kind) && key.operation == operation && key.what == what;
    counts.keys().filter(of).map(|key| counts[key]).sum()
}

/// Operations that must occur but did not.
fn missing(counts: &Counts<Key>, major: u32) -> Vec<String> {
    let all = EXPECTED.iter().flat_map(|(kind, operations)| {
        operations.split(' ').map(move |operation| (*kind, operation))
    });
    let expected = all.filter_map(|(kind, operation)| match (kind, operation) {
        // Before 16 the server sets the size of shared memory before it allocates the blocks.
        ("shared memory", "truncate") if major >= 16 => None,
        // From 17 on, the first block of an unlogged index is added to its file, not written into it.
        ("init", "write") if major >= 17 => Some((kind, "extend")),
        _ => Some((kind, operation)),
    });
    expected
        .filter(|(kind, operation)| sum(counts, kind, operation, OperationKind::Done) == 0)
        .map(|(kind, operation)| format!("{operation} of {kind}"))
        .collect()
}

/// The files that a process has open.
fn descriptors(pid: i32) -> Vec<(i32, i32, PathBuf)> {
    let entries = std::fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| {
            let fd = entry.file_name().to_str()?.parse().ok()?;
            let path = std::fs::read_link(entry.path()).ok()?;
            path.is_absolute().then_some((pid, fd, path))
        })
        .collect()
}

/// Compares every relation's counts, summed over processes.
fn same_relations(ours: &OfRelation, theirs: &OfRelation) {
    let keys: BTreeSet<_> = ours.keys().chain(theirs.keys()).collect();
    let wrong: Vec<String> = keys
        .iter()
        .filter(|key| get(ours, *key) != get(theirs, *key))
        .map(|key| format!("{key:?}: {}, the witness {}", get(ours, *key), get(theirs, *key)))
        .collect();
    assert!(wrong.is_empty(), "{} of relations differ\n{}", wrong.len(), wrong.join("\n"));
    let names: BTreeSet<&String> = ours.keys().map(|(name, _, _)| name).collect();
    let done: u64 =
        ours.iter().filter(|((_, _, what), _)| *what == OperationKind::Done).map(|(_, n)| n).sum();
    println!("{done} operations on the files of {} relations' forks", names.len());
    assert!(names.len() > 100, "only {} relations", names.len());
    for operation in OF_RELATIONS {
        let counted =
            ours.keys().any(|(_, of, what)| *of == operation && *what == OperationKind::Done);
        assert!(counted, "no {operation}");
    }
    for start in ["base/", "global/"] {
        assert!(names.iter().any(|name| name.starts_with(start)), "none in {start}");
    }
    assert!(names.iter().any(|name| name.contains("/t")), "no temporary one");
}

#[test]
fn file_operation_counts_equal_straces() {
    let wanted: u64 =
        std::env::var("PGTALLY_OPERATIONS").map_or(20_000, |text| text.parse().expect("a number"));
    let cluster = support::start(storage::server());
    let space = storage::fill(&cluster);
    let places = FileKinds::new(&cluster, space);
    let mut segment = Segment::open(&support::segment(&cluster)).unwrap();
    let of_all = Segment::open(&support::segment(&cluster)).unwrap();
    let mut relations = Vec::new();
    let mut gate = Gate::new(&cluster);
    let mut churner = cluster.connect().unwrap();
    churner.batch_execute("checkpoint").unwrap();
    let pids: Vec<i32> = cluster.processes().iter().map(|process| process.pid as i32).collect();
    rest::seen(&mut segment, &pids);

    let major = support::major();
    let (mut files, mut open) = (HashMap::new(), Vec::new());
    let postmaster = cluster.postmaster_pid().unwrap() as i32;
    let mut traced: Vec<i32> =
        cluster.processes().iter().map(|process| process.pid as i32).collect();
    traced.push(postmaster);
    let mut sessions = Vec::new();
    let mut pgbench = None;
    let readings = Readings::around(
        || ours(&mut segment),
        || {
            sizes(&places.data, &mut files);
            places.spaces.iter().for_each(|(folder, _)| sizes(folder, &mut files));
            let strace = Strace::start(CALLS, &traced);
            open = traced.iter().copied().flat_map(descriptors).collect();
            strace
        },
        |counted| {
            relations.push(of_all.relations().unwrap().unwrap());
            // Sessions that are traced from their start.
            pgbench = Some(gate::pgbench(&cluster, SESSIONS, &storage::script()));
            gate.assembled(SESSIONS as usize);
            gate.open();
            storage::churn(&mut churner, &cluster);
            support::eventually("operations of all kinds are counted", || {
                let counts = counted();
                let missing = missing(&counts, major);
                if done(&counts) >= wanted && !missing.is_empty() {
                    println!("still missing: {missing:?}");
                }
                done(&counts) >= wanted && missing.is_empty()
            });
            gate.close();
            sessions = gate.assembled(SESSIONS as usize);
            let mut last = Counts::new();
            support::eventually("all writes have ended", || {
                std::thread::sleep(std::time::Duration::from_millis(700));
                let now = counted();
                std::mem::replace(&mut last, now.clone()) == now
            });
            relations.push(of_all.relations().unwrap().unwrap());
        },
        Strace::stop,
    );
    let Some((readings, calls)) = readings else { return };
    drop(pgbench);

    let (ours, judged) = (readings.gained(), readings.judged());
    readings.judged_of(&sessions);
    let living: BTreeSet<i32> = readings.living();
    let mut theirs = Expectation::new(&places, major, files, living);
    open.into_iter().for_each(|(pid, fd, path)| theirs.inherit(pid, fd, path));
    // The postmaster is not instrumented; each minute it reads its lock file.
    let instrumented = calls.iter().filter(|call| call.pid != postmaster);
    instrumented.for_each(|call| theirs.call(call));
    println!("not counted: {:#?}", theirs.others);
    theirs.allow_unknown(&ours);

    let mut wrong = differences(&ours, &theirs.counts, &judged);
    // Ended processes cannot be distinguished; their totals must agree.
    if readings.all_idle() {
        wrong.append(&mut differences(&ours, &theirs.counts, &BTreeSet::from([ENDED])));
    }
    assert!(wrong.is_empty(), "{} differ\n{}", wrong.len(), wrong.join("\n"));
    let total = done(&ours);
    println!("{total} operations of {} processes and of ended ones", judged.len());
    assert!(total >= wanted, "only {total} operations");
    if readings.all_idle() {
        let ours = of_relations(&relations[1], &relations[0]);
        theirs.allow_moved(&ours);
        same_relations(&ours, &theirs.relations);
        assert_eq!((relations[1].overflow(), relations[1].torn()), (0, 0));
    } else {
        println!("not tested of relations: a process did not pause");
    }
    let mut by_kind = BTreeMap::<&str, BTreeMap<&str, u64>>::new();
    for (key, count) in ours.iter().filter(|(key, _)| key.what == OperationKind::Done) {
        *by_kind.entry(&key.kind).or_default().entry(&key.operation).or_default() += count;
    }
    by_kind.iter().for_each(|(kind, counts)| println!("{kind}: {counts:?}"));
    assert_eq!(missing(&ours, major), [""; 0]);
    let sum = |kind, operation, what| sum(&ours, kind, operation, what);
    for (kind, operation) in [("", "open"), ("", "unlink")] {
        assert!(sum(kind, operation, OperationKind::Failed) > 0, "no {operation} has failed");
    }
    for operation in ["read", "write", "extend"] {
        assert!(sum("main", operation, OperationKind::Bytes) > 0, "no bytes by {operation}");
        assert!(
            sum("main", operation, OperationKind::Sequential) > 0,
            "no {operation} in sequence"
        );
    }
}
