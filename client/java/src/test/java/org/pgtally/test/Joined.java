// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.io.StringReader;
import java.io.StringWriter;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import org.postgresql.copy.CopyManager;
import org.postgresql.core.BaseConnection;

/**
 * Calls of all kinds on two connections, one of them in simple mode. Statements differ by their number of columns: the
 * server does not distinguish constants, nor names of columns.
 */
public final class Joined {
    private static final int WIDTHS = 20;

    private Joined() {
    }

    /** URL, user, rounds. */
    public static void main(String[] arguments) throws Exception {
        String url = arguments[0] + "&ApplicationName=joined";
        try (Connection extended = DriverManager.getConnection(url, arguments[1], "");
                Connection simple = DriverManager.getConnection(url + "&preferQueryMode=simple", arguments[1], "")) {
            for (Connection connection : new Connection[] {extended, simple}) {
                execute(connection, "create temporary table t (a int)");
            }
            Wait.begin();
            int rounds = Integer.parseInt(arguments[2]);
            for (int i = 0; i < rounds; i++) {
                round(extended, i);
                round(simple, i);
            }
            // The last messages are over when the next one has come.
            Wait.end();
        }
    }

    private static void round(Connection connection, int i) throws Exception {
        String columns = "c" + ", 1".repeat(i % WIDTHS);
        query(connection, "select ?::int as " + columns, 1, 0);
        execute(connection, "select 7 as " + columns);
        if (i % 50 == 0) {
            query(connection, "select pg_sleep(? / 1000.0) as " + columns, 5, 0);
        }
        try (PreparedStatement insert = connection.prepareStatement("insert into t values (?) returning a as " + columns)) {
            for (int row = 0; row < 3; row++) {
                insert.setInt(1, row);
                insert.addBatch();
            }
            insert.executeBatch();
        }
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

    private static void execute(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(text);
        }
    }
}
