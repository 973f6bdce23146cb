// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

/**
 * Consumes time. What one call takes too long, since another process had the processor, the next call of the same budget
 * takes less: sums come out right on a busy machine, too.
 */
final class Consume {
    private long debt;

    void millis(long millis) {
        long until = System.nanoTime() + millis * 1_000_000 - debt;
        while (System.nanoTime() < until) {
            Thread.onSpinWait();
        }
        // Read again: the virtual machine may have left compiled code at the end of the loop, which takes a while.
        debt = System.nanoTime() - until;
    }

    /** What was consumed in addition so far, ns. */
    long debt() {
        return debt;
    }
}
