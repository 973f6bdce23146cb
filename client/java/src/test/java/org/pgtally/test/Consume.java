// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

/**
 * Consumes time. If one call takes too long because another process had the CPU, the next call of the same budget takes that
 * much less, so that sums are right on a busy machine, too.
 */
final class Consume {
    private long debt;

    void millis(long millis) {
        long until = System.nanoTime() + millis * 1_000_000 - debt;
        while (System.nanoTime() < until) {
            Thread.onSpinWait();
        }
        // Read again: the JVM may have left compiled code at the end of the loop, which takes a while.
        debt = System.nanoTime() - until;
    }

    /** Time consumed in excess so far, in ns. */
    long debt() {
        return debt;
    }
}
