// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.Arrays;

/**
 * What the probes themselves add to the times that they measure, in ns. It is measured when the agent starts, and taken off the
 * figures of statements.
 */
public final class OwnTime {
    private static final int BLOCKS = 200;
    private static final int CALLS = 100;
    /** Nothing is taken off. */
    public static final OwnTime NONE = new OwnTime(0, 0, 0, 0, 0, 0);

    /** A call of a timed method. */
    public final double method;
    /** Between the two readings of the clock around nothing. */
    final double clock;
    /** A method of a result that is called by another one. */
    final double inner;
    /** A wait for the server, a message and a row, as parts of an execution. */
    final double wait;
    final double message;
    final double row;

    OwnTime(double method, double clock, double inner, double wait, double message, double row) {
        this.method = method;
        this.clock = clock;
        this.inner = inner;
        this.wait = wait;
        this.message = message;
        this.row = row;
    }

    /** Measures it in the calling thread, while a session is in use whose figures do not matter. */
    public static OwnTime measure(int caller, int method) {
        Throwable thrown = new IllegalStateException();
        Frame outer = Probe.enter(caller);
        double ofMethod = median(() -> {
            for (int i = 0; i < CALLS; i++) {
                Probe.exit(Probe.enter(method), null);
            }
            Probe.exit(Probe.enter(method), thrown);
        });
        Probe.exit(outer, null);
        Object executor = new Object();
        Object query = "select";
        long[] between = {0};
        double ofClock = median(() -> {
            long sum = 0;
            for (int i = 0; i < CALLS; i++) {
                long begin = System.nanoTime();
                sum += System.nanoTime() - begin;
            }
            between[0] = sum;
        }, () -> between[0]);
        Object call = Calls.executes(executor, query, null, 0);
        double ofWait = median(() -> {
            for (int i = 0; i < CALLS; i++) {
                Calls.waited(Calls.waits(true), true, 1);
            }
        });
        double ofMessage = median(() -> {
            for (int i = 0; i < CALLS; i++) {
                boolean before = Calls.sends();
                Calls.byteSent('B');
                Calls.integerSent(4);
                Calls.sent(before);
            }
        });
        double ofRow = median(() -> {
            for (int i = 0; i < CALLS; i++) {
                Calls.row();
            }
        });
        Calls.ended(call, null);
        CallThread thread = (CallThread) Calls.executes(executor, query, null, 0);
        Calls.ended(thread, null);
        double ofInner = 0;
        if (thread != null && thread.beginsDecoding(query, 1)) {
            ofInner = median(() -> {
                for (int i = 0; i < CALLS; i++) {
                    Calls.decoded(Calls.decodes(executor, query, 0));
                }
            });
            thread.decoded();
        }
        return new OwnTime(ofMethod, ofClock, ofInner, ofWait, ofMessage, ofRow);
    }

    private static double median(Runnable block) {
        long[] took = {0};
        return median(() -> {
            long begin = System.nanoTime();
            block.run();
            took[0] = System.nanoTime() - begin;
        }, () -> took[0]);
    }

    /** The median of the later blocks: their code is compiled. */
    private static double median(Runnable block, java.util.function.LongSupplier took) {
        long[] all = new long[BLOCKS];
        for (int i = 0; i < BLOCKS; i++) {
            block.run();
            all[i] = took.getAsLong();
        }
        long[] later = Arrays.copyOfRange(all, BLOCKS / 2, BLOCKS);
        Arrays.sort(later);
        return later[later.length / 2] / (double) CALLS;
    }
}
