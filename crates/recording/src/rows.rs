// SPDX-License-Identifier: PostgreSQL
//! The rows of all tables except `statistics` and `histograms`. docs/reference-recording.md describes them.

use crate::recorded_statement::RecordedStatementRow;
use crate::table::{table, Cell, Cells, Column, Columns, Table, Unit};
use segment::{Application, Overflows};
use std::cmp::Ordering;
use std::sync::Arc;

fn by_time<T: Table>(a: &T, b: &T) -> Ordering {
    (a.time_us(), a.frame()).cmp(&(b.time_us(), b.frame()))
}

table! {
    /// An interval, without its statistics.
    FrameRow in "frames" by |a, b| a.frame.cmp(&b.frame);
    interval_ns: u64, Ns, sum, "Length of the interval.";
    monotonic_ns: u64, Ns, last, "End of the interval by CLOCK_MONOTONIC.";
    server: u32, Id, "The run of the server: a row of `servers`.";
    level: Arc<str>, Text, last, "Level at the end of the interval: `off`, `waits`, `locks`.";
    level_left_ns: Option<u64>, Ns, last, "Remaining time of the level, if it ends by itself.";
    level_then: Option<Arc<str>>, Text, last, "The level after that.";
    ticks_per_second: f64, Count, last, "Ticks of the segment's clock per second; histogram buckets are in ticks.";
    cores: u32, Count, last, "CPUs of the machine.";
    wall_ns: u64, Ns, sum, "Total lifetime of all sessions in the interval.";
    busy_ns: u64, Ns, sum, "Part of `wall_ns` that was not idle.";
    uninstrumented_ns: u64, Ns, sum, "Part of `wall_ns` at level off.";
    locks_ns: u64, Ns, sum, "Part of the interval at level `locks`.";
    exact: bool, Flag, all, "Whether the figures are complete, and measured.";
    source: Arc<str>, Text, last, "`exact`, or `sampled`: the figures of the interval's rows are estimates; empty: exact.";
    partial: bool, Flag, any, "Whether part of the interval was not instrumented on purpose (`tally record --duty`).";
    detail: bool, Flag, any, "Whether the interval has details: histograms, statements and the like since the previous detail.";
    commands: u64, Count, sum, "Client commands handled.";
    sessions_active: u32, Count, last, "Active sessions.";
    sessions_idle: u32, Count, last, "Idle sessions.";
    sessions_idle_in_transaction: u32, Count, last, "Sessions that are idle in transaction.";
    sessions_background: u32, Count, last, "Background processes.";
    sessions_dead: u32, Count, last, "Sessions whose process has ended without detaching.";
    ended_sessions: u64, Count, sum, "Sessions that ended in the interval.";
    ended_ns: u64, Ns, sum, "Lifetime of these sessions in the interval.";
    torn_sessions: u64, Count, max, "Sessions read during an update.";
    nameless: u64, Count, max, "Statistics whose name is unknown.";
    functions_probed: u64, Count, last, "Functions with a probe.";
    overflow_slots: u64, Count, sum, "Overflow in the interval: sessions without a slot.";
    overflow_statistics: u64, Count, sum, "Overflow: statistics for which a session had no entry left.";
    overflow_directory: u64, Count, sum, "Overflow: names for which the directory had no space.";
    overflow_groups: u64, Count, sum, "Overflow: sessions merged into the overflow group.";
    overflow_memory: u64, Count, sum, "Overflow: requests for memory of the segment that the file system refused.";
    #[serde(alias = "overflow_lost_folds")]
    overflow_lost_merges: u64, Count, sum, "Damaged slots, which were not merged.";
    overflow_statements_dropped: u64, Count, sum, "Overflow: statement counts that were dropped.";
    overflow_statements_lost: u64, Count, sum, "Statements that a killed process left half updated.";
    overflow_texts_cut: u64, Count, sum, "Truncated texts.";
    overflow_relations_lost: u64, Count, sum, "Relations that a killed process left half updated.";
    statements_kept: u64, Count, max, "With details: statements in the table; 0: not recorded.";
    statements_capacity: u64, Count, max, "With details: statements that fit into it.";
    statements_evicted: u64, Count, sum, "With details: statements evicted from it since the previous details.";
    host_user_ns: u64, Ns, sum, "CPU time of the machine in user mode, including nice.";
    host_system_ns: u64, Ns, sum, "CPU time of the machine in the kernel, including interrupts.";
    host_idle_ns: u64, Ns, sum, "Idle time of the machine's CPUs.";
    host_iowait_ns: u64, Ns, sum, "Idle time of the machine's CPUs while a process waited for a device.";
    host_steal_ns: u64, Ns, sum, "Time that the hypervisor gave to other machines.";
    host_runnable: u64, Count, last, "Running and runnable processes of the machine at the end of the interval.";
}

