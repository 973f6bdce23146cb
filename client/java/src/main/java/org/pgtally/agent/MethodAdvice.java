// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import net.bytebuddy.asm.Advice;
import org.pgtally.probe.Frame;
import org.pgtally.probe.Probe;

/** The code around each instrumented method. Its own exceptions (stack overflow) are suppressed. */
final class MethodAdvice {
    private MethodAdvice() {
    }

    @Advice.OnMethodEnter(suppress = Throwable.class)
    static Frame enter(@MethodId int method) {
        return Probe.enter(method);
    }

    @Advice.OnMethodExit(onThrowable = Throwable.class, suppress = Throwable.class)
    static void exit(@Advice.Enter Frame frame, @Advice.Thrown Throwable thrown) {
        Probe.exit(frame, thrown);
    }
}
