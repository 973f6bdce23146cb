// SPDX-License-Identifier: PostgreSQL
//! The rows of the tables that are kept as they are. docs/reference-recording.md describes the columns.

use crate::table::{table, Cell, Cells, Column, Columns, Table, Unit};
use std::cmp::Ordering;
use std::sync::Arc;

fn by_time<T: Table>(a: &T, b: &T) -> Ordering {
    (a.time_us(), a.frame()).cmp(&(b.time_us(), b.frame()))
}

table! {
    /// One interval: what is not of a single statistic.
    FrameRow in "frames" by |a, b| a.frame.cmp(&b.frame);
    /// Its length.
    interval_ns: u64, Ns;
    /// When it ended by CLOCK_MONOTONIC, which no one sets.
    monotonic_ns: u64, Ns;
    /// The server's run that it is of: a row of `servers`.
    server: u32, Id;
    /// The level in force at its end: "off", "waits", "locks".
    level: Arc<str>, Text;
    /// For how much longer, if it ends by itself.
    level_left_ns: Option<u64>, Ns;
    /// And the level after that.
    level_then: Option<Arc<str>>, Text;
    /// The length of a tick of the clock is 1e9 by this; buckets of histograms are of ticks.
    ticks_per_second: f64, Count;
    /// Processors of the machine.
    cores: u32, Count;
    /// What all sessions lived in it, together.
    wall_ns: u64, Ns;
    /// Of that, what is not idle.
    busy_ns: u64, Ns;
    /// Of that, the time while the level was off.
    uninstrumented_ns: u64, Ns;
    /// The part of the interval in which the level was locks.
    locks_ns: u64, Ns;
    /// Whether nothing is missing.
    exact: bool, Flag;
    /// Whether a part of it was not instrumented on purpose (`tally record --duty`).
    partial: bool, Flag;
    /// Client commands handled.
    commands: u64, Count;
    /// Sessions that are working.
    sessions_active: u32, Count;
    /// Sessions that wait for a command.
    sessions_idle: u32, Count;
    /// Sessions that wait for a command within a transaction.
    sessions_idle_in_transaction: u32, Count;
    /// Processes of the server's own.
    sessions_background: u32, Count;
    /// Sessions whose process has gone.
    sessions_dead: u32, Count;
    /// Sessions that ended within it.
    ended_sessions: u64, Count;
    /// What these lived in it.
    ended_ns: u64, Ns;
    /// Sessions that were read inside of an update.
    torn_sessions: u64, Count;
    /// Statistics without a name.
    nameless: u64, Count;
    /// Functions with a probe.
    functions_probed: u64, Count;
    /// What found no room in the interval: sessions without a slot,
    overflow_slots: u64, Count;
    /// statistics without room in their session's book,
    overflow_statistics: u64, Count;
    /// names without room in the directory,
    overflow_directory: u64, Count;
    /// sessions folded into the group of last resort,
    overflow_groups: u64, Count;
    /// growths that the file system refused,
    overflow_memory: u64, Count;
    /// slots found damaged,
    overflow_lost_folds: u64, Count;
    /// counts of statements that found no room,
    overflow_statements_dropped: u64, Count;
    /// statements left half changed,
    overflow_statements_lost: u64, Count;
    /// texts cut,
    overflow_texts_cut: u64, Count;
    /// relations left half counted.
    overflow_relations_lost: u64, Count;
    /// The machine's processors: time in programs,
    host_user_ns: u64, Ns;
    /// in the kernel,
    host_system_ns: u64, Ns;
    /// doing nothing,
    host_idle_ns: u64, Ns;
    /// doing nothing while something waited for a device,
    host_iowait_ns: u64, Ns;
    /// taken by the hypervisor for others.
    host_steal_ns: u64, Ns;
    /// Processes of the machine that run or want to.
    host_runnable: u64, Count;
}

table! {
    /// How many sessions of a kind are in a state at an interval's end.
    SessionsRow in "sessions" by |a, b| {
        (&a.process, &a.state, a.frame).cmp(&(&b.process, &b.state, b.frame))
    };
    /// "client backend", ...
    process: Arc<str>, Text;
    /// "active", "idle", "idle in transaction", "background", "dead".
    state: Arc<str>, Text;
    /// How many.
    sessions: u32, Count;
}

