// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

/** Counts the calls of one thread. Used only by that thread. */
abstract class Recorder extends BookOwner {
    final Session session;
    /** The driver's work of the thread; null until it has some. */
    private CallThread calls;

    Recorder(Session session) {
        this.session = session;
    }

    abstract Frame enter(int method);

    /** The driver's work of the thread. */
    final CallThread calls() {
        if (calls == null) {
            calls = new CallThread(session, this);
        }
        return calls;
    }

    /** The same; null if it has none. */
    final CallThread callsSoFar() {
        return calls;
    }
}
