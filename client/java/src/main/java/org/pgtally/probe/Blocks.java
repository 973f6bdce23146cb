// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import org.pgtally.segment.Book;
import org.pgtally.segment.Segment;

/**
 * Indexes of one book for things that have several figures each.
 *
 * <p>Eight things take a block of indexes: eight for their first figures, which alone may have histograms, then eight
 * for each other figure. So the histograms of a chunk are all in use, and the memory of the others is never needed.
 */
final class Blocks {
    /** From a thing's figure to its next. */
    static final int STEP = 8;

    private final Segment segment;
    private final Book book;
    private final int figures;
    private final boolean histograms;
    private int block;
    private int used = STEP;

    Blocks(Segment segment, Book book, int figures, boolean histograms) {
        this.segment = segment;
        this.book = book;
        this.figures = figures;
        this.histograms = histograms;
    }

    /** The index of the first figure of one more thing; negative: no space. */
    int next() {
        if (used == STEP) {
            int first = segment.grow(book, 0, histograms ? STEP : 0, STEP * figures);
            if (first < 0) {
                return -1;
            }
            block = first;
            used = 0;
        }
        return block + used++;
    }
}
