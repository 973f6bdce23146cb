// SPDX-License-Identifier: PostgreSQL
//! Constants, enumerations, and the offsets of members.
//!
//! Generated from format/layout.toml and format/counters.toml by `make generate`; do not edit.

/// The first bytes of a segment.
pub const MAGIC: &[u8; 8] = b"TALLYSEG";
/// raised by any change to the meaning, offset or size of a member
pub const FORMAT_VERSION: u32 = 3;
/// `byte_order` as the writing machine stores it
pub const BYTE_ORDER: u32 = 16909060;
/// as an index: none
pub const NONE: u32 = 4294967295;
/// bytes of a statistic's name, terminator included
pub const NAME_MAX: usize = 96;
/// bytes of the names of database, user and application (NAMEDATALEN), and of the client's address
pub const TEXT_MAX: usize = 64;
/// plain call counters of a book; the probe table names them
pub const CALLS: usize = 64;
/// entries of the probe table; entries from number `calls` on have no counter
pub const PROBES: usize = 256;
/// number of held locks that a book lists
pub const HOLDS: usize = 8;
/// number of recently released, contended locks that a book lists
pub const FREED: usize = 4;
/// Number of buckets of a histogram. Histograms are log-linear: each value below 8 has its own bucket, and every octave above has 8 buckets. The middle of a bucket is within 1/16 (6.25 %) of every value in it. The last octave begins at 2^43 ticks (55 minutes at 2.7 GHz, 2.4 hours at 1 GHz); longer times count in the last bucket.
pub const HIST_BUCKETS: usize = 336;
/// buckets of an octave: one cache line
pub const OCTAVE: usize = 8;
/// Number of statistics whose histograms are interleaved octave by octave: first the lowest octave of each, then the next octave of each. So a reader gets the octaves that it needs with one read for all of them, and histograms of similar values share pages. Memory is allocated for this many histograms at a time.
pub const CHUNK: usize = 8;
/// distance from one octave of a histogram to its next, in buckets
pub const ROW: usize = 64;
/// buckets of a chunk
pub const CHUNK_BUCKETS: usize = 2688;
/// Bit in `pend` of a book, if that is not TALLY_NONE: a signal has interrupted the wait, which may continue. Until then its time counts, but not as an event that has ended.
pub const PEND_OPEN: u32 = 2147483648;
/// in `flags` of the header: all processes of the server write here, not only its sessions
pub const SEGMENT_SERVER: u32 = 1;
/// in `flags` of the header: the segment belongs to one process and is useless when that has ended, so others may remove it
pub const SEGMENT_TRANSIENT: u32 = 2;
/// in `pause` of the header: statements are not counted
pub const PAUSE_STATEMENTS: u32 = 1;
/// in `pause` of the header: statements are not saved for the server's next start
pub const PAUSE_SAVING: u32 = 2;
/// number of tablespaces that a checkpoint event lists
pub const CHECKPOINT_SPACES: usize = 25;
/// in place of a tablespace OID: SLRUs
pub const SPACE_SLRU: u32 = 0;
/// the OID of pg_default
pub const SPACE_DEFAULT: u32 = 1663;
/// the OID of pg_global
pub const SPACE_GLOBAL: u32 = 1664;
/// in place of a tablespace OID: all tablespaces that are not listed
pub const SPACE_OTHERS: u32 = 4294967295;
/// number of processes that a slot lists as blockers of its owner
pub const BLOCKERS: usize = 5;
/// statements in a set
pub const WAYS: usize = 20;
/// flushes that a set remembers
pub const SET_LOG: usize = 32;
/// number of accounts that a statement's time is split into
pub const PARTS: usize = 24;
/// number of these accounts in the shared entry itself
pub const NEAR_PARTS: usize = 2;
/// number of histogram buckets in the shared entry
pub const NEAR_BUCKETS: usize = 14;
/// number of local entries in a slot's cache
pub const LOCAL_STATEMENTS: usize = 64;
/// maximum number of applications for which statements are counted separately
pub const APPLICATIONS: usize = 256;
/// bytes of text in a text block
pub const TEXT_BLOCK: usize = 252;
/// bytes of a statement's counts that are in the shared entry itself: one cache line
pub const NEAR_COUNTS: u32 = 64;
/// in `more` of a local entry: counts between the first cache line and `first_us` are in use
pub const MORE_COMMON: u32 = 1;
/// in `more` of a local entry: counts after `first_us` are in use
pub const MORE_RARE: u32 = 2;
/// offset of the text in a slot's cache, after the local entries
pub const MESSAGE_TEXT_OFFSET: usize = 164544;
/// bytes of a slot's cache
pub const CACHE_SIZE: usize = 165568;
/// files in a set
pub const FILE_WAYS: usize = 8;
/// number of local entries of relations in a slot
pub const LOCAL_RELATIONS: usize = 64;
/// plans in a set
pub const PLAN_WAYS: u32 = 8;
/// bytes of a plan entry: one page, so that an entry gets its memory when it is first used
pub const PLAN_SIZE: u32 = 4096;
/// number of records in a ring; a power of two
pub const TRACE_RECORDS: u64 = 16384;
/// maximum number of rings in a segment
pub const TRACES_MAX: u32 = 64;
/// in `flags` of a ring: only for parallel workers of `pid`
pub const TRACE_WORKERS: u32 = 1;
/// in `flags` of a ring: record plan nodes
pub const TRACE_NODES: u32 = 2;
/// in `flags` of a ring: record parameters of executions, if the server's settings allow it
pub const TRACE_PARAMETERS: u32 = 4;
/// in `flags` of a ring: record slow executions of all sessions, with their parameters, if the server's settings allow it
pub const TRACE_SLOW: u32 = 8;

/// Values of a clock kind.
pub mod clock_kind {
    /// clock_gettime(CLOCK_MONOTONIC): a tick is 1 ns
    pub const MONOTONIC: u32 = 1;
    /// x86-64: rdtsc, if the counter is invariant and the kernel's clock source
    pub const TSC: u32 = 2;
    /// aarch64: cntvct_el0, if it is the kernel's clock source
    pub const CNTVCT: u32 = 3;
    /// for tests, which advance `virtual_tick`; a tick is 1 ns
    pub const VIRTUAL: u32 = 255;
}

/// Values of a level.
pub mod level {
    /// off
    pub const OFF: u32 = 0;
    /// waits
    pub const WAITS: u32 = 1;
    /// locks
    pub const LOCKS: u32 = 2;
}

/// Values of a probe state.
pub mod probe_state {
    /// empty
    pub const EMPTY: u32 = 0;
    /// installed
    pub const INSTALLED: u32 = 1;
    /// left out
    pub const LEFT_OUT: u32 = 2;
}

/// Values of a stat kind.
pub mod stat_kind {
    /// an account of the ledger: `phase::activity`
    pub const ACCOUNT: u32 = 1;
    /// a duration in ticks
    pub const TIMER: u32 = 2;
    /// a plain number
    pub const VALUE: u32 = 3;
    /// not a statistic: maps a number to a name, such as `tranche::4::ProcArray`
    pub const NAME: u32 = 4;
}

/// Values of a name state.
pub mod name_state {
    /// free
    pub const FREE: u32 = 0;
    /// being written
    pub const RESERVED: u32 = 1;
    /// published
    pub const PUBLISHED: u32 = 2;
}

/// What an account's time was spent on. The numbers are fixed, because readers and old segments use them.
pub mod account_class {
    /// not an account, or created by a writer without classes
    pub const UNKNOWN: u8 = 0;
    /// cpu
    pub const CPU: u8 = 1;
    /// file I/O, whether or not it is a wait event
    pub const IO: u8 = 2;
    /// heavyweight locks
    pub const LOCK: u8 = 3;
    /// lwlock
    pub const LWLOCK: u8 = 4;
    /// client
    pub const CLIENT: u8 = 5;
    /// ipc
    pub const IPC: u8 = 6;
    /// timeout
    pub const TIMEOUT: u8 = 7;
    /// a background process that is idle in its main loop
    pub const ACTIVITY: u8 = 8;
    /// buffer pin
    pub const BUFFER_PIN: u8 = 9;
    /// extension
    pub const EXTENSION: u8 = 10;
    /// other
    pub const OTHER: u8 = 11;
}

