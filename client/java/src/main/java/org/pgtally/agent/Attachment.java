// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import com.sun.tools.attach.VirtualMachine;

/** The part of {@link Attach} that needs a JDK. */
final class Attachment {
    private Attachment() {
    }

    static void load(String pid, String jar, String options) throws Exception {
        VirtualMachine machine = VirtualMachine.attach(pid);
        try {
            machine.loadAgent(jar, options);
        } finally {
            machine.detach();
        }
    }
}
