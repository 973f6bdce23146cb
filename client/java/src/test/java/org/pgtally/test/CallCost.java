// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.io.IOException;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.nio.charset.StandardCharsets;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * What the figures of statements cost: the CPU time that a thread takes for a statement with a row, in virtual machines
 * with and without the agent, in turns of order. Elapsed time is mostly the server's and the kernel's.
 */
public final class CallCost {
    private static final int BLOCK = 1000;
    private static final int BLOCKS = 40;
    private static final int WARM = 20;

    private CallCost() {
    }

    /** The agent's jar, URL, user, rounds; or, in a virtual machine of its own, URL and user. */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length == 2) {
            System.out.println(work(arguments[0], arguments[1]));
            return;
        }
        Map<String, String> arms = new LinkedHashMap<>();
        arms.put("without", "");
        arms.put("without, again", "");
        arms.put("calls", "-javaagent:" + arguments[0] + "=methods=none.None");
        arms.put("no histograms", "-javaagent:" + arguments[0] + "=methods=none.None,histograms=off");
        int rounds = Integer.parseInt(arguments[3]);
        Map<String, double[]> times = new LinkedHashMap<>();
        arms.keySet().forEach(name -> times.put(name, new double[rounds]));
        for (int round = 0; round < rounds; round++) {
            List<String> order = new ArrayList<>(arms.keySet());
            Collections.rotate(order, round);
            for (String name : order) {
                times.get(name)[round] = run(arms.get(name), arguments[1], arguments[2]);
            }
        }
        System.out.printf("Java %s, %d rounds; us of CPU time a statement%n", Runtime.version(), rounds);
        times.forEach((name, all) -> print(name, all, times.get("without")));
    }

    private static double run(String option, String url, String user) throws IOException {
        List<String> command = new ArrayList<>(List.of(ProcessHandle.current().info().command().orElse("java")));
        if (!option.isEmpty()) {
            command.add(option);
        }
        command.addAll(List.of("-cp", System.getProperty("java.class.path"), CallCost.class.getName(), url, user));
        Process child = new ProcessBuilder(command).redirectError(ProcessBuilder.Redirect.INHERIT).start();
        return Double.parseDouble(new String(child.getInputStream().readAllBytes(), StandardCharsets.UTF_8).trim());
    }

    /** The median of blocks. */
    private static double work(String url, String user) throws SQLException {
        ThreadMXBean threads = ManagementFactory.getThreadMXBean();
        double[] blocks = new double[BLOCKS];
        try (Connection connection = DriverManager.getConnection(url, user, "");
                PreparedStatement statement = connection.prepareStatement("select ?::int")) {
            for (int block = -WARM; block < BLOCKS; block++) {
                long begin = threads.getCurrentThreadCpuTime();
                for (int i = 0; i < BLOCK; i++) {
                    statement.setInt(1, i);
                    try (ResultSet rows = statement.executeQuery()) {
                        rows.next();
                        if (rows.getInt(1) != i) {
                            throw new AssertionError("another row");
                        }
                    }
                }
                if (block >= 0) {
                    blocks[block] = (threads.getCurrentThreadCpuTime() - begin) / 1e3 / BLOCK;
                }
            }
        }
        Arrays.sort(blocks);
        return blocks[BLOCKS / 2];
    }

    private static void print(String name, double[] all, double[] without) {
        double[] sorted = all.clone();
        Arrays.sort(sorted);
        double[] differences = new double[all.length];
        for (int i = 0; i < all.length; i++) {
            differences[i] = all[i] - without[i];
        }
        double mean = Arrays.stream(differences).average().orElse(0);
        double variance = Arrays.stream(differences).map(it -> (it - mean) * (it - mean)).sum() / (all.length - 1);
        // Student's t for 95 % and some ten rounds.
        double half = 2.26 * Math.sqrt(variance / all.length);
        System.out.printf("%-16s %8.2f %+8.2f ± %.2f%n", name, sorted[all.length / 2], mean, half);
    }
}
