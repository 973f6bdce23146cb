// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.nio.file.Path;

/** {@code java -jar pgtally-agent.jar PID [OPTIONS]}: attaches the agent to a running JVM. */
public final class Attach {
    private static final String USAGE = "usage: java -jar pgtally-agent.jar PID [OPTIONS]\n"
            + "       java -jar pgtally-agent.jar PID off\n"
            + "\n"
            + "OPTIONS, separated by commas (see docs/java.md):\n"
            + "  methods=GLOB[:GLOB...]  methods to time: CLASS or CLASS#METHOD with *, ** and ?;\n"
            + "                          default: driver\n"
            + "  calls=off               do not record the driver's statements\n"
            + "  cpu=on                  also measure CPU time: two system calls per method call\n"
            + "  histograms=off          keep no histograms: no percentiles, less memory\n"
            + "  directory=DIR           directory of the segment; default: /dev/shm\n"
            + "\n"
            + "Example: java -jar pgtally-agent.jar 4711 'methods=driver:com.example.shop.**,cpu=on'";

    private Attach() {
    }

    /** See USAGE. */
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
            System.err.println("pgtally: this Java lacks the module jdk.attach; use the java of a JDK, or start the"
                    + " application with -javaagent");
            System.exit(1);
        }
        Path jar = Path.of(Attach.class.getProtectionDomain().getCodeSource().getLocation().toURI());
        try {
            Attachment.load(arguments[0], jar.toAbsolutePath().toString(), options);
        } catch (Exception e) {
            System.err.println("pgtally: could not attach to process " + arguments[0] + ": " + e.getMessage()
                    + "; run the command as the user of that process");
            System.exit(1);
        }
    }
}
