// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.StringReader;
import java.io.StringWriter;
import java.sql.BatchUpdateException;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.Callable;
import java.util.concurrent.FutureTask;
import java.util.concurrent.atomic.AtomicBoolean;
import org.postgresql.PGConnection;
import org.postgresql.copy.CopyManager;
import org.postgresql.core.BaseConnection;

/**
 * Makes calls of all kinds on two connections, one of them in simple mode, through a pool, and on short-lived connections.
 * Statements differ by their number of columns, because the server does not distinguish constants or names of columns.
 */
public final class Joined {
    private static final int WIDTHS = 20;
    /** Number of rounds with further sessions, so that each finds a ring. */
    private static final int RECONNECTING = 300;

    private Joined() {
    }

    /** Arguments: URL, user, rounds, number of rounds after which it waits. */
    public static void main(String[] arguments) throws Exception {
        String url = arguments[0] + "&ApplicationName=joined";
        try (Connection extended = DriverManager.getConnection(url, arguments[1], System.getenv("PGPASSWORD"));
                Connection simple = DriverManager.getConnection(url + "&preferQueryMode=simple", arguments[1], System.getenv("PGPASSWORD"));
                HikariDataSource pool = pool(url, arguments[1])) {
            for (Connection connection : new Connection[] {extended, simple}) {
                execute(connection, "create unlogged table if not exists t (a int)");
            }
            Wait.begin();
            int rounds = Integer.parseInt(arguments[2]);
            int step = Integer.parseInt(arguments[3]);
            for (int i = 0; i < rounds; i++) {
                round(extended, i);
                round(simple, i);
                if (i % 10 == 0) {
                    pooled(pool, i);
                }
                if (i % 50 == 25 && i < RECONNECTING) {
                    // Another session, in another process.
                    try (Connection again = DriverManager.getConnection(url, arguments[1], System.getenv("PGPASSWORD"))) {
                        query(again, "select ?::int as " + columns(i), 1, 0);
                        query(again, "select ?::int as " + columns(i + 1), 1, 0);
                    }
                }
                if ((i + 1) % step == 0 || i + 1 == rounds) {
                    Wait.step("step");
                }
            }
            // The last messages have ended when the next one has arrived.
            Wait.end();
        }
    }

    private static HikariDataSource pool(String url, String user) {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(url);
        config.setUsername(user);
        config.setPassword(System.getenv("PGPASSWORD"));
        config.setMaximumPoolSize(1);
        return new HikariDataSource(config);
    }

    /** Two threads, one connection. */
    private static void pooled(HikariDataSource pool, int i) throws Exception {
        Callable<Void> work = () -> {
            try (Connection connection = pool.getConnection()) {
                query(connection, "select ?::int as " + columns(i), 1, 0);
            }
            return null;
        };
        FutureTask<Void> other = new FutureTask<>(work);
        new Thread(other).start();
        work.call();
        other.get();
    }

    private static String columns(int i) {
        return "c" + ", 1".repeat(i % WIDTHS);
    }

    private static void round(Connection connection, int i) throws Exception {
        String columns = columns(i);
        query(connection, "select ?::int as " + columns, 1, 0);
        execute(connection, "select 7 as " + columns);
        if (i % 50 == 0) {
            query(connection, "select pg_sleep(? / 1000.0) as " + columns, 5, 0);
        }
        if (i % 50 == 25) {
            cancelled(connection, "select pg_sleep(60) as " + columns);
        }
        try (PreparedStatement insert = connection.prepareStatement("insert into t values (?) returning a as " + columns)) {
            for (int row = 0; row < 3; row++) {
                insert.setInt(1, row);
                insert.addBatch();
            }
            insert.executeBatch();
        }
        failing(connection, "insert into t values (8 / ?) returning a as " + columns);
        connection.setAutoCommit(false);
        query(connection, "select g as " + columns + " from generate_series(1, ?) g", 25, 10);
        connection.commit();
        connection.setAutoCommit(true);
        try {
            execute(connection, "select 1 / (a - a) as " + columns + " from t");
            throw new AssertionError("an error was expected");
        } catch (SQLException e) {
            if (!"22012".equals(e.getSQLState())) {
                throw e;
            }
        }
        CopyManager copies = new CopyManager(connection.unwrap(BaseConnection.class));
        copies.copyIn("copy t from stdin", new StringReader("7\n8\n"));
        try {
            copies.copyIn("copy t from stdin", new StringReader("none\n8\n"));
            throw new AssertionError("an error was expected");
        } catch (SQLException e) {
            if (!"22P02".equals(e.getSQLState())) {
                throw e;
            }
        }
        copies.copyOut("copy (select 1 as " + columns + ") to stdout", new StringWriter());
        execute(connection, "truncate t");
    }

    /** A batch whose second part fails: the server ignores the messages sent after it. */
    private static void failing(Connection connection, String text) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement(text)) {
            for (int divisor : new int[] {1, 0, 2}) {
                insert.setInt(1, divisor);
                insert.addBatch();
            }
            insert.executeBatch();
            throw new AssertionError("an error was expected");
        } catch (BatchUpdateException e) {
            if (!"22012".equals(e.getSQLState())) {
                throw e;
            }
        }
    }

    private static void query(Connection connection, String text, int parameter, int fetchSize) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(text)) {
            statement.setFetchSize(fetchSize);
            statement.setInt(1, parameter);
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    rows.getString(1);
                }
            }
        }
    }

    /**
     * The request to cancel is sent on a separate connection. A request that arrives before the statement has begun has no
     * effect, so it is repeated.
     */
    private static void cancelled(Connection connection, String text) throws Exception {
        PGConnection session = connection.unwrap(PGConnection.class);
        AtomicBoolean ended = new AtomicBoolean();
        FutureTask<Void> requests = new FutureTask<>(() -> {
            while (!ended.get()) {
                Thread.sleep(20);
                session.cancelQuery();
            }
            return null;
        });
        try (Statement statement = connection.createStatement()) {
            new Thread(requests).start();
            try {
                statement.execute(text);
            } finally {
                ended.set(true);
                // When the connection of a request is closed, its signal has been sent to the server process.
                requests.get();
            }
            throw new AssertionError("it was not cancelled");
        } catch (SQLException e) {
            if (!"57014".equals(e.getSQLState())) {
                throw e;
            }
        }
    }

    private static void execute(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(text);
        }
    }
}
