// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

import java.lang.invoke.MethodHandles;
import java.lang.invoke.VarHandle;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.charset.StandardCharsets;

/** Words and texts in mapped memory that readers and other threads read concurrently. */
final class Memory {
    private static final VarHandle INTS = MethodHandles.byteBufferViewVarHandle(int[].class, ByteOrder.nativeOrder());
    private static final VarHandle LONGS = MethodHandles.byteBufferViewVarHandle(long[].class, ByteOrder.nativeOrder());

    private Memory() {
    }

    static int intAt(ByteBuffer memory, int at) {
        return (int) INTS.getAcquire(memory, at);
    }

    static long longAt(ByteBuffer memory, int at) {
        return (long) LONGS.getAcquire(memory, at);
    }

    static int opaqueIntAt(ByteBuffer memory, int at) {
        return (int) INTS.getOpaque(memory, at);
    }

    static void putInt(ByteBuffer memory, int at, int value) {
        INTS.setRelease(memory, at, value);
    }

    static void putLong(ByteBuffer memory, int at, long value) {
        LONGS.setRelease(memory, at, value);
    }

    /** A store that is also ordered before later accesses. */
    static void putLongFully(ByteBuffer memory, int at, long value) {
        LONGS.setVolatile(memory, at, value);
    }

    static long opaqueLongAt(ByteBuffer memory, int at) {
        return (long) LONGS.getOpaque(memory, at);
    }

    static boolean changeInt(ByteBuffer memory, int at, int from, int to) {
        return INTS.compareAndSet(memory, at, from, to);
    }

    static boolean changeLong(ByteBuffer memory, int at, long from, long to) {
        return LONGS.compareAndSet(memory, at, from, to);
    }

    static long addLong(ByteBuffer memory, int at, long more) {
        return (long) LONGS.getAndAdd(memory, at, more);
    }

    /** The text in so many bytes, up to its terminator. */
    static String text(ByteBuffer memory, int at, int size) {
        byte[] bytes = new byte[size];
        int length = 0;
        while (length < size && memory.get(at + length) != 0) {
            bytes[length] = memory.get(at + length);
            length++;
        }
        return new String(bytes, 0, length, StandardCharsets.UTF_8);
    }

    /** A text, truncated to {@code size} bytes including its terminator, and padded with zeros. */
    static void putText(ByteBuffer memory, int at, int size, String text) {
        byte[] bytes = text.getBytes(StandardCharsets.UTF_8);
        int length = Math.min(bytes.length, size - 1);
        // Not within a character.
        while (length < bytes.length && length > 0 && (bytes[length] & 0xC0) == 0x80) {
            length--;
        }
        for (int i = 0; i < size; i++) {
            memory.put(at + i, i < length ? bytes[i] : 0);
        }
    }
}
