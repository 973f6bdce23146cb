// SPDX-License-Identifier: PostgreSQL
//! The rows of all tables but `statistics` and `histograms`. docs/reference-recording.md describes them.

use crate::table::{table, Cell, Cells, Column, Columns, Table, Unit};
use std::cmp::Ordering;
use std::sync::Arc;

fn by_time<T: Table>(a: &T, b: &T) -> Ordering {
    (a.time_us(), a.frame()).cmp(&(b.time_us(), b.frame()))
}

table! {
    /// An interval, without its statistics.
    FrameRow in "frames" by |a, b| a.frame.cmp(&b.frame);
    /// Its length.
    interval_ns: u64, Ns, sum;
    /// Its end by CLOCK_MONOTONIC.
    monotonic_ns: u64, Ns, last;
    /// The run of the server: a row of `servers`.
    server: u32, Id;
    /// The level at its end: "off", "waits", "locks".
    level: Arc<str>, Text, last;
    /// Time until this level ends, if it is limited.
    level_left_ns: Option<u64>, Ns, last;
    /// The level after that.
    level_then: Option<Arc<str>>, Text, last;
    /// Ticks of the segment's clock in a second; histograms have buckets of ticks.
    ticks_per_second: f64, Count, last;
    /// Processors of the machine.
    cores: u32, Count, last;
    /// Lifetime of all sessions in it, added up.
    wall_ns: u64, Ns, sum;
    /// Of that, time that is not idle.
    busy_ns: u64, Ns, sum;
    /// Of that, the time while the level was off.
    uninstrumented_ns: u64, Ns, sum;
    /// Time of the interval at level `locks`.
    locks_ns: u64, Ns, sum;
    /// Whether the accounts are complete.
    exact: bool, Flag, all;
    /// Whether instrumentation was off for a part of it on purpose (`tally record --duty`).
    partial: bool, Flag, any;
    /// Client commands handled.
    commands: u64, Count, sum;
    /// Active sessions.
    sessions_active: u32, Count, last;
    /// Idle sessions.
    sessions_idle: u32, Count, last;
    /// Sessions that are idle in a transaction.
    sessions_idle_in_transaction: u32, Count, last;
    /// Background processes.
    sessions_background: u32, Count, last;
    /// Sessions whose process has ended without detaching.
    sessions_dead: u32, Count, last;
    /// Sessions that ended in it.
    ended_sessions: u64, Count, sum;
    /// Lifetime of these sessions in it.
    ended_ns: u64, Ns, sum;
    /// Sessions that were read during an update.
    torn_sessions: u64, Count, max;
    /// Statistics whose name is unknown.
    nameless: u64, Count, max;
    /// Functions that are probed.
    functions_probed: u64, Count, last;
    /// Overflow in the interval: sessions without a slot.
    overflow_slots: u64, Count, sum;
    /// Overflow: statistics that did not fit into their session's book.
    overflow_statistics: u64, Count, sum;
    /// Overflow: names that did not fit into the directory.
    overflow_directory: u64, Count, sum;
    /// Overflow: sessions merged into the group of last resort.
    overflow_groups: u64, Count, sum;
    /// Overflow: extensions of the segment that the file system refused.
    overflow_memory: u64, Count, sum;
    /// Damaged slots, which were not merged.
    #[serde(alias = "overflow_lost_folds")]
    overflow_lost_merges: u64, Count, sum;
    /// Overflow: counts of statements that were dropped.
    overflow_statements_dropped: u64, Count, sum;
    /// Statements that were lost in the middle of an update.
    overflow_statements_lost: u64, Count, sum;
    /// Texts that were truncated.
    overflow_texts_cut: u64, Count, sum;
    /// Relations that were lost in the middle of an update.
    overflow_relations_lost: u64, Count, sum;
    /// Processor time of the machine in user mode, nice included.
    host_user_ns: u64, Ns, sum;
    /// Processor time in the kernel, interrupts included.
    host_system_ns: u64, Ns, sum;
    /// Idle time of processors.
    host_idle_ns: u64, Ns, sum;
    /// Idle time of processors during I/O of a device.
    host_iowait_ns: u64, Ns, sum;
    /// Time that the hypervisor took from this machine.
    host_steal_ns: u64, Ns, sum;
    /// Running and runnable processes of the machine at its end.
    host_runnable: u64, Count, last;
}

table! {
    /// Number of sessions of a kind in a state at the end of an interval.
    SessionsRow in "sessions" by |a, b| {
        (&a.process, &a.state, a.frame).cmp(&(&b.process, &b.state, b.frame))
    };
    /// "client backend", ...
    process: Arc<str>, Text;
    /// "active", "idle", "idle in transaction", "background", "dead".
    state: Arc<str>, Text;
    /// Number of sessions.
    sessions: u32, Count;
}

