// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.lang.management.ManagementFactory;
import java.lang.management.ThreadInfo;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.TimeUnit;
import org.pgtally.segment.Book;
import org.pgtally.segment.Segment;
import org.pgtally.segment.StatNames;

/**
 * Samples how many of the driver's connections are open and borrowed from pools, and names those that are borrowed and have
 * executed nothing for long: each gets a slot of the segment until it is used or returned, and a warning among the events.
 *
 * <p>Used by one thread, about once a second. The application's threads only note when they borrow and use a connection.
 */
public final class Connections {
    /** The kind of those slots; crates/segment, calls.rs, reads them. */
    private static final String KIND = "pooled connection";
    private static final int MOST_NAMED = 16;
    private static final int FRAMES = 64;
    private static final int OPEN = 0;
    private static final int BORROWED = 1;
    private static final int UNUSED = 2;
    /** Methods that return the name of a pool. */
    private static final List<String> NAMES = List.of("getPoolName", "getName", "getDataSourceName");
    /** Code in which a thread waits, and that says nothing of the application. */
    private static final List<String> OTHERS = List.of("java.", "javax.", "jdk.", "sun.", "com.sun.", "org.postgresql.",
            "com.zaxxer.hikari.", "org.apache.commons.dbcp2.", "org.apache.tomcat.", "io.agroal.", "com.mchange.");

    private final Segment segment;
    private final long unusedNs;
    private final int pid = (int) ProcessHandle.current().pid();
    private final Map<Borrow, Book> named = new HashMap<>();
    private Book book;
    private int first = -1;

    /** Connections are named if they are unused for so long; 0: none is. */
    public Connections(Segment segment, int unusedSeconds) {
        this.segment = segment;
        unusedNs = TimeUnit.SECONDS.toNanos(unusedSeconds);
    }

    /** Takes a sample. */
    public void sample() {
        long now = System.nanoTime();
        List<Wire> open = Wires.open();
        Map<Borrow, Wire> unused = new HashMap<>();
        int borrowed = 0;
        for (Wire wire : open) {
            Borrow borrow = wire.borrow();
            if (borrow != null) {
                borrowed++;
                if (unusedNs > 0 && now - wire.lastUse(borrow, now) >= unusedNs) {
                    unused.put(borrow, wire);
                }
            }
        }
        name(unused, now);
        if (first < 0 && (open.isEmpty() || !begins())) {
            return;
        }
        if (segment.followIdle(book)) {
            book.begin();
            book.addSampled(first + OPEN, open.size(), open.size());
            book.addSampled(first + BORROWED, borrowed, Math.max(borrowed, Wires.mostBorrowed()));
            book.addSampled(first + UNUSED, unused.size(), unused.size());
            book.publish();
        }
    }

    /** Takes space for the statistics when the first connection is seen; false if there is none. */
    private boolean begins() {
        if (book == null) {
            book = segment.claim("virtual machine", null, pid, "connections");
        }
        first = book == null ? -1 : segment.grow(book, 0, 0, 8);
        if (first >= 0) {
            segment.name(book, first + OPEN, segment.value(StatNames.CONNECTIONS_OPEN, "connections"));
            segment.name(book, first + BORROWED, segment.value(StatNames.CONNECTIONS_BORROWED, "connections"));
            segment.name(book, first + UNUSED, segment.value(StatNames.CONNECTIONS_UNUSED, "connections"));
        }
        return first >= 0;
    }

    private void name(Map<Borrow, Wire> unused, long now) {
        Set<Borrow> over = new HashSet<>(named.keySet());
        over.removeAll(unused.keySet());
        for (Borrow borrow : over) {
            segment.release(named.remove(borrow));
        }
        for (Map.Entry<Borrow, Wire> one : unused.entrySet()) {
            if (named.size() < MOST_NAMED && !named.containsKey(one.getKey())) {
                name(one.getKey(), one.getValue(), now);
            }
        }
    }

    private void name(Borrow borrow, Wire wire, long now) {
        long since = wire.lastUse(borrow, now);
        String pool = nameOf(wire.pool());
        Book slot = segment.claim(new Segment.Identity(KIND, pool, "server process " + wire.pid, borrow.thread), null, pid, since);
        if (slot != null) {
            named.put(borrow, slot);
            segment.note(true, "thread " + borrow.thread + " has a connection of pool " + pool + " (server process " + wire.pid
                    + ") and has executed nothing with it for " + TimeUnit.NANOSECONDS.toSeconds(now - since) + " s" + place(borrow));
        }
    }

    /** What the application calls the pool. */
    private static String nameOf(Object pool) {
        for (String method : pool == null ? List.<String>of() : NAMES) {
            try {
                Object name = pool.getClass().getMethod(method).invoke(pool);
                if (name instanceof String && !((String) name).isEmpty()) {
                    return (String) name;
                }
            } catch (ReflectiveOperationException | RuntimeException e) {
                // It has no such method.
            }
        }
        return pool == null ? "unknown" : pool.getClass().getSimpleName();
    }

    /** Where the thread that borrowed it is now, with a comma before it; empty if it has ended, or that says nothing. */
    private static String place(Borrow borrow) {
        ThreadInfo thread;
        try {
            thread = ManagementFactory.getThreadMXBean().getThreadInfo(borrow.threadId, FRAMES);
        } catch (LinkageError | RuntimeException e) {
            return "";
        }
        for (StackTraceElement frame : thread == null ? new StackTraceElement[0] : thread.getStackTrace()) {
            if (OTHERS.stream().noneMatch(frame.getClassName()::startsWith)) {
                return "; it is in " + frame.getClassName() + "." + frame.getMethodName() + ":" + frame.getLineNumber();
            }
        }
        return "";
    }
}
