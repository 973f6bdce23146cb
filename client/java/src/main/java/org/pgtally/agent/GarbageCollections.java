// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import com.sun.management.GarbageCollectionNotificationInfo;
import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.HashMap;
import java.util.Map;
import java.util.concurrent.TimeUnit;
import javax.management.ListenerNotFoundException;
import javax.management.Notification;
import javax.management.NotificationEmitter;
import javax.management.NotificationListener;
import javax.management.openmbean.CompositeData;
import org.pgtally.segment.Book;
import org.pgtally.segment.Segment;
import org.pgtally.segment.StatNames;

/**
 * Garbage collections, which the JVM reports when they have ended: timers {@code gc::COLLECTOR}, with a resolution of
 * 1 ms. Long ones are also reported as events.
 */
final class GarbageCollections implements NotificationListener {
    private static final int COLLECTORS = 8;
    private static final long LONG_MS = 50;

    private final Segment segment;
    private final Book book;
    private final int first;
    private final Map<String, Integer> indexes = new HashMap<>();

    private GarbageCollections(Segment segment, Book book, int first) {
        this.segment = segment;
        this.book = book;
        this.first = first;
    }

    /** Starts counting them; null if there is no space. */
    static GarbageCollections listen(Segment segment) {
        Book book = segment.claim("virtual machine", null, (int) ProcessHandle.current().pid(), "garbage collection");
        int first = book == null ? -1 : segment.grow(book, 0, COLLECTORS, COLLECTORS);
        if (first < 0) {
            return null;
        }
        GarbageCollections listener = new GarbageCollections(segment, book, first);
        for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
            if (bean instanceof NotificationEmitter) {
                ((NotificationEmitter) bean).addNotificationListener(listener, null, null);
            }
        }
        return listener;
    }

    void stop() {
        for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
            try {
                if (bean instanceof NotificationEmitter) {
                    ((NotificationEmitter) bean).removeNotificationListener(this);
                }
            } catch (ListenerNotFoundException e) {
                // It did not get there.
            }
        }
    }

    @Override
    public synchronized void handleNotification(Notification notification, Object handback) {
        if (!GarbageCollectionNotificationInfo.GARBAGE_COLLECTION_NOTIFICATION.equals(notification.getType())) {
            return;
        }
        GarbageCollectionNotificationInfo info = GarbageCollectionNotificationInfo
                .from((CompositeData) notification.getUserData());
        int index = index(info.getGcName());
        long ms = info.getGcInfo().getDuration();
        if (index >= 0 && segment.follow(book)) {
            book.begin();
            book.addWithHistogram(index, TimeUnit.MILLISECONDS.toNanos(ms));
            book.publish();
        }
        if (ms >= LONG_MS) {
            segment.note(false, "garbage collection: " + info.getGcName() + ", " + info.getGcAction() + " ("
                    + info.getGcCause() + ") took " + ms + " ms");
        }
    }

    private int index(String collector) {
        Integer index = indexes.get(collector);
        if (index == null) {
            index = indexes.size() < COLLECTORS ? first + indexes.size() : -1;
            indexes.put(collector, index);
            if (index >= 0) {
                segment.name(book, index, segment.timer(StatNames.COLLECTION + collector));
            }
        }
        return index;
    }
}
