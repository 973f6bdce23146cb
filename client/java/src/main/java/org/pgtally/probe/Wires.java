// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.util.Collections;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;

/** The driver's connections, by executor object. They are kept while measuring is switched off. */
final class Wires {
    private static final Map<Object, Wire> WIRES = new WeakHashMap<>();
    /** The driver's interface of connections, in each loader that has loaded the driver. */
    private static final Set<Class<?>> CONNECTIONS = Collections.newSetFromMap(new WeakHashMap<>());
    private static final String CONNECTION = "org.postgresql.core.BaseConnection";
    /** {@code java.sql.Wrapper.unwrap}, which the bootstrap loader does not know; null if there is no module java.sql. */
    private static final MethodHandle UNWRAP = unwrap();

    private Wires() {
    }

    /** The connection of this object; it is not whole if its start was not seen. */
    static Wire of(Object executor) {
        synchronized (WIRES) {
            Wire known = WIRES.get(executor);
            if (known != null) {
                return known;
            }
        }
        Wire created = create(executor, false);
        synchronized (WIRES) {
            Wire known = WIRES.putIfAbsent(executor, created);
            return known == null ? created : known;
        }
    }

    /** The connection has just been opened. */
    static void opened(Object executor) {
        Wire created = create(executor, true);
        synchronized (WIRES) {
            WIRES.put(executor, created);
        }
    }

    /** Some of its messages were missed. */
    static void missed(Object executor) {
        of(executor).whole = false;
    }

    /** Calls the driver and its class loader, which may wait for another thread that needs {@link #WIRES}. */
    private static Wire create(Object executor, boolean whole) {
        try {
            Class<?> connection = Class.forName(CONNECTION, false, executor.getClass().getClassLoader());
            synchronized (WIRES) {
                CONNECTIONS.add(connection);
            }
        } catch (ClassNotFoundException | LinkageError e) {
            // Borrows of this driver's connections are not seen.
        }
        return new Wire(executor, pid(executor), whole);
    }

    /** A pool has handed out this connection. */
    static void borrowed(Object connection) {
        if (connection == null || UNWRAP == null) {
            return;
        }
        Object[] types;
        synchronized (WIRES) {
            types = CONNECTIONS.toArray();
        }
        for (Object type : types) {
            try {
                Object inner = (Object) UNWRAP.invokeExact(connection, (Class<?>) type);
                of(((Class<?>) type).getMethod("getQueryExecutor").invoke(inner)).borrowed();
                return;
            } catch (Throwable e) {
                // It is another driver's, or one of another loader.
            }
        }
    }

    private static MethodHandle unwrap() {
        try {
            Class<?> wrapper = Class.forName("java.sql.Wrapper", false, ClassLoader.getPlatformClassLoader());
            return MethodHandles.publicLookup()
                    .findVirtual(wrapper, "unwrap", MethodType.methodType(Object.class, Class.class))
                    .asType(MethodType.methodType(Object.class, Object.class, Class.class));
        } catch (ReflectiveOperationException e) {
            return null;
        }
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
