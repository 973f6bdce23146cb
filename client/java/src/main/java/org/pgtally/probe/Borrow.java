// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

/** A pool has handed out a connection to this thread, which has not returned it yet. */
final class Borrow {
    final String thread;
    final long threadId;
    /** By System.nanoTime. */
    final long since;

    Borrow(Thread thread, long since) {
        threadId = thread.getId();
        // Virtual threads usually have no name.
        this.thread = thread.getName().isEmpty() ? "number " + threadId : thread.getName();
        this.since = since;
    }
}
