// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.net.URL;
import java.net.URLClassLoader;
import java.util.ArrayList;
import java.util.List;

/** Makes known numbers of calls: recursion, exceptions, exhausted stacks, threads, class loaders. */
public final class Cases {
    /** The instrumented methods. */
    static final class Calls {
        int sum;

        int recursive(int depth) {
            return depth == 0 ? 0 : 1 + recursive(depth - 1);
        }

        int even(int n) {
            return n == 0 ? 1 : odd(n - 1);
        }

        int odd(int n) {
            return n == 0 ? 0 : even(n - 1);
        }

        void throwing(boolean really) {
            if (really) {
                throw new IllegalStateException("meant");
            }
        }

        int endless(int n) {
            sum++;
            return endless(n + 1) + 1;
        }

        void small() {
            sum++;
        }

        static long many(long a, double b, Object c, int[] d) {
            return a + (long) b + (c == null ? 1 : 0) + d.length;
        }

        synchronized int locked() {
            return ++sum;
        }

        private int hidden() {
            return small(1) + 1;
        }

        int small(int n) {
            return n;
        }
    }

    private Cases() {
    }

    /** Numbers of calls, which the test knows, too. */
    public static void main(String[] arguments) throws Exception {
        Calls calls = new Calls();
        Wait.begin();
        for (int i = 0; i < 100; i++) {
            check(calls.recursive(9) == 9);
            check(calls.even(10) == 1);
            check(Calls.many(1, 2.5, null, new int[3]) == 7);
            check(calls.hidden() == 2);
        }
        for (int i = 0; i < 50; i++) {
            try {
                calls.throwing(i % 2 == 0);
            } catch (IllegalStateException e) {
                check(e.getMessage().equals("meant"));
            }
        }
        boolean exhausted = false;
        try {
            calls.endless(0);
        } catch (StackOverflowError e) {
            exhausted = true;
        }
        check(exhausted);
        // After a stack overflow, everything is counted as before.
        check(calls.recursive(9) == 9);
        threads();
        loaders();
        calls.locked();
        Wait.end();
    }

    private static void threads() throws InterruptedException {
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < 40; t++) {
            Thread thread = new Thread(() -> {
                Calls mine = new Calls();
                for (int i = 0; i < 1000; i++) {
                    mine.small();
                }
                // What the error interrupted stays interrupted.
                Thread.currentThread().interrupt();
                mine.small();
                check(Thread.currentThread().isInterrupted());
            }, "worker " + t);
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }

    private static void loaders() throws Exception {
        URL here = Cases.class.getProtectionDomain().getCodeSource().getLocation();
        for (int i = 0; i < 3; i++) {
            try (URLClassLoader loader = new URLClassLoader(new URL[] {here}, null)) {
                Class<?> other = loader.loadClass("org.pgtally.test.Loaded");
                check(other != Loaded.class);
                other.getMethod("run").invoke(null);
            }
        }
        Loaded.run();
    }

    private static void check(boolean right) {
        if (!right) {
            throw new AssertionError("the application sees something else with the agent than without");
        }
    }
}
