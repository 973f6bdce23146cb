// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** The driver's cached statements, whose class the bootstrap loader does not know. */
final class CachedQueries {
    private static final ClassValue<MethodHandle> QUERY = new ClassValue<>() {
        @Override
        protected MethodHandle computeValue(Class<?> type) {
            try {
                return MethodHandles.publicLookup().unreflectGetter(type.getField("query"))
                        .asType(MethodType.methodType(Object.class, Object.class));
            } catch (ReflectiveOperationException e) {
                return MethodHandles.dropArguments(MethodHandles.constant(Object.class, null), 0, Object.class);
            }
        }
    };

    private CachedQueries() {
    }

    /** The query that is executed; null if unknown. */
    static Object query(Object cached) {
        if (cached == null) {
            return null;
        }
        try {
            return (Object) QUERY.get(cached.getClass()).invokeExact(cached);
        } catch (Throwable e) {
            return null;
        }
    }
}