table! {
    /// The kernel's figures on the sessions in a detail interval, to compare with the ledger.
    KernelRow in "kernel" by by_time;
    /// Time since the row before.
    interval_ns: u64, Ns, sum;
    /// Sessions that were compared.
    sessions: u64, Count, last;
    /// Time that the ledger charged to `cpu`.
    cpu_account_ns: u64, Ns, sum;
    /// Time on a processor.
    on_cpu_ns: u64, Ns, sum;
    /// Time in the run queue.
    run_queue_ns: u64, Ns, sum;
    /// Time of the `cpu` account beyond these two: blocked outside of any probe.
    unexplained_ns: u64, Ns, sum;
}

/// What identifies a statement: queryid, database, user, toplevel.
pub(crate) type StatementKey = (i64, u32, u32, bool);

macro_rules! statement_key {
    ($($row:ident)*) => {$(
        impl $row {
            pub(crate) fn key(&self) -> StatementKey {
                (self.queryid, self.database_id, self.user_id, self.toplevel)
            }
        }
    )*};
}

statement_key! { StatementRow StatementAccountRow TextRow }

table! {
    /// A statement in a detail interval.
    StatementRow in "statements" by |a, b| {
        (a.key(), a.frame).cmp(&(b.key(), b.frame))
    }, histogram buckets counts;
    /// Time since the detail before.
    interval_ns: u64, Ns, sum;
    /// The query identifier; 0: work of unknown statements.
    queryid: i64, Id;
    /// OID of its database.
    database_id: u32, Id;
    /// OID of the user.
    user_id: u32, Id;
    /// Whether the client sent it, rather than another statement executing it.
    toplevel: bool, Flag;
    /// Name of the database, or empty.
    database: Arc<str>, Text;
    /// Name of the user, or empty.
    user: Arc<str>, Text;
    /// Executions without an error.
    calls: u64, Count, sum;
    /// Total execution time.
    exec_ns: u64, Ns, sum;
    /// Minimum execution time.
    exec_min_ns: Option<u64>, Ns, min;
    /// Maximum execution time.
    exec_max_ns: Option<u64>, Ns, max;
    /// Sum of the squares of execution times.
    exec_squares: f64, NsSquared, sum;
    /// Number of times it was planned.
    plans: u64, Count, sum;
    /// Total planning time.
    plan_ns: u64, Ns, sum;
    /// Minimum planning time.
    plan_min_ns: Option<u64>, Ns, min;
    /// Maximum planning time.
    plan_max_ns: Option<u64>, Ns, max;
    /// Sum of the squares of planning times.
    plan_squares: f64, NsSquared, sum;
    /// Rows returned or changed.
    rows: u64, Count, sum;
    /// Shared block cache hits.
    shared_hit: u64, Count, sum;
    /// Shared blocks read.
    shared_read: u64, Count, sum;
    /// Shared blocks dirtied.
    shared_dirtied: u64, Count, sum;
    /// Shared blocks written.
    shared_written: u64, Count, sum;
    /// Local block cache hits.
    local_hit: u64, Count, sum;
    /// Local blocks read.
    local_read: u64, Count, sum;
    /// Local blocks dirtied.
    local_dirtied: u64, Count, sum;
    /// Local blocks written.
    local_written: u64, Count, sum;
    /// Temporary blocks read.
    temp_read: u64, Count, sum;
    /// Temporary blocks written.
    temp_written: u64, Count, sum;
    /// WAL records.
    wal_records: u64, Count, sum;
    /// WAL full-page images.
    wal_fpi: u64, Count, sum;
    /// WAL bytes.
    wal_bytes: u64, Bytes, sum;
    /// Time reading blocks, by our probes.
    read_ns: u64, Ns, sum;
    /// Time writing blocks, by our probes.
    write_ns: u64, Ns, sum;
    /// Time reading temporary files, by our probes.
    temp_read_ns: u64, Ns, sum;
    /// Time writing temporary files, by our probes.
    temp_write_ns: u64, Ns, sum;
    /// Time reading blocks, by the server (track_io_timing).
    server_read_ns: u64, Ns, sum;
    /// Time writing blocks, by the server.
    server_write_ns: u64, Ns, sum;
    /// Time reading temporary files, by the server.
    server_temp_read_ns: u64, Ns, sum;
    /// Time writing temporary files, by the server.
    server_temp_write_ns: u64, Ns, sum;
    /// Temporary files created.
    temp_files: u64, Count, sum;
    /// Size of these files.
    temp_bytes: u64, Bytes, sum;
    /// Executions that ended with an error.
    errors: u64, Count, sum;
    /// Executions that were cancelled or timed out.
    cancels: u64, Count, sum;
    /// Parallel workers that took part.
    workers: u64, Count, sum;
    /// Lifetime of these workers.
    worker_ns: u64, Ns, sum;
    /// Functions that JIT compiled.
    jit_functions: u64, Count, sum;
    /// Time generating code.
    jit_generation_ns: u64, Ns, sum;
    /// Executions with inlining.
    jit_inlinings: u64, Count, sum;
    /// Time inlining.
    jit_inlining_ns: u64, Ns, sum;
    /// Executions with optimization.
    jit_optimizations: u64, Count, sum;
    /// Time optimizing.
    jit_optimization_ns: u64, Ns, sum;
    /// Executions that emitted code.
    jit_emissions: u64, Count, sum;
    /// Time emitting code.
    jit_emission_ns: u64, Ns, sum;
    /// First execution; 0: unknown.
    first_us: i64, Time, earliest;
    /// Last execution.
    last_us: i64, Time, max;
    /// Histogram of execution times: the buckets that are not empty.
    buckets: Vec<u64>, Id;
    /// The number of executions in each of them.
    counts: Vec<u64>, Count;
}

