// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

import static org.pgtally.test.Units.equal;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.pgtally.test.Units;
import org.pgtally.test.Units.Reading;

final class SegmentTest {
    private SegmentTest() {
    }

    static void aValueIsInTheBucketWhoseBoundsItHas() {
        for (int bucket = 0; bucket < 335; bucket++) {
            // Eight buckets an octave; the first eight have one value each.
            int octave = Math.max(bucket / 8 - 1, 0);
            long low = (bucket < 8 ? bucket : 8L + bucket % 8) << octave;
            long high = low + (1L << octave) - 1;
            equal(bucket, Histogram.bucket(low), low + "");
            equal(bucket, Histogram.bucket(high), high + "");
        }
        for (long large : new long[] {15L << 40, 1L << 44, Long.MAX_VALUE, -1, Long.MIN_VALUE}) {
            equal(335, Histogram.bucket(large), large + "");
        }
        equal(512, Histogram.offset(8), "an octave is a row");
        equal(512 + 8, Histogram.offset(9), "a bucket is a word");
        equal(1024 + 64 * 64 + 42 * 512 + 3 * 64, Histogram.begin(64, 11), "the second chunk");
        equal(1024 + 64 * 64 + 8 * 42 * 512 + 4096 - (1024 + 64 * 64 + 8 * 42 * 512) % 4096, Sizes.bookStride(64),
                "a book has whole pages");
        equal(8192L, Sizes.roundUp(4097, 4096), "rounded up");
        equal(4096L, Sizes.roundUp(4096, 4096), "round already");
    }

    private static Book book(Segment segment, String kind, Thread owner, long... values) {
        Book book = segment.claim(kind, owner, 1, kind);
        int at = segment.grow(book, 0, 8, 8);
        segment.name(book, at, segment.timer("t"));
        segment.name(book, at + 1, segment.account("a"));
        segment.name(book, at + 2, segment.value("v", "rows"));
        book.begin();
        for (long value : values) {
            book.addWithHistogram(at, value);
            book.addAmount(at, 2 * value);
        }
        book.count(at + 2);
        book.addCount(at + 2, 3);
        book.publish();
        return book;
    }

    private static Thread ended() throws InterruptedException {
        Thread thread = new Thread(() -> {
        });
        thread.start();
        thread.join();
        return thread;
    }

    static void aThreadThatEndsIsMergedWithAllOfItsFigures() throws Exception {
        Segment segment = Units.segment(4, 64);
        List<Long> all = List.of(4L, 1111L, 1L, 1000L, 2222L);
        book(segment, "kind", ended(), 10, 100);
        book(segment, "kind", ended(), 1, 1000);
        book(segment, "other kind", null);
        equal(all, new Reading(segment).figures("t"), "before");
        equal(2, segment.sweep(), "merged");
        equal(0, segment.sweep(), "and not again");
        Reading after = new Reading(segment);
        equal(all, after.figures("t"), "after");
        equal(12L, after.count("v"), "counted");
        // A slot that is used again begins anew.
        Book next = book(segment, "kind", null);
        equal(0, next.slot, "slot");
        equal(all, new Reading(segment).figures("t"), "with the next owner");
        ByteBuffer head = bytes(segment);
        equal(2L, head.getLong(Layout.HEADER_MERGE_COUNT), "merges");
        equal("0 0", head.getLong(Layout.HEADER_MERGE_ACTIVE) + " " + head.getInt(Layout.HEADER_MERGE_LOCK), "merging");
    }

    static void indexesAreOfTheirStatistics() throws Exception {
        Segment segment = Units.segment(1, 64);
        Book book = book(segment, "kind", null, 5);
        equal(true, segment.grow(book, 0, 0, 40) > 0, "space");
        equal(Layout.NONE, segment.grow(book, 0, 0, 64), "no space");
        equal(56, book.used(), "used");
        book.begin();
        book.addPlain(8, -1);
        book.publish();
        equal(5L, book.head(8, Layout.HEAD_MAX), "a negative value is no maximum");
        long begun = System.nanoTime();
        book.begin();
        book.run(9, begun);
        long idle = book.head(Segment.IDLE, Layout.HEAD_TOTAL);
        book.run(Segment.IDLE, begun - 5);
        book.run(9, begun + 7);
        book.publish();
        equal("0 7", book.head(9, Layout.HEAD_TOTAL) + " " + (book.head(Segment.IDLE, Layout.HEAD_TOTAL) - idle),
                "time does not go back");
    }

    static void aTextIsCutBetweenCharacters() {
        ByteBuffer memory = ByteBuffer.allocate(16);
        Memory.putText(memory, 0, 8, "abcdefghij");
        equal("abcdefg\0", new String(memory.array(), 0, 8, StandardCharsets.UTF_8), "letters");
        Memory.putText(memory, 0, 8, "abcde\u20ac");
        equal("abcde\0\0\0", new String(memory.array(), 0, 8, StandardCharsets.UTF_8), "a euro");
        Memory.putText(memory, 0, 8, "abcd\u20ac");
        equal("abcd\u20ac\0", new String(memory.array(), 0, 8, StandardCharsets.UTF_8), "it fits");
    }

