// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;

/**
 * Threads that ask a server without a pause, while another one leaves garbage in every second phase: it keeps most of
 * the heap alive, so that collections are long.
 */
public final class Garbage {
    private static final int KEPT = 500_000;

    private static volatile boolean ended;

    private Garbage() {
    }

    /** URL, user, threads, phases, ms of each. */
    public static void main(String[] arguments) throws Exception {
        int phases = Integer.parseInt(arguments[3]);
        long ms = Long.parseLong(arguments[4]);
        ArrayDeque<byte[]> kept = new ArrayDeque<>();
        while (kept.size() < KEPT) {
            kept.add(new byte[64]);
        }
        Wait.begin();
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(arguments[2]); i++) {
            Thread thread = new Thread(() -> ask(arguments[0], arguments[1]), "client " + i);
            thread.start();
            threads.add(thread);
        }
        for (int phase = 0; phase < phases; phase++) {
            long end = System.nanoTime() + ms * 1_000_000;
            while (System.nanoTime() < end) {
                if (phase % 2 == 0) {
                    Thread.sleep(1);
                } else {
                    litter(kept);
                }
            }
        }
        ended = true;
        for (Thread thread : threads) {
            thread.join();
        }
        Wait.end();
    }

    private static void litter(ArrayDeque<byte[]> kept) {
        for (int i = 0; i < 10_000; i++) {
            kept.add(new byte[64]);
            kept.remove();
        }
    }

    private static void ask(String url, String user) {
        try (Connection connection = DriverManager.getConnection(url, user, "");
                PreparedStatement statement = connection.prepareStatement("select sum(g) from generate_series(1, ?) g")) {
            while (!ended) {
                statement.setInt(1, 2000);
                try (ResultSet rows = statement.executeQuery()) {
                    rows.next();
                }
            }
        } catch (java.sql.SQLException e) {
            throw new IllegalStateException(e);
        }
    }
}