table! {
    /// An account of a statement in a detail interval.
    StatementAccountRow in "statement_accounts" by |a, b| {
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
    /// Number of events.
    count: u64, Count, sum;
    /// Total time; negative where time of a message in progress was moved to another statement when
    /// that became known.
    total_ns: i64, Ns, sum;
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
    /// The text, with constants replaced.
    text: Arc<str>, Text;
    /// Bytes of the text.
    kept_bytes: u32, Bytes;
    /// Bytes of the text before truncation.
    whole_bytes: u32, Bytes;
}

table! {
    /// I/O on the files of a relation's fork in a detail interval.
    RelationRow in "relations" by |a, b| (a.key(), a.frame).cmp(&(b.key(), b.frame));
    /// Time since the detail before.
    interval_ns: u64, Ns, sum;
    /// OID of its tablespace; 0, like the numbers below, for all other relations together.
    tablespace: u32, Id;
    /// OID of its database; 0: shared.
    database_id: u32, Id;
    /// The file node.
    relfilenode: u32, Id;
    /// "main", "fsm", "vm", "init"; empty for all other relations together.
    fork: Arc<str>, Text;
    /// 1 + the backend number of a temporary relation; 0 otherwise.
    backend: u32, Id;
    /// Name of the database, or empty.
    database: Arc<str>, Text, known;
    /// Failed operations.
    failed: u64, Count, sum;
    /// Reads.
    reads: u64, Count, sum;
    /// Bytes read.
    read_bytes: u64, Bytes, sum;
    /// Total read time.
    read_ns: u64, Ns, sum;
    /// The longest read, if it exceeded all before it.
    read_max_ns: Option<u64>, Ns, max;
    /// Writes of existing blocks.
    writes: u64, Count, sum;
    /// Bytes written.
    written_bytes: u64, Bytes, sum;
    /// Total write time.
    write_ns: u64, Ns, sum;
    /// The longest write.
    write_max_ns: Option<u64>, Ns, max;
    /// Extensions.
    extends: u64, Count, sum;
    /// Bytes of extensions.
    extend_bytes: u64, Bytes, sum;
    /// Total time of extensions.
    extend_ns: u64, Ns, sum;
    /// The longest extension.
    extend_max_ns: Option<u64>, Ns, max;
    /// Syncs.
    syncs: u64, Count, sum;
    /// Total time of syncs.
    sync_ns: u64, Ns, sum;
    /// The longest sync.
    sync_max_ns: Option<u64>, Ns, max;
    /// Truncations.
    truncates: u64, Count, sum;
    /// Total time of truncations.
    truncate_ns: u64, Ns, sum;
    /// The longest truncation.
    truncate_max_ns: Option<u64>, Ns, max;
}

impl RelationRow {
    /// The identity of the fork.
    pub(crate) fn key(&self) -> (u32, u32, u32, Arc<str>, u32) {
        (self.tablespace, self.database_id, self.relfilenode, self.fork.clone(), self.backend)
    }
}

table! {
    /// An event of a process of the server.
    EventRow in "events" by by_time;
    /// The run of the server: a row of `servers`.
    server: u32, Id;
    /// Its number in the segment, starting at 1.
    number: u64, Id;
    /// The process.
    pid: i64, Id;
    /// Kind of the process, where it is known.
    process: Option<Arc<str>>, Text;
    /// Database of the process, if any.
    database: Option<Arc<str>>, Text;
    /// User of the process, if any.
    user: Option<Arc<str>>, Text;
    /// "note", "warning", "blocked", "slow", "checkpoint", ...
    kind: Arc<str>, Text;
    /// Description.
    text: Arc<str>, Text;
    /// Number of events before it that were overwritten.
    lost: u64, Count;
}

table! {
    /// A block device under the server in an interval.
    DeviceRow in "devices" by |a, b| (&a.device, a.frame).cmp(&(&b.device, b.frame));
    /// The kernel's name of the device.
    device: Arc<str>, Text;
    /// Time since the row before.
    interval_ns: u64, Ns, sum;
    /// Whether the server's files are directly on it, rather than on a device made of it.
    direct: bool, Flag, last;
    /// Completed reads.
    reads: u64, Count, sum;
    /// Bytes read.
    read_bytes: u64, Bytes, sum;
    /// Total time of reads.
    read_ns: u64, Ns, sum;
    /// Completed writes.
    writes: u64, Count, sum;
    /// Bytes written.
    written_bytes: u64, Bytes, sum;
    /// Total time of writes.
    write_ns: u64, Ns, sum;
    /// Flushes of its cache; null where the kernel does not count them.
    flushes: Option<u64>, Count, sum;
    /// Total time of flushes.
    flush_ns: Option<u64>, Ns, sum;
    /// Time with any request in progress.
    busy_ns: u64, Ns, sum;
    /// Total time of all requests, waiting included.
    queue_ns: u64, Ns, sum;
    /// Requests in progress at the interval's end.
    in_flight: u64, Count, last;
}

table! {
    /// Reads and writes of the server's processes in a detail interval, from /proc/PID/io.
    ServerIoRow in "server_io" by by_time;
    /// Time since the row before.
    interval_ns: u64, Ns, sum;
    /// Processes at the interval's end.
    processes: u64, Count, last;
    /// Processes that could not be read: the sums are too small.
    refused: u64, Count, max;
    /// Read calls.
    reads: u64, Count, sum;
    /// Bytes that they returned.
    read_bytes: u64, Bytes, sum;
    /// Write calls.
    writes: u64, Count, sum;
    /// Bytes that they were passed.
    written_bytes: u64, Bytes, sum;
    /// Bytes that were read from devices.
    device_read_bytes: u64, Bytes, sum;
    /// Bytes that were or will be written to devices.
    device_written_bytes: u64, Bytes, sum;
}

table! {
    /// A setting of the server, the machine or the recorder, at the start and after each change.
    SettingRow in "settings" by |a, b| (&a.group, &a.name, a.time_us).cmp(&(&b.group, &b.name, b.time_us));
    /// "server", "machine", "recorder".
    group: Arc<str>, Text;
    /// Its name.
    name: Arc<str>, Text;
    /// Its value, as SHOW prints it.
    value: Arc<str>, Text;
    /// The unit of the value, or empty.
    unit: Arc<str>, Text;
    /// Its source: "sql", "postgresql.conf", "segment", "kernel", ...
    source: Arc<str>, Text;
}

table! {
    /// A period without data.
    GapRow in "gaps" by by_time;
    /// When it started; `time` is its end.
    from_us: i64, Time;
    /// Its length by CLOCK_MONOTONIC; 0: unknown.
    length_ns: u64, Ns;
    /// The reason.
    reason: Arc<str>, Text;
}

table! {
    /// A change of the recording or of what it records.
    MarkRow in "marks" by by_time;
    /// "begin", "end", "server start", "level", "reset", "clock step", "suspend",
    /// "segment replaced", "duty", ...
    kind: Arc<str>, Text;
    /// Description.
    text: Arc<str>, Text;
}

table! {
    /// Output and exit status of a recorded command.
    RunRow in "runs" by by_time;
    /// The command.
    command: Arc<str>, Text;
    /// "begin", "stdout", "stderr" (one row a line), or "end".
    what: Arc<str>, Text;
    /// The line of output.
    text: Arc<str>, Text;
    /// The exit status.
    exit_code: Option<i64>, Id;
}

table! {
    /// A run of a server: from a start to a stop.
    ServerRow in "servers" by |a, b| a.server.cmp(&b.server);
    /// Its number in this recording.
    server: u32, Id;
    /// "PostgreSQL 15.20".
    name: Arc<str>, Text;
    /// The data directory.
    data_directory: Arc<str>, Text;
    /// The path of the segment.
    segment: Arc<str>, Text;
    /// The postmaster's pid; 0: unknown.
    pid: u32, Id;
    /// The server's port; 0: unknown.
    port: u32, Id;
    /// The program that wrote the segment.
    producer: Arc<str>, Text;
    /// When the segment was created.
    created_us: i64, Time;
    /// "tsc" or "monotonic".
    clock: Arc<str>, Text;
    /// The machine's boot id.
    boot: Arc<str>, Text;
}
