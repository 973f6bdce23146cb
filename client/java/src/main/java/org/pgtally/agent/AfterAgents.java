// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.lang.instrument.ClassFileTransformer;
import java.lang.instrument.Instrumentation;
import java.security.ProtectionDomain;

/** Runs something when all agents of the command line have begun: the launcher's class is loaded then. */
final class AfterAgents implements ClassFileTransformer {
    private static final String LAUNCHER = "sun/launcher/LauncherHelper";

    private final Instrumentation instrumentation;
    private final Runnable then;

    private AfterAgents(Instrumentation instrumentation, Runnable then) {
        this.instrumentation = instrumentation;
        this.then = then;
    }

    /** Once; never in a virtual machine that another launcher began, or that the agent was attached to. */
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
