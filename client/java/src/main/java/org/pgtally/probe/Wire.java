// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Map;

/**
 * A connection of the driver. Threads may share it: the driver locks it while it uses the socket, but since 42.6 a call
 * of the driver begins before it gets that lock, and ends after it has released it. So the messages are counted while
 * the driver holds its lock, and the run has a lock of its own.
 *
 * <p>It finds statements that are executed again and again with other parameters, which a single statement or a batch could
 * have replaced: more than {@link #MANY} times in a run. A run is a transaction. Outside transactions it lasts until a pool
 * hands out the connection again; without a pool, until another statement is executed.
 */
final class Wire {
    static final int MANY = 10;
    private static final int MOST_STATEMENTS = 64;

    /** The driver's object. */
    final WeakReference<Object> executor;
    /** The server process; 0 if unknown. */
    final int pid;
    /** True if all of its messages were seen. */
    volatile boolean whole;
    /** Number of messages sent, without COPY data. Written while the driver has locked the connection. */
    long sent;
    /** The COPY in progress, or the last one. */
    volatile SqlText copied;
    /** Whether its rows have been counted. */
    volatile boolean copyCounted;

    /** Savepoints of the transaction that the driver has set by itself. */
    private volatile int savepoints;
    private final Map<SqlText, Repetition> run = new HashMap<>();
    private SqlText last;
    private boolean inTransaction;
    /** The application has begun a transaction by a statement of its own. */
    private boolean begun;
    /** Set by the thread that gets the connection from a pool, before it uses it. */
    private volatile boolean borrowed;
    private boolean pooled;
    /** The pool that handed it out last, an object of the application. */
    private WeakReference<Object> pool = new WeakReference<>(null);
    /** Null while it is in its pool, and without one. */
    private volatile Borrow borrow;
    /** Whether a call is in progress, and when the last one ended. Other threads may see that late. */
    private boolean inCall;
    private long used;

    /** The executions of a statement in a run. */
    private static final class Repetition {
        private long parameters;
        /** Executions with other parameters than the one before, and the first. */
        private int changes;
        private int executions;
        private int reported;

        private long report() {
            if (changes <= MANY) {
                return 0;
            }
            int more = executions - reported;
            reported = executions;
            return (long) executions << Integer.SIZE | more;
        }
    }

    Wire(Object executor, int pid, boolean whole) {
        this.executor = new WeakReference<>(executor);
        this.pid = pid;
        this.whole = whole;
    }

    /** This pool has handed it out to the calling thread. */
    void borrowed(Object by) {
        borrowed = true;
        if (pool.get() != by) {
            pool = new WeakReference<>(by);
        }
        borrow = new Borrow(Thread.currentThread(), System.nanoTime());
    }

    /** It is about to be returned to its pool. */
    void returned() {
        borrow = null;
    }

    /** How it was handed out; null if it was not, or has been returned. */
    Borrow borrow() {
        return borrow;
    }

    /** The pool that handed it out last; null if there was none, or the application has dropped it. */
    Object pool() {
        return pool.get();
    }

    /** A call begins. */
    void begins() {
        inCall = true;
    }

    /** It has ended. */
    void ended(long now) {
        used = now;
        inCall = false;
    }

    /** When it was last used, or borrowed; {@code now} during a call. */
    long lastUse(Borrow borrowed, long now) {
        return inCall ? now : Math.max(used, borrowed.since);
    }

    /**
     * A statement was executed; {@code ofTransaction}: the driver has begun a transaction for it, or it is in one.
     *
     * @return how many executions of this run are to be reported now, which counts as done; in the upper 32 bits, how many there have
     *         been in the run. 0: none is
     */
    synchronized long executed(SqlText statement, long parameters, boolean ofTransaction, boolean counts) {
        boolean transaction = ofTransaction || begun;
        if (statement.role != SqlText.Role.PLAIN || borrowed || transaction != inTransaction
                || !transaction && !pooled && statement != last) {
            run.clear();
        }
        if (borrowed) {
            pooled = true;
            borrowed = false;
        }
        begun = statement.role == SqlText.Role.BEGINS || begun && statement.role == SqlText.Role.PLAIN;
        inTransaction = begun || ofTransaction && statement.role == SqlText.Role.PLAIN;
        last = statement;
        if (!counts || !statement.repeatable) {
            return 0;
        }
        Repetition repetition = run.get(statement);
        if (repetition == null) {
            if (run.size() == MOST_STATEMENTS) {
                return 0;
            }
            repetition = new Repetition();
            run.put(statement, repetition);
        }
        if (repetition.executions == 0 || repetition.parameters != parameters) {
            repetition.changes++;
            repetition.parameters = parameters;
        }
        repetition.executions++;
        return repetition.report();
    }

    /** Whether the driver has set savepoints by itself in this transaction. */
    boolean hasSavepoints() {
        return savepoints > 0;
    }

    /** This execution has set so many savepoints; returns how many there are in the transaction. */
    synchronized int savepoints(SqlText statement, int more) {
        int all = savepoints + more;
        savepoints = statement.role == SqlText.Role.ENDS ? 0 : all;
        return all;
    }
}
