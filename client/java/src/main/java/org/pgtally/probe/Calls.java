// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.Collection;

/**
 * Called by the driver's instrumented methods, for statement statistics. The bootstrap loader loads it.
 *
 * <p>Exceptions thrown here do no harm: the callers suppress all of them, except where a method says that it does.
 */
public final class Calls {
    /** The driver's flag for an execution that begins no transaction (QueryExecutor.QUERY_SUPPRESS_BEGIN). */
    private static final int SUPPRESS_BEGIN = 16;
    /** Its flag for an execution whose rows can be fetched in parts (QueryExecutor.QUERY_FORWARD_CURSOR). */
    private static final int FORWARD_CURSOR = 8;
    /** Its flag for an execution that only requests types (QueryExecutor.QUERY_DESCRIBE_ONLY). */
    private static final int DESCRIBE_ONLY = 32;
    /** Later rows of an answer: one in this many is timed, a power of two. */
    static final int ROWS = 256;

    /** What {@link #sends} returns within a method that sends another message. */
    private static final Object WITHIN = new Object();

    private Calls() {
    }

    /** The state of the calling thread; null if nothing is measured. */
    private static CallThread thread() {
        Recorder recorder = Probe.recorder();
        return recorder == null ? null : recorder.calls();
    }

    /** The state of the calling thread; null if no call of the driver has begun in it. */
    private static CallThread threadSoFar() {
        Recorder recorder = Probe.lastRecorder();
        return recorder == null ? null : recorder.callsSoFar();
    }

    /** A connection has been opened. */
    public static void opened(Object executor) {
        if (Probe.isOn()) {
            Wires.opened(executor);
        }
    }

    /** A statement is executed, with this fetch size; null if it is part of another call. */
    public static Object executes(Object executor, Object query, Object parameters, int fetchSize, int flags) {
        Object call = executes(executor, query, parameters, flags);
        if (call != null && fetchSize > 0 && (flags & (FORWARD_CURSOR | DESCRIBE_ONLY)) == 0) {
            ((CallThread) call).ignoresFetchSize(fetchSize);
        }
        return call;
    }

    /** A statement is executed; null if it is part of another call. */
    public static Object executes(Object executor, Object query, Object parameters, int flags) {
        CallThread thread = thread();
        if (thread == null) {
            return null;
        }
        boolean begins = (flags & DESCRIBE_ONLY) != 0 ? thread.beginsMore(executor, query)
                : thread.begins(executor, query, parameters, (flags & SUPPRESS_BEGIN) == 0, 0);
        return begins ? thread : null;
    }

    /** Several statements are executed. */
    public static Object executesBatch(Object executor, Object[] queries, int flags) {
        CallThread thread = thread();
        Object query = queries.length > 0 ? queries[0] : null;
        return thread != null && thread.begins(executor, query, null, (flags & SUPPRESS_BEGIN) == 0, queries.length)
                ? thread : null;
    }

    /** Rows of a cursor are fetched. */
    public static Object fetches(Object executor) {
        CallThread thread = thread();
        return thread != null && thread.beginsMore(executor, null) ? thread : null;
    }

    /** A COPY begins or, without its text, continues. */
    public static Object copies(Object executor, String sql) {
        CallThread thread = thread();
        return thread != null && thread.beginsCopy(executor, sql) ? thread : null;
    }

    /** A part of a COPY is over, of the driver's object for it. */
    public static void copied(Object call, Object operation) {
        if (call != null) {
            ((CallThread) call).copied(CopyRows.of(operation));
        }
    }

    /** The call has ended. */
    public static void ended(Object call, Throwable thrown) {
        if (call != null) {
            ((CallThread) call).ends(thrown != null);
        }
    }

    /** A method that sends one message begins; returns the argument for {@link #sent}. */
    public static Object sends() {
        CallThread thread = threadSoFar();
        return thread == null ? null : thread.sends() ? WITHIN : thread;
    }

    /** It has ended. */
    public static void sent(Object begun) {
        if (begun == WITHIN) {
            sent(true);
        } else if (begun != null) {
            ((CallThread) begun).sent(false);
        }
    }

    /** A part of a COPY, which may have sent messages, has ended. */
    public static void sentCopy() {
        sent(false);
    }

    private static void sent(boolean before) {
        CallThread thread = threadSoFar();
        if (thread != null) {
            thread.sent(before);
        }
    }

    /** The driver sends a byte that may be a message's type. */
    public static void byteSent(int value) {
        CallThread thread = threadSoFar();
        if (thread != null) {
            thread.byteSent(value);
        }
    }

