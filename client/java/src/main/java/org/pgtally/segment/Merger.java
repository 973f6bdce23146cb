// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

import java.io.IOException;
import java.nio.ByteBuffer;

/**
 * Adds the books of ended threads to the group of their kind (FORMAT.md, section 6, Merge).
 *
 * <p>Concurrency: the caller holds the lock of {@link Segment}. This process is the only writer of its segment, so the
 * merge lock in the file is only for readers, who check whether its holder is still running. No process ever recovers an
 * interrupted merge, but a reader of a killed process's segment undoes its last step with the journal.
 */
final class Merger {
    private final SegmentFile file;
    private final Directory directory;
    private final Book[] groups;

    Merger(SegmentFile file, Directory directory) {
        this.file = file;
        this.directory = directory;
        groups = new Book[file.groups];
    }

    /** Creates the last group, which takes all slots without another group. */
    void openLastGroup() throws IOException {
        open(file.groups - 1, "other");
    }

    void merge(Book book) {
        ByteBuffer head = file.head;
        int entry = file.entryAt(book.slot);
        long now = System.nanoTime();
        book.follow(Memory.intAt(head, Layout.HEADER_LEVEL_WORD));
        book.begin();
        book.run(Layout.NONE, now);
        book.publish();
        Memory.putInt(head, entry, Layout.SLOT_STATE_RETIRED);
        Memory.putInt(head, Layout.HEADER_MERGE_LOCK, (int) ProcessHandle.current().pid());
        Memory.putLong(head, Layout.HEADER_MERGE_LOCK_BOOT_NS, Host.bootNs());
        Memory.putInt(head, file.journalAt + Layout.JOURNAL_SLOT, book.slot);
        Memory.putInt(head, entry, Layout.SLOT_STATE_MERGING);
        Memory.putLongFully(head, Layout.HEADER_MERGE_ACTIVE, 1);
        Book group = groupOf(head, entry);
        Memory.putInt(head, file.journalAt + Layout.JOURNAL_GROUP, group.slot);
        for (int index = 0; index < book.used(); index++) {
            mergeHead(book, index, group);
            Memory.putInt(head, entry + Layout.ENTRY_MERGED, index + 1);
            Memory.putInt(head, file.journalAt, 0);
        }
        commit(book, group);
        book.clear();
        free(book.slot);
        Memory.putLong(head, Layout.HEADER_MERGE_LOCK_BOOT_NS, 0);
        Memory.putInt(head, Layout.HEADER_MERGE_LOCK, 0);
    }

    private void mergeHead(Book book, int index, Book group) {
        long count = book.head(index, Layout.HEAD_COUNT);
        if (count == 0) {
            return;
        }
        int to = indexIn(group, book.statistic(index));
        if (to == Layout.NONE) {
            return;
        }
        save(index, group, to);
        group.begin();
        group.setHead(to, Layout.HEAD_COUNT, group.head(to, Layout.HEAD_COUNT) + count);
        group.setHead(to, Layout.HEAD_TOTAL, group.head(to, Layout.HEAD_TOTAL) + book.head(index, Layout.HEAD_TOTAL));
        group.setHead(to, Layout.HEAD_AMOUNT, group.head(to, Layout.HEAD_AMOUNT) + book.head(index, Layout.HEAD_AMOUNT));
        long min = book.head(index, Layout.HEAD_MIN);
        long max = book.head(index, Layout.HEAD_MAX);
        if (Long.compareUnsigned(min, group.head(to, Layout.HEAD_MIN)) < 0) {
            group.setHead(to, Layout.HEAD_MIN, min);
        }
        if (max > group.head(to, Layout.HEAD_MAX)) {
            group.setHead(to, Layout.HEAD_MAX, max);
        }
        if (min >= 0 && book.hasHistogram(index)) {
            for (int bucket = Histogram.bucket(min); bucket <= Histogram.bucket(max); bucket++) {
                long more = book.bucket(index, bucket);
                if (more != 0) {
                    group.addBucket(to, bucket, more);
                }
            }
        }
        group.publish();
    }

    /** Saves the data that a reader needs to undo the addition of a head, if this process is killed meanwhile. */
    private void save(int source, Book group, int to) {
        ByteBuffer head = file.head;
        int at = file.journalAt;
        head.putInt(at + Layout.JOURNAL_HEAD, to);
        for (int field = 0; field < Layout.HEAD_SIZE; field += 8) {
            head.putLong(at + Layout.JOURNAL_SAVED + field, group.head(to, field));
        }
        head.putLong(at + Layout.JOURNAL_SAVED + Layout.HEAD_RESERVED, source);
        for (int bucket = 0; bucket < Layout.HIST_BUCKETS; bucket++) {
            head.putLong(at + Layout.JOURNAL_HIST + 8 * bucket, group.bucket(to, bucket));
        }
        Memory.putInt(head, at, 1);
    }