/// Values of a event kind.
pub mod event_kind {
    /// a text
    pub const NOTE: u32 = 1;
    /// a text: something was not measured, or figures were lost
    pub const WARNING: u32 = 2;
    /// a text: one process kept another waiting for a long time
    pub const BLOCKED: u32 = 3;
    /// a text: something took long; from writers older than kind 6
    pub const SLOW: u32 = 4;
    /// a text: a checkpoint has started or ended; from writers older than kinds 7 to 11
    pub const CHECKPOINT: u32 = 5;
    /// something took long; this kind and those below have payloads
    pub const SLOW_OPERATION: u32 = 6;
    /// a checkpoint has started
    pub const CHECKPOINT_STARTED: u32 = 7;
    /// a checkpoint has completed; the next two kinds follow
    pub const CHECKPOINT_COMPLETED: u32 = 8;
    /// what the checkpoint wrote
    pub const CHECKPOINT_WRITES: u32 = 9;
    /// client activity before and during the checkpoint
    pub const CHECKPOINT_CLIENTS: u32 = 10;
    /// the server has abandoned the checkpoint
    pub const CHECKPOINT_FAILED: u32 = 11;
}

/// Values of a checkpoint reason.
pub mod checkpoint_reason {
    /// time
    pub const TIME: u32 = 1;
    /// wal
    pub const WAL: u32 = 2;
    /// request
    pub const REQUEST: u32 = 3;
    /// shutdown
    pub const SHUTDOWN: u32 = 4;
}

/// Values of a slot state.
pub mod slot_state {
    /// free
    pub const FREE: u32 = 0;
    /// its owner is writing its identity
    pub const CLAIMING: u32 = 1;
    /// live
    pub const LIVE: u32 = 2;
    /// its owner has left; not yet merged
    pub const RETIRED: u32 = 3;
    /// being merged by the holder of the merge lock
    pub const MERGING: u32 = 4;
    /// a group of retired slots
    pub const GROUP: u32 = 5;
}

/// Failed executions by SQLSTATE class. The last value is the number of classes.
pub mod failure {
    /// 08
    pub const FAILED_CONNECTION: u32 = 0;
    /// 22
    pub const FAILED_DATA: u32 = 1;
    /// 23
    pub const FAILED_INTEGRITY: u32 = 2;
    /// 25: invalid transaction state
    pub const FAILED_TRANSACTION: u32 = 3;
    /// 40: serialization failures, deadlocks
    pub const FAILED_ROLLBACK: u32 = 4;
    /// 42: syntax errors, access rule violations
    pub const FAILED_SYNTAX: u32 = 5;
    /// 53, 54: insufficient resources, program limits exceeded
    pub const FAILED_RESOURCES: u32 = 6;
    /// 55: object not in prerequisite state, such as a lock not available
    pub const FAILED_OBJECT: u32 = 7;
    /// 57, 58: operator intervention, system errors
    pub const FAILED_SYSTEM: u32 = 8;
    /// failed other
    pub const FAILED_OTHER: u32 = 9;
    /// failed
    pub const FAILED: u32 = 10;
}

/// The last value is the number of operations.
pub mod relation_operation {
    /// read
    pub const READ: u32 = 0;
    /// write
    pub const WRITE: u32 = 1;
    /// extend
    pub const EXTEND: u32 = 2;
    /// sync
    pub const SYNC: u32 = 3;
    /// truncate
    pub const TRUNCATE: u32 = 4;
    /// operations
    pub const OPERATIONS: u32 = 5;
}

/// Values of a relation state.
pub mod relation_state {
    /// never used
    pub const FREE: u32 = 0;
    /// creating
    pub const CREATING: u32 = 1;
    /// used
    pub const USED: u32 = 2;
    /// reusable once it has no pins
    pub const UNLINKED: u32 = 3;
}

/// Values of a local state.
pub mod local_state {
    /// free
    pub const FREE: u32 = 0;
    /// used
    pub const USED: u32 = 1;
    /// flushing
    pub const FLUSHING: u32 = 2;
}

/// Values of a plan state.
pub mod plan_state {
    /// free
    pub const FREE: u32 = 0;
    /// being written by the process that found it free, or evicted its least recently used plan
    pub const WRITING: u32 = 1;
    /// used
    pub const USED: u32 = 2;
}

/// Values of a trace state.
pub mod trace_state {
    /// free
    pub const FREE: u32 = 0;
    /// waiting for a process that matches the request
    pub const ARMED: u32 = 1;
    /// running
    pub const RUNNING: u32 = 2;
    /// the process has stopped recording
    pub const ENDED: u32 = 3;
}

/// Values of a trace kind.
pub mod trace_kind {
    /// `stat` runs from `tick` on
    pub const BEGIN: u8 = 1;
    /// `op`: [`crate::layout::trace_reason`]
    pub const END: u8 = 2;
    /// a wait from `tick` on, for `ticks`, in `stat`; then `next` runs. For an operation on a file: `op`: 1 + its number, as the producer numbers operations; `failed`: errno; `word` 4, 5: bytes moved; for a relation: `more`: 1 + fork, `word` 0 to 2: tablespace, database and relfilenode, `word` 3: block or TALLY_NONE; otherwise `more`: 0, `word` 0: 1 + directory number of the kind of file, `trace::<kind>`
    pub const WAIT: u8 = 3;
    /// a message that arrived at `tick`; `op`: its kind, as the producer numbers kinds; `stat` runs; `more`: [`crate::layout::trace_transaction`]; `word` 0, 1: its ordinal in the session, not counting COPY data, 0: not known
    pub const MESSAGE: u8 = 4;
    /// `stat` runs from `tick` on, without a wait or message
    pub const SWITCH: u8 = 5;
    /// a statement was analyzed; `word` 0, 1: its id; `more`: number of steps that enclose it
    pub const STATEMENT: u8 = 6;
    /// `op`: [`crate::layout::trace_step`]; the rest as in kind 6
    pub const STEP_BEGIN: u8 = 7;
    /// as kind 7; `word` 2, 3: rows; `failed`: 1: ended by an error
    pub const STEP_END: u8 = 8;
    /// the lock of the wait in progress: `op`, `more`, `word` 0 to 2, `node`: type, method, fields 1 to 3 and 4 of LOCKTAG; `word` 3: mode; `failed`: number of blockers; `stat`, `next`, `word` 4, 5: PIDs of the first blockers
    pub const LOCK: u8 = 9;
    /// a commit from `tick` on, for `ticks`; `op`: [`crate::layout::trace_commit`]
    pub const COMMIT: u8 = 10;
    /// a node of a plan that starts: `stat`: 1 + its parent node; `op`: number of the part of its name in `word`, which has `more` bytes; `failed`: 1 + the producer's number for the encoding of the name, 0: not known
    pub const NODE: u8 = 11;
    /// `word` 0, 1: rows; 2, 3: calls
    pub const NODE_END: u8 = 12;
    /// all totals were reset to zero
    pub const RESET: u8 = 13;
    /// the traceparent that the client attached to the statement analyzed just before, or to the one that starts next: `op`: its flags; `word` 0 to 3: trace id, 4, 5: span id, each in byte order
    pub const CONTEXT: u8 = 14;
    /// a client's call from `tick` on, for `ticks`; `op`: 1 execution, 2 fetch; `failed`: 1: ended by an error; `stat`: a statistic, `call::execute::<id>`; `next`: PID of the server process; `word` 0, 1: ordinal of its first message, as in kind 4; 2: number of messages sent, not counting COPY data; 3: rows; 4, 5: ticks of garbage collection during the call. The records of its waits come before it
    pub const CALL: u8 = 15;
    /// a wait of the call that this connection records next: from `tick` on, for `ticks`; `next`, `word` 0, 1: as in kind 15
    pub const CALL_WAIT: u8 = 16;
    /// a parameter of the execution that starts: `node`: its number, from 1; `stat`: number of parameters of that execution; `op`: [`crate::layout::trace_parameter`]; the text of its value, in several records if it does not fit into `word`, of which `more` bytes count; `next`: bytes of the whole text or, if it was not converted, of the value; `failed`: 1 + the producer's number for the encoding of the text
    pub const PARAMETER: u8 = 17;
    /// an execution that ended at `tick`, after `ticks`: `word` 0, 1: id of its statement; 2, 3: OIDs of its database and user; 4: as `application` of its key; 5: number of parameters; `next`: PID; `stat`: number of the records of kind 17 that follow, which have its parameters
    pub const EXECUTION: u8 = 18;
}

/// Values of a trace transaction.
pub mod trace_transaction {
    /// not known
    pub const NOT_KNOWN: u8 = 0;
    /// earlier messages left no transaction open
    pub const NONE: u8 = 1;
    /// open
    pub const OPEN: u8 = 2;
}

/// Values of a trace reason.
pub mod trace_reason {
    /// withdrawn
    pub const WITHDRAWN: u8 = 1;
    /// exited
    pub const EXITED: u8 = 2;
    /// level off
    pub const LEVEL_OFF: u8 = 3;
    /// not renewed
    pub const NOT_RENEWED: u8 = 4;
}