    /** Another process: it creates a segment at a path, reports that, and ends with its input; "crash": without removing it. */
    public static void main(String[] arguments) throws IOException {
        Segment segment = create(Path.of(arguments[0]), "test 2");
        System.out.println("created");
        System.in.read();
        if (arguments.length == 1) {
            segment.remove();
        }
        System.exit(0);
    }

    private static Segment create(Path path, String producer) throws IOException {
        return new Segment(path, 1, 64, new Segment.About("units", producer, "Java"));
    }

    private static String refusal(Path path) {
        try {
            create(path, "test 1").remove();
            return "none";
        } catch (IOException e) {
            return e.getMessage().contains(path + " exists and is not the segment of an ended process") ? "refused" : e + "";
        }
    }

    private static Process another(Path path, String... more) throws IOException {
        List<String> command = new ArrayList<>(List.of(System.getProperty("java.home") + "/bin/java", "-cp",
                System.getProperty("java.class.path"), SegmentTest.class.getName(), path + ""));
        command.addAll(List.of(more));
        Process process = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        equal("created", new BufferedReader(new InputStreamReader(process.getInputStream())).readLine(),
                "another process");
        return process;
    }

    static void onlyTheSegmentOfAnEndedProcessIsReplaced() throws Exception {
        Path folder = Files.createTempDirectory(Path.of("/dev/shm"), "pgtally-units");
        Path path = folder.resolve("segment");
        Path target = folder.resolve("target");
        Files.writeString(target, "another's");
        Files.createSymbolicLink(path, target);
        equal("refused", refusal(path), "a link");
        equal(true, Files.isSymbolicLink(path), "the link");
        Files.delete(path);
        Files.writeString(path, "another's");
        equal("refused", refusal(path), "a file");
        equal("another's another's", Files.readString(path) + " " + Files.readString(target), "the files");
        Files.delete(path);

        Segment other = create(path, "another 1");
        equal("refused", refusal(path), "of this process");
        other.remove();
        Process ended = another(path, "crash");
        equal("refused", refusal(path), "of a running process");
        ended.getOutputStream().close();
        ended.waitFor();
        equal(true, Files.exists(path), "what it has left");
        try {
            create(path, "another 1").remove();
            throw new AssertionError("of another kind of process");
        } catch (IOException e) {
            equal(true, Files.exists(path), "of another kind");
        }
        equal("none", refusal(path), "of an ended process");
        equal(false, Files.exists(path), "removed by its owner");

        // Its name is another's when it ends.
        Segment first = create(path, "test 1");
        Files.delete(path);
        Segment second = create(path, "test 1");
        first.remove();
        equal(true, Files.exists(path), "the second one's");
        second.remove();
        try (var left = Files.list(folder)) {
            equal(1L, left.count(), "only the link's target is left");
        }
        Files.delete(target);
        Files.delete(folder);
    }

    static void theLevelEndsAtItsEnd() throws Exception {
        Segment segment = Units.segment(1, 64);
        try (var file = new RandomAccessFile(segment.path().toFile(), "rw")) {
            ByteBuffer head = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, 4096)
                    .order(ByteOrder.nativeOrder());
            head.putInt(Layout.HEADER_LEVEL_WORD, 0x232);
            head.putInt(Layout.HEADER_LEVEL_THEN, 0x71);
            head.putLong(Layout.HEADER_LEVEL_UNTIL, System.nanoTime() + 3_600_000_000_000L);
            segment.sweep();
            equal(0x232, segment.levelWord(), "an hour before");
            head.putLong(Layout.HEADER_LEVEL_UNTIL, System.nanoTime() - 1);
            segment.sweep();
            equal(0x231, segment.levelWord(), "after it: the level alone");
            equal(0L, head.getLong(Layout.HEADER_LEVEL_UNTIL), "no end any more");
        }
    }

    static void whatHasNoSpaceIsCounted() throws Exception {
        Segment segment = Units.segment(8, 64);
        for (String kind : List.of("a", "b", "c", "d", "d", "c")) {
            segment.claim(kind, ended(), 1, kind);
        }
        segment.sweep();
        for (int i = 0; i < 10; i++) {
            segment.claim("kind", null, 1, "kind");
        }
        segment.lost();
        for (int i = 0; i < 8200; i++) {
            segment.timer("t" + i);
        }
        int known = new Reading(segment).names("").size();
        ByteBuffer head = bytes(segment);
        // Slots, statistics, names, groups.
        equal("2 1 " + (8200 + 3 - 8192) + " 2", head.getLong(Layout.HEADER_OVERFLOW_SLOTS) + " "
                + head.getLong(Layout.HEADER_OVERFLOW_STATS) + " " + head.getLong(Layout.HEADER_OVERFLOW_DIRECTORY)
                + " " + head.getLong(Layout.HEADER_OVERFLOW_GROUPS), "of " + known + " names");
        equal("-1 0", segment.timer("more") + " " + segment.account("more"), "numbers without space");
    }

    private static ByteBuffer bytes(Segment segment) throws IOException {
        return ByteBuffer.wrap(Files.readAllBytes(segment.path())).order(ByteOrder.nativeOrder());
    }
}
