// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import net.bytebuddy.asm.AsmVisitorWrapper;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.implementation.Implementation;
import net.bytebuddy.jar.asm.MethodVisitor;
import net.bytebuddy.jar.asm.Opcodes;
import net.bytebuddy.pool.TypePool;
import net.bytebuddy.utility.OpenedClassReader;

/**
 * Counts the rows of an answer where the driver hands them all over: {@code handler.handleResultRows(query, fields, rows, cursor)}. A probe
 * where it receives each row would look up the thread's statistics each time.
 */
final class RowsProbe implements AsmVisitorWrapper.ForDeclaredMethods.MethodVisitorWrapper {
    @Override
    public MethodVisitor wrap(TypeDescription type, MethodDescription method, MethodVisitor visitor,
            Implementation.Context context, TypePool pool, int writerFlags, int readerFlags) {
        return new MethodVisitor(OpenedClassReader.ASM_API, visitor) {
            @Override
            public void visitMethodInsn(int opcode, String owner, String name, String descriptor, boolean isInterface) {
                if (name.equals("handleResultRows") && descriptor.contains("Ljava/util/List;Lorg/postgresql/core/ResultCursor;)")) {
                    // The rows and the cursor; then the rows.
                    visitInsn(Opcodes.DUP2);
                    visitInsn(Opcodes.POP);
                    super.visitMethodInsn(Opcodes.INVOKESTATIC, AgainProbe.CALLS, "rows", "(Ljava/lang/Object;)V", false);
                }
                super.visitMethodInsn(opcode, owner, name, descriptor, isInterface);
            }

            @Override
            public void visitMaxs(int stack, int locals) {
                super.visitMaxs(stack + 2, locals);
            }
        };
    }
}
