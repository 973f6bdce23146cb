// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Map;
import org.pgtally.segment.Book;

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
    static final class Repetition {
        private long parameters;
        /** Executions with other parameters than the one before, and the first. */
        private int changes;
        private int executions;
        private int reported;

        /** Whether it has been repeated often enough, and executed since it was last reported. */
        private boolean isNews() {
            return changes > MANY && executions > reported;
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
     * @return its executions in this run, if they are to be reported; otherwise null
     */
    synchronized Repetition executed(SqlText statement, long parameters, boolean ofTransaction, boolean counts) {
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
            return null;
        }
        Repetition repetition = run.get(statement);
        if (repetition == null) {
            if (run.size() == MOST_STATEMENTS) {
                return null;
            }
            repetition = new Repetition();
            run.put(statement, repetition);
        }
        if (repetition.executions == 0 || repetition.parameters != parameters) {
            repetition.changes++;
            repetition.parameters = parameters;
        }
        repetition.executions++;
        return repetition.isNews() ? repetition : null;
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

    /**
     * Adds the executions since the last report to the figure at {@code at}, where each run counts once. To be called between
     * begin and publish of the book.
     *
     * @return their number; 0 if another thread has reported them
     */
    synchronized int report(Repetition repetition, Book book, int at) {
        int more = repetition.executions - repetition.reported;
        if (more > 0) {
            book.addPart(at, repetition.reported == 0, more, repetition.executions);
            repetition.reported = repetition.executions;
        }
        return more;
    }
}
