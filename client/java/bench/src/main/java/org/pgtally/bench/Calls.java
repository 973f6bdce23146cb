// SPDX-License-Identifier: PostgreSQL
package org.pgtally.bench;

import java.util.concurrent.TimeUnit;
import org.openjdk.jmh.annotations.Benchmark;
import org.openjdk.jmh.annotations.BenchmarkMode;
import org.openjdk.jmh.annotations.Mode;
import org.openjdk.jmh.annotations.OutputTimeUnit;
import org.openjdk.jmh.annotations.Scope;
import org.openjdk.jmh.annotations.State;
import org.openjdk.jmh.annotations.Warmup;
import org.openjdk.jmh.annotations.Measurement;

/** What a call of a timed method costs: {@code call} with an agent, less {@code call} without. */
@State(Scope.Thread)
@BenchmarkMode(Mode.AverageTime)
@OutputTimeUnit(TimeUnit.NANOSECONDS)
@Warmup(iterations = 3, time = 1)
@Measurement(iterations = 3, time = 1)
public class Calls {
    private final Called called = new Called();
    private int n;

    /** A call. */
    @Benchmark
    public int call() {
        return called.call(n++);
    }

    /** A call by another method. */
    @Benchmark
    public int nested() {
        return called.caller(n++);
    }

    /** The floor of whatever times a call: two readings of the clock. */
    @Benchmark
    public long clock() {
        return System.nanoTime() - System.nanoTime();
    }
}
