// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

/** Counts the calls of one thread. Used only by that thread. */
abstract class Recorder extends Frame.Owner {
    final Session session;
    /** The driver's work of the thread; null until it has some. */
    private CallThread calls;

    Recorder(Session session) {
        this.session = session;
    }

    abstract Frame enter(int method);

    /** Number of timed calls so far. */
    abstract long entered();

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

    /** Whether anything is measured, after following the level word. */
    abstract boolean isOn();

    /** The book for statement statistics; null if there is none. */
    abstract CallBook takeCalls();

    /** The calling thread is done with that book. */
    abstract void giveCalls(CallBook calls);
}
