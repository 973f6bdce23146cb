// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

/** A class that is loaded by several class loaders. */
public final class Loaded {
    private Loaded() {
    }

    /** Called once per loader. */
    public static void run() {
        if (Loaded.class.getName().isEmpty()) {
            throw new AssertionError();
        }
    }
}