/// Values of a trace step.
pub mod trace_step {
    /// plan
    pub const PLAN: u8 = 1;
    /// start
    pub const START: u8 = 2;
    /// run
    pub const RUN: u8 = 3;
    /// finish
    pub const FINISH: u8 = 4;
    /// end
    pub const END: u8 = 5;
    /// utility
    pub const UTILITY: u8 = 6;
}

/// Values of a trace parameter.
pub mod trace_parameter {
    /// its text, or the beginning
    pub const VALUE: u8 = 1;
    /// further bytes of the same text
    pub const REST: u8 = 2;
    /// null
    pub const NULL: u8 = 3;
    /// of a type whose text only code of others could make
    pub const FOREIGN: u8 = 4;
    /// not converted
    pub const LARGE: u8 = 5;
}

/// Values of a trace commit.
pub mod trace_commit {
    /// leader
    pub const LEADER: u8 = 1;
    /// group committed
    pub const GROUP_COMMITTED: u8 = 2;
    /// asynchronous
    pub const ASYNCHRONOUS: u8 = 3;
}

/// Offsets in a `tally_region`.
pub mod region {
    /// Bytes.
    pub const SIZE: usize = 16;
    /// u64
    pub const OFFSET: usize = 0;
    /// u32: entries
    pub const COUNT: usize = 8;
    /// u32: bytes per entry
    pub const STRIDE: usize = 12;
}

/// Offsets in a `tally_header`.
pub mod header {
    /// Bytes.
    pub const SIZE: usize = 4096;
    /// bytes, 8: `TALLYSEG`
    pub const MAGIC: usize = 0;
    /// u32: 16,909,060
    pub const BYTE_ORDER: usize = 8;
    /// u32: 3
    pub const VERSION: usize = 12;
    /// u32: 4,096, or more if a later version wrote it
    pub const HEADER_SIZE: usize = 16;
    /// u32: 336
    pub const HIST_BUCKETS: usize = 20;
    /// u64: size of the file in bytes
    pub const SEGMENT_SIZE: usize = 24;
    /// u32: [`crate::layout::clock_kind`]
    pub const CLOCK_KIND: usize = 32;
    /// u32: bit 0: all processes of a server write here, not only its sessions; bit 1: others may remove the file once the process `server_pid` has ended
    pub const FLAGS: usize = 36;
    /// u64: an instant, in ticks ...
    pub const CLOCK_TICK0: usize = 40;
    /// u64: ... and in ns by `CLOCK_MONOTONIC`
    pub const CLOCK_NS0: usize = 48;
    /// u64: the same instant, in ns since 1970
    pub const CREATED_REALTIME_NS: usize = 56;
    /// u64: inode of the writers' `/proc/self/ns/pid`, 0: unknown
    pub const PID_NAMESPACE: usize = 64;
    /// u32: number of slots, one per writer
    pub const SLOTS: usize = 72;
    /// u32: number of groups for retired slots; they follow the slots
    pub const GROUPS: usize = 76;
    /// u32: statistics per book, 16 .. 4,096
    pub const STATS_PER_BOOK: usize = 80;
    /// text, 40: `/proc/sys/kernel/random/boot_id`
    pub const BOOT_ID: usize = 88;
    /// Bytes of [`BOOT_ID`].
    pub const BOOT_ID_BYTES: usize = 40;
    /// [`crate::layout::region`]
    pub const PROBES: usize = 128;
    /// [`crate::layout::region`]
    pub const DIRECTORY: usize = 144;
    /// [`crate::layout::region`]
    pub const EVENTS: usize = 160;
    /// [`crate::layout::region`]: generation << 32, slot
    pub const MERGE_LOG: usize = 176;
    /// [`crate::layout::region`]
    pub const JOURNAL: usize = 192;
    /// [`crate::layout::region`]
    pub const ENTRIES: usize = 208;
    /// [`crate::layout::region`]
    pub const BOOKS: usize = 224;
    /// text, 256: the data directory of the measured server, or the name of the measured process
    pub const HOST: usize = 240;
    /// Bytes of [`HOST`].
    pub const HOST_BYTES: usize = 256;
    /// text, 64: the program that created the segment, and its version
    pub const PRODUCER: usize = 496;
    /// Bytes of [`PRODUCER`].
    pub const PRODUCER_BYTES: usize = 64;
    /// text, 64: `PostgreSQL 15.20`, or empty
    pub const SERVER: usize = 560;
    /// Bytes of [`SERVER`].
    pub const SERVER_BYTES: usize = 64;
    /// u32: PID of the postmaster of the current run, 0: unknown
    pub const SERVER_PID: usize = 624;
    /// u32
    pub const SERVER_PORT: usize = 628;
    /// text, 112: directory of the server's Unix-domain socket, or empty
    pub const SOCKET_DIR: usize = 632;
    /// Bytes of [`SOCKET_DIR`].
    pub const SOCKET_DIR_BYTES: usize = 112;
    /// [`crate::layout::region`]: sets of statements; count 0: the segment keeps no statements
    pub const SETS: usize = 744;
    /// [`crate::layout::region`]
    pub const STATEMENTS: usize = 760;
    /// [`crate::layout::region`]
    pub const TEXTS: usize = 776;
    /// [`crate::layout::region`]
    pub const CACHES: usize = 792;
    /// u64: system identifier of the cluster that the figures belong to, 0: none
    pub const SYSTEM_ID: usize = 808;
    /// u64: start of the process `server_pid`, in clock ticks since boot as in its `/proc/PID/stat`, because PIDs are reused; 0: unknown
    pub const PROCESS_STARTED: usize = 816;
    /// [`crate::layout::region`]: files with unsynced writes; count 0: not tracked
    pub const UNSYNCED: usize = 904;
    /// [`crate::layout::region`]: count 0: the segment keeps no relations
    pub const RELATIONS: usize = 920;
    /// [`crate::layout::region`]
    pub const LOCAL_RELATIONS: usize = 936;
    /// [`crate::layout::region`]: plans of statements; empty in segments of earlier writers
    pub const PLANS: usize = 952;
    /// [`crate::layout::region`]: a u64 for each plan; 1: the plan has memory
    pub const PLAN_MEMORY: usize = 968;
    /// [`crate::layout::region`]: rings for traced processes; empty in segments of earlier writers
    pub const TRACES: usize = 984;
    /// u32: low 4 bits: [`crate::layout::level`]; next 4 bits: traces; next 8 bits: change with `extremes_resets`; upper 16 bits: number of resets, modulo 2^16
    pub const LEVEL_WORD: usize = 1024;
    /// u64: tick of the last reset; initially `clock_tick0`
    pub const RESET_TICK: usize = 1032;
    /// u64: tick at which the level ends by itself, 0: never
    pub const LEVEL_UNTIL: usize = 1040;
    /// u32: the level after `level_until`
    pub const LEVEL_THEN: usize = 1048;
    /// u64: ticks spent at level locks or above since the last reset, up to the last change of the level
    pub const LOCKS_TICKS: usize = 1056;
    /// u64: tick since which the level has been locks or above, 0: it is lower
    pub const LOCKS_SINCE: usize = 1064;
    /// u32: bit 0: writers do not count statements for now; bit 1: statements are not saved for the server's next start
    pub const PAUSE: usize = 1072;
    /// u32: 1 + the level that the server's configuration last set; 0: none
    pub const CONFIGURED_LEVEL: usize = 1076;
    /// u64: bit n: trace ring n has memory and may be armed
    pub const TRACES_ARMED: usize = 1080;
    /// u32: 1 + number of resets of only the minima and maxima of statements
    pub const EXTREMES_RESETS: usize = 1088;
    /// u64: processes refused because all slots were taken
    pub const OVERFLOW_SLOTS: usize = 1152;
    /// u64: statistics for which a book had no space
    pub const OVERFLOW_STATS: usize = 1160;
    /// u64: names for which the directory had no space
    pub const OVERFLOW_DIRECTORY: usize = 1168;
    /// u64: merges into the overflow group
    pub const OVERFLOW_GROUPS: usize = 1176;
    /// u64: requests for more memory that the file system refused
    pub const OVERFLOW_MEMORY: usize = 1184;
    /// u64: events begun since the segment was created
    pub const EVENT_COUNT: usize = 1192;
    /// u64: damaged slots, which were not merged
    pub const LOST_MERGES: usize = 1200;
    /// u64: statements evicted from the table to make space
    pub const STATEMENTS_EVICTED: usize = 1208;
    /// u64: statement counts that could not be flushed
    pub const STATEMENTS_DROPPED: usize = 1216;
    /// u64: shared entries that a process was changing when it died
    pub const STATEMENTS_LOST: usize = 1224;
    /// u64: texts truncated because no block was free
    pub const TEXTS_CUT: usize = 1232;
    /// u64: first free block: tag << 32, 1 + its number, 0: none
    pub const TEXTS_FREE: usize = 1240;
    /// u64: blocks used at least once
    pub const TEXTS_USED: usize = 1248;
    /// u64: start of the statements' counts, ns since 1970: the last reset of all statements, or the creation of the segment in which they began (a clean shutdown saves them for the next segment); 0 in segments of earlier writers
    pub const STATEMENTS_SINCE_NS: usize = 1256;
    /// u64: reference for usages of statements, times 2^16
    pub const USAGE_CLOCK: usize = 1264;
    /// u32: PID of the holder, 0: free
    pub const MERGE_LOCK: usize = 1280;
    /// u64: boot time at which the lock was taken; 0: free, or not yet written
    pub const MERGE_LOCK_BOOT_NS: usize = 1288;
    /// u64: completed merges
    pub const MERGE_COUNT: usize = 1296;
    /// u64: 1 while books of groups change
    pub const MERGE_ACTIVE: usize = 1304;
    /// u64: tracked files replaced by others although they had unsynced writes
    pub const OVERFLOW_FILES: usize = 1344;
    /// u64: operations on relations for which the table had no space
    pub const OVERFLOW_RELATIONS: usize = 1352;
    /// u64: local entries of relations that a process was flushing when it died
    pub const RELATIONS_LOST: usize = 1360;
    /// u64: processes refused a slot because the file system had no space
    pub const REFUSED_MEMORY: usize = 1368;
    /// u64: plans for which the table had no space
    pub const OVERFLOW_PLANS: usize = 1376;
    /// u64: number of times that the statements of a session could not be counted separately for its application
    pub const OVERFLOW_APPLICATIONS: usize = 1384;
    /// u32: names of applications in the directory
    pub const APPLICATIONS: usize = 1392;
    /// u32: changes when a slot becomes free after a refusal
    pub const FREE_SLOT_SIGNAL: usize = 1408;
    /// u32: 1: a process has been refused a slot since `free_slot_signal` last changed
    pub const REFUSED_CLAIMS: usize = 1412;
    /// u32: 1: the server has logged that slots are full
    pub const REFUSAL_LOGGED: usize = 1416;
    /// u32: 1: retired slots are waiting for the next holder of the merge lock
    pub const UNMERGED: usize = 1420;
    /// u64, 5: 0: a process that polls `free_slot_signal` reads these words as `level_until` and `pause`
    pub const NONE: usize = 1424;
    /// u64: boot time of the last search for dead owners while all slots were taken
    pub const SWEPT_BOOT_NS: usize = 1464;
    /// u64: tick at which the run in this file ended, written before the file loses its name; 0: the run continues, or was killed
    pub const ENDED_TICK: usize = 1472;
    /// u64: current tick if `clock_kind` is 255, otherwise 0
    pub const VIRTUAL_TICK: usize = 4032;
}

