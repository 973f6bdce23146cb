// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

/**
 * What instrumented methods call. The bootstrap loader loads it, so that every class sees it.
 *
 * <p>Nothing here throws. A thread that gets no slot is counted ({@code overflow_slots}) and runs unmeasured.
 */
public final class Probe {
    private static volatile Session session;
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
        return recorder == null || recorder.session != now ? begin(now) : recorder;
    }

    /** It ends, perhaps by an exception. */
    public static void exit(Frame frame, Throwable thrown) {
        if (frame != null) {
            frame.recorder.exit(frame, thrown != null);
        }
    }

    /** What the agent itself calls in between must not come here again. */
    private static Recorder begin(Session now) {
        RECORDERS.set(new NoRecorder(now));
        Recorder recorder = now.recorder(Thread.currentThread());
        RECORDERS.set(recorder);
        return recorder;
    }

    /** Whether methods are measured. */
    public static boolean isOn() {
        return session != null;
    }

    /** From now on methods are measured; null: no longer. */
    public static void use(Session next) {
        session = next;
        if (next == null) {
            Wires.forget();
        }
    }
}
