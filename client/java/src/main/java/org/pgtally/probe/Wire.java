// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Map;
import java.util.function.BiConsumer;

/**
 * A connection of the driver. Used by one thread at a time, because the driver locks it.
 *
 * <p>It counts repeated executions of a statement in a transaction with at most one row each, which a single statement could
 * have replaced. Outside transactions, executions without another statement in between count.
 */
final class Wire {
    private static final int MOST_STATEMENTS = 64;
    private static final int MANY = 10;

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

    private final Map<SqlText, int[]> repeated = new HashMap<>();
    private SqlText last;

    Wire(Object executor, int pid, boolean whole) {
        this.executor = new WeakReference<>(executor);
        this.pid = pid;
        this.whole = whole;
    }

    /** A statement was executed. {@code ended} receives statements that were executed repeatedly, with their number. */
    void executed(SqlText statement, boolean single, boolean inTransaction, BiConsumer<SqlText, Integer> ended) {
        if (statement.endsTransaction || !inTransaction && statement != last) {
            repeated.forEach((it, count) -> {
                if (count[0] > MANY) {
                    ended.accept(it, count[0]);
                }
            });
            repeated.clear();
        }
        last = statement;
        if (single && !statement.endsTransaction && repeated.size() < MOST_STATEMENTS) {
            repeated.computeIfAbsent(statement, it -> new int[1])[0]++;
        }
    }
}
