// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import net.bytebuddy.asm.Advice;
import net.bytebuddy.implementation.bytecode.assign.Assigner.Typing;
import org.pgtally.probe.Calls;

/**
 * The code that is inserted into methods of the driver and of pools for statement statistics ({@link CallPoints} says
 * where). It does not refer to their types, which the bootstrap loader of {@link Calls} does not know.
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

    /** One or several statements are executed. */
    static final class Execute {
        private Execute() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static Object enter(@Advice.This(typing = Typing.DYNAMIC) Object executor,
                @Advice.Argument(value = 0, typing = Typing.DYNAMIC) Object query,
                @Advice.Argument(value = 1, typing = Typing.DYNAMIC) Object parameters, @Advice.Argument(4) int fetchSize, @Advice.Argument(5) int flags) {
            return query instanceof Object[] ? Calls.executesBatch(executor, (Object[]) query, flags)
                    : Calls.executes(executor, query, parameters, fetchSize, flags);
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
            return Calls.executes(executor, "function " + function, null, 0);
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
            Calls.sentCopy();
            Calls.ended(call, thrown);
        }
    }

    /** A COPY continues: data is sent or read, or it ends. */
    static final class GoOnWithCopy {
        private GoOnWithCopy() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static Object enter(@Advice.This(typing = Typing.DYNAMIC) Object executor) {
            Calls.sends();
            return Calls.copies(executor, null);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter Object call, @Advice.Argument(value = 0, typing = Typing.DYNAMIC) Object operation,
                @Advice.Thrown Throwable thrown) {
            Calls.sentCopy();
            Calls.copied(call, operation);
            Calls.ended(call, thrown);
        }
    }

    /** A message is sent, unless the method finds that it is unnecessary. */
    static final class Send {
        private Send() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static Object enter() {
            return Calls.sends();
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter Object begun) {
            Calls.sent(begun);
        }
    }

    /** The message that executes a query is sent. */
    static final class SendExecute {
        private SendExecute() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static Object enter(@Advice.Argument(value = 0, typing = Typing.DYNAMIC) Object query) {
            Calls.cursorOf(query);
            return Calls.sends();
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter Object begun) {
            Calls.sent(begun);
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

    /** An integer is sent. */
    static final class SendInteger {
        private SendInteger() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static void enter(@Advice.Argument(0) int value) {
            Calls.integerSent(value);
        }
    }

    /** Bytes are read from the socket into the driver's buffer. */
    static final class Read {
        private Read() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static long enter(@Advice.FieldValue("index") int index, @Advice.FieldValue("endIndex") int end,
                @Advice.Local("there") int there) {
            there = end - index;
            return Calls.waits(true);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter long since, @Advice.FieldValue("index") int index,
                @Advice.FieldValue("endIndex") int end, @Advice.Local("there") int there) {
            Calls.waited(since, true, end - index - there);
        }
    }

    /** A prepared statement is created. */
    static final class Prepare {
        private Prepare() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static long enter() {
            return Calls.prepares();
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter long since) {
            Calls.prepared(since, false);
        }
    }

    /** A statement is closed. */
    static final class Close {
        private Close() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static long enter() {
            return Calls.prepares();
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter long since) {
            Calls.prepared(since, true);
        }
    }

    /** The statement being created. */
    static final class Prepared {
        private Prepared() {
        }

        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(@Advice.FieldValue(value = "preparedQuery", typing = Typing.DYNAMIC) Object cached) {
            Calls.preparesOf(cached);
        }
    }

    /** The statement being closed. */
    static final class ClosePrepared {
        private ClosePrepared() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static void enter(@Advice.FieldValue(value = "preparedQuery", typing = Typing.DYNAMIC) Object cached) {
            Calls.preparesOf(cached);
        }
    }

    /** Buffered bytes are written to the socket. */
    static final class Flush {
        private Flush() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static long enter() {
            return Calls.waits(false);
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter long since) {
            Calls.waited(since, false, 0);
        }
    }

    /** A savepoint is set before a statement, if the connection is configured so. */
    static final class Savepoint {
        private Savepoint() {
        }

        @Advice.OnMethodExit(suppress = Throwable.class)
        static void exit(@Advice.Return boolean set) {
            if (set) {
                Calls.savepoint();
            }
        }
    }

    /** A connection is requested from a pool. */
    static final class Pool {
        private Pool() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static long enter() {
            return Calls.waitsForPool();
        }

        @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
        static void exit(@Advice.Enter long since, @Advice.This(typing = Typing.DYNAMIC) Object pool,
                @Advice.Return(typing = Typing.DYNAMIC) Object connection, @Advice.Thrown Throwable thrown) {
            Calls.waitedForPool(since, thrown);
            Calls.borrowed(pool, connection);
        }
    }

    /** A connection is returned to its pool. */
    static final class Return {
        private Return() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static void enter(@Advice.This(typing = Typing.DYNAMIC) Object connection) {
            Calls.returned(connection);
        }
    }

    /** A pool takes back an object that has the connection. */
    static final class TakeBack {
        private TakeBack() {
        }

        @Advice.OnMethodEnter(suppress = Throwable.class)
        static void enter(@Advice.Argument(value = 0, typing = Typing.DYNAMIC) Object connection) {
            Calls.returned(connection);
        }
    }
}
