// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

/**
 * The names of statistics (format/FORMAT.md), up to the first tag that varies.
 * Generated from format/statistics.toml by `make generate`; do not edit.
 */
public final class StatNames {
    /** accounts for which a book or the directory has no space */
    public static final String OVERFLOW = "other::overflow";
    /** time at level off */
    public static final String OFF = "off::uninstrumented";
    /** a client's thread is in no timed method */
    public static final String APPLICATION_IDLE = "idle::application";
    /** a virtual machine stops all threads to collect garbage */
    public static final String COLLECTION_PAUSE = "pause::garbage collection";
    /** a virtual machine stops all threads for another reason */
    public static final String OTHER_PAUSE = "pause::other safepoint";
    /** command::MESSAGE::PART: a client's message of that kind */
    public static final String COMMAND = "command::";
    /** a commit whose backend flushed the WAL itself */
    public static final String COMMIT_LEADER = "commit::leader";
    /** a commit whose WAL was flushed together with that of another commit */
    public static final String COMMIT_GROUP = "commit::group_committed";
    /** a commit that did not wait for a flush (`synchronous_commit = off`) */
    public static final String COMMIT_ASYNCHRONOUS = "commit::asynchronous";
    /** part of a commit: inserting its WAL record; only at level `locks` */
    public static final String COMMIT_INSERTION = "commit::insertion";
    /** part: waiting for WAL buffers, and for other processes to insert their WAL */
    public static final String COMMIT_INSERT = "commit::insert";
    /** part: waiting for the turn to flush, or for the leader's flush */
    public static final String COMMIT_QUEUE = "commit::queue";
    /** part: sleeping for `commit_delay` */
    public static final String COMMIT_DELAY = "commit::delay";
    /** part: writing the WAL */
    public static final String COMMIT_WRITE = "commit::write";
    /** part: syncing the WAL */
    public static final String COMMIT_SYNC = "commit::sync";
    /** part: waiting for synchronous standbys */
    public static final String COMMIT_REPLICATION = "commit::replication";
    /** a checkpoint or restartpoint */
    public static final String CHECKPOINT_TOTAL = "checkpoint::total";
    /** part: writing buffers, including the pauses between writes */
    public static final String CHECKPOINT_WRITE = "checkpoint::write";
    /** part: syncing files */
    public static final String CHECKPOINT_SYNC = "checkpoint::sync";
    /** WAL records inserted */
    public static final String WAL_RECORDS = "wal::records";
    /** full-page images inserted */
    public static final String WAL_IMAGES = "wal::full_page_images";
    /** WAL inserted */
    public static final String WAL_BYTES = "wal::bytes";
    /** number of times that the process wrote WAL because the WAL buffers were full */
    public static final String WAL_BUFFERS_FULL = "wal::buffers_full";
    /** file::KIND::OPERATION::PHASE: an operation on a file; `KIND@TABLESPACE` outside the default tablespace, `OPERATION failed` if it failed */
    public static final String FILE = "file::";
    /** lwlock::TRANCHE::FIGURE::PHASE::MODE: a lightweight lock */
    public static final String LWLOCK = "lwlock::";
    /** lock::deadlock::check::PHASE: a check for deadlocks */
    public static final String DEADLOCK_CHECK = "lock::deadlock::check::";
    /** lock::TYPE::wait::PHASE::MODE: a wait for a heavyweight lock */
    public static final String LOCK = "lock::";
    /** spin::delay::PHASE: a sleep while another process holds a spinlock */
    public static final String SPIN_DELAY = "spin::delay::";
    /** function::NAME::FIGURE::PHASE: a call of a timed function; of a client's method: its package instead of the phase */
    public static final String FUNCTION = "function::";
    /** edge::CALLER::CALLEE: a call from one timed function to another */
    public static final String EDGE = "edge::";
    /** a wait for a connection from a pool */
    public static final String POOL_WAIT = "call::pool::wait";
    /** a wait for a connection from a pool that ended with an exception */
    public static final String POOL_FAILED = "call::pool::failed";
    /** a client's open connections; a sample, about once a second */
    public static final String CONNECTIONS_OPEN = "connections::open";
    /** connections that pools have handed out; the maximum is exact */
    public static final String CONNECTIONS_BORROWED = "connections::borrowed";
    /** connections handed out that have executed nothing for a long time */
    public static final String CONNECTIONS_UNUSED = "connections::unused";
    /** call::FIGURE::ID: an execution of a client's statement; figures other than times are values */
    public static final String CALL = "call::";
    /** gc::COLLECTOR: a garbage collection */
    public static final String COLLECTION = "gc::";
    /** a whole pause of a virtual machine for garbage collection; counted at its end */
    public static final String COLLECTION_STOP = "stop::garbage collection";
    /** application::NAME: an application whose statements are counted separately */
    public static final String APPLICATION = "application::";
    /** tranche::NUMBER::NAME: a tranche of lightweight locks */
    public static final String TRANCHE = "tranche::";
    /** trace::KIND: a kind of file in the records of a trace */
    public static final String TRACED_FILE = "trace::";
    /** sql::ID::NUMBER::TEXT: a piece of the text of a client's statement */
    public static final String SQL = "sql::";
    /** reading it, from its first byte on */
    public static final String COMMAND_READ = "read";
    /** handling it, until the server reads the next one */
    public static final String COMMAND_HANDLE = "handle";
    /** from its acquisition to its release */
    public static final String LWLOCK_HELD = "held";
    /** acquiring it */
    public static final String LWLOCK_ACQUIRE = "acquire";
    /** part of acquiring it: waiting */
    public static final String LWLOCK_WAIT = "wait";
    /** an attempt that did not wait, and failed */
    public static final String LWLOCK_FAILED = "failed";
    /** with the timed functions that it calls */
    public static final String FUNCTION_INCLUSIVE = "inclusive";
    /** without them */
    public static final String FUNCTION_EXCLUSIVE = "exclusive";
    /** a call that was only counted */
    public static final String FUNCTION_COUNTED = "counted";
    /** a call that ended with an exception */
    public static final String FUNCTION_THROWN = "thrown";
    /** CPU time, with the timed functions that it calls */
    public static final String FUNCTION_CPU_INCLUSIVE = "cpu_inclusive";
    /** CPU time, without them */
    public static final String FUNCTION_CPU_EXCLUSIVE = "cpu_exclusive";
    /** from its start to the end of the response */
    public static final String CALL_EXECUTE = "execute";
    /** part: until the first response */
    public static final String CALL_FIRST = "first";
    /** a further call for rows of a cursor, data of a COPY, or types of parameters */
    public static final String CALL_FETCH = "fetch";
    /** in reads and writes of the socket */
    public static final String CALL_WAIT = "wait";
    /** decoding values */
    public static final String CALL_DECODE = "decode";
    /** rows received; rows of a COPY, which count at its end */
    public static final String CALL_ROWS = "rows";
    /** messages sent */
    public static final String CALL_MESSAGES = "messages";
    /** round trips */
    public static final String CALL_TRIPS = "trips";
    /** an execution that ended with an exception */
    public static final String CALL_FAILED = "failed";
    /** an execution of a batch; the total is the number of statements */
    public static final String CALL_BATCH = "batch";
    /** a transaction, or a borrow from a pool, that executed it more than ten times, each time with different parameters; the total is the number of executions */
    public static final String CALL_REPEATED = "repeated";
    /** bytes sent */
    public static final String CALL_SENT = "sent";
    /** bytes received */
    public static final String CALL_RECEIVED = "received";
    /** creating a prepared statement */
    public static final String CALL_PREPARE = "prepare";
    /** closing it */
    public static final String CALL_CLOSE = "close";
    /** an execution with a fetch size that the driver ignored, as with autocommit; the total is the number of rows received */
    public static final String CALL_UNFETCHED = "unfetched";
    /** a savepoint that the driver set for it (`autosave`); its value is the number of savepoints in the transaction so far */
    public static final String CALL_SAVEPOINT = "savepoint";

    private StatNames() {
    }
}
