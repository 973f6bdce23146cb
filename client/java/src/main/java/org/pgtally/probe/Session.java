// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.function.LongSupplier;
import org.pgtally.segment.Segment;

/** One time of measuring, from when the agent is switched on until it is switched off. */
public final class Session {
    final Segment segment;
    final Methods methods;
    final SqlTexts texts;
    private final boolean histograms;
    private final boolean edges;
    private final ThreadMXBean cpuClock;
    /** For how long the virtual machine has collected garbage, ns. */
    private volatile LongSupplier collecting = () -> 0;

    /**
     * With processor times, or without: each takes a system call at the beginning and at the end of a call. With the
     * calls from one method to another, or without.
     */
    public Session(Segment segment, Methods methods, boolean cpu, boolean histograms, boolean edges) {
        this.segment = segment;
        this.methods = methods;
        texts = new SqlTexts(segment);
        this.histograms = histograms;
        this.edges = edges;
        ThreadMXBean clock = cpu ? ManagementFactory.getThreadMXBean() : null;
        cpuClock = clock != null && clock.isCurrentThreadCpuTimeSupported() ? clock : null;
    }

    /** Where it is written. */
    public Segment segment() {
        return segment;
    }

    /** From now on this says for how long the virtual machine has collected garbage, ns. */
    public void collecting(LongSupplier supplier) {
        collecting = supplier;
    }

    long collecting() {
        return collecting.getAsLong();
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

    /** Of the calling thread, ns; of a virtual one 0, since the virtual machine knows none. */
    long cpuTime() {
        try {
            return Math.max(0, cpuClock.getCurrentThreadCpuTime());
        } catch (UnsupportedOperationException e) {
            return 0;
        }
    }
}
