// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import org.pgtally.segment.Book;
import org.pgtally.segment.Threads;

/** The recorders of a session: one for each thread, created when the thread first calls an instrumented method. */
final class Recorders {
    private static final MethodHandle IS_VIRTUAL = isVirtual();

    private final Session session;
    private SharedBooks shared;

    Recorders(Session session) {
        this.session = session;
    }

    /** The recorder that measures nothing. */
    Recorder none() {
        return new None(session);
    }

    /** The recorder of the calling thread. */
    Recorder of(Thread thread) {
        try {
            if (virtual(thread)) {
                SharedBooks books = shared();
                return books == null ? none() : new VirtualRecorder(session, books);
            }
            Book book = session.segment.claim("thread", thread, Threads.current(), thread.getName());
            return book == null ? none() : new ThreadRecorder(session, book);
        } catch (RuntimeException | Error e) {
            return none();
        }
    }

    private synchronized SharedBooks shared() {
        if (shared == null) {
            shared = SharedBooks.of(session);
        }
        return shared;
    }

    private static boolean virtual(Thread thread) {
        try {
            return IS_VIRTUAL != null && (boolean) IS_VIRTUAL.invokeExact(thread);
        } catch (Throwable e) {
            return false;
        }
    }

    /** Java 21 has virtual threads. */
    private static MethodHandle isVirtual() {
        try {
            return MethodHandles.publicLookup().findVirtual(Thread.class, "isVirtual",
                    MethodType.methodType(boolean.class));
        } catch (ReflectiveOperationException e) {
            return null;
        }
    }

    /** For a thread that has no slot, or is just getting one. */
    private static final class None extends Recorder {
        None(Session session) {
            super(session);
        }

        @Override
        Frame enter(int method) {
            return null;
        }

        @Override
        long entered() {
            return 0;
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
}
