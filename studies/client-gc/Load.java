// SPDX-License-Identifier: PostgreSQL
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.util.ArrayList;
import java.util.List;
import java.util.Locale;
import java.util.concurrent.atomic.AtomicLong;

/**
 * Threads that read lists of rows and keep the last ones, 30 MB in total. Run it as a source file:
 * {@code java -cp DRIVER Load.java URL USER SECONDS}. The last lines of output are the figures for the study.
 */
public final class Load {
    private static final int THREADS = 4;
    private static final int ROWS = 200;
    private static final int KEPT = 200;
    private static final AtomicLong READS = new AtomicLong();

    private Load() {
    }

    /** URL, user, seconds. */
    public static void main(String[] arguments) throws Exception {
        long begin = System.nanoTime();
        long until = begin + Long.parseLong(arguments[2]) * 1_000_000_000L;
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < THREADS; i++) {
            Thread thread = new Thread(() -> read(arguments, until));
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        System.out.printf(Locale.ROOT, "rate %.1f%n", READS.get() / ((System.nanoTime() - begin) * 1e-9));
        System.out.println("reads " + READS);
        System.out.flush();
        // Wait: the agent's figures are read while this process runs.
        System.in.read();
    }

    private static void read(String[] arguments, long until) {
        String[][] kept = new String[KEPT][];
        try (Connection connection = DriverManager.getConnection(arguments[0], arguments[1], System.getenv("PGPASSWORD"));
                PreparedStatement list = connection.prepareStatement("select note from items where id between ? and ?")) {
            for (int i = 0; System.nanoTime() < until; i++) {
                int from = (int) (Math.random() * (10_000 - ROWS));
                list.setInt(1, from);
                list.setInt(2, from + ROWS - 1);
                String[] notes = new String[ROWS];
                try (ResultSet rows = list.executeQuery()) {
                    for (int row = 0; rows.next(); row++) {
                        notes[row] = rows.getString(1);
                    }
                }
                kept[i % KEPT] = notes;
                READS.incrementAndGet();
            }
        } catch (java.sql.SQLException e) {
            throw new IllegalStateException(e);
        }
    }
}
