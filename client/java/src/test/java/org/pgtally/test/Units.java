// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.io.IOException;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Objects;
import org.pgtally.segment.Layout;
import org.pgtally.segment.Segment;

/** Runs the unit tests, which need no server and no agent: every static method of the named classes. */
public final class Units {
    private static int folders;

    private Units() {
    }

    /** Arguments: names of classes. */
    public static void main(String[] arguments) throws Exception {
        boolean failed = false;
        for (String name : arguments) {
            for (Method test : Class.forName(name).getDeclaredMethods()) {
                if (!Modifier.isStatic(test.getModifiers()) || test.isSynthetic() || test.getParameterCount() > 0
                        || Modifier.isPrivate(test.getModifiers())) {
                    continue;
                }
                test.setAccessible(true);
                try {
                    test.invoke(null);
                    System.out.println("ok " + name + "." + test.getName());
                } catch (InvocationTargetException e) {
                    System.out.println("FAILED " + name + "." + test.getName() + ": " + e.getCause());
                    failed = true;
                }
            }
        }
        System.exit(failed ? 1 : 0);
    }

    /** Asserts that both are equal. */
    public static void equal(Object expected, Object found, String what) {
        if (!Objects.equals(expected, found)) {
            throw new AssertionError(what + ": expected " + expected + ", found " + found);
        }
    }

    /** A segment in memory, removed when the JVM ends. */
    public static Segment segment(int threads, int statistics) throws IOException {
        Path path = Path.of("/dev/shm", "pgtally-units." + ProcessHandle.current().pid() + "." + folders++);
        Segment segment = new Segment(path, threads, statistics, new Segment.About("units", "test", "Java"));
        Runtime.getRuntime().addShutdownHook(new Thread(segment::remove));
        return segment;
    }

    /** What the file has, by its format (format/FORMAT.md, sections 3 to 5). */
    public static final class Reading {
        private final ByteBuffer bytes;

        /** Now. */
        public Reading(Segment segment) throws IOException {
            bytes = ByteBuffer.wrap(Files.readAllBytes(segment.path())).order(ByteOrder.nativeOrder());
        }

        private String text(int at) {
            int end = at;
            while (bytes.get(end) != 0) {
                end++;
            }
            return new String(bytes.array(), at, end - at, StandardCharsets.UTF_8);
        }

        private int directoryAt(int number) {
            return (int) bytes.getLong(Layout.HEADER_DIRECTORY + Layout.REGION_OFFSET)
                    + number * bytes.getInt(Layout.HEADER_DIRECTORY + Layout.REGION_STRIDE);
        }

        /** Names of the directory that begin so. */
        public List<String> names(String beginning) {
            List<String> names = new ArrayList<>();
            for (int i = 0; i < bytes.getInt(Layout.HEADER_DIRECTORY + Layout.REGION_COUNT); i++) {
                int at = directoryAt(i);
                if (bytes.getInt(at + Layout.DIRECTORY_STATE) == 2
                        && text(at + Layout.DIRECTORY_NAME).startsWith(beginning)) {
                    names.add(text(at + Layout.DIRECTORY_NAME));
                }
            }
            return names;
        }

        /** Count, total, min, max and amount of a statistic in all books; -1, 0 of min and max: none. */
        public List<Long> figures(String name) {
            long[] sum = {0, 0, -1, 0, 0};
            for (int book = 0; book < bytes.getInt(Layout.HEADER_BOOKS + Layout.REGION_COUNT); book++) {
                int at = (int) bytes.getLong(Layout.HEADER_BOOKS + Layout.REGION_OFFSET)
                        + book * bytes.getInt(Layout.HEADER_BOOKS + Layout.REGION_STRIDE);
                for (int i = 0; i < bytes.getInt(at + Layout.BOOK_USED); i++) {
                    int head = at + Layout.BOOK_SIZE + Layout.HEAD_SIZE * i;
                    int stat = bytes.getInt(head + Layout.HEAD_STAT);
                    if (stat > 0 && text(directoryAt(stat - 1) + Layout.DIRECTORY_NAME).equals(name)) {
                        sum[0] += bytes.getLong(head + Layout.HEAD_COUNT);
                        sum[1] += bytes.getLong(head + Layout.HEAD_TOTAL);
                        long min = bytes.getLong(head + Layout.HEAD_MIN);
                        sum[2] = Long.compareUnsigned(sum[2], min) < 0 ? sum[2] : min;
                        sum[3] = Math.max(sum[3], bytes.getLong(head + Layout.HEAD_MAX));
                        sum[4] += bytes.getLong(head + Layout.HEAD_AMOUNT);
                    }
                }
            }
            return List.of(sum[0], sum[1], sum[2], sum[3], sum[4]);
        }

        /** How many values there were. */
        public long count(String name) {
            return figures(name).get(0);
        }
    }
}