/// Offsets in a `tally_probe`.
pub mod probe {
    /// Bytes.
    pub const SIZE: usize = 192;
    /// u32: [`crate::layout::probe_state`]
    pub const STATE: usize = 0;
    /// text, 64: `import fsync`, `detour pq_getbyte`, `function XLogFlush`
    pub const NAME: usize = 8;
    /// Bytes of [`NAME`].
    pub const NAME_BYTES: usize = 64;
    /// text, 120: why the probe was not installed
    pub const REASON: usize = 72;
    /// Bytes of [`REASON`].
    pub const REASON_BYTES: usize = 120;
}

/// Offsets in a `tally_dir_entry`.
pub mod directory {
    /// Bytes.
    pub const SIZE: usize = 128;
    /// u32: [`crate::layout::name_state`]
    pub const STATE: usize = 0;
    /// u32: [`crate::layout::stat_kind`]
    pub const KIND: usize = 4;
    /// u64: FNV-1a, 64 bits, of the name
    pub const HASH: usize = 8;
    /// text, `NAME_MAX`: tags joined by `::`; an account is `phase::activity`
    pub const NAME: usize = 16;
    /// Bytes of [`NAME`].
    pub const NAME_BYTES: usize = 96;
    /// text, 15: `ticks`, `bytes`, ...
    pub const UNIT: usize = 112;
    /// Bytes of [`UNIT`].
    pub const UNIT_BYTES: usize = 15;
    /// u8: for an account: [`crate::layout::account_class`]; 0 if the writer had no classes: then derive the class from the name. Set once, when the name is entered, or by the first later writer that uses it
    pub const ACCOUNT_CLASS: usize = 127;
}

/// Offsets in a `tally_slow_operation`.
pub mod slow_operation {
    /// Bytes.
    pub const SIZE: usize = 232;
    /// u32
    pub const ZERO: usize = 0;
    /// u32: errno of the failure, or 0
    pub const ERROR: usize = 4;
    /// u64: duration of the operation
    pub const NS: usize = 8;
    /// u64: bytes moved; for a sync: by the writes before it
    pub const BYTES: usize = 16;
    /// u64: for a sync: number of writes by all processes since the last sync of the file
    pub const WRITES: usize = 24;
    /// text, 60: `sync`, or a wait event: `Lock:transactionid`
    pub const OPERATION: usize = 32;
    /// Bytes of [`OPERATION`].
    pub const OPERATION_BYTES: usize = 60;
    /// text, 140: path of the file; empty if the operation is not on a file
    pub const PATH: usize = 92;
    /// Bytes of [`PATH`].
    pub const PATH_BYTES: usize = 140;
}

/// Offsets in a `tally_client_activity`.
pub mod client_activity {
    /// Bytes.
    pub const SIZE: usize = 24;
    /// u64: length of the period; 0: the activity is not known
    pub const NS: usize = 0;
    /// u64: messages handled
    pub const COMMANDS: usize = 8;
    /// u64: time spent handling them
    pub const HANDLE_NS: usize = 16;
}

/// Offsets in a `tally_client_totals`.
pub mod client_totals {
    /// Bytes.
    pub const SIZE: usize = 40;
    /// u32: 0: the books could not be read at one instant
    pub const KNOWN: usize = 0;
    /// u32: from the level word
    pub const RESETS: usize = 4;
    /// u64: the instant
    pub const TICK: usize = 8;
    /// u64
    pub const COMMANDS: usize = 16;
    /// u64
    pub const TICKS: usize = 24;
    /// u64: updates of `off::uninstrumented`. The difference of two totals is an activity only if this and `resets` are equal in both
    pub const OFF_STRETCHES: usize = 32;
}

/// Offsets in a `tally_checkpoint_started`.
pub mod checkpoint_started {
    /// Bytes.
    pub const SIZE: usize = 72;
    /// u32
    pub const ZERO: usize = 0;
    /// u32: [`crate::layout::checkpoint_reason`]
    pub const REASON: usize = 4;
    /// [`crate::layout::client_activity`]: since the end of the previous checkpoint
    pub const BEFORE: usize = 8;
    /// [`crate::layout::client_totals`]: at the start of the checkpoint
    pub const CLIENTS: usize = 32;
}

/// Offsets in a `tally_checkpoint_completed`.
pub mod checkpoint_completed {
    /// Bytes.
    pub const SIZE: usize = 216;
    /// u32
    pub const ZERO: usize = 0;
    /// u32: [`crate::layout::checkpoint_reason`]
    pub const REASON: usize = 4;
    /// u64: total duration, which includes:
    pub const NS: usize = 8;
    /// u64
    pub const SLRU_NS: usize = 16;
    /// u64
    pub const WRITE_NS: usize = 24;
    /// u64
    pub const SYNC_NS: usize = 32;
    /// u64
    pub const LONGEST_SYNC_NS: usize = 40;
    /// u64: written
    pub const BUFFERS: usize = 48;
    /// u32
    pub const FILES_SYNCED: usize = 56;
    /// u32: WAL files added
    pub const WAL_ADDED: usize = 60;
    /// u32
    pub const WAL_REMOVED: usize = 64;
    /// u32
    pub const WAL_RECYCLED: usize = 68;
    /// text, 140
    pub const LONGEST_SYNC_FILE: usize = 72;
    /// Bytes of [`LONGEST_SYNC_FILE`].
    pub const LONGEST_SYNC_FILE_BYTES: usize = 140;
}

