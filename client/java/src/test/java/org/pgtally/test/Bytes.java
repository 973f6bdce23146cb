// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.nio.charset.StandardCharsets;
import java.security.ProtectionDomain;

/** A second agent, which looks whether the code of a class has probes. */
public final class Bytes {
    private Bytes() {
    }

    /** Prints it. */
    public static void agentmain(String type, Instrumentation instrumentation) throws Exception {
        ClassFileTransformer look = new ClassFileTransformer() {
            @Override
            public byte[] transform(ClassLoader loader, String name, Class<?> of, ProtectionDomain domain,
                    byte[] bytes) {
                if (name != null && name.equals(type.replace('.', '/'))) {
                    String text = new String(bytes, StandardCharsets.ISO_8859_1);
                    System.out.println("probes " + text.contains("org/pgtally/probe"));
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
