// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

/**
 * Called by the driver's instrumented methods, for statement statistics. The bootstrap loader loads it.
 *
 * <p>Exceptions thrown here do no harm: the callers suppress all of them.
 */
public final class Calls {
    /** The driver's flag for an execution that begins no transaction (QueryExecutor.QUERY_SUPPRESS_BEGIN). */
    private static final int SUPPRESS_BEGIN = 16;
    /** Its flag for an execution that only requests types (QueryExecutor.QUERY_DESCRIBE_ONLY). */
    private static final int DESCRIBE_ONLY = 32;
    private static final ThreadLocal<CallThread> THREADS = new ThreadLocal<>();

    private Calls() {
    }

    /** The state of the calling thread; null if nothing is measured. */
    private static CallThread thread() {
        Recorder recorder = Probe.recorder();
        if (recorder == null) {
            return null;
        }
        CallThread thread = THREADS.get();
        if (thread == null || !thread.isOf(recorder.session)) {
            thread = new CallThread(recorder.session, recorder);
            THREADS.set(thread);
        }
        return thread;
    }

    /** A connection has been opened. */
    public static void opened(Object executor) {
        if (Probe.isOn()) {
            Wires.opened(executor);
        }
    }

    /** A statement is executed; null if it is part of another call. */
    public static Object executes(Object executor, Object query, int flags) {
        CallThread thread = thread();
        if (thread == null) {
            return null;
        }
        boolean begins = (flags & DESCRIBE_ONLY) != 0 ? thread.beginsMore(executor, query)
                : thread.begins(executor, query, (flags & SUPPRESS_BEGIN) == 0, 0);
        return begins ? thread : null;
    }

    /** Several statements are executed. */
    public static Object executesBatch(Object executor, Object[] queries, int flags) {
        CallThread thread = thread();
        Object query = queries.length > 0 ? queries[0] : null;
        return thread != null && thread.begins(executor, query, (flags & SUPPRESS_BEGIN) == 0, queries.length)
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

    /** The call has ended. */
    public static void ended(Object call, Throwable thrown) {
        if (call != null) {
            ((CallThread) call).ends(thrown != null);
        }
    }

    /** A method that sends one message begins. */
    public static boolean sends() {
        CallThread thread = thread();
        return thread != null && thread.sends();
    }

    /** It has ended. */
    public static void sent(boolean before) {
        CallThread thread = THREADS.get();
        if (thread != null) {
            thread.sent(before);
        }
    }

    /** The driver sends a byte that may be a message's type. */
    public static void byteSent(int value) {
        CallThread thread = THREADS.get();
        if (thread != null) {
            thread.byteSent(value);
        }
    }

    /** The driver sends an integer that may be a message's length. */
    public static void integerSent(int value) {
        CallThread thread = THREADS.get();
        if (thread != null) {
            thread.integerSent(value);
        }
    }

    /** The driver sends the message that executes this query. */
    public static void cursorOf(Object query) {
        CallThread thread = THREADS.get();
        if (thread != null) {
            thread.cursorOf(query);
        }
    }

    /** The driver waits for the server, to read or to write. */
    public static long waits(boolean reads) {
        CallThread thread = THREADS.get();
        return thread == null ? 0 : thread.waits(reads);
    }

    /** It has read or written this many bytes. */
    public static void waited(long since, boolean reads, int bytes) {
        CallThread thread = THREADS.get();
        if (thread != null) {
            thread.waited(since, reads, bytes);
        }
    }

    /** A prepared statement is created or closed. */
    public static long prepares() {
        CallThread thread = thread();
        return thread == null ? 0 : thread.prepares();
    }

    /** It is this one in the driver's statement cache. */
    public static void preparesOf(Object cached) {
        CallThread thread = THREADS.get();
        if (thread != null) {
            thread.preparesOf(CachedQueries.query(cached));
        }
    }

    /** This work has ended. */
    public static void prepared(long since, boolean closes) {
        CallThread thread = THREADS.get();
        if (thread != null) {
            thread.prepared(since, closes);
        }
    }

    /** A row has been received. */
    public static void row() {
        CallThread thread = THREADS.get();
        if (thread != null) {
            thread.row();
        }
    }

    /** A method of a result begins. */
    public static Object decodes(Object query) {
        CallThread thread = thread();
        return thread != null && thread.decodes(query) ? thread : null;
    }

    /** It has ended. */
    public static void decoded(Object call, boolean isRow) {
        if (call != null) {
            ((CallThread) call).decoded(isRow);
        }
    }

    /** A connection is requested from a pool. */
    public static long waitsForPool() {
        CallThread thread = thread();
        return thread == null ? 0 : thread.waitsForPool();
    }

    /** The request has succeeded or failed. */
    public static void waitedForPool(long since) {
        CallThread thread = THREADS.get();
        if (thread != null) {
            thread.waitedForPool(since);
        }
    }
}
