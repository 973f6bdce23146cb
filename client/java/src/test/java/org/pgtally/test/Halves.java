// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/** Makes a known number of executions in two parts, between which an agent may be switched off. */
public final class Halves {
    private Halves() {
    }

    /** Arguments: URL, user, rounds of each part. */
    public static void main(String[] arguments) throws Exception {
        int rounds = Integer.parseInt(arguments[2]);
        try (Connection connection = DriverManager.getConnection(arguments[0], arguments[1], System.getenv("PGPASSWORD"))) {
            Wait.begin();
            work(connection, rounds);
            Wait.step("half");
            work(connection, rounds);
            Wait.end();
        }
    }

    private static void work(Connection connection, int rounds) throws SQLException {
        for (int i = 0; i < rounds; i++) {
            try (PreparedStatement select = connection.prepareStatement("select g from generate_series(1, ?) g")) {
                select.setInt(1, 2);
                int sum = 0;
                try (ResultSet rows = select.executeQuery()) {
                    while (rows.next()) {
                        sum += rows.getInt(1);
                    }
                }
                if (sum != 3) {
                    throw new AssertionError("sum " + sum);
                }
            }
            try (Statement statement = connection.createStatement()) {
                statement.executeQuery("select 1/0");
                throw new AssertionError("an error was expected");
            } catch (SQLException e) {
                if (!"22012".equals(e.getSQLState())) {
                    throw e;
                }
            }
        }
    }
}
