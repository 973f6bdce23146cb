// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.reflect.Method;
import java.util.Map;
import java.util.WeakHashMap;

/** The driver's connections, by executor object. They are kept while measuring is switched off. */
final class Wires {
    private static final Map<Object, Wire> WIRES = new WeakHashMap<>();

    private Wires() {
    }

    /** The connection of this object; it is not whole if its start was not seen. */
    static Wire of(Object executor) {
        synchronized (WIRES) {
            return WIRES.computeIfAbsent(executor, it -> new Wire(it, pid(it), false));
        }
    }

    /** The connection has just been opened. */
    static void opened(Object executor) {
        Wire wire = new Wire(executor, pid(executor), true);
        synchronized (WIRES) {
            WIRES.put(executor, wire);
        }
    }

    /** Some of its messages were missed. */
    static void missed(Object executor) {
        of(executor).whole = false;
    }

    /** Stops counting messages. */
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
