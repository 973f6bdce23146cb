// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

/**
 * Consumes time, of the clock or of the processor. What one call takes too long, since another process had the
 * processor, the next call of the same budget takes less: sums come out right on a busy machine, too.
 */
final class Consume {
    private final boolean cpu;
    private long debt;

    Consume(boolean cpu) {
        this.cpu = cpu;
    }

    void millis(long millis) {
        long until = now() + millis * 1_000_000 - debt;
        while (now() < until) {
            Thread.onSpinWait();
        }
        // Read again: the virtual machine may have left compiled code at the end of the loop, which takes a while.
        debt = now() - until;
    }

    /** What was consumed in addition so far, ns. */
    long debt() {
        return debt;
    }

    /** The clock. */
    long now() {
        return cpu ? Cpu.time() : System.nanoTime();
    }
}
