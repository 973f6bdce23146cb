// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.lang.invoke.MethodHandle;
import java.lang.invoke.MethodHandles;
import java.lang.invoke.MethodType;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;

/** Virtual threads, which leave their processor within a method. */
public final class Virtual {
    private Virtual() {
    }

    static void call(CountDownLatch done) {
        LockSupport.parkNanos(1_000_000);
        inner();
        done.countDown();
    }

    static void inner() {
        Thread.onSpinWait();
    }

    /** How many threads. */
    public static void main(String[] arguments) throws Throwable {
        int count = Integer.parseInt(arguments[0]);
        MethodHandle start = MethodHandles.publicLookup().findStatic(Thread.class, "startVirtualThread",
                MethodType.methodType(Thread.class, Runnable.class));
        Wait.begin();
        CountDownLatch done = new CountDownLatch(count);
        for (int i = 0; i < count; i++) {
            Thread thread = (Thread) start.invoke((Runnable) () -> call(done));
            if (thread.isInterrupted()) {
                throw new AssertionError();
            }
        }
        done.await();
        // The last ones may be at their exit still.
        Thread.sleep(200);
        Wait.end();
    }
}
