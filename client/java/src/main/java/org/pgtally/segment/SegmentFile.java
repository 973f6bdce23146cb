// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

import java.io.IOException;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.file.FileStore;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardCopyOption;
import java.nio.file.attribute.PosixFilePermissions;
import java.util.BitSet;
import java.util.Set;
import java.util.concurrent.TimeUnit;

/**
 * The file: creation, mappings, and memory that is reserved before it is touched.
 *
 * <p>All mappings are made at the creation. Later a thread of the application could be interrupted in
 * {@link FileChannel#map}, which would close the channel. Memory is reserved by writing zeros: a full file system
 * then gives an {@link IOException} here, and no error in the middle of the application.
 */
final class SegmentFile {
    private static final int PROBES = 1024;
    private static final int NAMES = 8192;
    private static final int EVENTS = 64;
    private static final int MERGES = 1024;
    private static final int RING_SIZE = Layout.T_SIZE + Layout.T_RECORDS * Layout.R_SIZE;
    /** A quarter of the file system, and at most this, is left to others. */
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
    private final FileStore store;

    private SegmentFile(Path path, RandomAccessFile file, int slots, int groups, int statistics) throws IOException {
        this.path = path;
        this.file = file;
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
        booksAt = after(entriesAt, (slots + groups) * Layout.ENTRY_SIZE, (int) Layout.PAGE);
        stride = Layout.bookStride(statistics);
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
        return (int) Layout.roundUp(at + length, unit);
    }

    private static ByteBuffer map(FileChannel channel, long at, int length) throws IOException {
        return channel.map(FileChannel.MapMode.READ_WRITE, at, length).order(ByteOrder.nativeOrder());
    }

    /** Creates the file under a temporary name, has {@code fill} complete it, and gives it its name. */
    static SegmentFile create(Path path, int slots, int groups, int statistics, Filling fill) throws IOException {
        Path folder = path.toAbsolutePath().getParent();
        requireMemory(folder);
        Path temporary = path.resolveSibling(path.getFileName() + ".new." + ProcessHandle.current().pid());
        Files.deleteIfExists(temporary);
        Files.createFile(temporary,
                PosixFilePermissions.asFileAttribute(PosixFilePermissions.fromString("rw-------")));
        RandomAccessFile file = null;
        try {
            file = new RandomAccessFile(temporary.toFile(), "rw");
            SegmentFile created = new SegmentFile(path, file, slots, groups, statistics);
            created.fillHeader();
            fill.fill(created);
            // The magic last: until then the file is none.
            byte[] magic = {'T', 'A', 'L', 'L', 'Y', 'S', 'E', 'G'};
            for (int i = 0; i < magic.length; i++) {
                created.head.put(i, magic[i]);
            }
            Files.move(temporary, path, StandardCopyOption.ATOMIC_MOVE);
            return created;
        } catch (IOException | RuntimeException e) {
            if (file != null) {
                file.close();
            }
            Files.deleteIfExists(temporary);
            throw e;
        }
    }

    /** On another file system every page that is written would go to a disk sooner or later. */
    private static void requireMemory(Path folder) throws IOException {
        String type = Files.getFileStore(folder).type();
        if (!Set.of("tmpfs", "ramfs").contains(type)) {
            throw new IOException(folder + " is on " + type + ", not on a memory file system (tmpfs)");
        }
    }

    /** What is still to be written before the file gets its name. */
    interface Filling {
        void fill(SegmentFile file) throws IOException;
    }

    private void fillHeader() {
        head.putInt(Layout.H_BYTE_ORDER, 0x01020304);
        head.putInt(Layout.H_VERSION, 2);
        head.putInt(Layout.H_HEADER_SIZE, Layout.HEADER_SIZE);
        head.putInt(Layout.H_HIST_BUCKETS, Layout.HIST_BUCKETS);
        head.putLong(Layout.H_SEGMENT_SIZE, ringAt + RING_SIZE);
        head.putInt(Layout.H_CLOCK_KIND, 1);
        long now = System.nanoTime();
        head.putLong(Layout.H_CLOCK_TICK0, now);
        head.putLong(Layout.H_CLOCK_NS0, now);
        head.putLong(Layout.H_RESET_TICK, now);
        long ms = System.currentTimeMillis();
        head.putLong(Layout.H_CREATED_NS, TimeUnit.MILLISECONDS.toNanos(ms));
        head.putLong(Layout.H_PID_NAMESPACE, Host.pidNamespace());
        head.putInt(Layout.H_SLOTS, slots);
        head.putInt(Layout.H_GROUPS, groups);
        head.putInt(Layout.H_STATS_PER_BOOK, statistics);
        Memory.putText(head, Layout.H_BOOT_ID, 40, Host.bootId());
        region(Layout.H_PROBES, probesAt, PROBES, Layout.PROBE_SIZE);
        region(Layout.H_DIRECTORY, directoryAt, NAMES, Layout.DIRECTORY_SIZE);
        region(Layout.H_EVENTS, eventsAt, EVENTS, Layout.EVENT_SIZE);
        region(Layout.H_MERGE_LOG, mergesAt, MERGES, 8);
        region(Layout.H_JOURNAL, journalAt, 1, Layout.JOURNAL_SIZE);
        region(Layout.H_ENTRIES, entriesAt, slots + groups, Layout.ENTRY_SIZE);
        region(Layout.H_BOOKS, booksAt, slots + groups, stride);
        region(Layout.H_TRACES, ringAt, 1, RING_SIZE);
        head.putInt(Layout.H_SERVER_PID, (int) ProcessHandle.current().pid());
        head.putInt(Layout.H_LEVEL_WORD, 1);
    }

    private void region(int at, long offset, int count, int stride) {
        head.putLong(at, offset);
        head.putInt(at + 8, count);
        head.putInt(at + 12, stride);
    }

    /** Where the entry of a slot or group is in {@link #head}. */
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

    /** Reserves bytes of a book. Only once for each page: that would overwrite it. */
    synchronized void reserve(int index, int from, int length) throws IOException {
        BitSet pages = reserved[index];
        int end = (int) ((from + length - 1) / Layout.PAGE) + 1;
        int page = pages.nextClearBit((int) (from / Layout.PAGE));
        while (page < end) {
            int next = pages.nextSetBit(page);
            int until = next < 0 ? end : Math.min(next, end);
            reserve(bookAt(index) + page * Layout.PAGE, (until - page) * Layout.PAGE);
            pages.set(page, until);
            page = pages.nextClearBit(until);
        }
    }

    private void reserve(long at, long length) throws IOException {
        long total = store.getTotalSpace();
        if (total > 0 && store.getUsableSpace() < Math.min(total / 4, HEADROOM_MAX) + length) {
            throw new IOException("no space left in " + path.toAbsolutePath().getParent()
                    + " (a quarter of it, at most 256 MiB, is left to others)");
        }
        byte[] zeros = new byte[(int) length];
        file.seek(at);
        file.write(zeros);
    }

    /** Removes the file. What is mapped stays until it is no longer used. */
    void remove() {
        try {
            Files.deleteIfExists(path);
            file.close();
        } catch (IOException e) {
            // Nothing depends on it.
        }
    }
}
