// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

/**
 * Called by instrumented methods. The bootstrap loader loads it, so that every class sees it.
 *
 * <p>Nothing here throws. A thread that gets no slot is counted ({@code overflow_slots}) and is not measured.
 */
public final class Probe {
    private static volatile Session session;
    /** The recorders of the session; set before it, and cleared after it. */
    private static volatile Recorders recorders;
    private static final ThreadLocal<Recorder> RECORDERS = new ThreadLocal<>();

    private Probe() {
    }

    /**
     * A method begins.
     *
     * @return the argument for {@link #exit}; null if this call is not measured
     */
    public static Frame enter(int method) {
        Recorder recorder = recorder();
        return recorder == null ? null : recorder.enter(method);
    }

    /** The recorder of the calling thread; null if nothing is measured. */
    static Recorder recorder() {
        Session now = session;
        if (now == null) {
            return null;
        }
        Recorder recorder = RECORDERS.get();
        return recorder == null || recorder.session != now ? begin() : recorder;
    }

    /** The recorder of the calling thread as it was last used; null if it has none. */
    static Recorder lastRecorder() {
        return RECORDERS.get();
    }

    /** The method ends, possibly with an exception. */
    public static void exit(Frame frame, Throwable thrown) {
        if (frame != null) {
            frame.owner.exit(frame, thrown != null);
        }
    }

    /** Methods that the agent itself calls meanwhile must not recurse into this. */
    private static Recorder begin() {
        Recorders now = recorders;
        if (now == null) {
            return null;
        }
        RECORDERS.set(now.none());
        Recorder recorder = now.of(Thread.currentThread());
        RECORDERS.set(recorder);
        return recorder;
    }

    /** Whether methods are measured. */
    public static boolean isOn() {
        return session != null;
    }

    /** Starts measuring methods for a session; null stops it. */
    public static void use(Session next) {
        if (next != null) {
            recorders = new Recorders(next);
        }
        session = next;
        if (next == null) {
            recorders = null;
            Wires.forget();
        }
    }
}
