// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.nio.file.Path;

/** {@code java -jar pgtally-agent.jar PID [OPTIONS]}: attaches the agent to a virtual machine that runs. */
public final class Attach {
    private static final String USAGE = "usage: java -jar pgtally-agent.jar PID [OPTIONS]\n"
            + "       java -jar pgtally-agent.jar PID off\n"
            + "\n"
            + "OPTIONS, separated by commas (docs/java.md):\n"
            + "  methods=GLOB[:GLOB...]  CLASS or CLASS#METHOD with *, ** and ?; driver: the default\n"
            + "  calls=off               no figures of the driver's statements\n"
            + "  cpu=on                  processor times, too: two system calls a call\n"
            + "  histograms=off          no percentiles, less memory\n"
            + "  directory=DIR           of the segment; the default is /dev/shm\n"
            + "\n"
            + "Example: java -jar pgtally-agent.jar 4711 'methods=driver:com.example.shop.**,cpu=on'";

    private Attach() {
    }

    /** See the usage. */
    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 1 || arguments.length > 2 || !arguments[0].matches("[0-9]+")) {
            System.err.println(USAGE);
            System.exit(2);
        }
        String options = arguments.length > 1 ? arguments[1] : "";
        try {
            Options.parse(options);
        } catch (IllegalArgumentException e) {
            System.err.println("pgtally: " + e.getMessage());
            System.exit(2);
        }
        if (ModuleLayer.boot().findModule("jdk.attach").isEmpty()) {
            System.err.println("pgtally: this Java has no module jdk.attach; use that of a JDK, or start the"
                    + " application with -javaagent");
            System.exit(1);
        }
        Path jar = Path.of(Attach.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        try {
            Attachment.load(arguments[0], jar.toAbsolutePath().toString(), options);
        } catch (Exception e) {
            System.err.println("pgtally: could not attach to process " + arguments[0] + ": " + e.getMessage()
                    + "; run this as the user of that process");
            System.exit(1);
        }
    }
}
