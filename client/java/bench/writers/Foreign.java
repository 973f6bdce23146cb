// SPDX-License-Identifier: PostgreSQL

import java.lang.foreign.Arena;
import java.lang.foreign.MemorySegment;
import java.lang.foreign.ValueLayout;
import java.lang.invoke.VarHandle;
import java.nio.channels.FileChannel;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** The stores of Book.addWithHistogram into memory mapped by the foreign-memory API (Java 22 and later). */
public final class Foreign implements Writers.Way {
    private static final long HEAD = 4096;
    private static final long HISTOGRAM = HEAD + 64 * 64;
    private static final long SIZE = HISTOGRAM + 8 * 42 * 64;
    private static final long ROW = 8 * 64;

    private final MemorySegment book;
    private long seq;

    private Foreign(MemorySegment book) {
        this.book = book;
    }

    /** Maps the file. */
    public static Writers.Way way(String path) throws Exception {
        try (FileChannel channel = FileChannel.open(Path.of(path), StandardOpenOption.CREATE_NEW, StandardOpenOption.READ,
                StandardOpenOption.WRITE)) {
            return new Foreign(channel.map(FileChannel.MapMode.READ_WRITE, 0, SIZE, Arena.global()));
        }
    }

    @Override
    public void add(long value) {
        set(0, seq + 1);
        VarHandle.storeStoreFence();
        set(HEAD + 8, get(HEAD + 8) + 1);
        set(HEAD + 16, get(HEAD + 16) + value);
        long min = get(HEAD + 24);
        if (value < min || min < 0) {
            set(HEAD + 24, value);
        }
        if (value > get(HEAD + 32)) {
            set(HEAD + 32, value);
        }
        int octave = 63 - Long.numberOfLeadingZeros(value | 8);
        int bucket = octave > 43 || value < 0 ? 335 : octave * 8 + (int) ((value << 3) >>> octave) - 24;
        long at = HISTOGRAM + bucket / 8 * ROW + bucket % 8 * 8;
        set(at, get(at) + 1);
        seq += 2;
        VarHandle.storeStoreFence();
        set(0, seq);
    }

    private long get(long at) {
        return book.get(ValueLayout.JAVA_LONG, at);
    }

    private void set(long at, long value) {
        book.set(ValueLayout.JAVA_LONG, at, value);
    }
}
