// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.lang.management.GarbageCollectorMXBean;
import java.lang.management.ManagementFactory;
import java.util.concurrent.TimeUnit;
import java.util.regex.Pattern;

/** The garbage collection pauses since the JVM started. */
abstract class CollectionPauses {
    private static final String SHENANDOAH = "Shenandoah Pauses";

    /** For the collector of this JVM. */
    static CollectionPauses of(VmCounters counters) {
        try {
            for (GarbageCollectorMXBean bean : ManagementFactory.getGarbageCollectorMXBeans()) {
                if (bean.getName().equals(SHENANDOAH)) {
                    return new OfShenandoah(bean);
                }
            }
        } catch (LinkageError e) {
            // This Java has no module java.management.
        }
        return new Counted(counters);
    }

    /** Their number. */
    abstract long count();

    /** Their total time in ns, given the number and total time of all safepoints. */
    abstract long time(long safepoints, long stopped);

    /** The same from counters only, which any thread may read at any time; it never decreases. */
    abstract long atOnce(long stopped);

    /** For Serial, Parallel, G1 and ZGC, whose counters include pauses only. */
    private static final class Counted extends CollectionPauses {
        private final VmCounters counters;
        private final int[] count;
        private final int[] time;

        Counted(VmCounters counters) {
            this.counters = counters;
            count = counters.named(Pattern.compile("sun\\.gc\\.collector\\.\\d+\\.invocations"));
            time = counters.named(Pattern.compile("sun\\.gc\\.collector\\.\\d+\\.time"));
        }

        @Override
        long count() {
            return counters.value(count);
        }

        @Override
        long time(long safepoints, long stopped) {
            return counters.value(time);
        }

        @Override
        long atOnce(long stopped) {
            return counters.value(time);
        }
    }

    /**
     * Shenandoah's counters include its concurrent phases, during which the application runs. Its bean has the number of
     * pauses, and their time in whole milliseconds. So their time is estimated as a share of all safepoints' time, by number,
     * within that millisecond.
     */
    private static final class OfShenandoah extends CollectionPauses {
        private final GarbageCollectorMXBean bean;

        OfShenandoah(GarbageCollectorMXBean bean) {
            this.bean = bean;
        }

        @Override
        long count() {
            return bean.getCollectionCount();
        }

        @Override
        long time(long safepoints, long stopped) {
            long whole = TimeUnit.MILLISECONDS.toNanos(bean.getCollectionTime());
            double part = safepoints == 0 ? 0 : (double) count() / safepoints;
            return Math.max(whole, Math.min(whole + TimeUnit.MILLISECONDS.toNanos(1) - 1, (long) (part * stopped)));
        }

        @Override
        long atOnce(long stopped) {
            // Its other safepoints are few.
            return stopped;
        }
    }
}
