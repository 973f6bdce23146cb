// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import org.pgtally.segment.Book;
import org.pgtally.segment.Segment;

/**
 * Indexes in a book for the times of calls from one method to another: a hash table, which allocates nothing for an edge
 * that it already has.
 */
final class EdgeIndexes {
    private static final int SIZE = 64;

    private final Segment segment;
    private final Book book;
    private final Blocks blocks;
    /** Caller and callee; 0: free. A power of two, a quarter of it free. */
    private long[] keys = new long[SIZE];
    private int[] indexes = new int[SIZE];
    private int used;

    EdgeIndexes(Segment segment, Book book) {
        this.segment = segment;
        this.book = book;
        blocks = new Blocks(segment, book, 1, false);
    }

    /** The index of an edge, given the indexes of its methods; 0 if it has none yet, negative if there is no space. */
    int find(int caller, int callee) {
        return indexes[place(keys, key(caller, callee))];
    }

    /** Assigns an index to an edge; negative if there is no space. */
    int add(int caller, int callee, String name) {
        if (used >= keys.length / 4 * 3) {
            grow();
        }
        int at = blocks.next();
        if (at >= 0) {
            segment.name(book, at, segment.timer(name));
        }
        long key = key(caller, callee);
        int place = place(keys, key);
        // Without a call in between: an exhausted stack shows at calls.
        keys[place] = key;
        indexes[place] = at;
        used++;
        return at;
    }

    private void grow() {
        long[] moreKeys = new long[2 * keys.length];
        int[] moreIndexes = new int[2 * keys.length];
        for (int i = 0; i < keys.length; i++) {
            if (keys[i] != 0) {
                int place = place(moreKeys, keys[i]);
                moreKeys[place] = keys[i];
                moreIndexes[place] = indexes[i];
            }
        }
        keys = moreKeys;
        indexes = moreIndexes;
    }

    private static long key(int caller, int callee) {
        return (long) caller << 32 | callee;
    }

    /** The position of a key, or where it would be. */
    private static int place(long[] keys, long key) {
        int place = (int) (key * 0x9e3779b97f4a7c15L >>> 32) & keys.length - 1;
        while (keys[place] != 0 && keys[place] != key) {
            place = place + 1 & keys.length - 1;
        }
        return place;
    }
}
