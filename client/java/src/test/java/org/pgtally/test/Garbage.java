// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import java.util.concurrent.CountDownLatch;

/**
 * Runs threads that keep a server busy, while another thread produces garbage in every second phase. It keeps most of the heap
 * alive, so that collections are long. The lengths of phases are irregular, and the same in each run.
 */
public final class Garbage {
    private static final int KEPT = 500_000;
    private static final long SEED = 19;
    /** 1.5 million arrays of 80 bytes, more than fits into a heap of 96 MiB. */
    private static final int LITTER = 150;
    /** Queries that a thread sends before the phases begin. */
    private static final int WARM = 50;
    /** Time of the server for each query, without using a CPU. */
    private static final int WORK_MS = 10;

    private static volatile boolean ended;

    private Garbage() {
    }

    /**
     * Arguments: URL, user, threads, phases, max ms of each, and "calm" for phases without garbage. With no phases, produces
     * more garbage than its heap has space.
     */
    public static void main(String[] arguments) throws Exception {
        int phases = Integer.parseInt(arguments[3]);
        boolean calm = arguments.length > 5 && arguments[5].equals("calm");
        Random random = new Random(SEED);
        long max = Long.parseLong(arguments[4]);
        ArrayDeque<byte[]> kept = new ArrayDeque<>();
        while (kept.size() < KEPT) {
            kept.add(new byte[64]);
        }
        List<Thread> threads = new ArrayList<>();
        int clients = Integer.parseInt(arguments[2]);
        CountDownLatch connected = new CountDownLatch(clients);
        for (int i = 0; i < clients; i++) {
            Thread thread = new Thread(() -> ask(arguments[0], arguments[1], connected), "client " + i);
            thread.start();
            threads.add(thread);
        }
        connected.await();
        Wait.begin();
        for (int i = 0; phases == 0 && i < LITTER; i++) {
            litter(kept);
        }
        for (int phase = 0; phase < phases; phase++) {
            long ms = max / 4 + (long) (random.nextDouble() * max * 3 / 4);
            long end = System.nanoTime() + ms * 1_000_000;
            while (System.nanoTime() < end) {
                if (phase % 2 == 0 || calm) {
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

    private static void ask(String url, String user, CountDownLatch connected) {
        try (Connection connection = DriverManager.getConnection(url, user, System.getenv("PGPASSWORD"));
                PreparedStatement statement = connection.prepareStatement("select pg_sleep(? / 1000.0)")) {
            for (int i = 0; !ended; i++) {
                if (i == WARM) {
                    connected.countDown();
                }
                statement.setInt(1, WORK_MS);
                try (ResultSet rows = statement.executeQuery()) {
                    rows.next();
                }
            }
        } catch (java.sql.SQLException e) {
            throw new IllegalStateException(e);
        }
    }
}
