// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Map;

/**
 * A connection of the driver. Used by one thread at a time, because the driver locks it.
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
    boolean whole;
    /** Number of messages sent, without COPY data. */
    long sent;
    /** The COPY in progress. */
    SqlText copied;

    private final Map<SqlText, Repetition> run = new HashMap<>();
    private SqlText last;
    private boolean inTransaction;
    /** The application has begun a transaction by a statement of its own. */
    private boolean begun;
    /** Set by the thread that gets the connection from a pool, before it uses it. */
    private volatile boolean borrowed;
    private boolean pooled;

    /** The executions of a statement in a run. */
    static final class Repetition {
        private long parameters;
        /** Executions with other parameters than the one before, and the first. */
        private int changes;
        private int executions;
        private int reported;

        /** Whether it has been repeated often enough, and executed since it was last reported. */
        boolean isNews() {
            return changes > MANY && executions > reported;
        }

        int executions() {
            return executions;
        }

        boolean isReported() {
            return reported > 0;
        }

        /** Returns the number of executions since the last report. */
        int report() {
            int more = executions - reported;
            reported = executions;
            return more;
        }
    }

    Wire(Object executor, int pid, boolean whole) {
        this.executor = new WeakReference<>(executor);
        this.pid = pid;
        this.whole = whole;
    }

    /** A pool has handed it out. */
    void borrowed() {
        borrowed = true;
    }

    /**
     * A statement was executed; {@code ofTransaction}: the driver has begun a transaction for it, or it is in one.
     *
     * @return its executions in this run; null if they do not count
     */
    Repetition executed(SqlText statement, long parameters, boolean ofTransaction, boolean counts) {
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
        return repetition;
    }
}
