// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.util.Set;
import net.bytebuddy.description.field.FieldDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.jar.asm.Opcodes;

/** The probe of a result's methods, of which some calls are timed. */
final class DecodeProbe extends AgainProbe {
    /** The index of the current row, by version of the driver. */
    private static final Set<String> ROW = Set.of("currentRow", "current_row");
    private static final String QUERY = "originalQuery";

    private final FieldDescription row;
    private final FieldDescription query;

    /** Throws an exception if a result does not know its query. */
    DecodeProbe(TypeDescription type) {
        // Without the index, each row is taken for the first one of its answer.
        row = type.getDeclaredFields().stream().filter(field -> ROW.contains(field.getName())).findFirst().orElse(null);
        query = field(type, QUERY);
    }

    @Override
    void begins(Code code) {
        code.self();
        if (row == null) {
            code.visitInsn(Opcodes.ICONST_0);
        } else {
            code.field(row);
        }
        code.call("decodes", "(Ljava/lang/Object;I)Z");
    }

    @Override
    void ended(Code code) {
        code.field(query);
        code.call("decoded", "(Ljava/lang/Object;)V");
    }
}
