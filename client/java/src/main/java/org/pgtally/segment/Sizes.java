// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

/** Sizes in bytes that follow from {@link Layout}, and the parts of a level word. */
final class Sizes {
    static final long PAGE = 4096;

    static final int OCTAVES = Layout.HIST_BUCKETS / Layout.OCTAVE;
    /** Distance from an octave of a histogram to the next. */
    static final int ROW_BYTES = Layout.ROW * 8;
    static final int CHUNK_BYTES = OCTAVES * ROW_BYTES;

    /** The bits of the level word that are the level. */
    static final int LEVEL = 0xf;

    private Sizes() {
    }

    /** The number of resets in a level word. */
    static int resets(int word) {
        return word >>> 16;
    }

    static long roundUp(long value, long unit) {
        return (value + unit - 1) / unit * unit;
    }

    /** Size of a book with this many statistics. */
    static int bookStride(int statistics) {
        long chunks = (statistics + Layout.CHUNK - 1) / Layout.CHUNK;
        return (int) roundUp(Layout.BOOK_SIZE + (long) statistics * Layout.HEAD_SIZE + chunks * CHUNK_BYTES, PAGE);
    }
}
