// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;

/** The processor time of the calling thread, in ns. */
final class Cpu {
    private static final ThreadMXBean CLOCK = ManagementFactory.getThreadMXBean();

    private Cpu() {
    }

    static long time() {
        return CLOCK.getCurrentThreadCpuTime();
    }
}
