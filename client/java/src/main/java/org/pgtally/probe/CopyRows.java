// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;

/** The number of rows of a COPY, from the driver's object for it, whose class the bootstrap loader does not know. */
final class CopyRows {
    private static final ClassValue<MethodHandle> HANDLED = new ClassValue<>() {
        @Override
        protected MethodHandle computeValue(Class<?> type) {
            try {
                return MethodHandles.lookup().unreflect(type.getMethod("getHandledRowCount"))
                        .asType(MethodType.methodType(long.class, Object.class));
            } catch (ReflectiveOperationException | RuntimeException e) {
                return MethodHandles.dropArguments(MethodHandles.constant(long.class, -1L), 0, Object.class);
            }
        }
    };

    private CopyRows() {
    }

    /** The rows that the server says to have copied; negative until it has said so. */
    static long of(Object operation) {
        try {
            return operation == null ? -1 : (long) HANDLED.get(operation.getClass()).invokeExact(operation);
        } catch (Throwable e) {
            return -1;
        }
    }
}