/// The number of the time step, counted from 1970, that contains the middle of an interval, so that an interval that
/// ends a little late still belongs to its step.
pub fn step_of(time_us: i64, interval_ns: u64, length_us: i64) -> i64 {
    let half_us = i64::try_from(interval_ns / 2_000).unwrap_or(0);
    time_us.saturating_sub(half_us).div_euclid(length_us.max(1))
}

impl FrameRow {
    /// The time step of this length that the interval belongs to.
    pub(crate) fn step(&self, length_us: i64) -> i64 {
        step_of(self.time_us, self.interval_ns, length_us)
    }
}

macro_rules! overflows {
    ($($column:ident $overflow:ident;)*) => {
        impl FrameRow {
            /// Set the overflows of the interval.
            pub(crate) fn set_overflows(&mut self, overflows: &Overflows) {
                $(self.$column = overflows.$overflow;)*
            }

            /// The overflows of several rows; `sum` adds up a column.
            pub(crate) fn overflows(sum: impl Fn(fn(&FrameRow) -> u64) -> u64) -> Overflows {
                Overflows { $($overflow: sum(|row| row.$column),)* }
            }
        }
    };
}

overflows! {
    overflow_slots slots;
    overflow_statistics statistics;
    overflow_directory directory;
    overflow_groups groups;
    overflow_memory memory;
    overflow_lost_merges lost_merges;
    overflow_statements_dropped statements_dropped;
    overflow_statements_lost statements_lost;
    overflow_texts_cut texts_cut;
    overflow_relations_lost relations_lost;
}

table! {
    /// Number of sessions of a kind in a state at the end of an interval.
    SessionsRow in "sessions" by |a, b| {
        (&a.process, &a.state, a.frame).cmp(&(&b.process, &b.state, b.frame))
    };
    process: Arc<str>, Text, "`client backend`, ...";
    state: Arc<str>, Text, "`active`, `idle`, `idle in transaction`, `background`, `dead`.";
    sessions: u32, Count, "Number of sessions.";
}

table! {
    /// The kernel's figures about the sessions in a detail interval, to compare with the ledger.
    KernelRow in "kernel" by by_time;
    interval_ns: u64, Ns, sum, "Time since the previous row.";
    sessions: u64, Count, last, "Sessions compared.";
    cpu_account_ns: u64, Ns, sum, "Time that the ledger charged to `cpu`.";
    on_cpu_ns: u64, Ns, sum, "Time on a CPU.";
    run_queue_ns: u64, Ns, sum, "Time waiting in a run queue.";
    unexplained_ns: u64, Ns, sum, "Time of the `cpu` account beyond these two: the process was blocked outside any probe.";
}

/// What identifies the text of a statement: queryid, database, user, toplevel.
pub type TextKey = (i64, u32, u32, bool);

/// What identifies a statement: the same, and its application.
pub(crate) type RecordedStatementKey = (i64, u32, u32, bool, Application);

macro_rules! statement_key {
    ($name:ident: $($row:ident)*) => {$(
        impl $row {
            /// Its statement.
            pub(crate) fn $name(&self) -> RecordedStatementKey {
                let application = Application::from_name(&self.application);
                (self.queryid, self.database_id, self.user_id, self.toplevel, application)
            }
        }
    )*};
}

pub(crate) use statement_key;

statement_key! { key: RecordedStatementRow StatementAccountRow }

/// The key of its text.
pub(crate) fn text_key(
    (queryid, database_id, user_id, toplevel, _): RecordedStatementKey,
) -> TextKey {
    (queryid, database_id, user_id, toplevel)
}

impl TextRow {
    pub(crate) fn key(&self) -> TextKey {
        (self.queryid, self.database_id, self.user_id, self.toplevel)
    }
}

