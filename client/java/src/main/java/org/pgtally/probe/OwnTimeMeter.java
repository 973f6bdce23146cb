// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.Arrays;

/** Measures what the probes themselves add to the times that they measure. */
public final class OwnTimeMeter {
    private static final int BLOCKS = 200;
    private static final int CALLS = 100;

    private OwnTimeMeter() {}

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
                Object begun = Calls.sends();
                Calls.byteSent('B');
                Calls.integerSent(4);
                Calls.sent(begun);
            }
        });
        Calls.ended(call, null);
        CallThread thread = (CallThread) Calls.executes(executor, query, null, 0);
        Calls.ended(thread, null);
        double ofInner = 0;
        if (thread != null && thread.beginsDecoding(executor, 1)) {
            ofInner = median(() -> {
                for (int i = 0; i < CALLS; i++) {
                    Calls.decodes(executor, 0);
                }
            });
            thread.decoded(query);
        }
        return new OwnTime(ofMethod, ofClock, ofInner, ofWait, ofMessage);
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
