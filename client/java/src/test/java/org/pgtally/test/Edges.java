// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import com.sun.management.ThreadMXBean;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;

/** Makes known numbers of calls of methods by other methods. */
public final class Edges {
    private static final int WARM = 20_000;
    private static final int MEASURED = 100_000;

    /** The instrumented methods. */
    static final class Calls {
        int sum;

        void outer() {
            inner();
            middle();
            inner();
        }

        void middle() {
            inner();
        }

        void inner() {
            sum++;
        }

        void catching() {
            try {
                passing();
            } catch (IllegalStateException e) {
                inner();
            }
        }

        void passing() {
            throwing();
        }

        void throwing() {
            throw new IllegalStateException("meant");
        }

        int recursive(int depth) {
            return depth == 0 ? 0 : 1 + recursive(depth - 1);
        }

        int even(int n) {
            return n == 0 ? 1 : odd(n - 1);
        }

        int odd(int n) {
            return n == 0 ? 0 : even(n - 1);
        }

        void aMethodWithANameThatIsSoLongThatTwoOfItsKindNeverFitIntoOneNameA() {
            aMethodWithANameThatIsSoLongThatTwoOfItsKindNeverFitIntoOneNameB();
        }

        void aMethodWithANameThatIsSoLongThatTwoOfItsKindNeverFitIntoOneNameB() {
            inner();
        }

        void hot() {
            inner();
        }

        int endless(int n) {
            endlessCallee();
            return endless(n + 1) + 1;
        }

        /** The only method whose calls may be counted without their caller: if the stack overflowed in between. */
        void endlessCallee() {
        }
    }

    private Edges() {
    }

    /** Arguments: threads, rounds of each. At the end, prints the bytes allocated by calls of a known edge. */
    public static void main(String[] arguments) throws Exception {
        int rounds = Integer.parseInt(arguments[1]);
        Wait.begin();
        List<Thread> threads = new ArrayList<>();
        for (int t = 0; t < Integer.parseInt(arguments[0]); t++) {
            Thread thread = new Thread(() -> rounds(rounds), "worker " + t);
            thread.start();
            threads.add(thread);
        }
        for (Thread thread : threads) {
            thread.join();
        }
        exhaust();
        rounds(rounds);
        System.out.println("allocated " + allocated());
        Wait.end();
    }

    private static void rounds(int rounds) {
        Calls calls = new Calls();
        for (int i = 0; i < rounds; i++) {
            calls.outer();
            calls.inner();
            calls.catching();
            calls.recursive(9);
            calls.even(10);
            calls.aMethodWithANameThatIsSoLongThatTwoOfItsKindNeverFitIntoOneNameA();
        }
    }

    /** The probe may lose frames. */
    private static void exhaust() {
        try {
            new Calls().endless(0);
            throw new AssertionError("the stack has no end");
        } catch (StackOverflowError e) {
            // Intended.
        }
    }

    private static long allocated() {
        ThreadMXBean threads = (ThreadMXBean) ManagementFactory.getThreadMXBean();
        long id = Thread.currentThread().getId();
        Calls calls = new Calls();
        for (int i = 0; i < WARM; i++) {
            calls.hot();
        }
        threads.getThreadAllocatedBytes(id);
        long before = threads.getThreadAllocatedBytes(id);
        for (int i = 0; i < MEASURED; i++) {
            calls.hot();
        }
        return threads.getThreadAllocatedBytes(id) - before;
    }
}
