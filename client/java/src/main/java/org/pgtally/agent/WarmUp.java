// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.io.IOException;
import org.pgtally.probe.MethodName;
import org.pgtally.probe.Methods;
import org.pgtally.probe.OwnTime;
import org.pgtally.probe.OwnTimeMeter;
import org.pgtally.probe.Probe;
import org.pgtally.segment.Segment;

/**
 * Runs the probe before the application starts, in a separate segment that is removed at once. Otherwise the first
 * method would be charged for loading, linking and compiling the probe.
 */
final class WarmUp {
    private WarmUp() {
    }

    /** Runs it; returns what the probes cost. */
    static OwnTime run(Options options) throws IOException {
        Segment segment = new Segment(options.file.resolveSibling(options.file.getFileName() + ".warm"), 1, 512,
                new Segment.About("", "", ""));
        try {
            Methods methods = new Methods();
            int caller = methods.number(MethodName.of("org.pgtally.WarmUp", "calls", ""));
            int method = methods.number(MethodName.of("org.pgtally.WarmUp", "call", ""));
            OwnTime[] measured = {OwnTime.NONE};
            Thread thread = new Thread(() -> measured[0] = OwnTimeMeter.measure(caller, method), "pgtally warm-up");
            Probe.use(options.session(segment, methods, OwnTime.NONE));
            thread.start();
            thread.join();
            return measured[0];
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
            return OwnTime.NONE;
        } finally {
            Probe.use(null);
            segment.remove();
        }
    }
}
