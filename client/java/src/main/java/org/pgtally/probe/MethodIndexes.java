// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.Arrays;
import org.pgtally.segment.Book;
import org.pgtally.segment.Segment;
import org.pgtally.segment.StatNames;

/** Indexes in a book for the statistics of methods. */
final class MethodIndexes {
    private final Session session;
    private final Segment segment;
    private final Book book;
    private final Blocks blocks;
    private final Blocks blocksOfFailures;
    private final EdgeIndexes edges;
    private int[] indexes = {};
    /** By index: the method. */
    private int[] methods = {};
    /** By index: the index of the failures. */
    private int[] failures = {};

    MethodIndexes(Session session, Book book) {
        this.session = session;
        this.segment = session.segment;
        this.book = book;
        int figures = session.timesCpu() ? Methods.FIGURES_WITH_CPU : Methods.FIGURES;
        blocks = new Blocks(segment, book, figures, session.keepsHistograms());
        blocksOfFailures = new Blocks(segment, book, 1, false);
        edges = new EdgeIndexes(segment, book);
    }

    /** The index of the method's inclusive time; negative if there is no space. */
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
        int at = blocks.next();
        if (at < 0) {
            return -1;
        }
        MethodName name = session.methods.name(method);
        segment.name(book, at, segment.timer(name.statistic(StatNames.FUNCTION_INCLUSIVE)));
        segment.name(book, at + Methods.EXCLUSIVE, segment.timer(name.statistic(StatNames.FUNCTION_EXCLUSIVE)));
        segment.name(book, at + Methods.ACCOUNT, segment.account(name.account()));
        if (session.timesCpu()) {
            segment.name(book, at + Methods.CPU_INCLUSIVE, segment.timer(name.statistic(StatNames.FUNCTION_CPU_INCLUSIVE)));
            segment.name(book, at + Methods.CPU_EXCLUSIVE, segment.timer(name.statistic(StatNames.FUNCTION_CPU_EXCLUSIVE)));
        }
        if (at >= methods.length) {
            methods = Arrays.copyOf(methods, at + 256);
            failures = Arrays.copyOf(failures, at + 256);
        }
        methods[at] = method;
        return at;
    }

    /** The index of the time of calls that ended with an exception; negative if there is no space. */
    int failures(int at) {
        if (failures[at] == 0) {
            failures[at] = placeFailures(methods[at]);
        }
        return failures[at];
    }

    private int placeFailures(int method) {
        int at = blocksOfFailures.next();
        if (at < 0) {
            return -1;
        }
        segment.name(book, at, segment.timer(session.methods.name(method).statistic(StatNames.FUNCTION_THROWN)));
        return at;
    }

    /** The index of the time of a method's calls from another; negative if there is no space. */
    int edge(int caller, int callee) {
        int at = edges.find(caller, callee);
        return at != 0 ? at : edges.add(caller, callee, session.methods.name(methods[caller])
                .edge(session.methods.name(methods[callee])));
    }
}
