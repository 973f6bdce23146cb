// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.Arrays;
import org.pgtally.segment.Book;
import org.pgtally.segment.Segment;
import org.pgtally.segment.StatNames;

/** Statement statistics in a book: {@code call::FIGURE::ID}. */
final class CallBook {
    /** Executions, from beginning to end; the only figure with a histogram. */
    static final int EXECUTE = 0;
    /** From the beginning of an execution to the server's first answer. */
    static final int FIRST = Blocks.STEP;
    /** Further calls: rows of a cursor, data of a COPY, types of parameters. */
    static final int FETCH = 2 * Blocks.STEP;
    /** Time of both, waiting for the server. */
    static final int WAIT = 3 * Blocks.STEP;
    /** Time in the result's methods, without fetching; the count is the number of rows requested. */
    static final int DECODE = 4 * Blocks.STEP;
    /** Rows received, per execution or fetch. */
    static final int ROWS = 5 * Blocks.STEP;
    static final int MESSAGES = 6 * Blocks.STEP;
    static final int TRIPS = 7 * Blocks.STEP;
    /** Executions that ended with an exception. */
    static final int FAILED = 8 * Blocks.STEP;
    /** Executions of several statements, or parameter sets, at once: their number. */
    static final int BATCH = 9 * Blocks.STEP;
    /** Repeated executions of the same statement in one transaction, with at most one row each. */
    static final int REPEATED = 10 * Blocks.STEP;
    /** Bytes of the messages sent, and bytes received. */
    static final int SENT = 11 * Blocks.STEP;
    static final int RECEIVED = 12 * Blocks.STEP;
    /** The driver's work to create a prepared statement, and to close it. */
    static final int PREPARE = 13 * Blocks.STEP;
    static final int CLOSE = 14 * Blocks.STEP;
    private static final int FIGURES = 15;

    final Book book;
    private final Segment segment;
    private final boolean histograms;
    private final Blocks blocks;
    private int[] indexes = {};
    private int poolWait;

    CallBook(Session session, Book book) {
        this.book = book;
        segment = session.segment;
        histograms = session.keepsHistograms();
        blocks = new Blocks(segment, book, FIGURES, histograms);
    }

    /** The index of the first figure of a statement; negative if there is no space. */
    int at(SqlText statement) {
        if (statement.number >= indexes.length) {
            indexes = Arrays.copyOf(indexes, statement.number + 16);
        }
        if (indexes[statement.number] == 0) {
            indexes[statement.number] = place(statement.id);
        }
        return indexes[statement.number];
    }

    private int place(String id) {
        int at = blocks.next();
        if (at >= 0) {
            timer(at + EXECUTE, StatNames.CALL_EXECUTE, id);
            timer(at + FIRST, StatNames.CALL_FIRST, id);
            timer(at + FETCH, StatNames.CALL_FETCH, id);
            timer(at + WAIT, StatNames.CALL_WAIT, id);
            timer(at + DECODE, StatNames.CALL_DECODE, id);
            value(at + ROWS, StatNames.CALL_ROWS, id);
            value(at + MESSAGES, StatNames.CALL_MESSAGES, id);
            value(at + TRIPS, StatNames.CALL_TRIPS, id);
            timer(at + FAILED, StatNames.CALL_FAILED, id);
            value(at + BATCH, StatNames.CALL_BATCH, id);
            value(at + REPEATED, StatNames.CALL_REPEATED, id);
            value(at + SENT, StatNames.CALL_SENT, id);
            value(at + RECEIVED, StatNames.CALL_RECEIVED, id);
            timer(at + PREPARE, StatNames.CALL_PREPARE, id);
            timer(at + CLOSE, StatNames.CALL_CLOSE, id);
        }
        return at;
    }

    private void timer(int at, String figure, String id) {
        segment.name(book, at, segment.timer(SqlText.statistic(figure, id)));
    }

    private void value(int at, String figure, String id) {
        segment.name(book, at, segment.value(SqlText.statistic(figure, id), figure));
    }

    /** The index of the time that threads waited for a connection from a pool; negative if there is no space. */
    int poolWait() {
        if (poolWait == 0) {
            poolWait = new Blocks(segment, book, 1, histograms).next();
            if (poolWait >= 0) {
                segment.name(book, poolWait, segment.timer(StatNames.POOL_WAIT));
            }
        }
        return poolWait;
    }

    /** Adds a time to a statistic, with its histogram if histograms are on. */
    void addTime(int at, long ns) {
        if (histograms) {
            book.addWithHistogram(at, ns);
        } else {
            book.addPlain(at, ns);
        }
    }
}