table! {
    /// An account of a statement in a detail interval.
    StatementAccountRow in "statement_accounts" by |a, b| {
        (a.key(), &a.account, a.frame).cmp(&(b.key(), &b.account, b.frame))
    };
    queryid: i64, Id, "As in `statements`.";
    database_id: u32, Id, "As in `statements`.";
    user_id: u32, Id, "As in `statements`.";
    toplevel: bool, Flag, "As in `statements`.";
    application: Arc<str>, Text, "As in `statements`.";
    account: Arc<str>, Text, "The account, such as `execute::wait::IO:DataFileRead`.";
    count: u64, Count, sum, "Number of events.";
    total_ns: i64, Ns, sum, "Total time; negative if time of a message in progress was later moved to another statement.";
}

table! {
    /// The text of a statement, once a day.
    TextRow in "statement_texts" by |a, b| a.key().cmp(&b.key()).then_with(|| by_time(a, b));
    queryid: i64, Id, "As in `statements`.";
    database_id: u32, Id, "As in `statements`.";
    user_id: u32, Id, "As in `statements`.";
    toplevel: bool, Flag, "As in `statements`.";
    text: Arc<str>, Text, "The text, with constants replaced.";
    kept_bytes: u32, Bytes, "Size of the text.";
    whole_bytes: u32, Bytes, "Size of the text before truncation.";
    fingerprint: Arc<str>, Text, "Fingerprint, which is the same for the same statement on all servers; empty: recorded by a version without it.";
}

table! {
    /// I/O on the files of a relation's fork in a detail interval.
    RelationRow in "relations" by |a, b| (a.key(), a.frame).cmp(&(b.key(), b.frame));
    interval_ns: u64, Ns, sum, "Time since the previous detail.";
    tablespace: u32, Id, "OID of the tablespace; 0, like the numbers below, for all other relations together.";
    database_id: u32, Id, "OID of the database; 0: shared.";
    relfilenode: u32, Id, "The file node number.";
    fork: Arc<str>, Text, "`main`, `fsm`, `vm`, `init`; empty for all other relations together.";
    backend: u32, Id, "1 + the backend number of a temporary relation; 0 otherwise.";
    database: Arc<str>, Text, known, "Name of the database, or empty.";
    name: Arc<str>, Text, known, "Name of the relation, as the server told the recorder, or empty.";
    failed: u64, Count, sum, "Failed operations.";
    reads: u64, Count, sum, "Reads.";
    read_bytes: u64, Bytes, sum, "Bytes read.";
    read_ns: u64, Ns, sum, "Total read time.";
    read_max_ns: Option<u64>, Ns, max, "The longest read, if it exceeded all earlier ones.";
    writes: u64, Count, sum, "Writes of existing blocks.";
    written_bytes: u64, Bytes, sum, "Bytes written.";
    write_ns: u64, Ns, sum, "Total write time.";
    write_max_ns: Option<u64>, Ns, max, "The longest write.";
    extends: u64, Count, sum, "Extensions.";
    extend_bytes: u64, Bytes, sum, "Bytes by which the files were extended.";
    extend_ns: u64, Ns, sum, "Total time of extensions.";
    extend_max_ns: Option<u64>, Ns, max, "The longest extension.";
    syncs: u64, Count, sum, "Syncs.";
    sync_ns: u64, Ns, sum, "Total time of syncs.";
    sync_max_ns: Option<u64>, Ns, max, "The longest sync.";
    truncates: u64, Count, sum, "Truncations.";
    truncate_ns: u64, Ns, sum, "Total time of truncations.";
    truncate_max_ns: Option<u64>, Ns, max, "The longest truncation.";
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
    server: u32, Id, "The run of the server: a row of `servers`.";
    number: u64, Id, "Number of the event in the segment, starting at 1.";
    pid: i64, Id, "PID of the process.";
    process: Option<Arc<str>>, Text, "Kind of the process, if known.";
    database: Option<Arc<str>>, Text, "Database of the process, if any.";
    user: Option<Arc<str>>, Text, "User of the process, if any.";
    kind: Arc<str>, Text, "`note`, `warning`, `blocked`, `slow`, `checkpoint`, ...";
    text: Arc<str>, Text, "Description.";
    lost: u64, Count, "Number of events overwritten before this one.";
}

