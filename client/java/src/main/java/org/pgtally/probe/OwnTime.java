// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

/**
 * What the probes themselves add to the times that they measure, in ns. It is measured when the agent starts ({@code OwnTimeMeter}), and
 * taken off the figures of statements.
 */
public final class OwnTime {
    /** Nothing is taken off. */
    public static final OwnTime NONE = new OwnTime(0, 0, 0, 0, 0);

    /** A call of a timed method. */
    public final double method;
    /** Between the two readings of the clock around nothing. */
    final double clock;
    /** A method of a result that is called by another one. */
    final double inner;
    /** A wait for the server and a message, as parts of an execution. */
    final double wait;
    final double message;

    OwnTime(double method, double clock, double inner, double wait, double message) {
        this.method = method;
        this.clock = clock;
        this.inner = inner;
        this.wait = wait;
        this.message = message;
    }
}
