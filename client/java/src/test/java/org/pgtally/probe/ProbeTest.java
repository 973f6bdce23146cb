// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import static org.pgtally.test.Units.equal;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import org.pgtally.segment.Book;
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

    private static SqlText text(String text) {
        return new SqlText("id", 1, 1, text);
    }

    /** The report after executing these in turn. The first letter of a text is upper case if it had more than one row. */
    private static String repeated(boolean inTransaction, String... texts) {
        Wire wire = new Wire(new Object(), 0, true);
        List<String> found = new ArrayList<>();
        Map<String, SqlText> known = new HashMap<>();
        for (String text : texts) {
            SqlText statement = known.computeIfAbsent(text.toLowerCase(), ProbeTest::text);
            boolean single = text.equals(text.toLowerCase());
            wire.executed(statement, single, inTransaction,
                    (it, count) -> found.add(known.entrySet().stream().filter(e -> e.getValue() == it).findFirst()
                            .get().getKey() + count));
        }
        return String.join(" ", found);
    }

    private static String[] times(int count, String text, String... then) {
        List<String> all = new ArrayList<>(Collections.nCopies(count, text));
        all.addAll(List.of(then));
        return all.toArray(new String[0]);
    }

    static void aStatementThatIsRepeatedInATransactionIsReportedAtItsEnd() {
        equal("a11", repeated(true, times(11, "a", "commit")), "more than ten");
        equal("", repeated(true, times(10, "a", "commit")), "ten");
        equal("a12", repeated(true, times(11, "a", "b", "a", "rollback", "commit")), "another one in between");
        equal("", repeated(true, times(11, "A", "commit")), "with several rows");
        equal("", repeated(true, times(11, "a")), "not over yet");
        equal("a11", repeated(false, times(11, "a", "b", "b")), "outside of transactions");
        equal("", repeated(true, times(6, "a", times(6, "commit", "a", "a", "a", "a", "a", "commit"))), "in two");
        equal("true true false", text("Commit").endsTransaction + " " + text("ROLLBACK").endsTransaction + " "
                + text("commit prepared").endsTransaction, "ends a transaction");
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
        for (int i = 0; i < 254; i++) {
            equal(16, texts.of("text " + i).id.length(), "among the first 256");
        }
        equal("others 0", texts.of("one more").id + " " + texts.of("another").number, "the others");
        equal("af63dc4c8601ec8c", texts.of("a").id, "the first is still known");
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
        thread.setUncaughtExceptionHandler((it, e) -> thrown[0] = e);
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
            file.seek(1024);
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
