// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;

/**
 * For each line of its input, {@code ROWS COUNT}, executes that number of statements with that number of rows each, and prints
 * the CPU time of its thread for them, in ns. Arguments: URL, user. client/java/bench/statements.py runs it.
 */
public final class CallCost {
    private CallCost() {
    }

    /** See the class. */
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        try (Connection connection = DriverManager.getConnection(arguments[0], arguments[1], System.getenv("PGPASSWORD"));
                PreparedStatement one = connection.prepareStatement("select ?::int");
                PreparedStatement many = connection
                        .prepareStatement("select g::bigint, 'item ' || g from generate_series(1, ?) g")) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                String[] words = line.split(" ");
                int rows = Integer.parseInt(words[0]);
                int count = Integer.parseInt(words[1]);
                long begin = Cpu.time();
                for (int i = 0; i < count; i++) {
                    if (rows == 1) {
                        readOne(one, i);
                    } else {
                        readMany(many, rows);
                    }
                }
                System.out.println(Cpu.time() - begin);
            }
        }
    }

    private static void readOne(PreparedStatement statement, int value) throws SQLException {
        statement.setInt(1, value);
        try (ResultSet rows = statement.executeQuery()) {
            rows.next();
            if (rows.getInt(1) != value) {
                throw new AssertionError("another row");
            }
        }
    }

    private static void readMany(PreparedStatement statement, int count) throws SQLException {
        statement.setInt(1, count);
        long sum = 0;
        try (ResultSet rows = statement.executeQuery()) {
            while (rows.next()) {
                sum += rows.getLong(1) + rows.getString(2).length();
            }
        }
        if (sum < count * (count + 1L) / 2) {
            throw new AssertionError("other rows");
        }
    }
}
