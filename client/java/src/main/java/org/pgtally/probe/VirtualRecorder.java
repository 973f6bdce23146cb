// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import org.pgtally.segment.Segment;

/**
 * The recorder of a virtual thread. There may be millions, so they have no slots: the time of a call is added to one of a
 * few books when the call ends. Call statistics are exact, but accounts do not include virtual threads.
 */
final class VirtualRecorder extends CallStack {
    private final SharedBooks books;
    private SharedBooks.Shared taken;

    VirtualRecorder(Session session, SharedBooks books) {
        super(session);
        this.books = books;
    }

    @Override
    int touch(int method) {
        // Indexes differ from book to book: those here count methods.
        return method + 1;
    }

    @Override
    void begun(int at, long now) {
        // No account.
    }

    @Override
    void ended(Frame call, int caller, long now, long elapsed, long cpu, boolean outermost, boolean thrown) {
        SharedBooks.Shared shared = books.take();
        try {
            int method = call.at - 1;
            int at = shared.places.touch(method);
            if (at > 0) {
                call.at = at;
                int failures = thrown ? shared.places.failures(at) : 0;
                int from = keepsEdges && caller != 0 ? shared.places.touch(caller - 1) : 0;
                int edge = from > 0 ? shared.places.edge(from, at) : 0;
                shared.follow(session);
                shared.book.begin();
                record(shared.book, call, edge, elapsed, cpu, outermost);
                if (failures > 0) {
                    shared.book.addPlain(failures, elapsed);
                }
                shared.book.publish();
            }
        } finally {
            shared.give();
        }
    }

    @Override
    CallBook takeCalls() {
        taken = books.take();
        try {
            taken.follow(session);
            return taken.calls();
        } catch (Throwable e) {
            // Otherwise nobody would get this book again.
            taken.give();
            throw e;
        }
    }

    @Override
    void giveCalls(CallBook calls) {
        taken.give();
    }

    @Override
    boolean follow() {
        return Segment.isOn(session.segment.levelWord());
    }
}