    private void commit(Book book, Book group) {
        ByteBuffer head = file.head;
        int entry = file.entryAt(book.slot);
        Memory.putInt(head, file.journalAt, 3);
        Memory.putInt(head, entry, Layout.SLOT_STATE_CLAIMING);
        Memory.putInt(head, entry + Layout.ENTRY_PID, -1);
        Memory.addLong(head, file.entryAt(group.slot) + Layout.ENTRY_SESSIONS, 1);
        long merges = Memory.longAt(head, Layout.HEADER_MERGE_COUNT);
        Memory.putLong(head, file.mergesAt + (int) (merges % file.merges) * 8,
                (long) book.generation << 32 | book.slot);
        Memory.putLong(head, Layout.HEADER_MERGE_COUNT, merges + 1);
        Memory.putLong(head, Layout.HEADER_MERGE_ACTIVE, 0);
        Memory.putInt(head, file.journalAt, 0);
    }

    /** Releases an entry. */
    void free(int slot) {
        int entry = file.entryAt(slot);
        Memory.putLong(file.head, entry + Layout.ENTRY_CLAIMED_BOOT_NS, 0);
        Memory.putInt(file.head, entry + Layout.ENTRY_PID, 0);
        Memory.putInt(file.head, entry, Layout.SLOT_STATE_FREE);
    }

    /** The group for the kind of this slot. */
    private Book groupOf(ByteBuffer head, int entry) {
        for (int i = 0; i < groups.length - 1; i++) {
            if (groups[i] != null && sameKind(head, entry, file.entryAt(groups[i].slot))) {
                return groups[i];
            }
            if (groups[i] == null) {
                try {
                    return open(i, kindOf(head, entry));
                } catch (IOException e) {
                    Memory.addLong(head, Layout.HEADER_OVERFLOW_MEMORY, 1);
                    break;
                }
            }
        }
        Memory.addLong(head, Layout.HEADER_OVERFLOW_GROUPS, 1);
        return groups[groups.length - 1];
    }

    private static boolean sameKind(ByteBuffer head, int a, int b) {
        return kindOf(head, a).equals(kindOf(head, b));
    }

    private static String kindOf(ByteBuffer head, int entry) {
        return Memory.text(head, entry + Layout.ENTRY_KIND, Layout.ENTRY_KIND_BYTES);
    }

    private Book open(int group, String kind) throws IOException {
        ByteBuffer head = file.head;
        int index = file.slots + group;
        int entry = file.entryAt(index);
        int generation = head.getInt(entry + Layout.ENTRY_GENERATION) + 1;
        Book book = new Book(file, index, generation, null);
        book.open(0, Memory.intAt(head, Layout.HEADER_LEVEL_WORD), true);
        head.putInt(entry + Layout.ENTRY_GENERATION, generation);
        head.putLong(entry + Layout.ENTRY_CLAIMED_TICK, System.nanoTime());
        Memory.putText(head, entry + Layout.ENTRY_KIND, Layout.ENTRY_KIND_BYTES, kind);
        Memory.putText(head, entry + Layout.ENTRY_DATABASE, Layout.ENTRY_DATABASE_BYTES, "other".equals(kind) ? kind : "");
        Memory.putText(head, entry + Layout.ENTRY_USER, Layout.ENTRY_USER_BYTES, "other".equals(kind) ? kind : "");
        Memory.putInt(head, entry, Layout.SLOT_STATE_GROUP);
        groups[group] = book;
        return book;
    }

    /** The index of a statistic in a group's book; without space, that of the overflow account. */
    private int indexIn(Book group, int statistic) {
        int free = Layout.NONE;
        for (int index = 1; index < group.used(); index++) {
            int there = group.statistic(index);
            if (there == statistic) {
                return index;
            }
            if (there == 0 && free == Layout.NONE) {
                free = index;
            }
        }
        if (statistic == 0) {
            return 0;
        }
        if (free == Layout.NONE) {
            free = group.grow(0, Layout.CHUNK, Layout.CHUNK);
        }
        if (free == Layout.NONE) {
            return directory.isAccount(statistic) ? 0 : Layout.NONE;
        }
        group.name(free, statistic);
        return free;
    }
}
