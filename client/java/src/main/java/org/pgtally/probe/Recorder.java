// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

/** Where the calls of one thread are counted. Used by that thread alone. */
abstract class Recorder extends Frame.Owner {
    final Session session;

    Recorder(Session session) {
        this.session = session;
    }

    abstract Frame enter(int method);

    /** Whether something is measured, after it has followed the level word. */
    abstract boolean isOn();

    /** Where the figures of statements are; null: nowhere. */
    abstract CallBook takeCalls();

    /** The calling thread has added what it had to add. */
    abstract void giveCalls(CallBook calls);
}
