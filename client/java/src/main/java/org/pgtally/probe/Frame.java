// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

/** One call of an instrumented method. Frames belong to a thread and are used again. */
public final class Frame {
    /** Who made it. A class and not an interface: the call of its one method is as cheap as that of a class's. */
    abstract static class Owner {
        /** It ends, perhaps by an exception. */
        abstract void exit(Frame frame, boolean thrown);
    }

    final Owner owner;
    final Frame caller;
    /** For the next call from this one; made when it is first needed. */
    Frame callee;
    /** The index of the method's first statistic. */
    int at;
    /** Counts the uses of the frames of the thread since the level was last off. */
    int epoch;
    long begin;
    long cpuBegin;
    /** Of the calls made from here. */
    long calleesTime;
    long calleesCpu;

    Frame(Owner owner, Frame caller) {
        this.owner = owner;
        this.caller = caller;
    }
}
