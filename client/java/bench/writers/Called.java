// SPDX-License-Identifier: PostgreSQL

import java.lang.foreign.Arena;
import java.lang.foreign.FunctionDescriptor;
import java.lang.foreign.Linker;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.SymbolLookup;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.MethodHandle;
import java.nio.file.Path;

/** Events by libtally, called by the foreign-function API (Java 22 and later). */
public final class Called {
    private static final SymbolLookup LIBRARY =
            SymbolLookup.libraryLookup(Path.of(System.getProperty("library")), Arena.global());
    private static final MethodHandle ADD = Linker.nativeLinker().downcallHandle(LIBRARY.find("writers_add").get(),
            FunctionDescriptor.ofVoid(ValueLayout.JAVA_LONG), options());

    private Called() {
    }

    /** "critical": without the transition of the thread's state, which a short function may do without. */
    private static Linker.Option[] options() {
        return Boolean.getBoolean("critical") ? new Linker.Option[] {Linker.Option.critical(false)} : new Linker.Option[0];
    }

    /** Opens the segment. */
    public static Writers.Way way(String path) throws Throwable {
        MethodHandle open = Linker.nativeLinker().downcallHandle(LIBRARY.find("writers_open").get(),
                FunctionDescriptor.of(ValueLayout.JAVA_INT, ValueLayout.ADDRESS));
        MemorySegment text = Arena.global().allocateFrom(path);
        if ((int) open.invokeExact(text) != 0) {
            throw new IllegalStateException("could not create " + path);
        }
        return value -> {
            try {
                ADD.invokeExact(value);
            } catch (Throwable e) {
                throw new IllegalStateException(e);
            }
        };
    }
}
