// SPDX-License-Identifier: PostgreSQL

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.file.Path;
import org.pgtally.segment.Book;
import org.pgtally.segment.Segment;

/**
 * Adds events to a segment in one of several ways, a block for each line that arrives, and prints the CPU time of a block in ns.
 * Arguments: the way, the segment's path.
 */
public final class Writers {
    private static final int BLOCK = 2_000_000;

    /** A way to add an event with its histogram. */
    interface Way {
        void add(long value);
    }

    private Writers() {
    }

    /** See the class. */
    public static void main(String[] arguments) throws Exception {
        Way way = way(arguments[0], arguments[1]);
        ThreadMXBean clock = ManagementFactory.getThreadMXBean();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        while (lines.readLine() != null) {
            long begin = clock.getCurrentThreadCpuTime();
            block(way);
            System.out.println(clock.getCurrentThreadCpuTime() - begin);
        }
        System.exit(0);
    }

    private static void block(Way way) {
        for (long i = 0; i < BLOCK; i++) {
            // Values of several octaves.
            way.add(i * 0x9e3779b97f4a7c15L >>> 50);
        }
    }

    private static Way way(String name, String path) throws Exception {
        switch (name) {
        case "nothing":
            long[] sum = {0};
            return value -> sum[0] += value;
        case "buffers":
            Segment segment = new Segment(Path.of(path), 1, 64, new Segment.About("", "writers", ""));
            Book book = segment.claim("thread", Thread.currentThread(), (int) ProcessHandle.current().pid(), "writers");
            int at = segment.grow(book, 0, 8, 8);
            return value -> {
                book.begin();
                book.addWithHistogram(at, value);
                book.publish();
            };
        default:
            // Of a class that this version of Java may not have.
            return (Way) Class.forName(name).getMethod("way", String.class).invoke(null, path);
        }
    }
}
