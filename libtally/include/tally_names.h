/* SPDX-License-Identifier: PostgreSQL */
/*
 * tally_names.h
 *	  The names of statistics, up to the first tag that varies.
 *
 * Generated from format/statistics.toml by `make generate`; do not edit.
 */
#ifndef TALLY_NAMES_H
#define TALLY_NAMES_H

#define TALLY_STAT_OVERFLOW "other::overflow"	/* accounts for which a book or the directory has no space */
#define TALLY_STAT_OFF "off::uninstrumented"	/* time at level off */
#define TALLY_STAT_APPLICATION_IDLE "idle::application"	/* a client's thread is in no timed method */
#define TALLY_STAT_COLLECTION_PAUSE "pause::garbage collection"	/* a virtual machine stops all threads to collect garbage */
#define TALLY_STAT_OTHER_PAUSE "pause::other safepoint"	/* a virtual machine stops all threads for another reason */
#define TALLY_STAT_COMMAND "command::"	/* command::MESSAGE::PART: a client's message of that kind */
#define TALLY_STAT_COMMIT_LEADER "commit::leader"	/* a commit whose backend flushed the WAL itself */
#define TALLY_STAT_COMMIT_GROUP "commit::group_committed"	/* a commit whose WAL was flushed together with that of another commit */
#define TALLY_STAT_COMMIT_ASYNCHRONOUS "commit::asynchronous"	/* a commit that did not wait for a flush (`synchronous_commit = off`) */
#define TALLY_STAT_COMMIT_INSERTION "commit::insertion"	/* part of a commit: inserting its WAL record; only at level `locks` */
#define TALLY_STAT_COMMIT_INSERT "commit::insert"	/* part: waiting for WAL buffers, and for other processes to insert their WAL */
#define TALLY_STAT_COMMIT_QUEUE "commit::queue"	/* part: waiting for the turn to flush, or for the leader's flush */
#define TALLY_STAT_COMMIT_DELAY "commit::delay"	/* part: sleeping for `commit_delay` */
#define TALLY_STAT_COMMIT_WRITE "commit::write"	/* part: writing the WAL */
#define TALLY_STAT_COMMIT_SYNC "commit::sync"	/* part: syncing the WAL */
#define TALLY_STAT_COMMIT_REPLICATION "commit::replication"	/* part: waiting for synchronous standbys */
#define TALLY_STAT_CHECKPOINT_TOTAL "checkpoint::total"	/* a checkpoint or restartpoint */
#define TALLY_STAT_CHECKPOINT_WRITE "checkpoint::write"	/* part: writing buffers, including the pauses between writes */
#define TALLY_STAT_CHECKPOINT_SYNC "checkpoint::sync"	/* part: syncing files */
#define TALLY_STAT_WAL_RECORDS "wal::records"	/* WAL records inserted */
#define TALLY_STAT_WAL_IMAGES "wal::full_page_images"	/* full-page images inserted */
#define TALLY_STAT_WAL_BYTES "wal::bytes"	/* WAL inserted */
#define TALLY_STAT_WAL_BUFFERS_FULL "wal::buffers_full"	/* number of times that the process wrote WAL because the WAL buffers were full */
#define TALLY_STAT_FILE "file::"	/* file::KIND::OPERATION::PHASE: an operation on a file; `KIND@TABLESPACE` outside the default tablespace, `OPERATION failed` if it failed */
#define TALLY_STAT_LWLOCK "lwlock::"	/* lwlock::TRANCHE::FIGURE::PHASE::MODE: a lightweight lock */
#define TALLY_STAT_DEADLOCK_CHECK "lock::deadlock::check::"	/* lock::deadlock::check::PHASE: a check for deadlocks */
#define TALLY_STAT_LOCK "lock::"	/* lock::TYPE::wait::PHASE::MODE: a wait for a heavyweight lock */
#define TALLY_STAT_SPIN_DELAY "spin::delay::"	/* spin::delay::PHASE: a sleep while another process holds a spinlock */
#define TALLY_STAT_FUNCTION "function::"	/* function::NAME::FIGURE::PHASE: a call of a timed function; of a client's method: its package instead of the phase */
#define TALLY_STAT_EDGE "edge::"	/* edge::CALLER::CALLEE: a call from one timed function to another */
#define TALLY_STAT_POOL_WAIT "call::pool::wait"	/* a wait for a connection from a pool */
#define TALLY_STAT_POOL_FAILED "call::pool::failed"	/* a wait for a connection from a pool that ended with an exception */
#define TALLY_STAT_CONNECTIONS_OPEN "connections::open"	/* a client's open connections; a sample, about once a second */
#define TALLY_STAT_CONNECTIONS_BORROWED "connections::borrowed"	/* connections that pools have handed out; the maximum is exact */
#define TALLY_STAT_CONNECTIONS_UNUSED "connections::unused"	/* connections handed out that have executed nothing for a long time */
#define TALLY_STAT_CALL "call::"	/* call::FIGURE::ID: an execution of a client's statement; figures other than times are values */
#define TALLY_STAT_COLLECTION "gc::"	/* gc::COLLECTOR: a garbage collection */
#define TALLY_STAT_COLLECTION_STOP "stop::garbage collection"	/* a whole pause of a virtual machine for garbage collection; counted at its end */
#define TALLY_STAT_APPLICATION "application::"	/* application::NAME: an application whose statements are counted separately */
#define TALLY_STAT_TRANCHE "tranche::"	/* tranche::NUMBER::NAME: a tranche of lightweight locks */
#define TALLY_STAT_TRACED_FILE "trace::"	/* trace::KIND: a kind of file in the records of a trace */
#define TALLY_STAT_SQL "sql::"	/* sql::ID::NUMBER::TEXT: a piece of the text of a client's statement */
#define TALLY_STAT_COMMAND_READ "read"	/* reading it, from its first byte on */
#define TALLY_STAT_COMMAND_HANDLE "handle"	/* handling it, until the server reads the next one */
#define TALLY_STAT_LWLOCK_HELD "held"	/* from its acquisition to its release */
#define TALLY_STAT_LWLOCK_ACQUIRE "acquire"	/* acquiring it */
#define TALLY_STAT_LWLOCK_WAIT "wait"	/* part of acquiring it: waiting */
#define TALLY_STAT_LWLOCK_FAILED "failed"	/* an attempt that did not wait, and failed */
#define TALLY_STAT_FUNCTION_INCLUSIVE "inclusive"	/* with the timed functions that it calls */
#define TALLY_STAT_FUNCTION_EXCLUSIVE "exclusive"	/* without them */
#define TALLY_STAT_FUNCTION_COUNTED "counted"	/* a call that was only counted */
#define TALLY_STAT_FUNCTION_THROWN "thrown"	/* a call that ended with an exception */
#define TALLY_STAT_FUNCTION_CPU_INCLUSIVE "cpu_inclusive"	/* CPU time, with the timed functions that it calls */
#define TALLY_STAT_FUNCTION_CPU_EXCLUSIVE "cpu_exclusive"	/* CPU time, without them */
#define TALLY_STAT_CALL_EXECUTE "execute"	/* from its start to the end of the response */
#define TALLY_STAT_CALL_FIRST "first"	/* part: until the first response */
#define TALLY_STAT_CALL_FETCH "fetch"	/* a further call for rows of a cursor, data of a COPY, or types of parameters */
#define TALLY_STAT_CALL_WAIT "wait"	/* in reads and writes of the socket */
#define TALLY_STAT_CALL_DECODE "decode"	/* decoding values */
#define TALLY_STAT_CALL_ROWS "rows"	/* rows received; rows of a COPY, which count at its end */
#define TALLY_STAT_CALL_MESSAGES "messages"	/* messages sent */
#define TALLY_STAT_CALL_TRIPS "trips"	/* round trips */
#define TALLY_STAT_CALL_FAILED "failed"	/* an execution that ended with an exception */
#define TALLY_STAT_CALL_BATCH "batch"	/* an execution of a batch; the total is the number of statements */
#define TALLY_STAT_CALL_REPEATED "repeated"	/* a transaction, or a borrow from a pool, that executed it more than ten times, each time with different parameters; the total is the number of executions */
#define TALLY_STAT_CALL_SENT "sent"	/* bytes sent */
#define TALLY_STAT_CALL_RECEIVED "received"	/* bytes received */
#define TALLY_STAT_CALL_PREPARE "prepare"	/* creating a prepared statement */
#define TALLY_STAT_CALL_CLOSE "close"	/* closing it */
#define TALLY_STAT_CALL_UNFETCHED "unfetched"	/* an execution with a fetch size that the driver ignored, as with autocommit; the total is the number of rows received */
#define TALLY_STAT_CALL_SAVEPOINT "savepoint"	/* a savepoint that the driver set for it (`autosave`); its value is the number of savepoints in the transaction so far */

#endif							/* TALLY_NAMES_H */