/// Offsets in a `tally_checkpoint_space`.
pub mod checkpoint_space {
    /// Bytes.
    pub const SIZE: usize = 8;
    /// u32: OID; 0: SLRUs; 4,294,967,295: all tablespaces that are not listed
    pub const TABLESPACE: usize = 0;
    /// u32
    pub const BUFFERS: usize = 4;
}

/// Offsets in a `tally_checkpoint_writes`.
pub mod checkpoint_writes {
    /// Bytes.
    pub const SIZE: usize = 224;
    /// u32
    pub const ZERO: usize = 0;
    /// u32: entries in use, at most 25
    pub const SPACES: usize = 4;
    /// u64: time since the start of the previous checkpoint; 0: unknown
    pub const INTERVAL_NS: usize = 8;
    /// u32: time spent writing, in millionths of checkpoint_timeout
    pub const SPREAD_PPM: usize = 16;
    /// u32: checkpoint_completion_target in millionths
    pub const TARGET_PPM: usize = 20;
    /// [`crate::layout::checkpoint_space`], `CHECKPOINT_SPACES`
    pub const SPACE: usize = 24;
}

/// Offsets in a `tally_checkpoint_clients`.
pub mod checkpoint_clients {
    /// Bytes.
    pub const SIZE: usize = 96;
    /// u64
    pub const ZERO: usize = 0;
    /// [`crate::layout::client_activity`]: since the end of the previous checkpoint
    pub const BEFORE: usize = 8;
    /// [`crate::layout::client_activity`]
    pub const DURING: usize = 32;
    /// [`crate::layout::client_totals`]: after the end of the checkpoint
    pub const CLIENTS: usize = 56;
}

/// Offsets in a `tally_checkpoint_failed`.
pub mod checkpoint_failed {
    /// Bytes.
    pub const SIZE: usize = 16;
    /// u32
    pub const ZERO: usize = 0;
    /// u32: [`crate::layout::checkpoint_reason`]
    pub const REASON: usize = 4;
    /// u64
    pub const NS: usize = 8;
}

/// Offsets in a `tally_event`.
pub mod event {
    /// Bytes.
    pub const SIZE: usize = 256;
    /// u64: ordinal, starting at 1; 0 while the event is being written
    pub const NUMBER: usize = 0;
    /// u64
    pub const TICK: usize = 8;
    /// i32
    pub const PID: usize = 16;
    /// u32: kind of the record or event: see its own table
    pub const KIND: usize = 20;
    /// by kind: depends on the kind: a text, or a payload whose first word is 0
    pub const DATA: usize = 24;
}

/// Offsets in a `tally_blocked`.
pub mod blocked {
    /// Bytes.
    pub const SIZE: usize = 56;
    /// u64: odd while the rest changes
    pub const SEQ: usize = 0;
    /// u64: tick at which the wait began; 0: not blocked
    pub const SINCE: usize = 8;
    /// u32, 3: the lock: locktag_field1 to 3 of PostgreSQL's LOCKTAG
    pub const FIELD: usize = 16;
    /// u16: locktag_field4
    pub const FIELD4: usize = 28;
    /// u8: LockTagType
    pub const TYPE: usize = 30;
    /// u8: lock method: 1 the server's own locks, 2 advisory locks
    pub const METHOD: usize = 31;
    /// i32, `BLOCKERS`: PIDs of the blockers, as pg_blocking_pids() returns them; 0 is a prepared transaction
    pub const PIDS: usize = 32;
    /// u16: number of blockers; `pids` has the first 5 of them
    pub const COUNT: usize = 52;
    /// u16: LOCKMODE that the process waits for
    pub const MODE: usize = 54;
}

/// Offsets in a `tally_slot_entry`.
pub mod entry {
    /// Bytes.
    pub const SIZE: usize = 384;
    /// u32: [`crate::layout::slot_state`]
    pub const STATE: usize = 0;
    /// u32: number of times that the slot has been claimed
    pub const GENERATION: usize = 4;
    /// i32: PID of the owner; 0: none; -1: the entry is to be freed
    pub const PID: usize = 8;
    /// i32: PID of the leader if the owner is a parallel worker, otherwise 0
    pub const LEADER_PID: usize = 12;
    /// u64: boot time of the claim
    pub const CLAIMED_BOOT_NS: usize = 16;
    /// u64
    pub const CLAIMED_TICK: usize = 24;
    /// u32: 0: none or unknown
    pub const DATABASE_ID: usize = 32;
    /// u32
    pub const USER_ID: usize = 36;
    /// u32: odd while the ids and texts change
    pub const IDENTITY_SEQ: usize = 40;
    /// u32: number of heads already merged
    pub const MERGED: usize = 44;
    /// text, `TEXT_MAX`: `client backend`, `walwriter`, ...
    pub const KIND: usize = 48;
    /// Bytes of [`KIND`].
    pub const KIND_BYTES: usize = 64;
    /// text, `TEXT_MAX`
    pub const DATABASE: usize = 112;
    /// Bytes of [`DATABASE`].
    pub const DATABASE_BYTES: usize = 64;
    /// text, `TEXT_MAX`
    pub const USER: usize = 176;
    /// Bytes of [`USER`].
    pub const USER_BYTES: usize = 64;
    /// text, `TEXT_MAX`: of a group: that of the slot merged last
    pub const APPLICATION: usize = 240;
    /// Bytes of [`APPLICATION`].
    pub const APPLICATION_BYTES: usize = 64;
    /// u64: for a group: number of slots merged into it
    pub const SESSIONS: usize = 304;
    /// u32: for a slot: number of local entries of statements that have memory
    pub const LOCAL_STATEMENTS: usize = 312;
    /// u32: highest generation among local entries whose memory was released; they continue from there
    pub const LOCAL_GENERATION: usize = 316;
    /// [`crate::layout::blocked`]: for a slot: the blockers of its owner
    pub const BLOCKED: usize = 320;
    /// u32: for a slot: number of local entries of relations that have memory
    pub const LOCAL_RELATIONS: usize = 376;
}

/// Offsets in a `tally_head`.
pub mod head {
    /// Bytes.
    pub const SIZE: usize = 64;
    /// u32: 1 + its number in the directory
    pub const STAT: usize = 0;
    /// u64
    pub const COUNT: usize = 8;
    /// u64
    pub const TOTAL: usize = 16;
    /// u64: 2^64 - 1 while count is 0
    pub const MIN: usize = 24;
    /// u64
    pub const MAX: usize = 32;
    /// u64
    pub const RESERVED: usize = 40;
    /// u64: bytes that all events moved; 0 for events that move none
    pub const AMOUNT: usize = 48;
    /// u64: number of events that continued where the previous one had ended
    pub const FOLLOWS: usize = 56;
}

/// Offsets in a `tally_hold`.
pub mod hold {
    /// Bytes.
    pub const SIZE: usize = 24;
    /// u64: address; the same in all processes
    pub const LOCK: usize = 0;
    /// u64: tick
    pub const SINCE: usize = 8;
    /// u32: number of the tranche; the directory has its name as `tranche::<number>::<name>`
    pub const TRANCHE: usize = 16;
    /// u32: 0 exclusive, 1 shared, 3 share-exclusive
    pub const MODE: usize = 20;
}

/// Offsets in a `tally_freed`.
pub mod freed {
    /// Bytes.
    pub const SIZE: usize = 32;
    /// u64: address; 0 while the entry changes
    pub const LOCK: usize = 0;
    /// u64: held from this tick ...
    pub const SINCE: usize = 8;
    /// u64: ... to this
    pub const UNTIL: usize = 16;
    /// u32: 1 + directory index of the holder's account
    pub const ACCOUNT: usize = 24;
    /// u32: 0 exclusive, 1 shared, 3 share-exclusive
    pub const MODE: usize = 28;
}

