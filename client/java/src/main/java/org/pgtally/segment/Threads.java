// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

/** Numbers of threads. */
public final class Threads {
    private Threads() {
    }

    /** The kernel's number of the calling thread, by which readers look for it in /proc. */
    public static int current() {
        return Host.threadId();
    }
}
