// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.charset.StandardCharsets;
import java.security.ProtectionDomain;

/** A second agent, which searches the code of a class for a text. */
public final class Bytes {
    private Bytes() {
    }

    /** Argument: a class, an at sign and a text. Prints the text, and whether the code contains it. */
    public static void agentmain(String argument, Instrumentation instrumentation) throws Exception {
        int at = argument.indexOf('@');
        String type = argument.substring(0, at);
        String text = argument.substring(at + 1);
        ClassFileTransformer look = new ClassFileTransformer() {
            @Override
            public byte[] transform(ClassLoader loader, String name, Class<?> of, ProtectionDomain domain,
                    byte[] bytes) {
                if (name != null && name.equals(type.replace('.', '/'))) {
                    boolean there = new String(bytes, StandardCharsets.ISO_8859_1).contains(text);
                    System.out.println(text + " " + there);
                }
                return null;
            }
        };
        instrumentation.addTransformer(look, true);
        for (Class<?> loaded : instrumentation.getAllLoadedClasses()) {
            if (loaded.getName().equals(type)) {
                instrumentation.retransformClasses(loaded);
            }
        }
        instrumentation.removeTransformer(look);
    }
}
