// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.Arrays;
import org.pgtally.segment.Book;
import org.pgtally.segment.Segment;

/**
 * A thread's stack of instrumented calls, with their times. Subclasses decide where the times go.
 *
 * <p>There are two clock readings per call. A method and its callee share the callee's boundaries, so the times of
 * methods add up. A frame whose method never reached its exit (because of an error in the probe itself, such as a stack
 * overflow) is dropped when a frame below it exits.
 */
abstract class CallStack extends Recorder {
    private static final int[] NONE = {};

    private final boolean timesCpu;
    final boolean keepsEdges;
    private final Frame bottom = new Frame(this, null);
    Frame top = bottom;
    private int epoch = 1;
    /** By method: the index of its first statistic in the book; 0: not used yet, negative: no space. */
    private int[] indexes = NONE;
    /** By the same index: number of calls in progress. */
    private int[] active = NONE;
    private int levelWord;
    private long entered;

    CallStack(Session session) {
        super(session);
        timesCpu = session.timesCpu();
        keepsEdges = session.keepsEdges();
        levelWord = session.segment.levelWord();
    }

    /** The first index of the statistics of a method when it is first used; negative if there is no space. */
    abstract int touch(int method);

    /** A call begins: from this time on, the account of {@code at} runs. */
    abstract void begun(int at, long now);

    /** A call has ended: from this time on, the account of {@code caller} (0: none) runs again. */
    abstract void ended(Frame call, int caller, long now, long elapsed, long cpu, boolean outermost, boolean thrown);

    /** Follows a changed level word; returns whether anything is measured now. */
    abstract boolean follow();

    @Override
    final Frame enter(int method) {
        if (!isOn()) {
            return null;
        }
        int at = method < indexes.length ? indexes[method] : 0;
        if (at <= 0) {
            if (at < 0) {
                return null;
            }
            at = find(method);
            if (at < 0) {
                return null;
            }
        }
        Frame frame = top.callee;
        if (frame == null) {
            frame = new Frame(this, top);
            top.callee = frame;
        }
        frame.at = at;
        frame.epoch = epoch;
        frame.calleesTime = 0;
        if (timesCpu) {
            frame.calleesCpu = 0;
            frame.cpuBegin = session.cpuTime();
        }
        long now = System.nanoTime();
        begun(at, now);
        frame.begin = now;
        // Last, and without a call in between: an exhausted stack shows at calls.
        active[at]++;
        entered++;
        top = frame;
        return frame;
    }

    @Override
    final void exit(Frame frame, boolean thrown) {
        if (frame.epoch != epoch) {
            return;
        }
        long now = System.nanoTime();
        int word = session.segment.levelWord();
        if (word != levelWord && !levelChanged(word)) {
            return;
        }
        for (Frame lost = top; lost != frame; lost = lost.caller) {
            if (lost == bottom) {
                return;
            }
            active[lost.at]--;
        }
        long elapsed = now - frame.begin;
        long cpu = timesCpu ? session.cpuTime() - frame.cpuBegin : 0;
        Frame caller = frame.caller;
        top = caller;
        caller.calleesTime += elapsed;
        caller.calleesCpu += cpu;
        boolean outermost = --active[frame.at] == 0;
        ended(frame, caller == bottom ? 0 : caller.at, now, elapsed, cpu, outermost, thrown);
    }

    @Override
    final long entered() {
        return entered;
    }

    @Override
    final boolean isOn() {
        int word = session.segment.levelWord();
        return (word == levelWord || levelChanged(word)) && Segment.isOn(word);
    }

    private boolean levelChanged(int word) {
        boolean on = follow();
        if (!on) {
            // Calls in progress are not measured to their end.
            epoch++;
            top = bottom;
            Arrays.fill(active, 0);
        }
        levelWord = word;
        return on;
    }

    private int find(int method) {
        if (method >= indexes.length) {
            indexes = Arrays.copyOf(indexes, Math.max(method + 1, session.methods.size()));
        }
        int at = touch(method);
        indexes[method] = at;
        if (at >= active.length) {
            active = Arrays.copyOf(active, at + 256);
        }
        return at;
    }

    /**
     * Adds a call to the statistics of its method, and to those of its edge (none if 0 or negative). To be called between
     * begin and publish of the book.
     */
    final void record(Book book, Frame call, int edge, long elapsed, long cpu, boolean outermost) {
        int at = call.at;
        if (outermost) {
            if (session.keepsHistograms()) {
                book.addWithHistogram(at, elapsed);
            } else {
                book.addPlain(at, elapsed);
            }
        } else {
            // The time of a recursive call is in that of the outermost one.
            book.count(at);
        }
        book.addPlain(at + Methods.EXCLUSIVE, elapsed - call.calleesTime);
        if (timesCpu) {
            if (outermost) {
                book.addPlain(at + Methods.CPU_INCLUSIVE, cpu);
            } else {
                book.count(at + Methods.CPU_INCLUSIVE);
            }
            book.addPlain(at + Methods.CPU_EXCLUSIVE, cpu - call.calleesCpu);
        }
        if (edge > 0) {
            if (outermost) {
                book.addPlain(edge, elapsed);
            } else {
                book.count(edge);
            }
        }
    }
}
