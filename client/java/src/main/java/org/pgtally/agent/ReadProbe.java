// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import net.bytebuddy.description.field.FieldDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.jar.asm.Opcodes;

/**
 * The probe of {@code VisibleBufferedInputStream.read(bytes, offset, length)}: a call that requests more than the buffer has reads from
 * the socket, some of it perhaps without the buffer, and is timed.
 */
final class ReadProbe extends AgainProbe {
    private static final int LENGTH = 2;

    private final FieldDescription index;
    private final FieldDescription end;

    /** Throws an exception if the buffer has other fields. */
    ReadProbe(TypeDescription type) {
        index = field(type, "index");
        end = field(type, "endIndex");
    }

    @Override
    void begins(Code code) {
        code.argument(LENGTH);
        buffered(code);
        code.call("waitsForMore", "(II)Z");
    }

    @Override
    void ended(Code code) {
        code.visitInsn(Opcodes.DUP);
        buffered(code);
        code.call("gotMore", "(II)V");
    }

    @Override
    String failed() {
        return "gotNothing";
    }

    /** The number of bytes in the buffer. */
    private void buffered(Code code) {
        code.field(end);
        code.field(index);
        code.visitInsn(Opcodes.ISUB);
    }
}
