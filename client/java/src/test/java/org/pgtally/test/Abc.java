// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

/**
 * The calls of the original study: A calls B twice and C once, B calls C twice. In each round A takes 135 ms including its
 * callees and 45 ms itself, B 80 and 40, C 50 and 50. The program reads the clocks right before and after each call, and
 * right after its start and before its end. The agent's figures must lie between the two, however busy the machine is.
 */
public final class Abc {
    /** Indexed by caller and callee. */
    private static final int OF_A = 0;
    private static final int B_IN_A = 1;
    private static final int C_IN_B = 2;
    private static final int C_IN_A = 3;

    private final Consume inA = new Consume();
    private final Consume inB = new Consume();
    private final Consume inC = new Consume();
    private final Reading within = new Reading();
    private final Reading around = new Reading();
    private int callOfC;

    private Abc() {
    }

    void a() {
        within.begin(OF_A);
        inA.millis(15);
        callB();
        inA.millis(20);
        callC(C_IN_A);
        inA.millis(5);
        callB();
        inA.millis(5);
        within.end(OF_A);
    }

    void b() {
        within.begin(B_IN_A);
        inB.millis(5);
        callC(C_IN_B);
        inB.millis(5);
        callC(C_IN_B);
        inB.millis(10);
        within.end(B_IN_A);
    }

    void c() {
        within.begin(callOfC);
        inC.millis(10);
        within.end(callOfC);
    }

    private void callA() {
        around.begin(OF_A);
        a();
        around.end(OF_A);
    }

    private void callB() {
        around.begin(B_IN_A);
        b();
        around.end(B_IN_A);
    }

    private void callC(int call) {
        callOfC = call;
        around.begin(call);
        c();
        around.end(call);
    }

    /**
     * Argument: number of rounds after a first one. At the end, prints for A, B, C called by B and C called by A, in ns: what
     * the program measured within the calls and around them, first by the clock, then as its thread's CPU time; and what A, B
     * and C consumed in excess.
     */
    public static void main(String[] arguments) throws Exception {
        // The first calls also load and link classes.
        new Abc().callA();
        Abc abc = new Abc();
        Wait.begin();
        for (int i = 0; i < Integer.parseInt(arguments[0]); i++) {
            abc.callA();
        }
        System.out.println("within " + abc.within);
        System.out.println("around " + abc.around);
        System.out.println("more " + abc.inA.debt() + " " + abc.inB.debt() + " " + abc.inC.debt());
        Wait.end();
    }

    /** Sums of the differences of two clocks between the beginnings and the ends of calls. */
    private static final class Reading {
        private final long[] elapsed = new long[4];
        private final long[] cpu = new long[4];

        void begin(int call) {
            elapsed[call] -= System.nanoTime();
            cpu[call] -= Cpu.time();
        }

        void end(int call) {
            cpu[call] += Cpu.time();
            elapsed[call] += System.nanoTime();
        }

        @Override
        public String toString() {
            StringBuilder text = new StringBuilder();
            for (long[] clock : new long[][] {elapsed, cpu}) {
                for (long ns : clock) {
                    text.append(ns).append(' ');
                }
            }
            return text.toString().trim();
        }
    }
}
