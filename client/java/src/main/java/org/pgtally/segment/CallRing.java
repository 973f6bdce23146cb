// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

import java.nio.ByteBuffer;

/**
 * The ring in which calls are recorded, in order, while a reader requests it (FORMAT.md, section 8, Traces).
 *
 * <p>Concurrency: all threads write here, one at a time. A reader reserves the memory, arms the ring and withdraws it. Of
 * the ring's contents, this process trusts only its claim and its end.
 */
public final class CallRing {
    /** An execution, a fetch, or a part of a COPY. */
    public static final int EXECUTE = 1;
    public static final int FETCH = 2;

    private final ByteBuffer head;
    private final ByteBuffer ring;
    private int claim;
    private long position;

    CallRing(SegmentFile file) {
        head = file.head;
        ring = file.ring;
    }

    /** Whether a reader requests records; takes one load. */
    public boolean isArmed() {
        return Memory.opaqueLongAt(head, Layout.HEADER_TRACES_ARMED) != 0;
    }

    /**
     * Records a call on the wire that has ended.
     *
     * @param statistic the number of a statistic with the statement's id in its name; negative: none
     * @param pid the server's process
     * @param first the ordinal of its first message, or of the one that would follow; 0 if unknown
     * @param messages number of messages sent, without COPY data
     * @param collecting garbage collection time meanwhile, in ns
     */
    public synchronized void call(int kind, long begin, long elapsed, boolean thrown, int statistic, int pid,
            long first, int messages, int rows, long collecting) {
        if (!take(begin + elapsed)) {
            return;
        }
        int at = open(Layout.TRACE_KIND_CALL, kind, begin, elapsed);
        ring.put(at + Layout.TRACE_RECORD_FAILED, (byte) (thrown ? 1 : 0));
        ring.putInt(at + Layout.TRACE_RECORD_STAT, statistic < 0 ? 0 : statistic + 1);
        ring.putInt(at + Layout.TRACE_RECORD_NEXT, pid);
        putLong(at + Layout.TRACE_RECORD_WORD, first);
        ring.putInt(at + Layout.TRACE_RECORD_WORD + 8, messages);
        ring.putInt(at + Layout.TRACE_RECORD_WORD + 12, rows);
        putLong(at + Layout.TRACE_RECORD_WORD + 16, collecting);
        close(at);
    }

    /** Records a wait for the server, of the call that is recorded next for this connection. */
    public synchronized void waited(long begin, long elapsed, int pid, long first) {
        if (!take(begin + elapsed)) {
            return;
        }
        int at = open(Layout.TRACE_KIND_CALL_WAIT, 0, begin, elapsed);
        ring.putInt(at + Layout.TRACE_RECORD_NEXT, pid);
        putLong(at + Layout.TRACE_RECORD_WORD, first);
        close(at);
    }

    /** Takes the ring if necessary; returns whether this process has it and it is being read. */
    private boolean take(long now) {
        int there = Memory.intAt(ring, Layout.TRACE_CLAIM);
        boolean read = now - Memory.longAt(ring, Layout.TRACE_UNTIL) <= 0;
        if (there == claim) {
            return read;
        }
        int running = there & ~0xff | Layout.TRACE_STATE_RUNNING;
        if (!read || (there & 0xff) != Layout.TRACE_STATE_ARMED || !Memory.changeInt(ring, Layout.TRACE_CLAIM, there, running)) {
            return false;
        }
        claim = running;
        position = 0;
        ring.putInt(Layout.TRACE_OWNER_PID, (int) ProcessHandle.current().pid());
        ring.putInt(Layout.TRACE_LEADER_PID, 0);
        ring.putInt(Layout.TRACE_SLOT, 0);
        ring.putInt(Layout.TRACE_SLOT_GENERATION, 0);
        ring.putLong(Layout.TRACE_BEGUN, now);
        close(open(Layout.TRACE_KIND_BEGIN, 0, now, 0));
        return true;
    }

    private int open(int kind, int op, long tick, long ticks) {
        int at = Layout.TRACE_SIZE + (int) (position % Layout.TRACE_RECORDS) * Layout.TRACE_RECORD_SIZE;
        Memory.putLongFully(ring, at, 0);
        for (int i = 8; i < Layout.TRACE_RECORD_SIZE; i += 8) {
            ring.putLong(at + i, 0);
        }
        ring.putLong(at + Layout.TRACE_RECORD_TICK, tick);
        ring.putLong(at + Layout.TRACE_RECORD_TICKS, ticks);
        ring.put(at + Layout.TRACE_RECORD_KIND, (byte) kind);
        ring.put(at + Layout.TRACE_RECORD_OP, (byte) op);
        return at;
    }

    private void putLong(int at, long value) {
        ring.putInt(at, (int) value);
        ring.putInt(at + 4, (int) (value >>> 32));
    }

    private void close(int at) {
        position++;
        Memory.putLong(ring, at, (long) (claim >>> 8) << 40 | position);
        Memory.putLong(ring, Layout.TRACE_HEAD, position);
    }
}