table! {
    /// A block device under the server in an interval.
    DeviceRow in "devices" by |a, b| (&a.device, a.frame).cmp(&(&b.device, b.frame));
    device: Arc<str>, Text, "The kernel's name for the device.";
    interval_ns: u64, Ns, sum, "Time since the previous row.";
    direct: bool, Flag, last, "Whether the server's files are directly on this device, rather than on a device built on it.";
    reads: u64, Count, sum, "Completed reads.";
    read_bytes: u64, Bytes, sum, "Bytes read.";
    read_ns: u64, Ns, sum, "Total time of reads.";
    writes: u64, Count, sum, "Completed writes.";
    written_bytes: u64, Bytes, sum, "Bytes written.";
    write_ns: u64, Ns, sum, "Total time of writes.";
    flushes: Option<u64>, Count, sum, "Flushes of the device's cache; null if the kernel does not count them.";
    flush_ns: Option<u64>, Ns, sum, "Total time of flushes.";
    busy_ns: u64, Ns, sum, "Time with at least one request in progress.";
    queue_ns: u64, Ns, sum, "Total time of all requests, including waiting.";
    in_flight: u64, Count, last, "Requests in progress at the end of the interval.";
}

table! {
    /// Reads and writes of the server's processes in a detail interval, from /proc/PID/io.
    ServerIoRow in "server_io" by by_time;
    interval_ns: u64, Ns, sum, "Time since the previous row.";
    processes: u64, Count, last, "Processes at the end of the interval.";
    refused: u64, Count, max, "Processes that could not be read, and are missing from the sums.";
    reads: u64, Count, sum, "Read calls.";
    read_bytes: u64, Bytes, sum, "Bytes returned by read calls.";
    writes: u64, Count, sum, "Write calls.";
    written_bytes: u64, Bytes, sum, "Bytes passed to write calls.";
    device_read_bytes: u64, Bytes, sum, "Bytes read from devices.";
    device_written_bytes: u64, Bytes, sum, "Bytes written, or still to be written, to devices.";
}

table! {
    /// A setting of the server, the machine or the recorder, at the start and after each change.
    SettingRow in "settings" by |a, b| (&a.group, &a.name, a.time_us).cmp(&(&b.group, &b.name, b.time_us));
    group: Arc<str>, Text, "`server`, `machine`, `recorder`.";
    name: Arc<str>, Text, "Name of the setting.";
    value: Arc<str>, Text, "Value of the setting, as SHOW prints it.";
    unit: Arc<str>, Text, "Unit of the value, or empty.";
    source: Arc<str>, Text, "Source of the value: `sql`, `postgresql.conf`, `segment`, `kernel`, ...";
}

table! {
    /// A period without data.
    GapRow in "gaps" by by_time;
    from_us: i64, Time, "Start of the gap; `time` is its end.";
    length_ns: u64, Ns, "Length of the gap by CLOCK_MONOTONIC; 0: unknown.";
    reason: Arc<str>, Text, "The reason.";
}

table! {
    /// A change of the recording or of what it records.
    MarkRow in "marks" by by_time;
    kind: Arc<str>, Text, "`begin`, `end`, `server start`, `level`, `reset`, `clock step`, `suspend`, `segment replaced`, `duty`, ...";
    text: Arc<str>, Text, "Description.";
}

table! {
    /// Output and exit status of a recorded command.
    RunRow in "runs" by by_time;
    command: Arc<str>, Text, "The command.";
    what: Arc<str>, Text, "`begin`, `stdout`, `stderr` (one row per line), or `end`.";
    text: Arc<str>, Text, "The line of output.";
    exit_code: Option<i64>, Id, "The exit status.";
}

table! {
    /// A run of a server: from a start to a stop.
    ServerRow in "servers" by |a, b| a.server.cmp(&b.server);
    server: u32, Id, "Number of the run in this recording.";
    name: Arc<str>, Text, "Name and version, such as `PostgreSQL 15.20`.";
    data_directory: Arc<str>, Text, "The data directory.";
    segment: Arc<str>, Text, "The path of the segment.";
    pid: u32, Id, "The postmaster's PID; 0: unknown.";
    port: u32, Id, "The server's port; 0: unknown.";
    producer: Arc<str>, Text, "The program that wrote the segment.";
    created_us: i64, Time, "When the segment was created.";
    clock: Arc<str>, Text, "`tsc` or `monotonic`.";
    boot: Arc<str>, Text, "The machine's boot ID.";
}