/// Offsets in a `tally_book`.
pub mod book {
    /// Bytes.
    pub const SIZE: usize = 1024;
    /// u64: odd while anything below, or a head, changes
    pub const SEQ: usize = 0;
    /// u32: index of the running account, or `TALLY_NONE`
    pub const RUN: usize = 8;
    /// u32: heads in use
    pub const USED: usize = 12;
    /// u64: tick
    pub const RUN_START: usize = 16;
    /// u32: account whose record is pending, or `TALLY_NONE`; plus 2^31 if a signal has interrupted that wait and it may continue
    pub const PEND: usize = 24;
    /// u32: number of resets that the owner has carried out
    pub const RESETS: usize = 28;
    /// u64: 0 when nothing is pending
    pub const PEND_TICKS: usize = 32;
    /// u64: tick
    pub const BORN: usize = 40;
    /// u64: tick at which the current or last transaction began; 0: not known
    pub const TRANSACTION: usize = 48;
    /// u64: tick at which the current or last wait for a client message began; 0: not known
    pub const BETWEEN: usize = 56;
    /// u64, `CALLS`: number of calls through each probe
    pub const CALLS: usize = 64;
    /// u32: number of LWLocks held now
    pub const HOLDING: usize = 576;
    /// [`crate::layout::hold`], `HOLDS`: the first 8 of them
    pub const HOLDS: usize = 584;
    /// u32: index of the next entry to use in `freed`
    pub const FREED_NEXT: usize = 776;
    /// [`crate::layout::freed`], `FREED`: locks released while other processes waited
    pub const FREED: usize = 784;
    /// text, `TEXT_MAX`: for a slot: address of the client; `local` for a Unix-domain socket; empty if there is none
    pub const CLIENT: usize = 912;
    /// Bytes of [`CLIENT`].
    pub const CLIENT_BYTES: usize = 64;
}

/// Offsets in a `tally_journal`.
pub mod journal {
    /// Bytes.
    pub const SIZE: usize = 2768;
    /// u32: 0: idle, 1: merging a head, 2: resetting, 3: ending a merge, 4: clearing
    pub const ACTIVE: usize = 0;
    /// u32: being merged
    pub const SLOT: usize = 4;
    /// u32: entry index of its group
    pub const GROUP: usize = 8;
    /// u32: index in the group's book
    pub const HEAD: usize = 12;
    /// [`crate::layout::head`]: the group's head before the merge, with the slot's head number in `reserved`; at the end of a merge: merge_count and sessions
    pub const SAVED: usize = 16;
    /// u64, `HIST_BUCKETS`: the histogram of that head, in one piece; at the end of a merge: the group's calls
    pub const HIST: usize = 80;
}

/// Offsets in a `tally_statement_key`.
pub mod key {
    /// Bytes.
    pub const SIZE: usize = 24;
    /// u64: the producer's number for the statement; 0: work that does not belong to a known statement
    pub const ID: usize = 0;
    /// u32
    pub const DATABASE_ID: usize = 8;
    /// u32
    pub const USER_ID: usize = 12;
    /// u16: 1: sent by the client; 0: nested in another statement, whose time includes this one's
    pub const TOPLEVEL: usize = 16;
    /// u16: 1 + directory number of the name of the session's application, `application::<application_name>`; 0: applications are not counted separately, or there is none
    pub const APPLICATION: usize = 18;
    /// u32: 0, except in a current (see there)
    pub const BEFORE: usize = 20;
}

/// Offsets in a `tally_moments`.
pub mod moments {
    /// Bytes.
    pub const SIZE: usize = 40;
    /// u64
    pub const COUNT: usize = 0;
    /// u64: ticks
    pub const TOTAL: usize = 8;
    /// u64: undefined while count is 0
    pub const MIN: usize = 16;
    /// u64
    pub const MAX: usize = 24;
    /// f64: sum of squared ticks
    pub const SQUARES: usize = 32;
}

/// Offsets in a `tally_counts`.
pub mod counts {
    /// Bytes.
    pub const SIZE: usize = 536;
    /// [`crate::layout::moments`]: executions
    pub const EXEC: usize = 0;
    /// u64: rows returned or changed
    pub const ROWS: usize = 40;
    /// i64: microseconds since 1970, 0: unknown; merging keeps the later one
    pub const LAST_US: usize = 48;
    /// u64: shared block cache hits
    pub const SHARED_HIT: usize = 56;
    /// u64: shared blocks read
    pub const SHARED_READ: usize = 64;
    /// u64: shared blocks dirtied
    pub const SHARED_DIRTIED: usize = 72;
    /// u64: shared blocks written
    pub const SHARED_WRITTEN: usize = 80;
    /// u64: local block (temporary table) cache hits
    pub const LOCAL_HIT: usize = 88;
    /// u64: local blocks read
    pub const LOCAL_READ: usize = 96;
    /// u64: local blocks dirtied
    pub const LOCAL_DIRTIED: usize = 104;
    /// u64: local blocks written
    pub const LOCAL_WRITTEN: usize = 112;
    /// u64: temporary file blocks read
    pub const TEMP_READ: usize = 120;
    /// u64: temporary file blocks written
    pub const TEMP_WRITTEN: usize = 128;
    /// u64: WAL records generated
    pub const WAL_RECORDS: usize = 136;
    /// u64: WAL full-page images generated
    pub const WAL_FPI: usize = 144;
    /// u64: WAL generated, in bytes
    pub const WAL_BYTES: usize = 152;
    /// u64: ticks: time reading blocks, measured by pg_tally
    pub const READ_TICKS: usize = 160;
    /// u64: ticks: time writing blocks, measured by pg_tally
    pub const WRITE_TICKS: usize = 168;
    /// u64: ticks: time reading temporary files, measured by pg_tally
    pub const TEMP_READ_TICKS: usize = 176;
    /// u64: ticks: time writing temporary files, measured by pg_tally
    pub const TEMP_WRITE_TICKS: usize = 184;
    /// u64: number of times the WAL buffers became full; 0 before 18
    pub const WAL_BUFFERS_FULL: usize = 192;
    /// [`crate::layout::moments`]: plannings
    pub const PLAN: usize = 200;
    /// i64: as `last_us`; merging keeps the earlier one; 0: it equals `last_us`
    pub const FIRST_US: usize = 240;
    /// u64: ns: time reading blocks, measured by the server (`track_io_timing`)
    pub const SERVER_READ_NS: usize = 248;
    /// u64: ns: time writing blocks, measured by the server (`track_io_timing`)
    pub const SERVER_WRITE_NS: usize = 256;
    /// u64: ns: time reading temporary files, measured by the server (`track_io_timing`)
    pub const SERVER_TEMP_READ_NS: usize = 264;
    /// u64: ns: time writing temporary files, measured by the server (`track_io_timing`)
    pub const SERVER_TEMP_WRITE_NS: usize = 272;
    /// u64: ns: part of `server_read_ns` spent on local blocks; 0 before 17
    pub const SERVER_LOCAL_READ_NS: usize = 280;
    /// u64: ns: part of `server_write_ns` spent on local blocks; 0 before 17
    pub const SERVER_LOCAL_WRITE_NS: usize = 288;
    /// u64: temporary files created
    pub const TEMP_FILES: usize = 296;
    /// u64: size of the temporary files created
    pub const TEMP_BYTES: usize = 304;
    /// u64: executions that failed with an error
    pub const ERRORS: usize = 312;
    /// u64: executions cancelled or timed out
    pub const CANCELS: usize = 320;
    /// u64: parallel workers that took part in the execution
    pub const WORKERS: usize = 328;
    /// u64: ticks: total lifetime of these workers
    pub const WORKER_TICKS: usize = 336;
    /// u64: functions compiled by JIT
    pub const JIT_FUNCTIONS: usize = 344;
    /// u64: ns: time generating JIT code
    pub const JIT_GENERATION_NS: usize = 352;
    /// u64: executions that inlined functions
    pub const JIT_INLININGS: usize = 360;
    /// u64: ns: time inlining functions
    pub const JIT_INLINING_NS: usize = 368;
    /// u64: executions that optimized JIT code
    pub const JIT_OPTIMIZATIONS: usize = 376;
    /// u64: ns: time optimizing JIT code
    pub const JIT_OPTIMIZATION_NS: usize = 384;
    /// u64: executions that emitted JIT code
    pub const JIT_EMISSIONS: usize = 392;
    /// u64: ns: time emitting JIT code
    pub const JIT_EMISSION_NS: usize = 400;
    /// u64: executions that compiled tuple deforming; 0 before 17
    pub const JIT_DEFORMINGS: usize = 408;
    /// u64: ns: time compiling tuple deforming, part of `jit_generation_ns`; 0 before 17
    pub const JIT_DEFORMING_NS: usize = 416;
    /// u64: parallel workers planned; 0 before 18
    pub const WORKERS_PLANNED: usize = 424;
    /// u64: parallel workers launched; 0 before 18
    pub const WORKERS_LAUNCHED: usize = 432;
    /// u64: executions with a generic plan; 0 before 19
    pub const GENERIC_PLANS: usize = 440;
    /// u64: executions of a cached statement with a custom plan; 0 before 19
    pub const CUSTOM_PLANS: usize = 448;
    /// u64: ns: CPU time in user mode; 0 if it was not measured
    pub const USER_NS: usize = 456;
    /// u64: ns: CPU time in the kernel; 0 if it was not measured
    pub const SYSTEM_NS: usize = 464;
    /// u64: executions that the server cancelled to resolve a deadlock, part of `errors`
    pub const DEADLOCKS: usize = 472;
    /// u64, 2: for future counters
    pub const RESERVED: usize = 480;
    /// u32: part of `errors` with SQLSTATE class 08: connection exceptions
    pub const FAILED_CONNECTION: usize = 496;
    /// u32: class 22: data exceptions
    pub const FAILED_DATA: usize = 500;
    /// u32: class 23: integrity constraints
    pub const FAILED_INTEGRITY: usize = 504;
    /// u32: class 25: invalid transaction state
    pub const FAILED_TRANSACTION: usize = 508;
    /// u32: class 40: serialization failures, deadlocks
    pub const FAILED_ROLLBACK: usize = 512;
    /// u32: class 42: syntax errors, access rule violations
    pub const FAILED_SYNTAX: usize = 516;
    /// u32: classes 53 and 54: insufficient resources, program limits exceeded
    pub const FAILED_RESOURCES: usize = 520;
    /// u32: class 55: object not in prerequisite state, such as a lock not available
    pub const FAILED_OBJECT: usize = 524;
    /// u32: classes 57 and 58: operator intervention, system errors
    pub const FAILED_SYSTEM: usize = 528;
    /// u32: all other classes
    pub const FAILED_OTHER: usize = 532;
}

