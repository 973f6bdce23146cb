// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

/** Ids of threads. */
public final class Threads {
    private Threads() {
    }

    /** The kernel's id of the calling thread, which readers look up in /proc. */
    public static int current() {
        return Host.threadId();
    }
}
