// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

/** Messages of the agent to the user who started the application. */
public final class Report {
    private Report() {
    }

    /** Prints a line to standard error. */
    public static void line(String what) {
        System.err.println("pgtally: " + what);
    }
}
