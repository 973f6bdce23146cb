// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.util.HashMap;
import java.util.Map;
import java.util.Set;
import java.util.regex.Pattern;

/**
 * The counters that HotSpot publishes in {@code /tmp/hsperfdata_USER/PID}, which jstat reads: a header, then entries with
 * a name and a value (src/hotspot/share/runtime/perfMemory.hpp). Reading one is a load.
 */
final class VmCounters {
    private static final int MAGIC = 0xcafec0c0;
    private static final int USED = 8;
    private static final int FIRST_ENTRY = 24;
    private static final int ENTRIES = 28;
    private static final int E_NAME = 4;
    private static final int E_VECTOR = 8;
    private static final int E_TYPE = 12;
    private static final int E_DATA = 16;

    private final ByteBuffer memory;
    private final Map<String, Integer> places = new HashMap<>();

    private VmCounters(ByteBuffer memory) {
        this.memory = memory;
    }

    /** The counters of this process. */
    static VmCounters open() throws IOException {
        Path file = Path.of("/tmp", "hsperfdata_" + System.getProperty("user.name", ""),
                String.valueOf(ProcessHandle.current().pid()));
        try (FileChannel channel = FileChannel.open(file, Set.of(StandardOpenOption.READ))) {
            ByteBuffer memory = channel.map(FileChannel.MapMode.READ_ONLY, 0, channel.size());
            if (memory.getInt(0) != MAGIC) {
                throw new IOException(file + " has an unknown format");
            }
            VmCounters counters = new VmCounters(memory.order(ByteOrder.nativeOrder()));
            counters.find();
            return counters;
        } catch (IndexOutOfBoundsException e) {
            throw new IOException(file + " has an unknown format", e);
        }
    }

    private void find() {
        int at = memory.getInt(FIRST_ENTRY);
        int end = memory.getInt(USED);
        for (int i = memory.getInt(ENTRIES); i > 0 && at < end; i--) {
            int length = memory.getInt(at);
            if (length <= 0) {
                return;
            }
            if (memory.getInt(at + E_VECTOR) == 0 && memory.get(at + E_TYPE) == 'J') {
                places.put(text(at + memory.getInt(at + E_NAME)), at + memory.getInt(at + E_DATA));
            }
            at += length;
        }
    }

    private String text(int from) {
        int to = from;
        while (memory.get(to) != 0) {
            to++;
        }
        byte[] bytes = new byte[to - from];
        for (int i = 0; i < bytes.length; i++) {
            bytes[i] = memory.get(from + i);
        }
        return new String(bytes, StandardCharsets.US_ASCII);
    }

    /** Positions of the counters with matching names, for {@link #value}. */
    int[] named(Pattern name) {
        return places.entrySet().stream().filter(place -> name.matcher(place.getKey()).matches())
                .mapToInt(Map.Entry::getValue).toArray();
    }

    /** The sum of these counters. */
    long value(int[] counters) {
        long sum = 0;
        for (int at : counters) {
            sum += memory.getLong(at);
        }
        return sum;
    }
}
