// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.reflect.Method;
import java.util.Map;
import java.util.WeakHashMap;

/** The connections of the driver, by its object that executes. They stay when measuring is switched off and on. */
final class Wires {
    private static final Map<Object, Wire> WIRES = new WeakHashMap<>();

    private Wires() {
    }

    /** The connection of this object; one that was not seen to begin is not whole. */
    static Wire of(Object executor) {
        synchronized (WIRES) {
            return WIRES.computeIfAbsent(executor, it -> new Wire(it, pid(it), false));
        }
    }

    /** It has been opened just now. */
    static void opened(Object executor) {
        Wire wire = new Wire(executor, pid(executor), true);
        synchronized (WIRES) {
            WIRES.put(executor, wire);
        }
    }

    /** Messages of it were not seen. */
    static void missed(Object executor) {
        of(executor).whole = false;
    }

    /** Messages are not counted from now on. */
    static void forget() {
        synchronized (WIRES) {
            WIRES.clear();
        }
    }

    private static int pid(Object executor) {
        try {
            Method method = executor.getClass().getMethod("getBackendPID");
            return (int) method.invoke(executor);
        } catch (ReflectiveOperationException | RuntimeException e) {
            return 0;
        }
    }
}
