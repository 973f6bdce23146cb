// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.ref.WeakReference;
import java.util.HashMap;
import java.util.Map;
import java.util.function.BiConsumer;

/**
 * A connection of the driver. Used by one thread at a time: the driver locks it.
 *
 * <p>It counts how often a statement was executed in a transaction with one row at most, which one statement could have
 * done. Outside transactions, executions without another statement in between count.
 */
final class Wire {
    private static final int MOST_STATEMENTS = 64;
    private static final int MANY = 10;

    /** The driver's object. */
    final WeakReference<Object> executor;
    /** The server's process; 0: not known. */
    final int pid;
    /** Whether all of its messages were seen. */
    boolean whole;
    /** Messages sent, without the data of COPY. */
    long sent;
    /** What is copied now. */
    SqlText copied;

    private final Map<SqlText, int[]> repeated = new HashMap<>();
    private SqlText last;

    Wire(Object executor, int pid, boolean whole) {
        this.executor = new WeakReference<>(executor);
        this.pid = pid;
        this.whole = whole;
    }

    /** A statement was executed. {@code ended} gets statements that were executed often, and how often. */
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
