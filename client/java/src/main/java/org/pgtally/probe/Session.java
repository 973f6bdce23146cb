// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.function.LongSupplier;
import org.pgtally.segment.Segment;

/** A measuring session, from when the agent is switched on until it is switched off. */
public final class Session {
    final Segment segment;
    final Methods methods;
    final SqlTexts texts;
    private final boolean histograms;
    private final boolean edges;
    private final ThreadMXBean cpuClock;
    /** Total garbage collection time of the JVM, in ns. */
    private volatile LongSupplier collecting = () -> 0;
    private final OwnTime ownTime;

    /**
     * Optionally with CPU times, which need a system call at the beginning and at the end of each call, and with the calls
     * from one method to another.
     */
    public Session(Segment segment, Methods methods, boolean cpu, boolean histograms, boolean edges) {
        this(segment, methods, cpu, histograms, edges, OwnTime.NONE);
    }

    /** The same; {@code ownTime} is taken off the figures of statements. */
    public Session(Segment segment, Methods methods, boolean cpu, boolean histograms, boolean edges, OwnTime ownTime) {
        this.ownTime = ownTime;
        this.segment = segment;
        this.methods = methods;
        texts = new SqlTexts(segment);
        this.histograms = histograms;
        this.edges = edges;
        ThreadMXBean clock = cpu ? ManagementFactory.getThreadMXBean() : null;
        cpuClock = clock != null && clock.isCurrentThreadCpuTimeSupported() ? clock : null;
    }

    /** The segment that it writes to. */
    public Segment segment() {
        return segment;
    }

    /** Sets the supplier of the JVM's total garbage collection time, in ns. */
    public void collecting(LongSupplier supplier) {
        collecting = supplier;
    }

    long collecting() {
        return collecting.getAsLong();
    }

    OwnTime ownTime() {
        return ownTime;
    }

    boolean timesCpu() {
        return cpuClock != null;
    }

    boolean keepsHistograms() {
        return histograms;
    }

    boolean keepsEdges() {
        return edges;
    }

    /** CPU time of the calling thread in ns; 0 for a virtual thread, for which the JVM has none. */
    long cpuTime() {
        try {
            return Math.max(0, cpuClock.getCurrentThreadCpuTime());
        } catch (UnsupportedOperationException e) {
            return 0;
        }
    }
}
