// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.io.IOException;
import java.util.regex.Pattern;
import org.pgtally.segment.Book;
import org.pgtally.segment.Segment;
import org.pgtally.segment.StatNames;

/**
 * The time for which the JVM stopped all threads, as accounts of a separate slot: at any instant it runs the application,
 * collects garbage, or is at a safepoint for another reason.
 *
 * <p>The source is HotSpot's own counters, in nanoseconds. They are read every {@link #POLL_MS}, and the increase is charged
 * to the end of that period. So sums are exact, and times of day are accurate to that period.
 *
 * <p>A reader of the segment that comes during a pause takes it for the application's time, which
 * it cannot take back later. So pauses for collections are also counted as a whole, at their end.
 */
final class Pauses {
    static final long POLL_MS = 100;

    private static final int COLLECTING = 0;
    private static final int OTHER = 1;
    private static final int STOP = 2;

    private final Segment segment;
    private final VmCounters counters;
    private final Book book;
    private final int first;
    private final int[] safepoints;
    private final int[] stopped;
    private final CollectionPauses collections;
    private long collectionsBefore;
    private long collectingBefore;
    private long othersBefore;
    private long inOthersBefore;
    /** Until when time is charged, as by {@link System#nanoTime}. */
    private long charged;

    private Pauses(Segment segment, VmCounters counters, Book book, int first) {
        this.segment = segment;
        this.counters = counters;
        this.book = book;
        this.first = first;
        safepoints = counters.named(Pattern.compile("sun\\.rt\\.safepoints"));
        stopped = counters.named(Pattern.compile("sun\\.rt\\.safepointTime"));
        collections = CollectionPauses.of(counters);
    }

    /** Starts measuring them; null, with the reason in the table of probes, if that is impossible. */
    static Pauses watch(Segment segment) {
        String reason;
        try {
            VmCounters counters = VmCounters.open();
            // Times are in ns: on Linux, HotSpot's frequency of ticks is a constant.
            if (counters.named(Pattern.compile("sun\\.rt\\.safepointTime")).length == 0) {
                throw new IOException("no counter of safepoints");
            }
            Book book = segment.claim("virtual machine", null, (int) ProcessHandle.current().pid(), "pauses");
            int first = book == null ? -1 : segment.grow(book, 0, 0, 8);
            if (first >= 0) {
                segment.name(book, first + COLLECTING, segment.account(StatNames.COLLECTION_PAUSE));
                segment.name(book, first + OTHER, segment.account(StatNames.OTHER_PAUSE));
                segment.name(book, first + STOP, segment.timer(StatNames.COLLECTION_STOP));
                segment.probe("pauses", null);
                Pauses pauses = new Pauses(segment, counters, book, first);
                pauses.read(true);
                return pauses;
            }
            reason = book == null ? "no free slot: raise the agent's option threads"
                : "no space in the segment: raise the agent's option statistics";
        } catch (IOException | RuntimeException e) {
            reason = "the JVM publishes no counters (is PerfDisableSharedMem set?): " + e.getMessage();
        }
        segment.probe("pauses", reason);
        return null;
    }

    /** Total garbage collection time so far, in ns. May be called by any thread. */
    long collecting() {
        return collections.atOnce(counters.value(stopped));
    }

    /** Charges the time since the last call. Called by one thread. */
    void poll() {
        read(!segment.followIdle(book));
    }

    /**
     * HotSpot counts a safepoint when it begins, its collection when that ends, and its length a little after the threads
     * continue. So the time of other safepoints is the difference of sums that may lag briefly: it is charged when it
     * exceeds its previous maximum, and as far as there is time since the last charge. Collections come first: a long one may
     * have taken nearly all of it, and would lose what is late of an earlier safepoint.
     */
    private void read(boolean only) {
        long many;
        long length;
        long ofCollections;
        long inCollections;
        long now;
        do {
            // A safepoint between two of these readings would be in one only, and one before the time is read would seem to be later.
            many = counters.value(safepoints);
            length = counters.value(stopped);
            ofCollections = collections.count();
            inCollections = collections.time(many, length);
            now = System.nanoTime();
        } while (many != counters.value(safepoints));
        inCollections = Math.max(collectingBefore, inCollections);
        long others = Math.max(othersBefore, many - ofCollections);
        long inOthers = Math.max(inOthersBefore, length - inCollections);
        if (only) {
            charged = now;
        } else {
            long left = Math.max(0, now - charged - (inCollections - collectingBefore));
            inOthers = Math.min(inOthers, inOthersBefore + left);
            charge(now, ofCollections - collectionsBefore, inCollections - collectingBefore, others - othersBefore,
                    inOthers - inOthersBefore);
        }
        collectionsBefore = ofCollections;
        collectingBefore = inCollections;
        othersBefore = others;
        inOthersBefore = inOthers;
    }

    private void charge(long now, long ofCollections, long inCollections, long others, long inOthers) {
        if (ofCollections == 0 && inCollections == 0 && inOthers == 0) {
            return;
        }
        book.begin();
        if (ofCollections > 0) {
            book.run(first + COLLECTING, now - inCollections - inOthers);
            book.addCount(first + COLLECTING, ofCollections - 1);
            book.addPlain(first + STOP, inCollections);
            book.addCount(first + STOP, ofCollections - 1);
        }
        book.run(first + OTHER, now - inOthers);
        book.addCount(first + OTHER, others - 1);
        book.run(Segment.IDLE, now);
        book.publish();
        charged = now;
    }
}
