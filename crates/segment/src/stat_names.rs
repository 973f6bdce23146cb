// SPDX-License-Identifier: PostgreSQL
//! The names of statistics, up to the first tag that varies.
//!
//! Generated from format/statistics.toml by `make generate`; do not edit.

/// accounts for which a book or the directory has no space
pub const OVERFLOW: &str = "other::overflow";
/// time at level off
pub const OFF: &str = "off::uninstrumented";
/// a client's thread is in no timed method
pub const APPLICATION_IDLE: &str = "idle::application";
/// a virtual machine stops all threads to collect garbage
pub const COLLECTION_PAUSE: &str = "pause::garbage collection";
/// a virtual machine stops all threads for another reason
pub const OTHER_PAUSE: &str = "pause::other safepoint";
/// command::MESSAGE::PART: a client's message of that kind
pub const COMMAND: &str = "command::";
/// a commit whose backend flushed the WAL itself
pub const COMMIT_LEADER: &str = "commit::leader";
/// a commit whose WAL was flushed together with that of another commit
pub const COMMIT_GROUP: &str = "commit::group_committed";
/// a commit that did not wait for a flush (`synchronous_commit = off`)
pub const COMMIT_ASYNCHRONOUS: &str = "commit::asynchronous";
/// part of a commit: inserting its WAL record; only at level `locks`
pub const COMMIT_INSERTION: &str = "commit::insertion";
/// part: waiting for WAL buffers, and for other processes to insert their WAL
pub const COMMIT_INSERT: &str = "commit::insert";
/// part: waiting for the turn to flush, or for the leader's flush
pub const COMMIT_QUEUE: &str = "commit::queue";
/// part: sleeping for `commit_delay`
pub const COMMIT_DELAY: &str = "commit::delay";
/// part: writing the WAL
pub const COMMIT_WRITE: &str = "commit::write";
/// part: syncing the WAL
pub const COMMIT_SYNC: &str = "commit::sync";
/// part: waiting for synchronous standbys
pub const COMMIT_REPLICATION: &str = "commit::replication";
/// a checkpoint or restartpoint
pub const CHECKPOINT_TOTAL: &str = "checkpoint::total";
/// part: writing buffers, including the pauses between writes
pub const CHECKPOINT_WRITE: &str = "checkpoint::write";
/// part: syncing files
pub const CHECKPOINT_SYNC: &str = "checkpoint::sync";
/// WAL records inserted
pub const WAL_RECORDS: &str = "wal::records";
/// full-page images inserted
pub const WAL_IMAGES: &str = "wal::full_page_images";
/// WAL inserted
pub const WAL_BYTES: &str = "wal::bytes";
/// number of times that the process wrote WAL because the WAL buffers were full
pub const WAL_BUFFERS_FULL: &str = "wal::buffers_full";
/// file::KIND::OPERATION::PHASE: an operation on a file; `KIND@TABLESPACE` outside the default tablespace, `OPERATION failed` if it failed
pub const FILE: &str = "file::";
/// lwlock::TRANCHE::FIGURE::PHASE::MODE: a lightweight lock
pub const LWLOCK: &str = "lwlock::";
/// lock::deadlock::check::PHASE: a check for deadlocks
pub const DEADLOCK_CHECK: &str = "lock::deadlock::check::";
/// lock::TYPE::wait::PHASE::MODE: a wait for a heavyweight lock
pub const LOCK: &str = "lock::";
/// spin::delay::PHASE: a sleep while another process holds a spinlock
pub const SPIN_DELAY: &str = "spin::delay::";
/// function::NAME::FIGURE::PHASE: a call of a timed function; of a client's method: its package instead of the phase
pub const FUNCTION: &str = "function::";
/// edge::CALLER::CALLEE: a call from one timed function to another
pub const EDGE: &str = "edge::";
/// a wait for a connection from a pool
pub const POOL_WAIT: &str = "call::pool::wait";
/// a wait for a connection from a pool that ended with an exception
pub const POOL_FAILED: &str = "call::pool::failed";
/// a client's open connections; a sample, about once a second
pub const CONNECTIONS_OPEN: &str = "connections::open";
/// connections that pools have handed out; the maximum is exact
pub const CONNECTIONS_BORROWED: &str = "connections::borrowed";
/// connections handed out that have executed nothing for a long time
pub const CONNECTIONS_UNUSED: &str = "connections::unused";
/// call::FIGURE::ID: an execution of a client's statement; figures other than times are values
pub const CALL: &str = "call::";
/// gc::COLLECTOR: a garbage collection
pub const COLLECTION: &str = "gc::";
/// a whole pause of a virtual machine for garbage collection; counted at its end
pub const COLLECTION_STOP: &str = "stop::garbage collection";
/// application::NAME: an application whose statements are counted separately
pub const APPLICATION: &str = "application::";
/// tranche::NUMBER::NAME: a tranche of lightweight locks
pub const TRANCHE: &str = "tranche::";
/// trace::KIND: a kind of file in the records of a trace
pub const TRACED_FILE: &str = "trace::";
/// sql::ID::NUMBER::TEXT: a piece of the text of a client's statement
pub const SQL: &str = "sql::";
/// reading it, from its first byte on
pub const COMMAND_READ: &str = "read";
/// handling it, until the server reads the next one
pub const COMMAND_HANDLE: &str = "handle";
/// from its acquisition to its release
pub const LWLOCK_HELD: &str = "held";
/// acquiring it
pub const LWLOCK_ACQUIRE: &str = "acquire";
/// part of acquiring it: waiting
pub const LWLOCK_WAIT: &str = "wait";
/// an attempt that did not wait, and failed
pub const LWLOCK_FAILED: &str = "failed";
/// with the timed functions that it calls
pub const FUNCTION_INCLUSIVE: &str = "inclusive";
/// without them
pub const FUNCTION_EXCLUSIVE: &str = "exclusive";
/// a call that was only counted
pub const FUNCTION_COUNTED: &str = "counted";
/// a call that ended with an exception
pub const FUNCTION_THROWN: &str = "thrown";
/// CPU time, with the timed functions that it calls
pub const FUNCTION_CPU_INCLUSIVE: &str = "cpu_inclusive";
/// CPU time, without them
pub const FUNCTION_CPU_EXCLUSIVE: &str = "cpu_exclusive";
/// from its start to the end of the response
pub const CALL_EXECUTE: &str = "execute";
/// part: until the first response
pub const CALL_FIRST: &str = "first";
/// a further call for rows of a cursor, data of a COPY, or types of parameters
pub const CALL_FETCH: &str = "fetch";
/// in reads and writes of the socket
pub const CALL_WAIT: &str = "wait";
/// decoding values
pub const CALL_DECODE: &str = "decode";
/// rows received; rows of a COPY, which count at its end
pub const CALL_ROWS: &str = "rows";
/// messages sent
pub const CALL_MESSAGES: &str = "messages";
/// round trips
pub const CALL_TRIPS: &str = "trips";
/// an execution that ended with an exception
pub const CALL_FAILED: &str = "failed";
/// an execution of a batch; the total is the number of statements
pub const CALL_BATCH: &str = "batch";
/// a transaction, or a borrow from a pool, that executed it more than ten times, each time with different parameters; the total is the number of executions
pub const CALL_REPEATED: &str = "repeated";
/// bytes sent
pub const CALL_SENT: &str = "sent";
/// bytes received
pub const CALL_RECEIVED: &str = "received";
/// creating a prepared statement
pub const CALL_PREPARE: &str = "prepare";
/// closing it
pub const CALL_CLOSE: &str = "close";
/// an execution with a fetch size that the driver ignored, as with autocommit; the total is the number of rows received
pub const CALL_UNFETCHED: &str = "unfetched";
/// a savepoint that the driver set for it (`autosave`); its value is the number of savepoints in the transaction so far
pub const CALL_SAVEPOINT: &str = "savepoint";