/// Offsets in a `tally_part`.
pub mod part {
    /// Bytes.
    pub const SIZE: usize = 24;
    /// u32: 1 + number of the account in the directory; 0: unused
    pub const STAT: usize = 0;
    /// u64
    pub const COUNT: usize = 8;
    /// u64
    pub const TICKS: usize = 16;
}

/// Offsets in a `tally_extremes`.
pub mod extremes {
    /// Bytes.
    pub const SIZE: usize = 40;
    /// u64
    pub const EXEC_MIN: usize = 0;
    /// u64
    pub const EXEC_MAX: usize = 8;
    /// u64
    pub const PLAN_MIN: usize = 16;
    /// u64
    pub const PLAN_MAX: usize = 24;
    /// i64: microseconds since 1970
    pub const SINCE_US: usize = 32;
}

/// Offsets in a `tally_figures`.
pub mod rest {
    /// Bytes.
    pub const SIZE: usize = 3840;
    /// [`crate::layout::counts`]: exec, rows, shared blocks hit, first_us and last_us are 0
    pub const COUNTS: usize = 0;
    /// [`crate::layout::part`], `PARTS`: an account may be both here and in the entry
    pub const PARTS: usize = 536;
    /// u64, `HIST_BUCKETS`: the sum of both histograms is `exec.count`, all within the buckets of `min` and `max`
    pub const HIST: usize = 1112;
    /// [`crate::layout::extremes`]: if the entry's `extremes` is not 0: the shortest and longest execution and planning since that reset; a minimum above its maximum: none
    pub const EXTREMES: usize = 3800;
}

/// Offsets in a `tally_statement`.
pub mod statement {
    /// Bytes.
    pub const SIZE: usize = 256;
    /// u64: odd while anything below, or in the rest, changes
    pub const SEQ: usize = 0;
    /// [`crate::layout::key`]
    pub const KEY: usize = 8;
    /// u32: 0 free, 1 used
    pub const STATE: usize = 32;
    /// u32: 1 + number of the first block of its text, 0: none
    pub const TEXT: usize = 36;
    /// u32: bytes stored
    pub const TEXT_BYTES: usize = 40;
    /// u32: bytes of the whole text; 0: the text is not known
    pub const TEXT_WHOLE: usize = 44;
    /// i32: the producer's number for the text's encoding
    pub const ENCODING: usize = 48;
    /// u32: 1: the rest is in use; otherwise it must not be read
    pub const MORE: usize = 52;
    /// u64: tick at which the entry was created
    pub const BORN: usize = 56;
    /// [`crate::layout::moments`]: start of the first 64 bytes of the counts
    pub const EXEC: usize = 64;
    /// u64
    pub const ROWS: usize = 104;
    /// i64
    pub const LAST_US: usize = 112;
    /// u64: shared block cache hits
    pub const HITS: usize = 120;
    /// u32: number of the bucket in hist[0]
    pub const BASE: usize = 128;
    /// u32: `extremes_resets` at the last reset of only its minima and maxima; 0: never
    pub const EXTREMES: usize = 132;
    /// u32, `NEAR_BUCKETS`: histogram of execution times, buckets from `base` on
    pub const HIST: usize = 136;
    /// [`crate::layout::part`], `NEAR_PARTS`
    pub const PARTS: usize = 192;
    /// i64
    pub const FIRST_US: usize = 240;
    /// i64: start of its counts, microseconds since 1970
    pub const SINCE_US: usize = 248;
}

/// Offsets in a `tally_set`.
pub mod set {
    /// Bytes.
    pub const SIZE: usize = 448;
    /// u32: PID of the holder, 0: free
    pub const LOCK: usize = 0;
    /// u32: bit 0: its entries have memory; bit 8 + way: that entry has its text
    pub const RESERVED: usize = 4;
    /// u64: a boot time at which the holder was alive; 0: free, or not yet written
    pub const LOCK_BOOT_NS: usize = 8;
    /// u64: number of flushes of local entries into this set since the segment was created
    pub const FLUSHES: usize = 16;
    /// u16, `WAYS`: a logarithm of how much the entry has been used: see *Usage* below
    pub const USAGE: usize = 24;
    /// u32, `WAYS`: lower half of the tag of each entry's key; 0: the entry is free
    pub const TAGS: usize = 64;
    /// u16, `WAYS`: number of caches that hold the entry for a statement that recurs
    pub const PINS: usize = 144;
    /// u64, `SET_LOG`: flush n, counted from 0, at n mod 32: generation << 24, index of the local entry << 16, slot
    pub const LOG: usize = 192;
}

/// Offsets in a `tally_text_block`.
pub mod block {
    /// Bytes.
    pub const SIZE: usize = 256;
    /// u32: 1 + number of the next block, 0: none
    pub const NEXT: usize = 0;
    /// bytes, `TEXT_BLOCK`
    pub const BYTES: usize = 4;
}

/// Offsets in a `tally_local_statement`.
pub mod local_statement {
    /// Bytes.
    pub const SIZE: usize = 2560;
    /// u64: odd while anything below changes, except `drop` and the change of `state` to 0
    pub const SEQ: usize = 0;
    /// u64: counts the uses of this local entry
    pub const GENERATION: usize = 8;
    /// u64: the generation that a reset dropped
    pub const DROP: usize = 16;
    /// [`crate::layout::key`]
    pub const KEY: usize = 24;
    /// u32: 0 free, 1 used
    pub const STATE: usize = 48;
    /// u32: number of its shared entry if `pins` counts it there, or `TALLY_NONE`
    pub const ENTRY: usize = 52;
    /// u32: which counts are in use, besides the first 64 bytes and `first_us`: bit 0: those before `first_us`; bit 1: those after it
    pub const MORE: usize = 56;
    /// u32: `extremes_resets` when the local entry was taken
    pub const EXTREMES: usize = 60;
    /// [`crate::layout::counts`]
    pub const COUNTS: usize = 64;
    /// [`crate::layout::part`], `PARTS`
    pub const PARTS: usize = 600;
    /// u32, `HIST_BUCKETS`: not written while `exec.count` is 1: the execution is in the bucket of `max`
    pub const HIST: usize = 1176;
}

/// Offsets in a `tally_current`.
pub mod current {
    /// Bytes.
    pub const SIZE: usize = 704;
    /// u64: odd while anything below changes
    pub const SEQ: usize = 0;
    /// [`crate::layout::key`]: the statement in progress; id 0: not known yet; `before` 1: this is the key of the previous statement, and the current one is not known yet
    pub const KEY: usize = 8;
    /// u64: tick; 0: no statement in progress
    pub const BEGUN: usize = 32;
    /// u64: tick since which CPU time is not in `parts` yet
    pub const SINCE: usize = 40;
    /// u32: number of parts in use; they are not in a local entry yet
    pub const USED: usize = 48;
    /// u32: 1: the message text has memory
    pub const HAS_TEXT: usize = 52;
    /// u64: ticks of waits since `since`, which already are in `parts`
    pub const WAITS: usize = 56;
    /// [`crate::layout::part`], `PARTS`
    pub const PARTS: usize = 64;
}

