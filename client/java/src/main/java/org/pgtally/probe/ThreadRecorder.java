// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import org.pgtally.segment.Book;
import org.pgtally.segment.Segment;

/** The recorder of a platform thread, which has its own slot and book: at every instant, one account runs. */
final class ThreadRecorder extends CallStack {
    private final Book book;
    private final MethodIndexes places;
    private CallBook calls;

    ThreadRecorder(Session session, Book book) {
        super(session);
        this.book = book;
        places = new MethodIndexes(session, book);
    }

    @Override
    int touch(int method) {
        return places.touch(method);
    }

    @Override
    void begun(int at, long now) {
        book.begin();
        book.run(at + Methods.ACCOUNT, now);
        book.publish();
    }

    @Override
    void ended(Frame call, int caller, long now, long elapsed, long cpu, boolean outermost, boolean thrown) {
        int failures = thrown ? places.failures(call.at) : 0;
        int edge = keepsEdges && caller != 0 ? places.edge(caller, call.at) : 0;
        book.begin();
        book.run(caller == 0 ? Segment.IDLE : caller + Methods.ACCOUNT, now);
        record(book, call, edge, elapsed, cpu, outermost);
        if (failures > 0) {
            book.addPlain(failures, elapsed);
        }
        book.publish();
    }

    @Override
    CallBook takeCalls() {
        if (calls == null) {
            calls = new CallBook(session, book);
        }
        return isOn() ? calls : null;
    }

    @Override
    void giveCalls(CallBook taken) {
        // It is this thread's own.
    }

    @Override
    boolean follow() {
        return session.segment.followIdle(book);
    }
}
