// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.io.IOException;
import java.util.Arrays;
import org.pgtally.probe.Frame;
import org.pgtally.probe.MethodName;
import org.pgtally.probe.Methods;
import org.pgtally.probe.Probe;
import org.pgtally.segment.Segment;

/**
 * Runs the probe before the application starts, in a separate segment that is removed at once. Otherwise the first
 * method would be charged for loading, linking and compiling the probe.
 */
final class WarmUp {
    private static final int BLOCKS = 200;
    private static final int CALLS = 100;

    private WarmUp() {
    }

    /**
     * Runs it.
     *
     * @return the cost of a call in ns: the median of the later blocks
     */
    static long run(Options options) throws IOException {
        Segment segment = new Segment(options.file.resolveSibling(options.file.getFileName() + ".warm"), 1, 64,
                new Segment.About("", "", ""));
        try {
            Methods methods = new Methods();
            int caller = methods.number(MethodName.of("org.pgtally.WarmUp", "calls", ""));
            int method = methods.number(MethodName.of("org.pgtally.WarmUp", "call", ""));
            long[] costs = new long[BLOCKS];
            Thread thread = new Thread(() -> calls(caller, method, costs), "pgtally warm-up");
            Probe.use(options.session(segment, methods));
            thread.start();
            thread.join();
            long[] later = Arrays.copyOfRange(costs, BLOCKS / 2, BLOCKS);
            Arrays.sort(later);
            return later[later.length / 2];
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return 0;
        } finally {
            Probe.use(null);
            segment.remove();
        }
    }

    private static void calls(int caller, int method, long[] costs) {
        Throwable thrown = new IllegalStateException();
        Frame outer = Probe.enter(caller);
        for (int block = 0; block < costs.length; block++) {
            long begin = System.nanoTime();
            for (int i = 0; i < CALLS; i++) {
                Probe.exit(Probe.enter(method), null);
            }
            costs[block] = (System.nanoTime() - begin) / CALLS;
            Probe.exit(Probe.enter(method), thrown);
        }
        Probe.exit(outer, null);
    }
}
