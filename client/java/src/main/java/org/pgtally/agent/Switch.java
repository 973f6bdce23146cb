// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.io.IOException;
import java.lang.instrument.Instrumentation;
import org.pgtally.probe.Connections;
import org.pgtally.probe.Methods;
import org.pgtally.probe.OwnTime;
import org.pgtally.probe.Probe;
import org.pgtally.probe.Session;
import org.pgtally.segment.Segment;

/** Switches measuring on and off. The bootstrap loader loads it, and everything that it uses. */
public final class Switch {
    private static final Methods METHODS = new Methods();
    private static final int POLLS_A_SWEEP = 10;

    private static Segment segment;
    private static Instrumenter instrumenter;
    private static Thread sweeper;
    private static GarbageCollections collections;

    private Switch() {
    }

    /**
     * Applies the options.
     *
     * @param version of the agent
     */
    public static synchronized void apply(String text, String version, Instrumentation instrumentation)
            throws IOException {
        Options options = Options.parse(text);
        if (options.off) {
            off();
        } else if (Probe.isOn()) {
            Report.line("this process is already measured, in " + segment.path() + "; turn that off first");
        } else {
            on(options, version, instrumentation);
        }
    }

    private static void on(Options options, String version, Instrumentation instrumentation)
            throws IOException {
        OwnTime own = WarmUp.run(options);
        segment = new Segment(options.file, options.threads, options.statistics,
                new Segment.About(System.getProperty("sun.java.command", "java"), "pgtally-agent " + version,
                        "Java " + System.getProperty("java.version"), options.keep));
        segment.note(false, "timing adds about " + Math.round(own.method) + " ns to each call of a timed method (measured at start)");
        Session session = options.session(segment, METHODS, own);
        if (options.edges) {
            segment.probe("edges", null);
        }
        Probe.use(session);
        instrumenter = new Instrumenter(instrumentation, options.methods, options.calls, METHODS, segment);
        collections = collections(segment);
        Pauses pauses = Pauses.watch(segment);
        if (pauses != null) {
            session.collecting(pauses::collecting);
        }
        Connections connections = options.calls ? new Connections(segment, options.unused) : null;
        sweeper = new Thread(() -> sweep(segment, pauses, connections), "pgtally");
        sweeper.setDaemon(true);
        sweeper.start();
        Segment made = segment;
        Runtime.getRuntime().addShutdownHook(new Thread(options.keep ? made::end : made::remove, "pgtally end"));
    }

    /** Null if this Java has no module jdk.management. */
    private static GarbageCollections collections(Segment segment) {
        try {
            return GarbageCollections.listen(segment);
        } catch (LinkageError e) {
            return null;
        }
    }

    /** Polls the JVM's counters, samples connections, and merges ended threads, as long as this segment is in use. */
    private static void sweep(Segment mine, Pauses pauses, Connections connections) {
        mine.removeLeft();
        try {
            for (int poll = 1; !Thread.interrupted(); poll++) {
                Thread.sleep(Pauses.POLL_MS);
                if (pauses != null) {
                    pauses.poll();
                }
                if (poll % POLLS_A_SWEEP == 0) {
                    mine.sweep();
                    if (connections != null) {
                        connections.sample();
                    }
                }
            }
        } catch (InterruptedException e) {
            // It is switched off.
        }
    }

    private static void off() {
        if (!Probe.isOn()) {
            Report.line("this process is not measured");
            return;
        }
        Probe.use(null);
        instrumenter.remove();
        sweeper.interrupt();
        if (collections != null) {
            collections.stop();
        }
        segment.remove();
        instrumenter = null;
        segment = null;
    }
}
