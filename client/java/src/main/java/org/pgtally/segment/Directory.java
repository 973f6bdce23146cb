// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Map;

/** The names of statistics and of probes. All threads of the process write here, one at a time. */
final class Directory {
    static final int ACCOUNT = 1;
    static final int TIMER = 2;
    static final int VALUE = 3;
    /** A name without a statistic, which explains a number. */
    static final int NAME = 4;

    /** The classes of a client's accounts. */
    static final int CLASS_ACTIVITY = 8;
    static final int CLASS_OTHER = 11;

    private static final int PUBLISHED = 2;
    private static final int INSTALLED = 1;
    private static final int LEFT_OUT = 2;

    private final SegmentFile file;
    private final Map<String, Integer> known = new HashMap<>();
    private final Map<String, Integer> probes = new HashMap<>();

    Directory(SegmentFile file) {
        this.file = file;
        publish(0, StatNames.OVERFLOW, ACCOUNT, "ticks", CLASS_OTHER);
        known.put(ACCOUNT + StatNames.OVERFLOW, 0);
    }

    /** The number of a statistic. Without space, 0 for an account, and {@link Layout#NONE} for others. */
    synchronized int register(String name, int kind, String unit, int accountClass) {
        String key = kind + name;
        Integer number = known.get(key);
        if (number == null) {
            number = enter(name, kind, unit, accountClass);
            known.put(key, number);
        }
        return number;
    }

    private int enter(String name, int kind, String unit, int accountClass) {
        long hash = hash(name);
        for (int i = 0; i < file.names; i++) {
            int number = (int) Long.remainderUnsigned(hash + i, file.names);
            if (file.head.getInt(at(number)) == 0) {
                publish(number, name, kind, unit, accountClass);
                return number;
            }
        }
        Memory.addLong(file.head, Layout.HEADER_OVERFLOW_DIRECTORY, 1);
        return kind == ACCOUNT ? 0 : Layout.NONE;
    }

    private void publish(int number, String name, int kind, String unit, int accountClass) {
        ByteBuffer head = file.head;
        int at = at(number);
        head.putInt(at + Layout.DIRECTORY_KIND, kind);
        head.putLong(at + Layout.DIRECTORY_HASH, hash(name));
        Memory.putText(head, at + Layout.DIRECTORY_NAME, Layout.DIRECTORY_NAME_BYTES, name);
        Memory.putText(head, at + Layout.DIRECTORY_UNIT, Layout.DIRECTORY_UNIT_BYTES, unit);
        head.put(at + Layout.DIRECTORY_ACCOUNT_CLASS, (byte) accountClass);
        Memory.putInt(head, at, PUBLISHED);
    }

    private int at(int number) {
        return file.directoryAt + number * Layout.DIRECTORY_SIZE;
    }

    /** Whether this statistic is an account. */
    boolean isAccount(int number) {
        return file.head.getInt(at(number) + Layout.DIRECTORY_KIND) == ACCOUNT;
    }

    /** FNV-1a of the name in the entry. */
    static long hash(String name) {
        byte[] bytes = name.getBytes(StandardCharsets.UTF_8);
        long hash = 0xcbf29ce484222325L;
        for (byte letter : Arrays.copyOf(bytes, Math.min(bytes.length, Layout.NAME_MAX - 1))) {
            hash = (hash ^ (letter & 0xff)) * 0x100000001b3L;
        }
        return hash;
    }

    /** Lists a probe, with the reason if it is left out. Without space it is not listed. */
    synchronized void probe(String name, String leftOut) {
        int number = probes.computeIfAbsent(name, key -> probes.size());
        if (number >= file.probes) {
            return;
        }
        int at = file.probesAt + number * Layout.PROBE_SIZE;
        Memory.putText(file.head, at + Layout.PROBE_NAME, Layout.PROBE_NAME_BYTES, name);
        Memory.putText(file.head, at + Layout.PROBE_REASON, Layout.PROBE_REASON_BYTES, leftOut == null ? "" : leftOut);
        Memory.putInt(file.head, at, leftOut == null ? INSTALLED : LEFT_OUT);
    }
}
