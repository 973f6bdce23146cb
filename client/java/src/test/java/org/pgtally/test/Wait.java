// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.io.IOException;

/** A program that a test drives: it says where it is, and goes on when a line comes. */
final class Wait {
    private Wait() {
    }

    static void begin() throws IOException {
        step("ready");
    }

    static void end() throws IOException {
        step("done");
    }

    static void step(String what) throws IOException {
        System.out.println(what);
        System.out.flush();
        int c = System.in.read();
        while (c >= 0 && c != '\n') {
            c = System.in.read();
        }
    }
}
