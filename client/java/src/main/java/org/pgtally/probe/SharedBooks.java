// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.concurrent.atomic.AtomicBoolean;
import org.pgtally.segment.Book;

/** The books of virtual threads: one per CPU. A thread takes one for the few stores that a call needs. */
final class SharedBooks {
    private final Shared[] books;

    /** A shared book. */
    static final class Shared {
        final Book book;
        final MethodIndexes places;
        private final Session session;
        private CallBook calls;
        private final AtomicBoolean taken = new AtomicBoolean();

        Shared(Session session, Book book) {
            this.session = session;
            this.book = book;
            places = new MethodIndexes(session, book);
        }

        CallBook calls() {
            if (calls == null) {
                calls = new CallBook(session, book);
            }
            return calls;
        }

        void follow(Session session) {
            if (session.segment.levelWord() != book.levelWord()) {
                session.segment.follow(book);
            }
        }

        void give() {
            taken.set(false);
        }
    }

    private SharedBooks(Shared[] books) {
        this.books = books;
    }

    /** Creates the books; null if there is no space. */
    static SharedBooks of(Session session) {
        Shared[] books = new Shared[Runtime.getRuntime().availableProcessors()];
        int pid = (int) ProcessHandle.current().pid();
        for (int i = 0; i < books.length; i++) {
            Book book = session.segment.claim("virtual threads", null, pid, "virtual threads " + (i + 1));
            if (book == null) {
                return null;
            }
            books[i] = new Shared(session, book);
        }
        return new SharedBooks(books);
    }

    /** Takes a book that no other thread is using. */
    Shared take() {
        int first = (int) Thread.currentThread().getId();
        for (int i = 0;; i++) {
            Shared shared = books[Math.floorMod(first + i, books.length)];
            if (shared.taken.compareAndSet(false, true)) {
                return shared;
            }
            if (i >= books.length) {
                // Its holder may be a virtual thread that waits for this processor to enter a new name.
                Thread.yield();
            }
        }
    }
}
