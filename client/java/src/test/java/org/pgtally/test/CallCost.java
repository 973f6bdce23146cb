// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;

/**
 * For each line of its input, executes that number of statements with one row each, and prints the CPU time of its thread for
 * them, in ns. Arguments: URL, user. The example calls_cost of the command tally runs it.
 */
public final class CallCost {
    private CallCost() {
    }

    /** See the class. */
    public static void main(String[] arguments) throws Exception {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.US_ASCII));
        try (Connection connection = DriverManager.getConnection(arguments[0], arguments[1], System.getenv("PGPASSWORD"));
                PreparedStatement statement = connection.prepareStatement("select ?::int")) {
            for (String line = input.readLine(); line != null; line = input.readLine()) {
                int count = Integer.parseInt(line);
                long begin = threads.getCurrentThreadCpuTime();
                for (int i = 0; i < count; i++) {
                    statement.setInt(1, i);
                    try (ResultSet rows = statement.executeQuery()) {
                        rows.next();
                        if (rows.getInt(1) != i) {
                            throw new AssertionError("another row");
                        }
                    }
                }
                System.out.println(threads.getCurrentThreadCpuTime() - begin);
            }
        }
    }
}
