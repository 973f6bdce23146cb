// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

/**
 * What instrumented methods call. The bootstrap loader loads it, so that every class sees it.
 *
 * <p>Nothing here throws. A thread that gets no slot is counted ({@code overflow_slots}) and runs unmeasured.
 */
public final class Probe {
    private static volatile Session session;
    /** Of the session; set before it, and cleared after it. */
    private static volatile Recorders recorders;
    private static final ThreadLocal<Recorder> RECORDERS = new ThreadLocal<>();

    private Probe() {
    }

    /**
     * A method begins.
     *
     * @return to be given to {@link #exit}; null: this call is not measured
     */
    public static Frame enter(int method) {
        Recorder recorder = recorder();
        return recorder == null ? null : recorder.enter(method);
    }

    /** Of the calling thread; null: nothing is measured. */
    static Recorder recorder() {
        Session now = session;
        if (now == null) {
            return null;
        }
        Recorder recorder = RECORDERS.get();
        return recorder == null || recorder.session != now ? begin() : recorder;
    }

    /** It ends, perhaps by an exception. */
    public static void exit(Frame frame, Throwable thrown) {
        if (frame != null) {
            frame.owner.exit(frame, thrown != null);
        }
    }

    /** What the agent itself calls in between must not come here again. */
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

    /** From now on methods are measured; null: no longer. */
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
