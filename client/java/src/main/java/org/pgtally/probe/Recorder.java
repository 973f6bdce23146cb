// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

/** Counts the calls of one thread. Used only by that thread. */
abstract class Recorder extends Frame.Owner {
    final Session session;

    Recorder(Session session) {
        this.session = session;
    }

    abstract Frame enter(int method);

    /** Whether anything is measured, after following the level word. */
    abstract boolean isOn();

    /** The book for statement statistics; null if there is none. */
    abstract CallBook takeCalls();

    /** The calling thread is done with that book. */
    abstract void giveCalls(CallBook calls);
}
