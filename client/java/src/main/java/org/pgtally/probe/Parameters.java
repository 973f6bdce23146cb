// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.lang.reflect.Method;

/** The parameters of an execution, whose class the bootstrap loader does not know. */
final class Parameters {
    /** Longer values are compared by their beginning, end and length. */
    private static final int MOST = 64;

    private static final ClassValue<MethodHandle> VALUES = new ClassValue<>() {
        @Override
        protected MethodHandle computeValue(Class<?> type) {
            try {
                // The class and its nearest interface are not public.
                Method method = type.getMethod("getValues");
                method.setAccessible(true);
                return MethodHandles.lookup().unreflect(method).asType(MethodType.methodType(Object.class, Object.class));
            } catch (ReflectiveOperationException | RuntimeException e) {
                return MethodHandles.dropArguments(MethodHandles.constant(Object.class, null), 0, Object.class);
            }
        }
    };

    private Parameters() {
    }

    /** A hash of the values; 0 if there are none. */
    static long hash(Object parameters) {
        if (parameters == null) {
            return 0;
        }
        Object values;
        try {
            values = (Object) VALUES.get(parameters.getClass()).invokeExact(parameters);
        } catch (Throwable e) {
            return 0;
        }
        long hash = 0;
        if (values instanceof Object[]) {
            for (Object value : (Object[]) values) {
                hash = hash * 0x5851f42d4c957f2dL + 1 + of(value);
            }
        }
        return hash;
    }

    private static long of(Object value) {
        if (value instanceof byte[]) {
            byte[] bytes = (byte[]) value;
            long hash = bytes.length;
            for (int i = 0; i < bytes.length; i++) {
                if (i == MOST / 2 && bytes.length > MOST) {
                    i = bytes.length - MOST / 2;
                }
                hash = (hash ^ bytes[i]) * 0x100000001b3L;
            }
            return hash;
        }
        if (value instanceof String) {
            String text = (String) value;
            int length = text.length();
            return length <= MOST ? text.hashCode()
                    : letters(text, length - MOST / 2, length, letters(text, 0, MOST / 2, length));
        }
        return value == null ? 0 : System.identityHashCode(value);
    }

    private static long letters(String text, int from, int to, long before) {
        long hash = before;
        for (int i = from; i < to; i++) {
            hash = hash * 31 + text.charAt(i);
        }
        return hash;
    }
}
