// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

import java.io.IOException;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.IntBuffer;
import java.nio.LongBuffer;
import java.util.BitSet;

/**
 * The statistics of one thread, and their updates.
 *
 * <p>Concurrency: one thread at a time writes a book: its owner or, once the owner has ended, the holder of the lock of
 * {@link Segment}. Changes are enclosed in {@link #begin} and {@link #publish}; readers in other processes copy the book
 * while its first word, seq, is even and does not change. Nothing here locks, allocates or makes a system call, except
 * {@link #open} and {@link #add}, which are for the first use of a statistic.
 */
public final class Book {
    private static final int HEADS = Layout.BOOK_SIZE / 8;
    private static final int HEAD = Layout.HEAD_SIZE / 8;
    private static final int RUN = Layout.BOOK_RUN / 4;
    private static final int USED = Layout.BOOK_USED / 4;
    private static final int RUN_START = Layout.BOOK_RUN_START / 8;

    final int slot;
    final int generation;
    final Thread owner;
    private final SegmentFile file;
    private final LongBuffer words;
    private final IntBuffer ints;
    private final int histograms;
    /** Chunks whose histograms have memory. The others must not be touched. */
    private final BitSet chunks = new BitSet();
    private long seq;
    private int used;
    private int run = Layout.NONE;
    private long runStart;
    private int levelWord;

    Book(SegmentFile file, int slot, int generation, Thread owner) {
        this.file = file;
        this.slot = slot;
        this.generation = generation;
        this.owner = owner;
        ByteBuffer bytes = file.book(slot);
        words = bytes.asLongBuffer();
        ints = bytes.asIntBuffer();
        histograms = Histogram.begin(file.statistics, 0) / 8;
    }

    /** Initialises an empty book, in which no account runs. */
    void open(long now, int word, boolean withHistograms) throws IOException {
        file.reserve(slot, 0, Layout.BOOK_SIZE);
        seq = words.get(0) + 1 & ~1L;
        levelWord = word;
        begin();
        run = Layout.NONE;
        runStart = now;
        used = 0;
        ints.put(RUN, run);
        words.put(RUN_START, now);
        ints.put(Layout.BOOK_PEND / 4, Layout.NONE);
        ints.put(Layout.BOOK_RESETS / 4, Sizes.resets(word));
        words.put(Layout.BOOK_BORN / 8, now);
        ints.put(USED, 0);
        publish();
        if (grow(0, withHistograms ? Layout.CHUNK : 0, Layout.CHUNK) == Layout.NONE) {
            throw new IOException("no space for a book");
        }
    }

    /** The words of this book are about to change. */
    public void begin() {
        words.put(0, seq + 1);
        VarHandle.storeStoreFence();
    }

    /** The change is complete. */
    public void publish() {
        seq += 2;
        VarHandle.storeStoreFence();
        words.put(0, seq);
    }

    /** Adds a value to a statistic, without its histogram. Between {@link #begin} and {@link #publish}. */
    public void addPlain(int index, long value) {
        int at = HEADS + index * HEAD;
        words.put(at + 1, words.get(at + 1) + 1);
        words.put(at + 2, words.get(at + 2) + value);
        long min = words.get(at + 3);
        if (value < min || min < 0) {
            words.put(at + 3, value);
        }
        if (value > words.get(at + 4)) {
            words.put(at + 4, value);
        }
    }

    /** The same with its histogram. */
    public void addWithHistogram(int index, long value) {
        addPlain(index, value);
        int at = histograms + index / Layout.CHUNK * (Sizes.CHUNK_BYTES / 8) + index % Layout.CHUNK * Layout.OCTAVE
                + Histogram.offset(Histogram.bucket(value)) / 8;
        words.put(at, words.get(at) + 1);
    }

    /** Adds a value that stands for {@code weight} of them. Between {@link #begin} and {@link #publish}. */
    public void addSample(int index, long value, int weight) {
        addPlain(index, value);
        int at = HEADS + index * HEAD;
        words.put(at + 1, words.get(at + 1) + weight - 1);
        words.put(at + 2, words.get(at + 2) + value * (weight - 1));
    }

    /** Adds a sample of a number that rises and falls, and was at most {@code most} since the sample before. */
    public void addSampled(int index, long value, long most) {
        addPlain(index, value);
        int at = HEADS + index * HEAD;
        if (most > words.get(at + 4)) {
            words.put(at + 4, most);
        }
    }

    /**
     * Adds {@code more} to an event that is not over yet, whose value is {@code whole} so far. The first part counts it.
     */
    public void addPart(int index, long more, long whole) {
        int at = HEADS + index * HEAD;
        addPlain(index, whole);
        words.put(at + 1, words.get(at + 1) - (more == whole ? 0 : 1));
        words.put(at + 2, words.get(at + 2) + more - whole);
    }

    /** Counts an event without a time. */
    public void count(int index) {
        int at = HEADS + index * HEAD;
        words.put(at + 1, words.get(at + 1) + 1);
    }

    /** Adds to, or subtracts from, the number of events. */
    public void addCount(int index, long more) {
        int at = HEADS + index * HEAD;
        words.put(at + 1, words.get(at + 1) + more);
    }

    /** Adds bytes, rows or the like that were transferred by the events of a statistic. */
    public void addAmount(int index, long amount) {
        int at = HEADS + index * HEAD + Layout.HEAD_AMOUNT / 8;
        words.put(at, words.get(at) + amount);
    }

