// SPDX-License-Identifier: PostgreSQL
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.util.Locale;

/**
 * Order entry transactions: read rows by key and as a list, column by column, and write rows. Run it as a source file:
 * {@code java -cp DRIVER Load.java URL USER SECONDS}. The last lines of output are the figures for the study.
 */
public final class Load {
    private static final int KEYS = 10_000;

    private Load() {
    }

    /** URL, user, seconds. */
    public static void main(String[] arguments) throws Exception {
        try (Connection connection = DriverManager.getConnection(arguments[0], arguments[1], System.getenv("PGPASSWORD"))) {
            connection.setAutoCommit(false);
            run(connection, 1000);
            long begin = System.nanoTime();
            long until = begin + Long.parseLong(arguments[2]) * 1_000_000_000L;
            long transactions = 0;
            while (System.nanoTime() < until) {
                run(connection, 100);
                transactions += 100;
            }
            double seconds = (System.nanoTime() - begin) * 1e-9;
            System.out.printf(Locale.ROOT, "rate %.1f%n", transactions / seconds);
            System.out.println("transactions " + transactions);
            System.out.flush();
            // Wait: the figures of methods are read while this process runs.
            System.in.read();
        }
    }

    private static void run(Connection connection, int transactions) throws Exception {
        for (int i = 0; i < transactions; i++) {
            int key = (int) (Math.random() * (KEYS - 20));
            try (PreparedStatement one = connection.prepareStatement("select name, price, note from items where id = ?")) {
                one.setInt(1, key);
                read(one);
            }
            try (PreparedStatement list = connection.prepareStatement("select name, price, note from items where id between ? and ?")) {
                list.setInt(1, key);
                list.setInt(2, key + 19);
                read(list);
            }
            try (PreparedStatement write = connection.prepareStatement("update items set sold = sold + 1 where id = ?")) {
                write.setInt(1, key);
                write.executeUpdate();
            }
            connection.commit();
        }
    }

    private static void read(PreparedStatement statement) throws Exception {
        try (ResultSet rows = statement.executeQuery()) {
            while (rows.next()) {
                if (rows.getString(1).length() + rows.getBigDecimal(2).intValue() + rows.getString(3).length() == 0) {
                    throw new AssertionError("an item is empty");
                }
            }
        }
    }
}
