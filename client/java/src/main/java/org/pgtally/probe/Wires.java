// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.WeakHashMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;

/** The driver's connections, by executor object. They are kept while measuring is switched off. */
final class Wires {
    private static final Map<Object, Wire> WIRES = new WeakHashMap<>();
    /** The driver's interface of connections, in each loader that has loaded the driver. */
    private static final Set<Class<?>> CONNECTIONS = Collections.newSetFromMap(new WeakHashMap<>());
    private static final String CONNECTION = "org.postgresql.core.BaseConnection";
    /** {@code java.sql.Wrapper}, which the bootstrap loader does not know; null if there is no module java.sql. */
    private static final Class<?> WRAPPER = wrapper();
    /** Its method {@code unwrap}. */
    private static final MethodHandle UNWRAP = unwrap();
    private static final ClassValue<MethodHandle> EXECUTOR = method("getQueryExecutor", Object.class);
    private static final ClassValue<MethodHandle> CLOSED = method("isClosed", boolean.class);
    /** Those that pools have handed out. */
    private static final Set<Wire> BORROWED = ConcurrentHashMap.newKeySet();
    private static final AtomicInteger MOST = new AtomicInteger();

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

    /** This pool has handed out this connection. */
    static void borrowed(Object pool, Object connection) {
        Wire wire = ofConnection(connection);
        if (wire != null) {
            wire.borrowed(pool);
            BORROWED.add(wire);
            int many = BORROWED.size();
            if (many > MOST.get()) {
                MOST.accumulateAndGet(many, Math::max);
            }
        }
    }

    /** This connection is about to be returned. */
    static void returned(Object connection) {
        Wire wire = BORROWED.isEmpty() ? null : ofConnection(connection);
        if (wire != null) {
            drop(wire);
        }
    }

    private static void drop(Wire wire) {
        wire.returned();
        BORROWED.remove(wire);
    }

    /** The open connections. */
    static List<Wire> open() {
        List<Wire> all;
        synchronized (WIRES) {
            all = new ArrayList<>(WIRES.values());
        }
        all.removeIf(wire -> !isOpen(wire));
        for (Wire wire : BORROWED) {
            if (!isOpen(wire)) {
                drop(wire);
            }
        }
        return all;
    }

    /** The highest number of borrowed connections since the last call. */
    static int mostBorrowed() {
        return MOST.getAndSet(BORROWED.size());
    }

    private static boolean isOpen(Wire wire) {
        Object executor = wire.executor.get();
        try {
            return executor != null && !(boolean) CLOSED.get(executor.getClass()).invokeExact(executor);
        } catch (Throwable e) {
            return false;
        }
    }

    /** The connection of an object of a pool, or of the driver; null if it is another driver's. */
    private static Wire ofConnection(Object connection) {
        if (UNWRAP == null) {
            return null;
        }
        Object[] types;
        synchronized (WIRES) {
            types = CONNECTIONS.toArray();
        }
        for (Object type : types) {
            try {
                Object wrapper = WRAPPER.isInstance(connection) ? connection
                        : connection.getClass().getMethod("getConnection").invoke(connection);
                Object inner = (Object) UNWRAP.invokeExact(wrapper, (Class<?>) type);
                return of((Object) EXECUTOR.get((Class<?>) type).invokeExact(inner));
            } catch (Throwable e) {
                // It is another driver's, or one of another loader.
            }
        }
        return null;
    }

    /** A method without parameters, of each class. */
    private static ClassValue<MethodHandle> method(String name, Class<?> result) {
        return new ClassValue<>() {
            @Override
            protected MethodHandle computeValue(Class<?> type) {
                try {
                    return MethodHandles.lookup().unreflect(type.getMethod(name)).asType(MethodType.methodType(result, Object.class));
                } catch (ReflectiveOperationException | RuntimeException e) {
                    throw new IllegalStateException(e);
                }
            }
        };
    }

    private static Class<?> wrapper() {
        try {
            return Class.forName("java.sql.Wrapper", false, ClassLoader.getPlatformClassLoader());
        } catch (ClassNotFoundException e) {
            return null;
        }
    }

    private static MethodHandle unwrap() {
        try {
            return WRAPPER == null ? null : MethodHandles.publicLookup()
                    .findVirtual(WRAPPER, "unwrap", MethodType.methodType(Object.class, Class.class))
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
        BORROWED.clear();
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
