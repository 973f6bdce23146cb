// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.Arrays;
import org.pgtally.segment.Book;
import org.pgtally.segment.Segment;

/**
 * Where the statistics of methods are in one book.
 *
 * <p>Eight methods take a block of indexes: eight for inclusive times, which alone have histograms, then eight for
 * each other figure. So the histograms of a chunk are all in use, and the memory of the others is never needed.
 */
final class MethodIndexes {
    private static final int BLOCK = 8;

    private final Session session;
    private final Segment segment;
    private final Book book;
    private final int figures;
    private int[] indexes = {};
    /** By index: the method. */
    private int[] methods = {};
    /** By index: that of the failures. */
    private int[] failures = {};
    private int block;
    private int usedOfBlock = BLOCK;
    private int failureBlock;
    private int usedFailures = BLOCK;

    MethodIndexes(Session session, Book book) {
        this.session = session;
        this.segment = session.segment;
        this.book = book;
        figures = session.timesCpu() ? Methods.FIGURES_WITH_CPU : Methods.FIGURES;
    }

    /** The index of the method's inclusive time; negative: no space. */
    int touch(int method) {
        if (method >= indexes.length) {
            indexes = Arrays.copyOf(indexes, Math.max(method + 1, session.methods.size()));
        }
        if (indexes[method] == 0) {
            indexes[method] = place(method);
        }
        return indexes[method];
    }

    private int place(int method) {
        if (usedOfBlock == BLOCK) {
            int first = segment.grow(book, 0, session.keepsHistograms() ? BLOCK : 0, BLOCK * figures);
            if (first < 0) {
                return -1;
            }
            block = first;
            usedOfBlock = 0;
        }
        int at = block + usedOfBlock++;
        MethodName name = session.methods.name(method);
        segment.name(book, at, segment.timer(name.statistic("inclusive")));
        segment.name(book, at + Methods.EXCLUSIVE, segment.timer(name.statistic("exclusive")));
        segment.name(book, at + Methods.ACCOUNT, segment.account(name.account()));
        if (session.timesCpu()) {
            segment.name(book, at + Methods.CPU_INCLUSIVE, segment.timer(name.statistic("cpu_inclusive")));
            segment.name(book, at + Methods.CPU_EXCLUSIVE, segment.timer(name.statistic("cpu_exclusive")));
        }
        if (at >= methods.length) {
            methods = Arrays.copyOf(methods, at + 256);
            failures = Arrays.copyOf(failures, at + 256);
        }
        methods[at] = method;
        return at;
    }

    /** The index of the time of calls that ended by an exception; negative: no space. */
    int failures(int at) {
        if (failures[at] == 0) {
            failures[at] = placeFailures(methods[at]);
        }
        return failures[at];
    }

    private int placeFailures(int method) {
        if (usedFailures == BLOCK) {
            int first = segment.grow(book, 0, 0, BLOCK);
            if (first < 0) {
                return -1;
            }
            failureBlock = first;
            usedFailures = 0;
        }
        int at = failureBlock + usedFailures++;
        segment.name(book, at, segment.timer(session.methods.name(method).statistic("thrown")));
        return at;
    }
}
