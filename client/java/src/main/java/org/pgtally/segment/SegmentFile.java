// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.FileAlreadyExistsException;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.BitSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * The segment's file: creating it, mapping it, and reserving memory before it is touched.
 *
 * <p>All mappings are made at creation. Later, a thread of the application could be interrupted in {@link FileChannel#map},
 * which would close the channel. Memory is reserved by writing zeros: a full file system then causes an {@link IOException}
 * here instead of an error in the middle of the application.
 *
 * <p>The first byte is locked as long as the process writes the file. Another process replaces a file only if it is a segment of
 * the same kind and user, and not locked ({@link LeftSegment}). Pids are no criterion, because containers that share a directory may have equal pids.
 * The kernel releases the lock when the process closes any descriptor of the file, so it is never opened again here.
 */
final class SegmentFile {
    private static final int PROBES = 1024;
    private static final int NAMES = 8192;
    private static final int EVENTS = 64;
    private static final int MERGES = 1024;
    private static final int RING_SIZE = Layout.TRACE_SIZE + Layout.TRACE_RECORDS * Layout.TRACE_RECORD_SIZE;
    /** A quarter of the file system, but at most this, is kept free for others. */
    private static final long HEADROOM_MAX = 256L << 20;

    final Path path;
    final int slots;
    final int groups;
    final int statistics;
    final int probes = PROBES;
    final int names = NAMES;
    final int events = EVENTS;
    final int merges = MERGES;
    final int probesAt;
    final int directoryAt;
    final int eventsAt;
    final int mergesAt;
    final int journalAt;
    final int entriesAt;
    final int stride;
    /** Everything before the books. */
    final ByteBuffer head;
    /** The ring of calls. */
    final ByteBuffer ring;
    private final long booksAt;
    private final long ringAt;
    private final ByteBuffer[] books;
    private final BitSet[] reserved;
    private final RandomAccessFile file;
    /** Identifies the file independently of its name. */
    private final Object key;
    private final FileStore store;

    private SegmentFile(Path path, RandomAccessFile file, Object key, int slots, int groups, int statistics)
            throws IOException {
        this.path = path;
        this.file = file;
        this.key = key;
        this.slots = slots;
        this.groups = groups;
        this.statistics = statistics;
        store = Files.getFileStore(path.toAbsolutePath().getParent());
        probesAt = Layout.HEADER_SIZE;
        directoryAt = after(probesAt, PROBES * Layout.PROBE_SIZE, 64);
        eventsAt = after(directoryAt, NAMES * Layout.DIRECTORY_SIZE, 64);
        mergesAt = after(eventsAt, EVENTS * Layout.EVENT_SIZE, 64);
        journalAt = after(mergesAt, MERGES * 8, 64);
        entriesAt = after(journalAt, Layout.JOURNAL_SIZE, 64);
        booksAt = after(entriesAt, (slots + groups) * Layout.ENTRY_SIZE, (int) Sizes.PAGE);
        stride = Sizes.bookStride(statistics);
        ringAt = booksAt + (long) (slots + groups) * stride;
        file.setLength(ringAt + RING_SIZE);
        reserve(0, booksAt);
        FileChannel channel = file.getChannel();
        head = map(channel, 0, (int) booksAt);
        ring = map(channel, ringAt, RING_SIZE);
        books = new ByteBuffer[slots + groups];
        reserved = new BitSet[slots + groups];
        for (int i = 0; i < books.length; i++) {
            books[i] = map(channel, bookAt(i), stride);
            reserved[i] = new BitSet();
        }
    }

    private static int after(int at, int length, int unit) {
        return (int) Sizes.roundUp(at + length, unit);
    }

    private static ByteBuffer map(FileChannel channel, long at, int length) throws IOException {
        return channel.map(FileChannel.MapMode.READ_WRITE, at, length).order(ByteOrder.nativeOrder());
    }

    /**
     * Creates the file under a temporary name, lets {@code fill} complete it, and renames it. A segment left under that name by
     * an ended process is replaced; any other file stays.
     *
     * @param kind prefix of the names of producers whose files may be replaced
     * @param isTransient whether others may remove the file once this process has ended
     */
    static SegmentFile create(Path path, String kind, boolean isTransient, int slots, int groups, int statistics, Filling fill)
            throws IOException {
        requireMemory(path.toAbsolutePath().getParent());
        Path temporary = path.resolveSibling(path.getFileName() + LeftSegment.unfinished());
        Files.createFile(temporary,
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        RandomAccessFile file = null;
        Object key = OwnFiles.keyOf(temporary);
        try {
            file = new RandomAccessFile(temporary.toFile(), "rw");
            OwnFiles.add(key);
            if (file.getChannel().tryLock(0, 1, false) == null) {
                throw new IOException(temporary + " is locked by another process");
            }
            SegmentFile created = new SegmentFile(path, file, key, slots, groups, statistics);
            created.fillHeader(isTransient);
            fill.fill(created);
            // The magic last: until then the file is none.
            for (int i = 0; i < LeftSegment.MAGIC.length; i++) {
                created.head.put(i, LeftSegment.MAGIC[i]);
            }
            LeftSegment.replace(path, kind, Files.getOwner(temporary));
            // Unlike a renaming, this replaces nothing.
            Files.createLink(path, temporary);
            Files.delete(temporary);
            return created;
        } catch (IOException | RuntimeException e) {
            if (file != null) {
                file.close();
            }
            OwnFiles.remove(key);
            Files.deleteIfExists(temporary);
            if (e instanceof FileAlreadyExistsException) {
                throw new IOException(path + " exists and is not the segment of an ended process; choose another file or"
                        + " directory, or remove it", e);
            }
            throw e;
        }
    }

    /** On a file system that is not in memory, every written page would go to disk sooner or later. */
    private static void requireMemory(Path folder) throws IOException {
        String type = Files.getFileStore(folder).type();
        if (!Set.of("tmpfs", "ramfs").contains(type)) {
            throw new IOException(folder + " is on " + type + ", not on a memory file system (tmpfs)");
        }
    }

    /** Writes the remaining contents before the file gets its name. */
    interface Filling {
        void fill(SegmentFile file) throws IOException;
    }

    private void fillHeader(boolean isTransient) {
        head.putInt(Layout.HEADER_BYTE_ORDER, Layout.BYTE_ORDER);
        head.putInt(Layout.HEADER_VERSION, Layout.FORMAT_VERSION);
        head.putInt(Layout.HEADER_HEADER_SIZE, Layout.HEADER_SIZE);
        head.putInt(Layout.HEADER_HIST_BUCKETS, Layout.HIST_BUCKETS);
        head.putLong(Layout.HEADER_SEGMENT_SIZE, ringAt + RING_SIZE);
        head.putInt(Layout.HEADER_CLOCK_KIND, 1);
        long now = System.nanoTime();
        head.putLong(Layout.HEADER_CLOCK_TICK0, now);
        head.putLong(Layout.HEADER_CLOCK_NS0, now);
        head.putLong(Layout.HEADER_RESET_TICK, now);
        long ms = System.currentTimeMillis();
        head.putLong(Layout.HEADER_CREATED_REALTIME_NS, TimeUnit.MILLISECONDS.toNanos(ms));
        head.putLong(Layout.HEADER_PID_NAMESPACE, Host.pidNamespace());
        head.putInt(Layout.HEADER_SLOTS, slots);
        head.putInt(Layout.HEADER_GROUPS, groups);
        head.putInt(Layout.HEADER_STATS_PER_BOOK, statistics);
        Memory.putText(head, Layout.HEADER_BOOT_ID, Layout.HEADER_BOOT_ID_BYTES, Host.bootId());
        region(Layout.HEADER_PROBES, probesAt, PROBES, Layout.PROBE_SIZE);
        region(Layout.HEADER_DIRECTORY, directoryAt, NAMES, Layout.DIRECTORY_SIZE);
        region(Layout.HEADER_EVENTS, eventsAt, EVENTS, Layout.EVENT_SIZE);
        region(Layout.HEADER_MERGE_LOG, mergesAt, MERGES, 8);
        region(Layout.HEADER_JOURNAL, journalAt, 1, Layout.JOURNAL_SIZE);
        region(Layout.HEADER_ENTRIES, entriesAt, slots + groups, Layout.ENTRY_SIZE);
        region(Layout.HEADER_BOOKS, booksAt, slots + groups, stride);
        region(Layout.HEADER_TRACES, ringAt, 1, RING_SIZE);
        head.putInt(Layout.HEADER_SERVER_PID, (int) ProcessHandle.current().pid());
        head.putInt(Layout.HEADER_FLAGS, isTransient ? Layout.SEGMENT_TRANSIENT : 0);
        head.putLong(Layout.HEADER_PROCESS_STARTED, Host.started(ProcessHandle.current().pid()));
        head.putInt(Layout.HEADER_LEVEL_WORD, 1);
    }

    private void region(int at, long offset, int count, int stride) {
        head.putLong(at + Layout.REGION_OFFSET, offset);
        head.putInt(at + Layout.REGION_COUNT, count);
        head.putInt(at + Layout.REGION_STRIDE, stride);
    }

    /** Offset of the entry of a slot or group in {@link #head}. */
    int entryAt(int index) {
        return entriesAt + index * Layout.ENTRY_SIZE;
    }

    /** The book of a slot or group. */
    ByteBuffer book(int index) {
        return books[index];
    }

    private long bookAt(int index) {
        return booksAt + (long) index * stride;
    }

    /** Reserves bytes of a book. Only once for each page, because it overwrites them. */
    synchronized void reserve(int index, int from, int length) throws IOException {
        BitSet pages = reserved[index];
        int end = (int) ((from + length - 1) / Sizes.PAGE) + 1;
        int page = pages.nextClearBit((int) (from / Sizes.PAGE));
        while (page < end) {
            int next = pages.nextSetBit(page);
            int until = next < 0 ? end : Math.min(next, end);
            reserve(bookAt(index) + page * Sizes.PAGE, (until - page) * Sizes.PAGE);
            pages.set(page, until);
            page = pages.nextClearBit(until);
        }
    }

    private void reserve(long at, long length) throws IOException {
        long total = store.getTotalSpace();
        if (total > 0 && store.getUsableSpace() < Math.min(total / 4, HEADROOM_MAX) + length) {
            throw new IOException("no space left in " + path.toAbsolutePath().getParent()
                    + " (a quarter of it, at most 256 MiB, is kept free for others)");
        }
        byte[] zeros = new byte[(int) length];
        file.seek(at);
        file.write(zeros);
    }

    /** Removes the file, unless its name now belongs to another file. Mappings stay until they are no longer used. */
    void remove() {
        try {
            if (key.equals(OwnFiles.keyOf(path))) {
                Files.deleteIfExists(path);
            }
        } catch (IOException e) {
            // It has no name any more.
        }
        OwnFiles.remove(key);
        try {
            file.close();
        } catch (IOException e) {
            // Nothing depends on it.
        }
    }
}