    /** The driver sends an integer that may be a message's length. */
    public static void integerSent(int value) {
        CallThread thread = threadSoFar();
        if (thread != null) {
            thread.integerSent(value);
        }
    }

    /** The driver sends the message that executes this query. */
    public static void cursorOf(Object query) {
        CallThread thread = threadSoFar();
        if (thread != null) {
            thread.cursorOf(query);
        }
    }

    /** The driver waits for the server, to read or to write. */
    public static long waits(boolean reads) {
        CallThread thread = threadSoFar();
        return thread == null ? 0 : thread.waits(reads);
    }

    /** It has read or written this many bytes. */
    public static void waited(long since, boolean reads, int bytes) {
        CallThread thread = threadSoFar();
        if (thread != null) {
            thread.waited(since, reads, bytes);
        }
    }

    /** Whether a read of so many bytes, of which so many are in the driver's buffer, waits for the server and is to be timed. */
    public static boolean waitsForMore(int length, int buffered) {
        return length > buffered && beginsWait(buffered);
    }

    private static boolean beginsWait(int buffered) {
        try {
            CallThread thread = threadSoFar();
            return thread != null && thread.waitsForMore(buffered);
        } catch (Throwable e) {
            return false;
        }
    }

    /** It has got so many bytes, or -1; so many are in the buffer now. */
    public static void gotMore(int bytes, int buffered) {
        try {
            CallThread thread = threadSoFar();
            if (thread != null) {
                thread.gotMore(bytes, buffered);
            }
        } catch (Throwable e) {
            // The driver has what it has read.
        }
    }

    /** It has failed. */
    public static void gotNothing() {
        gotMore(0, 0);
    }

    /** A prepared statement is created or closed. */
    public static long prepares() {
        CallThread thread = thread();
        return thread == null ? 0 : thread.prepares();
    }

    /** It is this one in the driver's statement cache. */
    public static void preparesOf(Object cached) {
        CallThread thread = threadSoFar();
        if (thread != null) {
            thread.preparesOf(CachedQueries.query(cached));
        }
    }

    /** This work has ended. */
    public static void prepared(long since, boolean closes) {
        CallThread thread = threadSoFar();
        if (thread != null) {
            thread.prepared(since, closes);
        }
    }

    /** All rows of an answer have been received, or as many as were requested: a list, or null. */
    public static void rows(Object all) {
        try {
            CallThread thread = threadSoFar();
            if (thread != null && all instanceof Collection) {
                thread.rows(((Collection<?>) all).size());
            }
        } catch (Throwable e) {
            // The driver goes on.
        }
    }

    /**
     * Whether this call of a result's method, at this row, is to be timed; the first row is 0. Methods of a later row are timed for
     * one row in {@link #ROWS}: which ones differs from result to result. Nothing else happens here for the others.
     */
    public static boolean decodes(Object result, int row) {
        return (row <= 0 || (row + System.identityHashCode(result) & ROWS - 1) == 0) && beginsDecoding(result, row);
    }

    private static boolean beginsDecoding(Object result, int row) {
        try {
            CallThread thread = thread();
            return thread != null && thread.decodes(result, row > 0 ? ROWS : 0);
        } catch (Throwable e) {
            return false;
        }
    }

    /** The call that is timed has ended; the result is of this statement. */
    public static void decoded(Object query) {
        try {
            CallThread thread = threadSoFar();
            if (thread != null) {
                thread.decoded(query);
            }
        } catch (Throwable e) {
            // The application's call has succeeded.
        }
    }

    /** A connection is requested from a pool. */
    public static long waitsForPool() {
        CallThread thread = thread();
        return thread == null ? 0 : thread.waitsForPool();
    }

    /** The request has succeeded or failed. */
    public static void waitedForPool(long since, Throwable thrown) {
        CallThread thread = threadSoFar();
        if (thread != null) {
            thread.waitedForPool(since, thrown != null);
        }
    }

    /** The driver has set a savepoint by itself, for the statement that it is about to send. */
    public static void savepoint() {
        CallThread thread = threadSoFar();
        if (thread != null) {
            thread.savepoint();
        }
    }

    /** A pool has handed out this connection, an object of its own or the driver's; null if it has not. */
    public static void borrowed(Object pool, Object connection) {
        if (connection != null && Probe.isOn()) {
            Wires.borrowed(pool, connection);
        }
    }

    /** A connection, or the pool's object that has it, is returned to its pool. */
    public static void returned(Object connection) {
        if (connection != null && Probe.isOn()) {
            Wires.returned(connection);
        }
    }
}
