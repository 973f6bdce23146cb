// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * The segment written by this process: slots for its threads, names, events.
 *
 * <p>Every method except {@link #levelWord} takes a lock, so none of them is for the hot path.
 */
public final class Segment {
    private static final int GROUPS = 4;
    private static final int KIND_NOTE = 1;
    private static final int KIND_WARNING = 2;

    /** The ring in which calls are recorded while a reader requests it. */
    public final CallRing ring;
    private final SegmentFile file;
    private Directory directory;
    private Merger merger;
    private final List<Book> live = new ArrayList<>();
    private int idle;
    private int off;

    /** Information in the segment about this process. */
    public static final class About {
        /** The measured program. */
        public final String host;
        /** The producer of the segment, with its version. */
        public final String producer;
        /** The virtual machine. */
        public final String server;
        /** Whether the file is to be kept, even if the process is killed. */
        public final boolean kept;

        /** These texts, which are truncated if they are too long. The file is of no use once the process has ended. */
        public About(String host, String producer, String server) {
            this(host, producer, server, false);
        }

        /** The same for a file that may be kept. */
        public About(String host, String producer, String server, boolean kept) {
            this.host = host;
            this.producer = producer;
            this.server = server;
            this.kept = kept;
        }
    }

    /**
     * Creates the file.
     *
     * @param slots maximum number of threads with statistics at the same time
     * @param statistics maximum number of statistics per thread, at most 4,096
     * @throws IOException if it cannot be created; nothing is left behind
     */
    public Segment(Path path, int slots, int statistics, About about) throws IOException {
        file = SegmentFile.create(path, about.producer.split("[ /]", 2)[0], !about.kept, slots, GROUPS, statistics, made -> {
            Memory.putText(made.head, Layout.HEADER_HOST, Layout.HEADER_HOST_BYTES, about.host);
            Memory.putText(made.head, Layout.HEADER_PRODUCER, Layout.HEADER_PRODUCER_BYTES, about.producer);
            Memory.putText(made.head, Layout.HEADER_SERVER, Layout.HEADER_SERVER_BYTES, about.server);
            directory = new Directory(made);
            idle = directory.register(StatNames.APPLICATION_IDLE, Directory.ACCOUNT, "ticks", Directory.CLASS_ACTIVITY);
            off = directory.register(StatNames.OFF, Directory.ACCOUNT, "ticks", Directory.CLASS_OTHER);
            merger = new Merger(made, directory);
            merger.openLastGroup();
        });
        ring = new CallRing(file);
    }

    /** Path of the file. */
    public Path path() {
        return file.path;
    }

    /** The level in the low 4 bits (0: nothing is measured), four bits that change with traces, the number of resets. */
    public int levelWord() {
        return Memory.opaqueIntAt(file.head, Layout.HEADER_LEVEL_WORD);
    }

    /** Whether anything is measured at the level in this word. */
    public static boolean isOn(int word) {
        return (word & Sizes.LEVEL) != 0;
    }

    /** Index, in every book, of the account for time outside measured methods. */
    public static final int IDLE = 1;
    /** Index, in every book, of the account for time at level off. */
    public static final int OFF = 2;

    /** The texts by which readers know the owner of a slot. */
    public static final class Identity {
        private final String kind;
        private final String database;
        private final String user;
        private final String application;

        /** These texts, which are truncated if they are too long. */
        public Identity(String kind, String database, String user, String application) {
            this.kind = kind;
            this.database = database;
            this.user = user;
            this.application = application;
        }
    }

    /**
     * Claims a slot for a thread. Its account {@link #IDLE} runs.
     *
     * @param owner the thread; once it has ended, {@link #sweep} merges the slot. If null, the slot stays
     * @param number the kernel's id of the thread
     * @return null if there is no space
     */
    public Book claim(String kind, Thread owner, int number, String name) {
        return claim(new Identity(kind, "", System.getProperty("user.name", ""), name), owner, number, System.nanoTime());
    }

    /** The same; {@code since} is when the owner began to be what its identity says. */
    public synchronized Book claim(Identity identity, Thread owner, int number, long since) {
        int slot = free();
        if (slot == Layout.NONE && sweep() > 0) {
            slot = free();
        }
        if (slot == Layout.NONE) {
            Memory.addLong(file.head, Layout.HEADER_OVERFLOW_SLOTS, 1);
            return null;
        }
        ByteBuffer head = file.head;
        int at = file.entryAt(slot);
        int generation = head.getInt(at + Layout.ENTRY_GENERATION) + 1;
        Memory.putInt(head, at, Layout.SLOT_STATE_CLAIMING);
        head.putInt(at + Layout.ENTRY_PID, number);
        head.putLong(at + Layout.ENTRY_CLAIMED_BOOT_NS, Host.bootNs());
        head.putInt(at + Layout.ENTRY_MERGED, 0);
        head.putInt(at + Layout.ENTRY_GENERATION, generation);
        int seq = head.getInt(at + Layout.ENTRY_IDENTITY_SEQ) | 1;
        Memory.putInt(head, at + Layout.ENTRY_IDENTITY_SEQ, seq);
        Memory.putText(head, at + Layout.ENTRY_KIND, Layout.ENTRY_KIND_BYTES, identity.kind);
        Memory.putText(head, at + Layout.ENTRY_DATABASE, Layout.ENTRY_DATABASE_BYTES, identity.database);
        Memory.putText(head, at + Layout.ENTRY_USER, Layout.ENTRY_USER_BYTES, identity.user);
        Memory.putText(head, at + Layout.ENTRY_APPLICATION, Layout.ENTRY_APPLICATION_BYTES, identity.application);
        Memory.putInt(head, at + Layout.ENTRY_IDENTITY_SEQ, seq + 1);
        Book book = new Book(file, slot, generation, owner);
        long now = System.nanoTime();
        head.putLong(at + Layout.ENTRY_CLAIMED_TICK, Math.min(since, now));
        try {
            book.open(now, levelWord(), false);
        } catch (IOException e) {
            Memory.addLong(head, Layout.HEADER_REFUSED_MEMORY, 1);
            merger.free(slot);
            return null;
        }
        book.name(IDLE, idle);
        book.name(OFF, off);
        book.begin();
        book.run((book.levelWord() & Sizes.LEVEL) == 0 ? OFF : IDLE, now);
        book.publish();
        Memory.putInt(head, at, Layout.SLOT_STATE_LIVE);
        live.add(book);
        return book;
    }

    /** Merges a slot whose owner is no thread; the caller is its only writer. */
    public synchronized void release(Book book) {
        if (live.remove(book)) {
            merger.merge(book);
        }
    }

    private int free() {
        for (int slot = 0; slot < file.slots; slot++) {
            if (Memory.intAt(file.head, file.entryAt(slot)) == Layout.SLOT_STATE_FREE) {
                return slot;
            }
        }
        return Layout.NONE;
    }

    /**
     * Merges the slots of ended threads.
     *
     * @return their number
     */
    public synchronized int sweep() {
        endLevel();
        int before = live.size();
        live.removeIf(book -> {
            boolean ended = book.owner != null && !book.owner.isAlive();
            if (ended) {
                merger.merge(book);
            }
            return ended;
        });
        return before - live.size();
    }

    /** Ends an expired level, because threads do not check its expiry. */
    private void endLevel() {
        ByteBuffer head = file.head;
        long until = Memory.longAt(head, Layout.HEADER_LEVEL_UNTIL);
        if (until != 0 && System.nanoTime() - until >= 0
                && Memory.changeLong(head, Layout.HEADER_LEVEL_UNTIL, until, 0)) {
            int word = Memory.intAt(head, Layout.HEADER_LEVEL_WORD);
            int then = Memory.intAt(head, Layout.HEADER_LEVEL_THEN);
            Memory.changeInt(head, Layout.HEADER_LEVEL_WORD, word, word & ~Sizes.LEVEL | then & Sizes.LEVEL);
        }
    }

    /** Lets the book follow the level word; returns whether anything is measured. */
    public boolean follow(Book book) {
        return book.follow(levelWord());
    }

    /** The same for a book in which {@link #IDLE} runs unless it says otherwise, and {@link #OFF} while nothing is measured. */
    public boolean followIdle(Book book) {
        boolean on = follow(book);
        if (on == (book.running() == OFF)) {
            book.begin();
            book.run(on ? IDLE : OFF, System.nanoTime());
            book.publish();
        }
        return on;
    }

    /** The hash of a name, from which readers find its entry in the directory (FORMAT.md, section 3). */
    public static long hash(String name) {
        return Directory.hash(name);
    }

    /** Number of a timer, in ticks of 1 ns; negative if there is no space. */
    public int timer(String name) {
        return directory.register(name, Directory.TIMER, "ticks", 0);
    }

    /** Number of a counter; negative if there is no space. */
    public int value(String name, String unit) {
        return directory.register(name, Directory.VALUE, unit, 0);
    }

    /** Number of an account; 0, the overflow account, if there is no space. */
    public int account(String name) {
        return directory.register(name, Directory.ACCOUNT, "ticks", Directory.CLASS_OTHER);
    }

    /** Registers a text that names no statistic; omitted if there is no space. */
    public void text(String text) {
        directory.register(text, Directory.NAME, "", 0);
    }

    /** Lists a probe, with the reason if it is left out. */
    public void probe(String name, String leftOut) {
        directory.probe(name, leftOut);
    }

    /**
     * Takes indexes for statistics in a book; the caller is its owner.
     *
     * @param from the first index with a histogram, relative to the first index taken
     * @param to the first index after it without a histogram
     * @param count number of indexes, a multiple of 8
     * @return the first index; negative if there is no space
     */
    public int grow(Book book, int from, int to, int count) {
        return book.grow(from, to, count);
    }

    /** Assigns a statistic to an index in a book; the caller is its owner. A negative number is ignored. */
    public void name(Book book, int index, int statistic) {
        if (statistic >= 0) {
            book.name(index, statistic);
        }
    }

    /** Counts a time that a book had no space for. */
    public void lost() {
        Memory.addLong(file.head, Layout.HEADER_OVERFLOW_STATS, 1);
    }

    /** Adds a text to the event ring. */
    public synchronized void note(boolean warning, String text) {
        ByteBuffer head = file.head;
        long number = Memory.addLong(head, Layout.HEADER_EVENT_COUNT, 1) + 1;
        int at = file.eventsAt + (int) ((number - 1) % file.events) * Layout.EVENT_SIZE;
        Memory.putLongFully(head, at, 0);
        head.putLong(at + Layout.EVENT_TICK, System.nanoTime());
        head.putInt(at + Layout.EVENT_PID, (int) ProcessHandle.current().pid());
        head.putInt(at + Layout.EVENT_KIND, warning ? KIND_WARNING : KIND_NOTE);
        Memory.putText(head, at + Layout.EVENT_DATA, Layout.EVENT_SIZE - Layout.EVENT_DATA, text);
        Memory.putLong(head, at, number);
    }

    /** The process ends: readers take the time of this call as the end of everything. */
    public void end() {
        file.head.putLong(Layout.HEADER_ENDED_TICK, System.nanoTime());
    }

    /** Removes the segments that killed processes of this user have left in the same directory. */
    public void removeLeft() {
        try {
            LeftSegment.sweep(file.path.toAbsolutePath().getParent(), Files.getOwner(file.path, LinkOption.NOFOLLOW_LINKS));
        } catch (IOException e) {
            // They stay.
        }
    }

    /** Removes the file. */
    public void remove() {
        end();
        file.remove();
    }
}
