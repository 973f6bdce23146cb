// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import static org.pgtally.test.Units.equal;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.Files;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.CountDownLatch;
import java.util.function.Function;
import org.pgtally.segment.Book;
import org.pgtally.segment.Layout;
import org.pgtally.segment.Segment;
import org.pgtally.test.Units;
import org.pgtally.test.Units.Reading;

final class ProbeTest {
    private ProbeTest() {
    }

    /** As the driver's. */
    public static final class Cached {
        public final Object query;

        Cached(Object query) {
            this.query = query;
        }
    }

    /** As the driver's. */
    public static final class Executor {
        public int getBackendPID() {
            return 4711;
        }
    }

    static void aCachedStatementSaysWhatItExecutes() {
        equal("select", CachedQueries.query(new Cached("select")), "its query");
        equal("update", CachedQueries.query(new Cached("update")), "another one's");
        equal(null, CachedQueries.query("no such field"), "none");
        equal(null, CachedQueries.query(null), "nothing");
    }

    static void aConnectionIsWholeIfItWasSeenToBegin() {
        Executor opened = new Executor();
        Wires.opened(opened);
        equal("true 4711", Wires.of(opened).whole + " " + Wires.of(opened).pid, "opened");
        equal(true, Wires.of(opened) == Wires.of(opened), "the same");
        Wires.missed(opened);
        equal(false, Wires.of(opened).whole, "missed");
        Object strange = new Object();
        equal("false 0", Wires.of(strange).whole + " " + Wires.of(strange).pid, "not seen to begin");
        Wires.opened(opened);
        Wires.forget();
        equal(false, Wires.of(opened).whole, "forgotten");
    }

    /** Starts a thread, waits until it has ended or waits for a lock of this thread, and says whether it has ended. */
    private static boolean ends(Runnable what) {
        Thread thread = new Thread(what);
        thread.setDaemon(true);
        thread.start();
        while (thread.getState() != Thread.State.TERMINATED) {
            // It may wait for another thread's lock, such as a class loader's, for a moment.
            ThreadInfo info = ManagementFactory.getThreadMXBean().getThreadInfo(thread.getId());
            if (info != null && info.getLockOwnerId() == Thread.currentThread().getId()) {
                return false;
            }
        }
        return true;
    }

    /** As a driver that waits, while it says its server process, for a thread that looks up another connection. */
    public static final class WaitingExecutor {
        boolean ended;

        public int getBackendPID() {
            ended = ends(() -> Wires.of(new Executor()));
            return 4712;
        }
    }

    static void noLockIsHeldWhileTheDriverIsCalled() {
        WaitingExecutor known = new WaitingExecutor();
        equal("4712 true", Wires.of(known).pid + " " + known.ended, "of a connection not seen to begin");
        WaitingExecutor opened = new WaitingExecutor();
        Wires.opened(opened);
        equal(true, opened.ended, "of a new connection");
    }

    static void theRunOfASharedConnectionIsChangedByOneThreadAtATime() {
        Wire wire = new Wire(new Object(), 0, true);
        synchronized (wire) {
            equal(false, ends(() -> wire.executed(text("a"), 1, true, true)), "it did not wait");
        }
    }

    private static void message(int type) {
        Object begun = Calls.sends();
        Calls.byteSent(type);
        Calls.sent(begun);
    }

