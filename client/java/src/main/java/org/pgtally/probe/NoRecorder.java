// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

/** Of a thread for which there is no slot, or that is getting one just now. */
final class NoRecorder extends Recorder {
    NoRecorder(Session session) {
        super(session);
    }

    @Override
    Frame enter(int method) {
        return null;
    }

    @Override
    void exit(Frame frame, boolean thrown) {
        // No frame is from here.
    }

    @Override
    boolean isOn() {
        return false;
    }

    @Override
    CallBook takeCalls() {
        return null;
    }

    @Override
    void giveCalls(CallBook calls) {
        // There is none.
    }
}
