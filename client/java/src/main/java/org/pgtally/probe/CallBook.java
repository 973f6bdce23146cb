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
    /** Time in the result's methods, without fetching, and their calls: those that were timed stand for the others. */
    static final int DECODE = 4 * Blocks.STEP;
    /** Rows received, per execution or fetch. */
    static final int ROWS = 5 * Blocks.STEP;
    static final int MESSAGES = 6 * Blocks.STEP;
    static final int TRIPS = 7 * Blocks.STEP;
    /** Executions that ended with an exception. */
    static final int FAILED = 8 * Blocks.STEP;
    /** Executions of several statements, or parameter sets, at once: their number. */
    static final int BATCH = 9 * Blocks.STEP;
    /** Repeated executions of the same statement with other parameters, in one transaction ({@link Wire}). */
    static final int REPEATED = 10 * Blocks.STEP;
    /** Bytes of the messages sent, and bytes received. */
    static final int SENT = 11 * Blocks.STEP;
    static final int RECEIVED = 12 * Blocks.STEP;
    /** The driver's work to create a prepared statement, and to close it. */
    static final int PREPARE = 13 * Blocks.STEP;
    static final int CLOSE = 14 * Blocks.STEP;
    /** Executions with a fetch size that the driver ignored, and the rows that they received at once. */
    static final int UNFETCHED = 15 * Blocks.STEP;
    /** Savepoints that the driver set by itself: how many there were in the transaction so far. */
    static final int SAVEPOINT = 16 * Blocks.STEP;

    final Book book;
    private final Segment segment;
    private final boolean histograms;
    private final Blocks blocks;
    private final SqlText others;
    private int[] indexes = {};
    private int poolWait;
    private int poolFailed;

    CallBook(Session session, Book book) {
        this.book = book;
        segment = session.segment;
        histograms = session.keepsHistograms();
        blocks = new Blocks(segment, book, CallFigures.COUNT, histograms);
        // First, so that statements that find no space are counted there.
        others = session.texts.others();
        at(others);
    }

    /** The index of the first figure of a statement, or of the other statements; negative if there is no space. */
    int at(SqlText statement) {
        if (statement.number >= indexes.length) {
            indexes = Arrays.copyOf(indexes, statement.number + 16);
        }
        if (indexes[statement.number] == 0) {
            indexes[statement.number] = place(statement);
        }
        return indexes[statement.number];
    }

    private int place(SqlText statement) {
        int at = blocks.next();
        if (at < 0) {
            return statement == others ? at : at(others);
        }
        for (int figure = 0; figure < CallFigures.COUNT; figure++) {
            segment.name(book, at + figure * Blocks.STEP, CallFigures.statistic(segment, figure, statement.id));
        }
        return at;
    }

    /** The index of the time that threads waited for a connection from a pool; negative if there is no space. */
    int poolWait() {
        if (poolWait == 0) {
            poolWait = pool(StatNames.POOL_WAIT);
        }
        return poolWait;
    }

    /** The same of those that ended with an exception. */
    int poolFailed() {
        if (poolFailed == 0) {
            poolFailed = pool(StatNames.POOL_FAILED);
        }
        return poolFailed;
    }

    private int pool(String name) {
        int at = new Blocks(segment, book, 1, histograms).next();
        if (at >= 0) {
            segment.name(book, at, segment.timer(name));
        }
        return at;
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
