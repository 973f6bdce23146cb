// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.ArrayList;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/** Runs virtual threads, which leave their carrier thread within a method. */
public final class Virtual {
    private Virtual() {
    }

    static void call(CountDownLatch done) {
        long until = System.nanoTime() + 1_000_000;
        while (System.nanoTime() < until) {
            LockSupport.parkNanos(until - System.nanoTime());
        }
        inner();
        done.countDown();
    }

    static void inner() {
        Thread.onSpinWait();
    }

    /** Argument: number of threads. */
    public static void main(String[] arguments) throws Throwable {
        int count = Integer.parseInt(arguments[0]);
        MethodHandle start = MethodHandles.publicLookup().findStatic(Thread.class, "startVirtualThread",
                MethodType.methodType(Thread.class, Runnable.class));
        Wait.begin();
        CountDownLatch done = new CountDownLatch(count);
        List<Thread> threads = new ArrayList<>();
        for (int i = 0; i < count; i++) {
            threads.add((Thread) start.invoke((Runnable) () -> call(done)));
        }
        for (Thread thread : threads) {
            thread.join();
        }
        Wait.end();
    }
}
