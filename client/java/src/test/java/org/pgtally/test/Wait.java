// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.io.IOException;

/** For a program driven by a test: reports where it is, and continues when a line arrives. */
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
