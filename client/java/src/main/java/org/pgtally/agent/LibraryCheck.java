// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.io.File;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.dynamic.scaffold.MethodGraph;
import net.bytebuddy.dynamic.scaffold.TypeValidation;
import net.bytebuddy.pool.TypePool;

/**
 * Inserts the code of all call points into the classes of a driver or pool without running them, and says what does not fit:
 * {@code java -cp pgtally-agent.jar org.pgtally.agent.LibraryCheck JAR...} prints a line for each jar, separated by tabs: its
 * name, the number of points that fit, and those left out.
 */
public final class LibraryCheck {
    private static final String DRIVER = "org.postgresql.";

    private int fits;
    private final List<String> leftOut = new ArrayList<>();

    private LibraryCheck() {
    }

    /** Arguments: jars. Ends with status 1 if one has no call point, or code does not fit. */
    public static void main(String[] jars) throws IOException {
        boolean failed = false;
        for (String jar : jars) {
            LibraryCheck check = new LibraryCheck();
            boolean sound = check.run(new File(jar)) && check.fits > 0;
            failed |= !sound;
            System.out.println(new File(jar).getName() + "\t" + check.fits + "\t" + String.join("; ", check.leftOut));
        }
        System.exit(failed ? 1 : 0);
    }

    /** False if a class would not be instrumented at all. */
    private boolean run(File jar) throws IOException {
        boolean sound = true;
        try (ClassFileLocator of = ClassFileLocator.ForJarFile.of(jar)) {
            ClassFileLocator locator = new ClassFileLocator.Compound(of, ClassFileLocator.ForClassLoader.ofSystemLoader());
            // Lazily, as in the agent: most of the libraries that a pool needs are not there. The others are in the class path.
            TypePool pool = TypePool.Default.WithLazyResolution.of(locator);
            boolean isDriver = pool.describe(DRIVER + "Driver").isResolved();
            for (String name : CallPoints.types()) {
                TypePool.Resolution type = pool.describe(name);
                if (type.isResolved()) {
                    sound &= insert(type.resolve(), locator);
                } else if (isDriver && name.startsWith(DRIVER)) {
                    leftOut.add(name + ": no such class");
                    sound = false;
                }
            }
            for (Map.Entry<String, List<String>> returns : CallPoints.returns().entrySet()) {
                if (pool.describe(returns.getKey()).isResolved()
                        && returns.getValue().stream().noneMatch(type -> pool.describe(type).isResolved())) {
                    leftOut.add("return of a connection: no such class");
                    sound = false;
                }
            }
        }
        return sound;
    }

    private boolean insert(TypeDescription type, ClassFileLocator locator) {
        int before = fits;
        try {
            // As Instrumenter does it.
            CallPoints.visit(new ByteBuddy().with(TypeValidation.DISABLED)
                    .with(MethodGraph.Compiler.ForDeclaredMethods.INSTANCE).redefine(type, locator), type, (point, reason) -> {
                        if (reason == null) {
                            fits++;
                        } else {
                            leftOut.add(point.replaceFirst("^calls ", "") + ": no such method");
                        }
                    }).make();
            return true;
        } catch (RuntimeException e) {
            fits = before;
            leftOut.add(type.getSimpleName() + ": " + e.getMessage());
            return false;
        }
    }
}
