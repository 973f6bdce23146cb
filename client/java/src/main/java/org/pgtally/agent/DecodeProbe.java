// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.util.ArrayList;
import java.util.List;
import java.util.Set;
import net.bytebuddy.asm.AsmVisitorWrapper;
import net.bytebuddy.description.field.FieldDescription;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.method.ParameterDescription;
import net.bytebuddy.description.type.TypeDefinition;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.implementation.Implementation;
import net.bytebuddy.jar.asm.Label;
import net.bytebuddy.jar.asm.MethodVisitor;
import net.bytebuddy.jar.asm.Opcodes;
import net.bytebuddy.jar.asm.Type;
import net.bytebuddy.pool.TypePool;
import net.bytebuddy.utility.OpenedClassReader;

/**
 * The probe of a result's methods: a call that is to be timed calls the method once more, as part of itself, and says when that
 * has ended.
 *
 * <pre>
 * if (Calls.decodes(this, currentRow)) {
 *     value = this.method(arguments);
 *     Calls.decoded(originalQuery);
 *     return value;
 * }
 * </pre>
 *
 * The code is that short because HotSpot does not inline methods of more than 325 bytes (FreqInlineSize), and PgResultSet's next has 299
 * and getString 293 (pgjdbc 42.7.14): with {@code Advice}, which changes each return, both were beyond it.
 */
final class DecodeProbe implements AsmVisitorWrapper.ForDeclaredMethods.MethodVisitorWrapper {
    static final String CALLS = "org/pgtally/probe/Calls";

    /** The index of the current row, by version of the driver. */
    private static final Set<String> ROW = Set.of("currentRow", "current_row");
    private static final String QUERY = "originalQuery";

    private final FieldDescription row;
    private final FieldDescription query;

    /** Throws an exception if a result does not know its query. */
    DecodeProbe(TypeDescription type) {
        // Without the index, each row is taken for the first one of its answer.
        row = type.getDeclaredFields().stream().filter(it -> ROW.contains(it.getName())).findFirst().orElse(null);
        query = type.getDeclaredFields().stream().filter(it -> it.getName().equals(QUERY)).findFirst()
                .orElseThrow(() -> new IllegalStateException(type.getName() + " has no field " + QUERY));
    }

    @Override
    public MethodVisitor wrap(TypeDescription type, MethodDescription method, MethodVisitor visitor,
            Implementation.Context context, TypePool pool, int writerFlags, int readerFlags) {
        return new MethodVisitor(OpenedClassReader.ASM_API, visitor) {
            @Override
            public void visitCode() {
                super.visitCode();
                Label usual = new Label();
                visitVarInsn(Opcodes.ALOAD, 0);
                if (row == null) {
                    visitInsn(Opcodes.ICONST_0);
                } else {
                    get(row);
                }
                visitMethodInsn(Opcodes.INVOKESTATIC, CALLS, "decodes", "(Ljava/lang/Object;I)Z", false);
                visitJumpInsn(Opcodes.IFEQ, usual);
                visitVarInsn(Opcodes.ALOAD, 0);
                for (ParameterDescription parameter : method.getParameters()) {
                    visitVarInsn(asm(parameter.getType()).getOpcode(Opcodes.ILOAD), parameter.getOffset());
                }
                // This method, not one that overrides it.
                visitMethodInsn(Opcodes.INVOKESPECIAL, type.getInternalName(), method.getInternalName(), method.getDescriptor(),
                        false);
                get(query);
                visitMethodInsn(Opcodes.INVOKESTATIC, CALLS, "decoded", "(Ljava/lang/Object;)V", false);
                visitInsn(asm(method.getReturnType()).getOpcode(Opcodes.IRETURN));
                visitLabel(usual);
                List<TypeDefinition> variables = new ArrayList<>(List.of(type));
                variables.addAll(method.getParameters().asTypeList());
                context.getFrameGeneration().same(this, variables);
                // The method's own code may begin with such a frame.
                visitInsn(Opcodes.NOP);
            }

            @Override
            public void visitMaxs(int stack, int locals) {
                // The result or the value, of up to two words, and its query; or the result and the arguments.
                super.visitMaxs(Math.max(stack, Math.max(method.getStackSize(), 3)), locals);
            }

            private void get(FieldDescription field) {
                visitVarInsn(Opcodes.ALOAD, 0);
                visitFieldInsn(Opcodes.GETFIELD, type.getInternalName(), field.getInternalName(), field.getDescriptor());
            }
        };
    }

    private static Type asm(TypeDefinition type) {
        return Type.getType(type.asErasure().getDescriptor());
    }
}
