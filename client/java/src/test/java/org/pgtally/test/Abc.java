// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

/**
 * The calls of the original study: A calls B twice and C once, B calls C twice. Of each round A takes 135 ms with what
 * it calls and 45 without, B 80 and 40, C 50 and 50.
 */
public final class Abc {
    private final Consume inA;
    private final Consume inB;
    /** Of its own for each caller of C, so that what one takes too long is not taken from the other. */
    private final Consume ofCInA;
    private final Consume ofCInB;
    private Consume inC;
    /** What the program itself read: of its calls, with what they call, ns. */
    private long ofA;
    private long ofB;
    private long ofC;

    private Abc(boolean cpu) {
        inA = new Consume(cpu);
        inB = new Consume(cpu);
        ofCInA = new Consume(cpu);
        ofCInB = new Consume(cpu);
    }

    void a() {
        long begin = inA.now();
        inA.millis(15);
        b();
        inA.millis(20);
        inC = ofCInA;
        c();
        inA.millis(5);
        b();
        inA.millis(5);
        ofA += inA.now() - begin;
    }

    void b() {
        long begin = inA.now();
        inB.millis(5);
        inC = ofCInB;
        c();
        inB.millis(5);
        c();
        inB.millis(10);
        ofB += inA.now() - begin;
    }

    void c() {
        long begin = inA.now();
        inC.millis(10);
        ofC += inA.now() - begin;
    }

    /**
     * Rounds after a first one, and {@code cpu} to consume processor time. At the end, in ns: what was consumed in
     * addition, and what the program itself read.
     */
    public static void main(String[] arguments) throws Exception {
        boolean cpu = arguments.length > 1 && arguments[1].equals("cpu");
        // The first calls load and link classes.
        new Abc(cpu).a();
        Abc abc = new Abc(cpu);
        Wait.begin();
        for (int i = 0; i < Integer.parseInt(arguments[0]); i++) {
            abc.a();
        }
        System.out.println("more " + abc.inA.debt() + " " + abc.inB.debt() + " " + abc.ofCInB.debt()
                + " " + abc.ofCInA.debt());
        System.out.println("read " + abc.ofA + " " + abc.ofB + " " + abc.ofC);
        Wait.end();
    }
}
