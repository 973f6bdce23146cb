// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;

/** Runs something when all agents on the command line have started, which is when the launcher's class is loaded. */
final class AfterAgents implements ClassFileTransformer {
    private static final String LAUNCHER = "sun/launcher/LauncherHelper";

    private final Instrumentation instrumentation;
    private final Runnable then;

    private AfterAgents(Instrumentation instrumentation, Runnable then) {
        this.instrumentation = instrumentation;
        this.then = then;
    }

    /** Runs it once; never in a JVM that was started by another launcher, or that the agent was attached to. */
    static void run(Instrumentation instrumentation, Runnable then) {
        instrumentation.addTransformer(new AfterAgents(instrumentation, then), false);
    }

    @Override
    public byte[] transform(ClassLoader loader, String name, Class<?> of, ProtectionDomain domain, byte[] bytes) {
        if (LAUNCHER.equals(name)) {
            instrumentation.removeTransformer(this);
            then.run();
        }
        return null;
    }
}
