// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.io.File;
import java.io.IOException;
import java.lang.instrument.Instrumentation;
import java.util.jar.JarFile;

/**
 * The agent's entry points. Any failure here is reported in one line, and the application runs without being measured.
 *
 * <p>The application's class loaders see only the classes of the bootstrap loader, so the agent's file is added to that
 * before any other class of the agent is used.
 */
public final class Agent {
    private static boolean added;

    private Agent() {
    }

    /** {@code -javaagent:pgtally-agent.jar=OPTIONS}. */
    public static void premain(String options, Instrumentation instrumentation) {
        run(options, instrumentation);
    }

    /** Attached to a running JVM. */
    public static void agentmain(String options, Instrumentation instrumentation) {
        run(options, instrumentation);
    }

    private static synchronized void run(String options, Instrumentation instrumentation) {
        try {
            if (!added) {
                addToBootstrap(instrumentation);
                added = true;
            }
            Switch.apply(options, Agent.class.getPackage().getImplementationVersion(), instrumentation);
        } catch (IllegalArgumentException e) {
            Report.line("invalid option: " + e.getMessage() + "; nothing is measured");
        } catch (IOException e) {
            Report.line("could not create the segment: " + e.getMessage() + "; nothing is measured");
        } catch (Exception | LinkageError e) {
            Report.line(e + "; nothing is measured");
        }
    }

    private static void addToBootstrap(Instrumentation instrumentation) throws Exception {
        File jar = new File(Agent.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        instrumentation.appendToBootstrapClassLoaderSearch(new JarFile(jar));
    }
}
