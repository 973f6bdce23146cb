// SPDX-License-Identifier: PostgreSQL
package org.pgtally.bench;

/** A method that agents may time. */
public final class Called {
    private int sum;

    /** Does next to nothing. */
    public int call(int n) {
        sum += n;
        return sum;
    }

    /** Calls it. */
    public int caller(int n) {
        return call(n);
    }
}