/// Offsets in a `tally_message_text`.
pub mod message_text {
    /// Bytes.
    pub const SIZE: usize = 1024;
    /// u64: tick at which the message began, as in the current; 0 while the rest changes
    pub const BEGUN: usize = 0;
    /// u32: of `text`
    pub const BYTES: usize = 8;
    /// u32: size of the whole text: more than `bytes` if it was truncated
    pub const WHOLE: usize = 12;
    /// i32: PostgreSQL's number of the encoding
    pub const ENCODING: usize = 16;
    /// u32: user who sent the message
    pub const USER_ID: usize = 20;
    /// u32
    pub const DATABASE_ID: usize = 24;
    /// bytes, 992: the message with `?` for constants
    pub const TEXT: usize = 32;
}

/// Offsets in a `tally_unsynced_file`.
pub mod unsynced_file {
    /// Bytes.
    pub const SIZE: usize = 32;
    /// u64
    pub const WRITES: usize = 0;
    /// u64
    pub const BYTES: usize = 8;
    /// u64
    pub const SYNCED_WRITES: usize = 16;
    /// u64
    pub const SYNCED_BYTES: usize = 24;
}

/// Offsets in a `tally_unsynced`.
pub mod unsynced {
    /// Bytes.
    pub const SIZE: usize = 320;
    /// u64, `FILE_WAYS`: hash of each file's name, at least 2; 0: free, 1: being replaced
    pub const NAMES: usize = 0;
    /// [`crate::layout::unsynced_file`], `FILE_WAYS`: the counters of each file
    pub const FILES: usize = 64;
}

/// Offsets in a `tally_relation_key`.
pub mod relation_key {
    /// Bytes.
    pub const SIZE: usize = 24;
    /// u32
    pub const TABLESPACE: usize = 0;
    /// u32: 0: shared by all databases
    pub const DATABASE: usize = 4;
    /// u32: relfilenode: the number in the file's name
    pub const RELATION: usize = 8;
    /// u32: 0 main, 1 fsm, 2 vm, 3 init
    pub const FORK: usize = 12;
    /// u32: for a temporary relation: 1 + its backend number; otherwise 0
    pub const BACKEND: usize = 16;
}

/// Offsets in a `tally_file_sums`.
pub mod file_sums {
    /// Bytes.
    pub const SIZE: usize = 32;
    /// u64
    pub const COUNT: usize = 0;
    /// u64
    pub const BYTES: usize = 8;
    /// u64
    pub const TICKS: usize = 16;
    /// u64
    pub const MAX: usize = 24;
}

/// Offsets in a `tally_relation`.
pub mod relation {
    /// Bytes.
    pub const SIZE: usize = 256;
    /// u64: hash of the key; 1 in entry 0
    pub const TAG: usize = 0;
    /// u32: [`crate::layout::relation_state`]
    pub const STATE: usize = 8;
    /// u32: number of local entries that refer to it
    pub const PINS: usize = 12;
    /// [`crate::layout::relation_key`]
    pub const KEY: usize = 16;
    /// u64: number of flushes into the entry that have begun
    pub const FLUSHES: usize = 40;
    /// u64: failed operations
    pub const FAILED: usize = 48;
    /// u64
    pub const RESERVED: usize = 56;
    /// [`crate::layout::file_sums`], `RELATION_OPERATIONS`: by [`crate::layout::relation_operation`]
    pub const OF: usize = 64;
}

/// Offsets in a `tally_local_relation`.
pub mod local_relation {
    /// Bytes.
    pub const SIZE: usize = 192;
    /// u64: odd while the sums, tag or entry change; not when `state` changes to 2 or 0
    pub const SEQ: usize = 0;
    /// u64
    pub const TAG: usize = 8;
    /// u32: [`crate::layout::local_state`]
    pub const STATE: usize = 16;
    /// u32: number of the shared entry
    pub const ENTRY: usize = 20;
    /// u64
    pub const FAILED: usize = 24;
    /// [`crate::layout::file_sums`], `RELATION_OPERATIONS`: by [`crate::layout::relation_operation`]
    pub const OF: usize = 32;
}

/// Offsets in a `tally_plan`.
pub mod plan {
    /// Bytes.
    pub const SIZE: usize = 4096;
    /// u32: [`crate::layout::plan_state`]
    pub const STATE: usize = 0;
    /// u32: number of processes that are adding to the entry now
    pub const PINS: usize = 4;
    /// [`crate::layout::key`]: key of the statement
    pub const KEY: usize = 8;
    /// u64: hash of the plan's nodes, chosen by the producer; never 0
    pub const SHAPE: usize = 32;
    /// u64: tick at which the plan was first noted
    pub const BORN: usize = 40;
    /// u64: tick at which the plan was last noted
    pub const LAST: usize = 48;
    /// u64: number of executions noted, which are not all executions
    pub const COUNT: usize = 56;
    /// u64: total duration of these executions
    pub const TICKS: usize = 64;
    /// u64: the longest
    pub const MAX: usize = 72;
    /// u64: rows returned or changed by these executions
    pub const ROWS: usize = 80;
    /// f64: the planner's cost estimate for the first of them
    pub const COST: usize = 88;
    /// u32: bytes stored
    pub const TEXT_BYTES: usize = 96;
    /// u32: bytes of the whole text
    pub const TEXT_WHOLE: usize = 100;
    /// u64: number of plans that the entry has held
    pub const GENERATION: usize = 104;
    /// i32: 1 + the producer's number for the text's encoding; 0: not known
    pub const ENCODING: usize = 112;
    /// bytes, 3976: one line per node, indented by two spaces per level
    pub const TEXT: usize = 120;
}

/// Offsets in a `tally_trace_record`.
pub mod trace_record {
    /// Bytes.
    pub const SIZE: usize = 64;
    /// u64: generation << 40, 1 + position; 0 while the record changes
    pub const NUMBER: usize = 0;
    /// u64
    pub const TICK: usize = 8;
    /// u64
    pub const TICKS: usize = 16;
    /// u8: kind of the record or event: see its own table
    pub const KIND: usize = 24;
    /// u8: depends on the kind, as do all members that follow
    pub const OP: usize = 25;
    /// u8
    pub const MORE: usize = 26;
    /// u8
    pub const FAILED: usize = 27;
    /// u16: 1 + number of the running plan node; 0: none
    pub const NODE: usize = 28;
    /// u16: 0
    pub const PAD: usize = 30;
    /// u32: 1 + directory number of an account; 0: none
    pub const STAT: usize = 32;
    /// u32: the same
    pub const NEXT: usize = 36;
    /// u32, 6
    pub const WORD: usize = 40;
}

/// Offsets in a `tally_trace`.
pub mod trace {
    /// Bytes.
    pub const SIZE: usize = 4096;
    /// u32: low 8 bits: [`crate::layout::trace_state`]; upper 24: generation
    pub const CLAIM: usize = 0;
    /// u32: bit 0: for parallel workers of `pid`; bit 1: with plan nodes; bit 2: with parameters; bit 3: slow executions of all sessions
    pub const FLAGS: usize = 4;
    /// i32: the process to trace; 0: any session that matches the texts below; -1: none, with bit 3 of `flags`
    pub const PID: usize = 8;
    /// i32: PID of the reader that armed the ring
    pub const READER_PID: usize = 12;
    /// u64: boot time
    pub const READER_BOOT_NS: usize = 16;
    /// u64: tick at which the request ends; the reader renews it every second
    pub const UNTIL: usize = 24;
    /// text, `TEXT_MAX`: empty: any; the same for the next two
    pub const APPLICATION: usize = 32;
    /// Bytes of [`APPLICATION`].
    pub const APPLICATION_BYTES: usize = 64;
    /// text, `TEXT_MAX`
    pub const USER: usize = 96;
    /// Bytes of [`USER`].
    pub const USER_BYTES: usize = 64;
    /// text, `TEXT_MAX`
    pub const DATABASE: usize = 160;
    /// Bytes of [`DATABASE`].
    pub const DATABASE_BYTES: usize = 64;
    /// i32: PID of the process that took the ring
    pub const OWNER_PID: usize = 256;
    /// i32: PID of the leader if the owner is a parallel worker, otherwise 0
    pub const LEADER_PID: usize = 260;
    /// u32: slot of that process ...
    pub const SLOT: usize = 264;
    /// u32: ... and its generation in that slot
    pub const SLOT_GENERATION: usize = 268;
    /// u64: tick at which it took the ring
    pub const BEGUN: usize = 272;
    /// u32: 1 + number of the plan node that runs now; 0: none, or nodes were not requested
    pub const NODE: usize = 280;
    /// u64: number of records written in this generation
    pub const HEAD: usize = 320;
    /// u64: with bit 3 of `flags`: number of executions that were not recorded because another process was writing
    pub const MISSED: usize = 328;
}
