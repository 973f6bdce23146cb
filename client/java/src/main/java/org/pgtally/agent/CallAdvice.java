// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner.Typing;
import org.pgtally.probe.Calls;

/**
 * The code that is put into methods of the driver and of pools for the figures of statements ({@link CallPoints} says
 * where). It names none of their types: the bootstrap loader, which has {@link Calls}, does not know them.
 */
final class CallAdvice {
    private CallAdvice() {
    }

    /** A connection has been opened. */
    static final class Opened {
        private Opened() {
        }

        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(@Advice.This(typing = Typing.DYNAMIC) Object executor) {
            Calls.opened(executor);
        }
    }

    /** One statement, or several, are executed. */
    static final class Execute {
        private Execute() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static Object enter(@Advice.This(typing = Typing.DYNAMIC) Object executor,
                @Advice.Argument(value = 0, typing = Typing.DYNAMIC) Object query, @Advice.Argument(5) int flags) {
            return query instanceof Object[] ? Calls.executesBatch(executor, (Object[]) query, flags)
                    : Calls.executes(executor, query, flags);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter Object call, @Advice.Thrown Throwable thrown) {
            Calls.ended(call, thrown);
        }
    }

    /** A function is called by number. */
    static final class Function {
        private Function() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static Object enter(@Advice.This(typing = Typing.DYNAMIC) Object executor, @Advice.Argument(0) int function) {
            return Calls.executes(executor, "function " + function, 0);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter Object call, @Advice.Thrown Throwable thrown) {
            Calls.ended(call, thrown);
        }
    }

    /** Rows of a cursor are fetched. */
    static final class Fetch {
        private Fetch() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static Object enter(@Advice.This(typing = Typing.DYNAMIC) Object executor) {
            return Calls.fetches(executor);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter Object call, @Advice.Thrown Throwable thrown) {
            Calls.ended(call, thrown);
        }
    }

    /** A COPY begins. */
    static final class StartCopy {
        private StartCopy() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static Object enter(@Advice.This(typing = Typing.DYNAMIC) Object executor, @Advice.Argument(0) String sql) {
            Calls.sends();
            return Calls.copies(executor, sql);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter Object call, @Advice.Thrown Throwable thrown) {
            Calls.sent(false);
            Calls.ended(call, thrown);
        }
    }

    /** A COPY goes on: data is sent or read, or it ends. */
    static final class GoOnWithCopy {
        private GoOnWithCopy() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static Object enter(@Advice.This(typing = Typing.DYNAMIC) Object executor) {
            Calls.sends();
            return Calls.copies(executor, null);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter Object call, @Advice.Thrown Throwable thrown) {
            Calls.sent(false);
            Calls.ended(call, thrown);
        }
    }

    /** A message is sent, unless the method finds that it is not needed. */
    static final class Send {
        private Send() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static boolean enter() {
            return Calls.sends();
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter boolean before) {
            Calls.sent(before);
        }
    }

    /** The message that executes a query is sent. */
    static final class SendExecute {
        private SendExecute() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static boolean enter(@Advice.Argument(value = 0, typing = Typing.DYNAMIC) Object query) {
            Calls.cursorOf(query);
            return Calls.sends();
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter boolean before) {
            Calls.sent(before);
        }
    }

    /** A byte is sent. */
    static final class SendByte {
        private SendByte() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static void enter(@Advice.Argument(0) int value) {
            Calls.byteSent(value);
        }
    }

    /** Bytes are read from the socket. */
    static final class Read {
        private Read() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static long enter() {
            return Calls.waits(true);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter long since) {
            Calls.waited(since, true);
        }
    }

    /** They are written to it. */
    static final class Flush {
        private Flush() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static long enter() {
            return Calls.waits(false);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter long since) {
            Calls.waited(since, false);
        }
    }

    /** A row has been received. */
    static final class Row {
        private Row() {
        }

        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit() {
            Calls.row();
        }
    }

    /** The next row of a result. */
    static final class Next {
        private Next() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static Object enter(@Advice.FieldValue(value = "originalQuery", typing = Typing.DYNAMIC) Object query) {
            return Calls.decodes(query);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter Object call) {
            Calls.decoded(call, true);
        }
    }

    /** A value of it. */
    static final class Get {
        private Get() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static Object enter(@Advice.FieldValue(value = "originalQuery", typing = Typing.DYNAMIC) Object query) {
            return Calls.decodes(query);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter Object call) {
            Calls.decoded(call, false);
        }
    }

    /** A pool is asked for a connection. */
    static final class Pool {
        private Pool() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static long enter() {
            return Calls.waitsForPool();
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter long since) {
            Calls.waitedForPool(since);
        }
    }
}