    /** Closes the running account at {@code now} and runs another. Between {@link #begin} and {@link #publish}. */
    public void run(int account, long now) {
        // The clocks of two processors may differ slightly; time is conserved all the same.
        long until = Math.max(now, runStart);
        if (run >= 0) {
            addPlain(run, until - runStart);
        }
        run = account;
        runStart = until;
        ints.put(RUN, account);
        words.put(RUN_START, until);
    }

    /** The running account. */
    public int running() {
        return run;
    }

    /** The level word that the book follows. */
    public int levelWord() {
        return levelWord;
    }

    /**
     * Follows a change of the level word. After a reset, the book is empty.
     *
     * @return whether anything is measured at this level
     */
    boolean follow(int word) {
        if (Sizes.resets(word) != Sizes.resets(levelWord)) {
            begin();
            zero();
            long reset = Memory.longAt(file.head, Layout.HEADER_RESET_TICK);
            runStart = Math.max(runStart, reset);
            words.put(RUN_START, runStart);
            words.put(Layout.BOOK_BORN / 8, runStart);
            ints.put(Layout.BOOK_RESETS / 4, Sizes.resets(word));
            publish();
        }
        levelWord = word;
        return (word & Sizes.LEVEL) != 0;
    }

    /**
     * Takes indexes for further statistics, which have no names yet: until then they belong to the overflow account, with a
     * count of 0.
     *
     * @return the first of them, a multiple of 8; {@link Layout#NONE} if there is no space
     */
    int grow(int histogramsFrom, int histogramsTo, int count) {
        int first = used;
        if (first + count > file.statistics) {
            Memory.addLong(file.head, Layout.HEADER_OVERFLOW_STATS, 1);
            return Layout.NONE;
        }
        try {
            file.reserve(slot, Layout.BOOK_SIZE + first * Layout.HEAD_SIZE, count * Layout.HEAD_SIZE);
            for (int index = first + histogramsFrom; index < first + histogramsTo; index += Layout.CHUNK) {
                file.reserve(slot, Histogram.begin(file.statistics, index), Sizes.CHUNK_BYTES);
                chunks.set(index / Layout.CHUNK);
            }
        } catch (IOException e) {
            Memory.addLong(file.head, Layout.HEADER_OVERFLOW_MEMORY, 1);
            return Layout.NONE;
        }
        begin();
        for (int index = first; index < first + count; index++) {
            clearHead(index);
            ints.put((HEADS + index * HEAD) * 2, 1);
        }
        used = first + count;
        ints.put(USED, used);
        publish();
        return first;
    }

    /** Assigns a statistic to an index taken by {@link #grow}. */
    void name(int index, int statistic) {
        begin();
        ints.put((HEADS + index * HEAD) * 2, statistic + 1);
        publish();
    }

    private void clearHead(int index) {
        int at = HEADS + index * HEAD;
        words.put(at + 1, 0);
        words.put(at + 2, 0);
        words.put(at + 3, -1);
        words.put(at + 4, 0);
        words.put(at + Layout.HEAD_AMOUNT / 8, 0);
        words.put(at + Layout.HEAD_FOLLOWS / 8, 0);
    }

    /** Zeroes the heads' figures; their buckets are within the octaves of min and max. */
    private void zero() {
        for (int index = 0; index < used; index++) {
            int at = HEADS + index * HEAD;
            if (hasHistogram(index) && words.get(at + 1) > 0 && words.get(at + 3) >= 0) {
                int low = Histogram.bucket(words.get(at + 3)) / Layout.OCTAVE;
                int high = Histogram.bucket(words.get(at + 4)) / Layout.OCTAVE;
                zeroOctaves(index, low, high);
            }
            clearHead(index);
        }
    }

    private void zeroOctaves(int index, int low, int high) {
        int at = Histogram.begin(file.statistics, index) / 8;
        for (int octave = low; octave <= high; octave++) {
            for (int i = 0; i < Layout.OCTAVE; i++) {
                int word = at + octave * (Sizes.ROW_BYTES / 8) + i;
                if (words.get(word) != 0) {
                    words.put(word, 0);
                }
            }
        }
    }

    /** For the next owner of the slot. */
    void clear() {
        begin();
        zero();
        for (int index = 0; index < used; index++) {
            ints.put((HEADS + index * HEAD) * 2, 0);
        }
        used = 0;
        chunks.clear();
        run = Layout.NONE;
        runStart = 0;
        ints.put(RUN, run);
        words.put(RUN_START, 0);
        words.put(Layout.BOOK_BORN / 8, 0);
        ints.put(Layout.BOOK_RESETS / 4, 0);
        ints.put(USED, 0);
        publish();
    }

    int used() {
        return used;
    }

    /** Directory number of an index. */
    int statistic(int index) {
        return ints.get((HEADS + index * HEAD) * 2) - 1;
    }

    /** A word of a head. */
    long head(int index, int field) {
        return words.get(HEADS + index * HEAD + field / 8);
    }

    void setHead(int index, int field, long value) {
        words.put(HEADS + index * HEAD + field / 8, value);
    }

    boolean hasHistogram(int index) {
        return chunks.get(index / Layout.CHUNK);
    }

    long bucket(int index, int bucket) {
        return words.get(Histogram.begin(file.statistics, index) / 8 + Histogram.offset(bucket) / 8);
    }

    void addBucket(int index, int bucket, long more) {
        int at = Histogram.begin(file.statistics, index) / 8 + Histogram.offset(bucket) / 8;
        words.put(at, words.get(at) + more);
    }
}