    /** Requests records of calls, as a reader does. */
    private static void arm(Segment segment) throws IOException {
        try (var file = new RandomAccessFile(segment.path().toFile(), "rw")) {
            ByteBuffer head = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, file.length())
                    .order(ByteOrder.nativeOrder());
            int ring = (int) head.getLong(Layout.HEADER_TRACES);
            head.putLong(ring + Layout.TRACE_UNTIL, System.nanoTime() + (1L << 50));
            head.putInt(ring + Layout.TRACE_CLAIM, 1 << 8 | Layout.TRACE_STATE_ARMED);
            head.putLong(Layout.HEADER_TRACES_ARMED, 1);
        }
    }

    /** The recorded calls: ordinal of the first message, number of messages. */
    private static List<String> recorded(Segment segment) throws IOException {
        ByteBuffer bytes = ByteBuffer.wrap(Files.readAllBytes(segment.path())).order(ByteOrder.nativeOrder());
        List<String> calls = new ArrayList<>();
        int first = (int) bytes.getLong(Layout.HEADER_TRACES) + Layout.TRACE_SIZE;
        for (int at = first; bytes.getLong(at) != 0; at += Layout.TRACE_RECORD_SIZE) {
            if (bytes.get(at + Layout.TRACE_RECORD_KIND) == Layout.TRACE_KIND_CALL) {
                calls.add(bytes.getLong(at + Layout.TRACE_RECORD_WORD) + " "
                        + bytes.getInt(at + Layout.TRACE_RECORD_WORD + 8));
            }
        }
        return calls;
    }

    static void threadsThatShareAConnectionHaveTheirOwnMessages() throws Exception {
        Segment segment = Units.segment(2, 1024);
        arm(segment);
        Executor executor = new Executor();
        run(new Session(segment, new Methods(), false, false, false), () -> {
            Wires.opened(executor);
            Object call = Calls.executes(executor, "a", null, 0);
            CountDownLatch begun = new CountDownLatch(1);
            CountDownLatch free = new CountDownLatch(1);
            // Since 42.6, the driver locks the connection after the call has begun.
            Thread other = new Thread(() -> {
                Object waits = Calls.executes(executor, "b", null, 0);
                begun.countDown();
                await(free);
                message('B');
                message('E');
                Calls.ended(waits, null);
            });
            other.start();
            await(begun);
            message('P');
            message('B');
            message('E');
            free.countDown();
            join(other);
            Calls.ended(call, null);
        });
        equal(List.of("4 2", "1 3"), recorded(segment), "first message and number");
    }

    private static void await(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static void join(Thread thread) {
        try {
            thread.join();
        } catch (InterruptedException e) {
            throw new AssertionError(e);
        }
    }

    private static SqlText text(String text) {
        return new SqlText("id", 1, 1, text);
    }

    /** A connection that executes statements with parameters, and its statements that are reported, with executions. */
    private static final class Repeats {
        final Wire wire = new Wire(new Object(), 0, true);
        final Map<String, SqlText> known = new HashMap<>();
        final Map<String, Integer> found = new TreeMap<>();
        final boolean inTransaction;

        Repeats(boolean inTransaction) {
            this.inTransaction = inTransaction;
        }

        /** For each parameter from first to last. */
        Repeats run(String text, int first, int last) {
            for (int parameter = first; parameter <= last; parameter++) {
                run(text, parameter);
            }
            return this;
        }

        Repeats run(String text, int parameter) {
            return run(text, parameter, inTransaction);
        }

        Repeats run(String text, int parameter, boolean ofTransaction) {
            SqlText statement = known.computeIfAbsent(text, ProbeTest::text);
            int repeated = (int) wire.executed(statement, parameter, ofTransaction, true);
            if (repeated != 0) {
                found.merge(text, repeated, Integer::sum);
            }
            return this;
        }

        Repeats borrowed() {
            wire.borrowed(this);
            return this;
        }

        @Override
        public String toString() {
            return found.toString();
        }
    }

    private static String repeated(Function<Repeats, Repeats> what) {
        return what.apply(new Repeats(true)).toString();
    }

    private static String outside(Function<Repeats, Repeats> what) {
        return what.apply(new Repeats(false)).toString();
    }

    static void aStatementThatIsRepeatedInATransactionIsReported() {
        equal("{a=11}", repeated(calls -> calls.run("a", 1, 11).run("commit", 0)), "more than ten");
        equal("{a=11}", repeated(calls -> calls.run("a", 1, 11)), "before its end");
        equal("{a=15}", repeated(calls -> calls.run("a", 1, 15)), "all that follow");
        equal("{}", repeated(calls -> calls.run("a", 1, 10).run("commit", 0)), "ten");
        equal("{a=12}", repeated(calls -> calls.run("a", 1, 11).run("b", 0).run("a", 12).run("rollback", 0)), "another in between");
        equal("{a=12, b=12}", repeated(calls -> {
            for (int i = 0; i < 12; i++) {
                calls.run("a", i).run("b", i);
            }
            return calls;
        }), "in turns");
        equal("{}", repeated(calls -> {
            for (int i = 0; i < 50; i++) {
                calls.run("select 1", 0);
            }
            return calls;
        }), "with the same parameters, as a ping");
        equal("{}", repeated(calls -> calls.run("a", 1, 6).run("commit", 0).run("a", 7, 12).run("commit", 0)), "in two");
        equal("{a=12}", repeated(calls -> calls.run("a", 1, 6).run("rollback to savepoint s", 0).run("a", 7, 12)), "in one");
        equal("{}", repeated(calls -> calls.run("select * from t where a in (?, ?)", 1, 20)
                .run("select * from t where a = any (?)", 1, 20).run("insert into t values (?, ?), (?, ?)", 1, 20)
                .run("select nextval(?)", 1, 20).run("select t.oid from pg_catalog.pg_type t where typname = ?", 1, 20)),
                "lists of parameters, sequences, the driver's own");
        String one = "insert into t values (nextval('s'), ?, f(?, ?))";
        equal("{" + one + "=11}", repeated(calls -> calls.run(one, 1, 11)), "one row each");
        equal("{select * from t where a in (?)=11}", repeated(calls -> calls.run("select * from t where a in (?)", 1, 11)),
                "a list of one");
    }

    static void outsideOfTransactionsARunIsABorrowFromThePool() {
        equal("{a=11}", outside(calls -> calls.run("a", 1, 11)), "one after the other");
        equal("{}", outside(calls -> calls.run("a", 1, 10).run("b", 0).run("a", 11, 20)), "without a pool, another one ends it");
        equal("{}", outside(calls -> {
            for (int i = 0; i < 60; i++) {
                calls.borrowed().run("a", i);
            }
            return calls;
        }), "a borrow for each");
        equal("{a=30}", outside(calls -> {
            calls.borrowed();
            for (int i = 0; i < 30; i++) {
                calls.run("a", i).run("b", 0);
            }
            return calls;
        }), "in one borrow");
        equal("{}", outside(calls -> calls.run("a", 1, 10).run("a", 11, true).run("a", 12, true)), "a transaction follows");
        equal("{}", outside(calls -> calls.run("a", 1, true).run("commit", 0).run("a", 2, 11)), "and it follows a transaction");
        equal("{a=11}", outside(calls -> {
            calls.run("begin", 0);
            for (int i = 0; i < 11; i++) {
                calls.run("a", i).run("b", 0);
            }
            return calls.run("end", 0);
        }), "the application's own transaction");
    }

    static void whichStatementsEndATransaction() {
        for (String ends : List.of("Commit", "ROLLBACK", "end;", "abort work", "commit and chain", "rollback transaction")) {
            equal(SqlText.Role.ENDS, text(ends).role, ends);
        }
        for (String plain : List.of("commit prepared 'x'", "rollback to s", "rollback prepared 'x'", "endless", "beginning")) {
            equal(SqlText.Role.PLAIN, text(plain).role, plain);
        }
        equal(SqlText.Role.BEGINS, text("begin isolation level serializable").role, "begin");
        equal(SqlText.Role.BEGINS, text("start\ntransaction").role, "start transaction");
    }

    /** As the driver's. */
    public static final class Values {
        private final Object[] values;

        Values(Object... values) {
            this.values = values;
        }

        public Object[] getValues() {
            return values;
        }
    }

    static void parametersAreComparedByTheirValues() {
        Object[] different = {new Values(), new Values("a"), new Values("b"), new Values("a", "b"), new Values("b", "a"),
            new Values(null, "a"), new Values((Object) new byte[] {1}), new Values((Object) new byte[] {2}),
            new Values("x".repeat(100)), new Values("x".repeat(101)), new Values("x".repeat(99) + "y"),
            new Values((Object) new byte[100]), new Values((Object) new byte[101])};
        Set<Long> hashes = new HashSet<>();
        for (Object values : different) {
            hashes.add(Parameters.hash(values));
        }
        equal(different.length, hashes.size(), "different");
        equal(Parameters.hash(new Values("a", new byte[] {1, 2})), Parameters.hash(new Values("a", new byte[] {1, 2})), "equal");
        equal("0 0", Parameters.hash(null) + " " + Parameters.hash("no such method"), "none");
    }

    static void longParametersAreComparedWithoutCopies() {
        var memory = (com.sun.management.ThreadMXBean) ManagementFactory.getThreadMXBean();
        Values values = new Values("x".repeat(1000));
        int times = 1000;
        Parameters.hash(values);
        long before = memory.getThreadAllocatedBytes(Thread.currentThread().getId());
        for (int i = 0; i < times; i++) {
            Parameters.hash(values);
        }
        long each = (memory.getThreadAllocatedBytes(Thread.currentThread().getId()) - before) / times;
        // Two strings of 32 letters would be more.
        equal(true, each < 64, each + " bytes");
    }

    static void secretsAreHiddenWithoutALock() throws Exception {
        SqlTexts[] texts = {null};
        boolean[] held = {false};
        texts[0] = new SqlTexts(Units.segment(1, 64), text -> {
            held[0] |= Thread.holdsLock(texts[0]);
            return text;
        });
        SqlText one = texts[0].of("a");
        equal("false true", held[0] + " " + (one == texts[0].of("a")), "held, the same");
    }

    static void aFetchSizeThatIsIgnoredCountsIfThereAreMoreRows() throws Exception {
        Segment segment = Units.segment(1, 1024);
        int cursor = 8;
        run(new Session(segment, new Methods(), false, false, false), () -> {
            for (int[] with : new int[][] {{10, 11, 0}, {10, 10, 0}, {10, 11, cursor}, {0, 11, 0}, {5, 30, 0}}) {
                Object call = Calls.executes("connection", "select", null, with[0], with[2]);
                Calls.rows(Collections.nCopies(with[1], "row"));
                Calls.ended(call, null);
            }
        });
        Reading reading = new Reading(segment);
        String name = reading.names("call::unfetched::").stream().filter(stat -> !stat.endsWith("others")).findFirst().get();
        equal(List.of(2L, 41L), reading.figures(name).subList(0, 2), "executions and rows");
    }

    static void savepointsOfTheDriverAreCountedByTransaction() throws Exception {
        Segment segment = Units.segment(1, 1024);
        run(new Session(segment, new Methods(), false, false, false), () -> {
            for (int many : new int[] {3, 2}) {
                for (int i = 0; i < many; i++) {
                    Object call = Calls.executes("connection", "update", null, 0);
                    Calls.savepoint();
                    Calls.ended(call, null);
                }
                Calls.ended(Calls.executes("connection", "select", null, 0), null);
                Calls.ended(Calls.executes("connection", "commit", null, 0), null);
            }
        });
        Reading reading = new Reading(segment);
        long all = 0;
        long most = 0;
        for (String name : reading.names("call::savepoint::")) {
            all += reading.count(name);
            most = Math.max(most, reading.figures(name).get(3));
        }
        equal("5 3", all + " " + most, "savepoints, and the most in one transaction");
    }

    static void aPoolWithoutAFreeConnectionCounts() throws Exception {
        Segment segment = Units.segment(1, 1024);
        run(new Session(segment, new Methods(), false, false, false), () -> {
            Calls.waitedForPool(Calls.waitsForPool(), null);
            Calls.waitedForPool(Calls.waitsForPool(), new IllegalStateException());
        });
        Reading reading = new Reading(segment);
        equal("2 1", reading.count("call::pool::wait") + " " + reading.count("call::pool::failed"), "all, failed");
    }

    static void commentsAroundAStatementAreNoPartOfIt() {
        String[][] cases = {
            {" select 1 ", "select 1"},
            {"/* a */ -- b\nselect /* c */ '--', 1 /*traceparent='00-1-2-01'*/ -- d", "select /* c */ '--', 1"},
            {"select 1; /* /* a */ b */", "select 1;"},
            {"/*+ SeqScan(t) */ select 1 /* a */", "/*+ SeqScan(t) */ select 1"},
            {"select \"/*a*/\"", "select \"/*a*/\""},
            {"select $$ -- $$", "select $$ -- $$"},
            {"/* ping */", ""},
            {"", ""},
        };
        for (String[] texts : cases) {
            equal(texts[1], Secrets.withoutOuterComments(texts[0]), texts[0]);
        }
    }

    static void statementsAreKnownByTheirTexts() throws Exception {
        Segment segment = Units.segment(1, 64);
        SqlTexts texts = new SqlTexts(segment);
        SqlText one = texts.of("a");
        // The FNV-1a hash of one letter.
        equal("af63dc4c8601ec8c", one.id, "id");
        equal(true, texts.of(" a\n") == one, "blanks around it");
        String smileys = "a" + "\ud83d\ude00".repeat(300);
        String id = texts.of(smileys).id;
        StringBuilder written = new StringBuilder();
        for (int piece = 0;; piece++) {
            String beginning = "sql::" + id + "::" + piece + "::";
            List<String> found = new Reading(segment).names(beginning);
            if (found.isEmpty()) {
                break;
            }
            equal(1, found.size(), beginning);
            written.append(found.get(0).substring(beginning.length()));
        }
        equal(smileys.substring(0, 24 * 22 - 3) + "...", written.toString(), "a long text in pieces");
        equal(true, texts.of("/* a */ a -- b") == one, "comments around it");
        for (int i = 0; i < 254; i++) {
            equal(16, texts.of("text " + i).id.length(), "among the first 256");
        }
        equal("others 0", texts.of("one more").id + " " + texts.of("another").number, "the others");
        equal(true, texts.of("text 0 -- again") == texts.of("text 0"), "one of the first, with another comment");
        equal("af63dc4c8601ec8c", texts.of("a").id, "the first is still known");
    }

    static void aStatementWithoutSpaceIsCountedAsOneOfTheOthers() throws Exception {
        // Space for 16 statements, of which the others take one.
        Segment segment = Units.segment(1, 8 + 2 * 17 * 8);
        int[] executed = {0};
        run(new Session(segment, new Methods(), false, false, false), () -> {
            for (int i = 0; i < 40; i++) {
                Calls.ended(Calls.executes("connection", "text " + i, null, 0), null);
                executed[0]++;
            }
        });
        Reading reading = new Reading(segment);
        long all = 0;
        for (String name : reading.names("call::execute::")) {
            all += reading.count(name);
        }
        equal(40L, all, "executions");
        equal(25L, reading.count("call::execute::others"), "the others");
    }

    static void methodsOfAResultAreTimedForSomeRows() throws Exception {
        Segment segment = Units.segment(1, 512);
        Object query = "select";
        int[] timed = {0, 0};
        run(new Session(segment, new Methods(), false, false, false), () -> {
            Object result = new Object();
            for (int row = 0; row < 10 * Calls.ROWS; row++) {
                if (Calls.decodes(result, row + 1)) {
                    equal(false, Calls.decodes(result, row + 1), "a method within one");
                    timed[0]++;
                    Calls.decoded(query);
                }
            }
            for (int i = 0; i < 6400; i++) {
                if (Calls.decodes(result, 0)) {
                    timed[1]++;
                    Calls.decoded(query);
                }
            }
        });
        equal(10, timed[0], "later rows");
        equal(true, timed[1] > 160 && timed[1] < 240, timed[1] + " of 6400 first rows");
        String id = new Reading(segment).names("call::decode::").stream().filter(stat -> !stat.endsWith("others")).findFirst().get();
        equal(10L * Calls.ROWS + 32L * timed[1], new Reading(segment).count(id), "calls that they stand for");
    }

    static void whatTheProbesTakeIsNotInTheFigures() throws Exception {
        Segment segment = Units.segment(2, 512);
        Methods methods = new Methods();
        int method = methods.number(MethodName.of("p.C", "m", ""));
        long[] around = {0};
        // Longer than a probe takes: nothing is left of these calls.
        OwnTime own = new OwnTime(1e12, 0, 0, 0, 0);
        run(new Session(segment, methods, false, false, false, own), () -> {
            Object call = Calls.executes("connection", "select", null, 0);
            Probe.exit(enter(method), null);
            Calls.ended(call, null);
            equal(true, Calls.decodes("result", 0), "the first of the first rows");
            Probe.exit(enter(method), null);
            Calls.decoded("select");
            long begin = System.nanoTime();
            Object other = Calls.executes("connection", "update", null, 0);
            Calls.ended(other, null);
            around[0] = System.nanoTime() - begin;
        });
        Reading reading = new Reading(segment);
        List<Long> executions = new ArrayList<>();
        for (String name : reading.names("call::execute::")) {
            executions.add(reading.figures(name).get(1));
        }
        Collections.sort(executions);
        equal(true, executions.get(2) > 0 && executions.get(2) <= around[0], "without timed methods, as measured");
        equal("0 0", executions.get(0) + " " + executions.get(1), "the others', and with one");
        for (String name : reading.names("call::decode::")) {
            equal(0L, reading.figures(name).get(1), name);
        }
        OwnTime[] measured = {null};
        run(new Session(segment, methods, false, false, false), () -> measured[0] = OwnTimeMeter.measure(method, method));
        equal(true, measured[0].method > 0 && measured[0].wait > 0 && measured[0].message > 0
                && measured[0].clock >= 0 && measured[0].inner > 0, "measured");
    }

    static void whatMayBeAPasswordIsHidden() throws Exception {
        String[][] cases = {
            {"select 'a', 1 from t where b = ? -- c 'd'", "select '***', 1 from t where b = ? -- c 'd'"},
            {"select E'a\\'b', $x$c$$d$x$, \"e'f\", U&'g', n'h' || i", "select '***', '***', \"e'f\", '***', '***' || i"},
            {"insert into t values ('a'\n'b', 'it''s') /* 'c' */", "insert into t values ('***', '***') /* 'c' */"},
            {"select a like 'b\\' and c = 'd'", "select a like '***' and c = '***'"},
            {"/* a */ alter role r password 'b' -- was c", "/* ... */ alter role r password '***' /* ... */"},
            {"alter role r password 'a\\'' b' createdb", "alter role r password '***'"},
            {"alter role r password 'open", "alter role r password '***'"},
            {"set app.password = hunter2", "set app.password = '***'"},
            {"SET LOCAL \"my.claims\" TO a, 'b', -5, default", "SET LOCAL \"my.claims\" TO '***', '***', -'***', default"},
            {"alter system set primary_conninfo='a'", "alter system set primary_conninfo='***'"},
            {"set work_mem to 64", "set work_mem to 64"},
            {"update t set a = b, c = 'd'", "update t set a = b, c = '***'"},
            {"set a.b = ?", "set a.b = ?"},
            {"{call p('a')}", "{call p('***')}"},
            {"copy t from program 'a' /* b /* c */ d */", "copy t from program '***' /* ... */"},
            {"", ""},
        };
        for (String[] texts : cases) {
            equal(texts[1], Secrets.hide(texts[0]), texts[0]);
        }
        Segment segment = Units.segment(1, 64);
        SqlTexts texts = new SqlTexts(segment);
        SqlText first = texts.of("alter role r password 'hunterzwei'");
        equal(true, texts.of("alter role r password 'another'") == first, "the same statement");
        equal(0, bytesOf(segment, "hunterzwei") + bytesOf(segment, "another"), "in the segment");
        equal(1, bytesOf(segment, "alter role r password '***'"), "its text");
    }

    /** Number of times a text occurs in the segment. */
    private static int bytesOf(Segment segment, String text) throws Exception {
        String all = new String(java.nio.file.Files.readAllBytes(segment.path()), java.nio.charset.StandardCharsets.ISO_8859_1);
        return all.split(java.util.regex.Pattern.quote(text), -1).length - 1;
    }

    static void methodsHaveNamesThatFit() {
        equal("a.b::C.m(int)", MethodName.of("a.b.C", "m", "int").toString(), "a name");
        equal("default::C.m()", MethodName.of("C", "m", "").toString(), "without a package");
        equal("jdbc::D.m()", MethodName.of("org.postgresql.D", "m", "").toString(), "the driver's");
        equal("jdbc::D.m()", MethodName.of("org.postgresql.jdbc.D", "m", "").toString(), "the same");
        equal("jdbc.core.v3::D.m()", MethodName.of("org.postgresql.core.v3.D", "m", "").toString(), "below it");
        equal("hikari::P.m()", MethodName.of("com.zaxxer.hikari.pool.P", "m", "").toString(), "the pool's");
        equal("com.zaxxer.hikarix::P.m()", MethodName.of("com.zaxxer.hikarix.P", "m", "").toString(), "another's");
        equal("~fghijklmnopqrstuvwxyz.c::D.m(?)",
                MethodName.of("a.abcdefghijklmnopqrstuvwxyz.c.D", "m", "\u00e4").toString(), "a long group, no ASCII");
        String parameters = "int,".repeat(20);
        MethodName hashed = MethodName.of("a.C", "m", parameters);
        equal("a::C.m(#" + String.format("%08x", parameters.hashCode()) + ")", hashed.toString(), "many parameters");
        for (int length = 50; length < 80; length++) {
            MethodName name = MethodName.of("a.C", "m".repeat(length), "int");
            int most = name.statistic("cpu_inclusive").length();
            equal(true, most <= 95 && (most == 95 || !name.toString().contains("~")), most + " bytes of " + name);
        }
    }

    static void edgesKeepTheirIndexesWhenThereAreMany() throws Exception {
        Segment segment = Units.segment(1, 256);
        Book book = segment.claim("kind", null, 1, "name");
        EdgeIndexes edges = new EdgeIndexes(segment, book);
        List<Integer> indexes = new ArrayList<>();
        for (int i = 1; i <= 150; i++) {
            equal(0, edges.find(i % 10, 100 + i), "not yet");
            indexes.add(edges.add(i % 10, 100 + i, "edge " + i));
        }
        equal(150, new HashSet<>(indexes).size(), "indexes");
        for (int i = 1; i <= 150; i++) {
            equal(indexes.get(i - 1), edges.find(i % 10, 100 + i), "edge " + i);
            equal(0, edges.find(100 + i, i % 10), "the other way");
        }
    }

    private static Frame enter(int method) {
        return Probe.enter(method);
    }

    private static void run(Session session, Runnable what) throws InterruptedException {
        Probe.use(session);
        Throwable[] thrown = {null};
        Thread thread = new Thread(what);
        thread.setUncaughtExceptionHandler((failed, e) -> thrown[0] = e);
        thread.start();
        thread.join();
        Probe.use(null);
        equal(null, thrown[0], "thrown");
    }

    static void callsAreCountedWithTheirEndsAndCallers() throws Exception {
        Segment segment = Units.segment(2, 256);
        Methods methods = new Methods();
        int a = methods.number(MethodName.of("p.C", "a", ""));
        int b = methods.number(MethodName.of("p.C", "b", ""));
        equal("0 1 0 2", a + " " + b + " " + methods.number(MethodName.of("p.C", "a", "")) + " " + methods.size(),
                "numbers");
        run(new Session(segment, methods, true, false, true), () -> {
            Frame outer = enter(a);
            Probe.exit(enter(b), new IllegalStateException());
            Frame again = enter(a);
            // The probe never sees its exit.
            enter(b);
            Probe.exit(again, null);
            Probe.exit(outer, null);
            Probe.exit(enter(b), null);
        });
        Reading reading = new Reading(segment);
        String f = "function::C.";
        equal(List.of(2L, 2L, 2L, 0L), List.of(reading.count(f + "a()::inclusive::p"),
                reading.count(f + "a()::exclusive::p"), reading.count(f + "b()::inclusive::p"),
                reading.count(f + "a()::thrown::p")), "calls");
        equal(1L, reading.count(f + "b()::thrown::p"), "thrown");
        equal(2L, reading.count(f + "a()::cpu_inclusive::p"), "with processor times");
        long inclusive = reading.figures(f + "a()::inclusive::p").get(1);
        long exclusive = reading.figures(f + "a()::exclusive::p").get(1);
        long thrown = reading.figures(f + "b()::thrown::p").get(1);
        equal(inclusive, exclusive + thrown, "the outermost call's time is its own, the recursive call's and its callee's");
        equal(reading.figures(f + "b()::inclusive::p"), reading.figures(f + "b()::exclusive::p"),
                "calls after one whose end was not seen are outermost ones");
        MethodName nameA = methods.name(a);
        equal(1L, reading.count(nameA.edge(methods.name(b))), "calls of b by a that have ended");
        equal(1L, reading.count(nameA.edge(nameA)), "calls of a by a");
        equal(0L, reading.figures(nameA.edge(nameA)).get(1), "whose time is in the outermost one");
    }

    static void aCallThatBeganBeforeTheLevelWasOffIsNotCounted() throws Exception {
        Segment segment = Units.segment(2, 256);
        Methods methods = new Methods();
        int a = methods.number(MethodName.of("p.C", "a", ""));
        run(new Session(segment, methods, false, true, false), () -> {
            Probe.exit(enter(a), null);
            Frame before = enter(a);
            setLevel(segment, 0);
            equal(null, enter(a), "off");
            setLevel(segment, 1);
            Probe.exit(before, null);
            Probe.exit(enter(a), null);
        });
        equal(2L, new Reading(segment).count("function::C.a()::inclusive::p"), "calls");
    }

    private static void setLevel(Segment segment, int level) {
        try (var file = new RandomAccessFile(segment.path().toFile(), "rw")) {
            file.seek(Layout.HEADER_LEVEL_WORD);
            file.write(level);
        } catch (IOException e) {
            throw new AssertionError(e);
        }
    }

    static void threadsWithoutAPlatformThreadShareBooks() throws Exception {
        Segment segment = Units.segment(64, 256);
        Methods methods = new Methods();
        int a = methods.number(MethodName.of("p.C", "a", ""));
        int b = methods.number(MethodName.of("p.C", "b", ""));
        Session session = new Session(segment, methods, false, true, true);
        SharedBooks books = SharedBooks.of(session);
        for (int i = 0; i < 2; i++) {
            VirtualRecorder recorder = new VirtualRecorder(session, books);
            Frame outer = recorder.enter(a);
            recorder.exit(recorder.enter(b), true);
            recorder.exit(outer, false);
            CallBook calls = recorder.takeCalls();
            equal(true, calls.at(new SqlText("id", 1, 1, "")) > 0, "space");
            recorder.giveCalls(calls);
        }
        Reading reading = new Reading(segment);
        equal("2 2 2", reading.count("function::C.a()::inclusive::p") + " "
                + reading.count("function::C.b()::thrown::p") + " "
                + reading.count(methods.name(a).edge(methods.name(b))), "calls, thrown, edges");
    }
}
