// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

/** A class that several loaders have. */
public final class Loaded {
    private Loaded() {
    }

    /** Is called once by each. */
    public static void run() {
        if (Loaded.class.getName().isEmpty()) {
            throw new AssertionError();
        }
    }
}