table! {
    /// What the kernel says of the sessions, beside the ledger; each detail interval.
    KernelRow in "kernel" by by_time;
    /// Since the row before.
    interval_ns: u64, Ns;
    /// Sessions that were compared.
    sessions: u64, Count;
    /// What the ledger has as `cpu`.
    cpu_account_ns: u64, Ns;
    /// On a processor.
    on_cpu_ns: u64, Ns;
    /// Ready to run and not running.
    run_queue_ns: u64, Ns;
    /// What the `cpu` account has beyond these two: blocked where nobody looked.
    unexplained_ns: u64, Ns;
}

table! {
    /// A statement in a detail interval.
    StatementRow in "statements" by |a, b| {
        (a.key(), a.frame).cmp(&(b.key(), b.frame))
    };
    /// Since the detail before.
    interval_ns: u64, Ns;
    /// As PostgreSQL prints it; 0: work that no statement could be named for.
    queryid: i64, Id;
    /// Its database.
    database_id: u32, Id;
    /// Who ran it.
    user_id: u32, Id;
    /// Asked for by the client itself, rather than within another statement.
    toplevel: bool, Flag;
    /// The database's name, or empty.
    database: Arc<str>, Text;
    /// The user's, or empty.
    user: Arc<str>, Text;
    /// Executions that ended without an error.
    calls: u64, Count;
    /// Their time,
    exec_ns: u64, Ns;
    /// the least,
    exec_min_ns: Option<u64>, Ns;
    /// the greatest,
    exec_max_ns: Option<u64>, Ns;
    /// and the sum of their squares.
    exec_squares: f64, NsSquared;
    /// Plannings.
    plans: u64, Count;
    /// Their time,
    plan_ns: u64, Ns;
    /// the least,
    plan_min_ns: Option<u64>, Ns;
    /// the greatest,
    plan_max_ns: Option<u64>, Ns;
    /// and the sum of their squares.
    plan_squares: f64, NsSquared;
    /// Rows returned or changed.
    rows: u64, Count;
    /// Blocks of shared buffers found,
    shared_hit: u64, Count;
    /// read,
    shared_read: u64, Count;
    /// made dirty,
    shared_dirtied: u64, Count;
    /// written.
    shared_written: u64, Count;
    /// The same of the session's own tables: found,
    local_hit: u64, Count;
    /// read,
    local_read: u64, Count;
    /// made dirty,
    local_dirtied: u64, Count;
    /// written.
    local_written: u64, Count;
    /// Blocks of temporary files read,
    temp_read: u64, Count;
    /// written.
    temp_written: u64, Count;
    /// Records of the log,
    wal_records: u64, Count;
    /// full-page images,
    wal_fpi: u64, Count;
    /// and bytes.
    wal_bytes: u64, Bytes;
    /// Reading blocks, by our probes,
    read_ns: u64, Ns;
    /// writing them,
    write_ns: u64, Ns;
    /// reading temporary files,
    temp_read_ns: u64, Ns;
    /// writing them.
    temp_write_ns: u64, Ns;
    /// The same where the server timed it itself: reading blocks,
    server_read_ns: u64, Ns;
    /// writing them,
    server_write_ns: u64, Ns;
    /// reading temporary files,
    server_temp_read_ns: u64, Ns;
    /// writing them.
    server_temp_write_ns: u64, Ns;
    /// Temporary files made,
    temp_files: u64, Count;
    /// and their size.
    temp_bytes: u64, Bytes;
    /// Executions ended by an error.
    errors: u64, Count;
    /// Executions cancelled or timed out.
    cancels: u64, Count;
    /// Parallel workers that took part,
    workers: u64, Count;
    /// and how long they lived for it.
    worker_ns: u64, Ns;
    /// Functions compiled,
    jit_functions: u64, Count;
    /// generating code,
    jit_generation_ns: u64, Ns;
    /// executions that inlined,
    jit_inlinings: u64, Count;
    /// inlining,
    jit_inlining_ns: u64, Ns;
    /// executions that optimized,
    jit_optimizations: u64, Count;
    /// optimizing,
    jit_optimization_ns: u64, Ns;
    /// executions that emitted code,
    jit_emissions: u64, Count;
    /// emitting it.
    jit_emission_ns: u64, Ns;
    /// When it was first executed; 0 unknown.
    first_us: i64, Time;
    /// When it was last executed.
    last_us: i64, Time;
    /// Execution times: the buckets that hold something,
    buckets: Vec<u64>, Id;
    /// and how many each.
    counts: Vec<u64>, Count;
}

impl StatementRow {
    pub(crate) fn key(&self) -> (i64, u32, u32, bool) {
        (self.queryid, self.database_id, self.user_id, self.toplevel)
    }
}

