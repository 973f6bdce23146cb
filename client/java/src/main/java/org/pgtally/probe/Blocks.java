// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import org.pgtally.segment.Book;
import org.pgtally.segment.Segment;

/**
 * Indexes in a book for items that have several figures each.
 *
 * <p>Eight items take a block of indexes: eight for their first figures, the only ones that may have histograms, then
 * eight for each further figure. So all histograms of a chunk are in use, and the others never need memory.
 */
final class Blocks {
    /** Distance from an item's figure to its next. */
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

    /** The index of the first figure of a new item; negative if there is no space. */
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
