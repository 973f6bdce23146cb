// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

/** What the agent has to say to whoever started the application. */
public final class Report {
    private Report() {
    }

    /** A line on the standard error. */
    public static void line(String what) {
        System.err.println("pgtally: " + what);
    }
}