table! {
    /// What went to one account of the ledger for a statement in a detail interval.
    PartRow in "statement_accounts" by |a, b| {
        (a.key(), &a.account, a.frame).cmp(&(b.key(), &b.account, b.frame))
    };
    /// As in `statements`.
    queryid: i64, Id;
    /// As in `statements`.
    database_id: u32, Id;
    /// As in `statements`.
    user_id: u32, Id;
    /// As in `statements`.
    toplevel: bool, Flag;
    /// The account: `execute::wait::IO:DataFileRead`.
    account: Arc<str>, Text;
    /// How often.
    count: u64, Count;
    /// How long; below zero where what had been counted of a message under way went to another
    /// statement when that was known.
    total_ns: i64, Ns;
}

impl PartRow {
    pub(crate) fn key(&self) -> (i64, u32, u32, bool) {
        (self.queryid, self.database_id, self.user_id, self.toplevel)
    }
}

table! {
    /// The text of a statement, once a day.
    TextRow in "statement_texts" by |a, b| a.key().cmp(&b.key()).then_with(|| by_time(a, b));
    /// As in `statements`.
    queryid: i64, Id;
    /// As in `statements`.
    database_id: u32, Id;
    /// As in `statements`.
    user_id: u32, Id;
    /// As in `statements`.
    toplevel: bool, Flag;
    /// The text, constants replaced.
    text: Arc<str>, Text;
    /// Its bytes that are kept,
    kept_bytes: u32, Bytes;
    /// of so many.
    whole_bytes: u32, Bytes;
}

impl TextRow {
    pub(crate) fn key(&self) -> (i64, u32, u32, bool) {
        (self.queryid, self.database_id, self.user_id, self.toplevel)
    }
}

table! {
    /// What was done to the files of a relation's fork in a detail interval.
    RelationRow in "relations" by |a, b| (a.key(), a.frame).cmp(&(b.key(), b.frame));
    /// Since the detail before.
    interval_ns: u64, Ns;
    /// Its tablespace; 0 of the others together, as the numbers below.
    tablespace: u32, Id;
    /// Its database; 0: shared by all.
    database_id: u32, Id;
    /// The number in the file's name.
    relfilenode: u32, Id;
    /// "main", "fsm", "vm", "init"; empty of the others together.
    fork: Arc<str>, Text;
    /// Of a temporary one: 1 + its session's number in the server; 0 of others.
    backend: u32, Id;
    /// The database's name, or empty.
    database: Arc<str>, Text;
    /// Operations that failed.
    failed: u64, Count;
    /// Reads,
    reads: u64, Count;
    /// their bytes,
    read_bytes: u64, Bytes;
    /// their time,
    read_ns: u64, Ns;
    /// the longest, where it was longer than all before.
    read_max_ns: Option<u64>, Ns;
    /// Writes of what was there,
    writes: u64, Count;
    /// their bytes,
    written_bytes: u64, Bytes;
    /// their time,
    write_ns: u64, Ns;
    /// the longest.
    write_max_ns: Option<u64>, Ns;
    /// Writes behind the end,
    extends: u64, Count;
    /// their bytes,
    extend_bytes: u64, Bytes;
    /// their time,
    extend_ns: u64, Ns;
    /// the longest.
    extend_max_ns: Option<u64>, Ns;
    /// Syncs,
    syncs: u64, Count;
    /// their time,
    sync_ns: u64, Ns;
    /// the longest.
    sync_max_ns: Option<u64>, Ns;
    /// Truncations,
    truncates: u64, Count;
    /// their time,
    truncate_ns: u64, Ns;
    /// the longest.
    truncate_max_ns: Option<u64>, Ns;
}

impl RelationRow {
    /// What names it; two forks differ in it.
    pub(crate) fn key(&self) -> (u32, u32, u32, Arc<str>, u32) {
        (self.tablespace, self.database_id, self.relfilenode, self.fork.clone(), self.backend)
    }
}

table! {
    /// A notable thing that a process of the server has put down.
    EventRow in "events" by by_time;
    /// The server's run.
    server: u32, Id;
    /// Its number in the segment, from 1.
    number: u64, Id;
    /// The process.
    pid: i64, Id;
    /// What kind of process, where it was still known.
    process: Option<Arc<str>>, Text;
    /// Its database, where it has one.
    database: Option<Arc<str>>, Text;
    /// Its user, where it has one.
    user: Option<Arc<str>>, Text;
    /// "note", "warning", "blocked", "slow", "checkpoint", ...
    kind: Arc<str>, Text;
    /// What happened.
    text: Arc<str>, Text;
    /// So many before it were written over and are lost.
    lost: u64, Count;
}

