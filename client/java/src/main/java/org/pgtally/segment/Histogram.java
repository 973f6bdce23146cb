// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

/** The position of a value in a histogram of a book (FORMAT.md, section 5). */
final class Histogram {
    private static final long LAST = Layout.HIST_BUCKETS - 1;

    private Histogram() {
    }

    /** The bucket of a value. */
    static int bucket(long value) {
        int octave = 63 - Long.numberOfLeadingZeros(value | 8);
        if (octave > 43 || value < 0) {
            return (int) LAST;
        }
        return octave * 8 + (int) ((value << 3) >>> octave) - 24;
    }

    /** Offset of a statistic's histogram from the beginning of the book, in bytes. */
    static int begin(int statisticsPerBook, int index) {
        return Layout.BOOK_SIZE + statisticsPerBook * Layout.HEAD_SIZE + index / Layout.CHUNK * Sizes.CHUNK_BYTES
                + index % Layout.CHUNK * Layout.OCTAVE * 8;
    }

    /** Offset of a bucket from there, in bytes: each octave is one row further. */
    static int offset(int bucket) {
        return bucket / Layout.OCTAVE * Sizes.ROW_BYTES + bucket % Layout.OCTAVE * 8;
    }
}
