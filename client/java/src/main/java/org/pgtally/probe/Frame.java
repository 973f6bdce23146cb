// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

/** A call of an instrumented method. Frames belong to a thread and are reused. */
public final class Frame {
    /** The creator of the frame. A class instead of an interface, because its calls are cheaper. */
    abstract static class Owner {
        /** The call ends, possibly with an exception. */
        abstract void exit(Frame frame, boolean thrown);
    }

    final Owner owner;
    final Frame caller;
    /** The frame for the next call from this one, created when it is first needed. */
    Frame callee;
    /** The index of the method's first statistic. */
    int at;
    /** Distinguishes uses of the thread's frames from those before the level was last off. */
    int epoch;
    long begin;
    long cpuBegin;
    /** Total time of the calls made from here. */
    long calleesTime;
    long calleesCpu;

    Frame(Owner owner, Frame caller) {
        this.owner = owner;
        this.caller = caller;
    }
}
