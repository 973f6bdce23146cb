// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

/** One call of an instrumented method. Frames belong to a thread and are used again. */
public final class Frame {
    final Recorder recorder;
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

    Frame(Recorder recorder, Frame caller) {
        this.recorder = recorder;
        this.caller = caller;
    }
}
