// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

/** What the driver's work of a thread needs of the thread's recorder. Used only by that thread. */
abstract class BookOwner extends Frame.Owner {
    /** Number of timed calls so far. */
    abstract long entered();

    /** Whether anything is measured, after following the level word. */
    abstract boolean isOn();

    /** The book for statement statistics; null if there is none. */
    abstract CallBook takeCalls();

    /** The calling thread is done with that book. */
    abstract void giveCalls(CallBook calls);
}