table! {
    /// A block device under the server in an interval.
    DeviceRow in "devices" by |a, b| (&a.device, a.frame).cmp(&(&b.device, b.frame));
    /// The kernel's name of it.
    device: Arc<str>, Text;
    /// Since the row before.
    interval_ns: u64, Ns;
    /// Whether the server's files lie directly on it, rather than on what it is a part of.
    direct: bool, Flag;
    /// Reads that ended,
    reads: u64, Count;
    /// their bytes,
    read_bytes: u64, Bytes;
    /// their time, all together.
    read_ns: u64, Ns;
    /// Writes that ended,
    writes: u64, Count;
    /// their bytes,
    written_bytes: u64, Bytes;
    /// their time, all together.
    write_ns: u64, Ns;
    /// Flushes of its cache; none where the kernel does not count them.
    flushes: Option<u64>, Count;
    /// Their time.
    flush_ns: Option<u64>, Ns;
    /// Time in which any request was there.
    busy_ns: u64, Ns;
    /// Time of all requests together, waiting included.
    queue_ns: u64, Ns;
    /// Requests there at the interval's end.
    in_flight: u64, Count;
}

table! {
    /// What the server's processes read and wrote, by the kernel's account; each detail interval.
    ServerIoRow in "server_io" by by_time;
    /// Since the row before.
    interval_ns: u64, Ns;
    /// Processes at its end.
    processes: u64, Count;
    /// Processes that could not be read: the sums are too small.
    refused: u64, Count;
    /// Calls that read,
    reads: u64, Count;
    /// bytes that they returned,
    read_bytes: u64, Bytes;
    /// calls that wrote,
    writes: u64, Count;
    /// their bytes.
    written_bytes: u64, Bytes;
    /// Of what was read, bytes that came from a device.
    device_read_bytes: u64, Bytes;
    /// Bytes that were written to a device, or will be.
    device_written_bytes: u64, Bytes;
}

table! {
    /// A setting of the server, the machine or the recorder: at the start and when it changes.
    SettingRow in "settings" by |a, b| (&a.group, &a.name, a.time_us).cmp(&(&b.group, &b.name, b.time_us));
    /// "server", "machine", "recorder".
    group: Arc<str>, Text;
    /// Its name.
    name: Arc<str>, Text;
    /// Its value, as the server shows it.
    value: Arc<str>, Text;
    /// The unit of the value, or empty.
    unit: Arc<str>, Text;
    /// Where it is from: "sql", "postgresql.conf", "segment", "kernel", ...
    source: Arc<str>, Text;
}

table! {
    /// A time of which nothing is known.
    GapRow in "gaps" by by_time;
    /// When it began; `time` is when it ended.
    from_us: i64, Time;
    /// How long it was by the clock that no one sets; 0 where that cannot be told.
    length_ns: u64, Ns;
    /// Why: "the server has gone", "the recorder was stopped", "the machine slept", ...
    reason: Arc<str>, Text;
}

table! {
    /// Something that happened to the recording or to what is recorded.
    MarkRow in "marks" by by_time;
    /// "begin", "end", "server start", "level", "reset", "clock step", "suspend",
    /// "segment replaced", "duty", ...
    kind: Arc<str>, Text;
    /// What, in words.
    text: Arc<str>, Text;
}

table! {
    /// What a command that was recorded printed, and how it ended.
    RunRow in "runs" by by_time;
    /// The command.
    command: Arc<str>, Text;
    /// "begin", "stdout", "stderr" (one row a line), or "end".
    what: Arc<str>, Text;
    /// The line.
    text: Arc<str>, Text;
    /// How it ended.
    exit_code: Option<i64>, Id;
}

table! {
    /// A run of a server, as its segment tells of it.
    ServerRow in "servers" by |a, b| a.server.cmp(&b.server);
    /// Its number in this recording.
    server: u32, Id;
    /// "PostgreSQL 15.20".
    name: Arc<str>, Text;
    /// The data directory.
    data_directory: Arc<str>, Text;
    /// The segment's file.
    segment: Arc<str>, Text;
    /// The server's first process; 0 unknown.
    pid: u32, Id;
    /// The server's port; 0 unknown.
    port: u32, Id;
    /// Who wrote the segment.
    producer: Arc<str>, Text;
    /// When the segment was made.
    created_us: i64, Time;
    /// "tsc" or "monotonic".
    clock: Arc<str>, Text;
    /// The machine's boot.
    boot: Arc<str>, Text;
}
