// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.util.ArrayList;
import java.util.List;
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
 * The probe of a method that is called for each row or value: a call that is to be measured calls the method once more, as part of itself.
 *
 * <pre>
 * if (begins) {
 *     value = this.method(arguments);
 *     ended;
 *     return value;
 * }
 * </pre>
 *
 * The code is that short because HotSpot does not inline methods of more than 325 bytes (FreqInlineSize). With {@code Advice}, which
 * changes each return, the methods were beyond it that are called most: PgResultSet's next has 299 bytes of its own, getString 293, and
 * VisibleBufferedInputStream's read 222, of which {@code Advice} made 384 (pgjdbc 42.7.14).
 */
abstract class AgainProbe implements AsmVisitorWrapper.ForDeclaredMethods.MethodVisitorWrapper {
    static final String CALLS = "org/pgtally/probe/Calls";

    /** Leaves a boolean on the stack: whether this call is to be measured. At most three words may be on the stack meanwhile. */
    abstract void begins(Code code);

    /** The call has ended. Its value is on the stack, and remains there; at most three more words may be. */
    abstract void ended(Code code);

    /** The method of {@code Calls}, without arguments, that is told of a call that has ended with an exception; null if none is. */
    String failed() {
        return null;
    }

    /** The code that is inserted into a method. */
    static final class Code extends MethodVisitor {
        private final TypeDescription type;
        private final MethodDescription method;

        private Code(TypeDescription type, MethodDescription method, MethodVisitor visitor) {
            super(OpenedClassReader.ASM_API, visitor);
            this.type = type;
            this.method = method;
        }

        /** Pushes the object. */
        void self() {
            visitVarInsn(Opcodes.ALOAD, 0);
        }

        /** Pushes a field of the object. */
        void field(FieldDescription field) {
            self();
            visitFieldInsn(Opcodes.GETFIELD, type.getInternalName(), field.getInternalName(), field.getDescriptor());
        }

        /** Pushes an argument. */
        void argument(int number) {
            ParameterDescription parameter = method.getParameters().get(number);
            visitVarInsn(asm(parameter.getType()).getOpcode(Opcodes.ILOAD), parameter.getOffset());
        }

        /** Calls a method of {@code Calls}. */
        void call(String name, String descriptor) {
            visitMethodInsn(Opcodes.INVOKESTATIC, CALLS, name, descriptor, false);
        }
    }

    @Override
    public MethodVisitor wrap(TypeDescription type, MethodDescription method, MethodVisitor visitor,
            Implementation.Context context, TypePool pool, int writerFlags, int readerFlags) {
        Code code = new Code(type, method, visitor);
        return new MethodVisitor(OpenedClassReader.ASM_API, visitor) {
            @Override
            public void visitCode() {
                super.visitCode();
                List<TypeDefinition> variables = new ArrayList<>(List.of(type));
                variables.addAll(method.getParameters().asTypeList());
                Label begin = new Label();
                Label end = new Label();
                Label failure = new Label();
                Label usual = new Label();
                if (failed() != null) {
                    visitTryCatchBlock(begin, end, failure, null);
                }
                begins(code);
                visitJumpInsn(Opcodes.IFEQ, usual);
                visitLabel(begin);
                code.self();
                for (int i = 0; i < method.getParameters().size(); i++) {
                    code.argument(i);
                }
                // This method, not one that overrides it.
                visitMethodInsn(Opcodes.INVOKESPECIAL, type.getInternalName(), method.getInternalName(), method.getDescriptor(),
                        false);
                visitLabel(end);
                ended(code);
                visitInsn(asm(method.getReturnType()).getOpcode(Opcodes.IRETURN));
                if (failed() != null) {
                    visitLabel(failure);
                    context.getFrameGeneration().same1(this, TypeDescription.ForLoadedType.of(Throwable.class), variables);
                    code.call(failed(), "()V");
                    visitInsn(Opcodes.ATHROW);
                }
                visitLabel(usual);
                context.getFrameGeneration().same(this, variables);
                // The method's own code may begin with such a frame.
                visitInsn(Opcodes.NOP);
            }

            @Override
            public void visitMaxs(int stack, int locals) {
                // The object and the arguments; or what begins and ended need.
                super.visitMaxs(Math.max(stack, Math.max(method.getStackSize(), asm(method.getReturnType()).getSize() + 3)), locals);
            }
        };
    }

    /** A field that the class declares; throws an exception if it has none of that name. */
    static FieldDescription field(TypeDescription type, String name) {
        return type.getDeclaredFields().stream().filter(field -> field.getName().equals(name)).findFirst()
                .orElseThrow(() -> new IllegalStateException(type.getName() + " has no field " + name));
    }

    private static Type asm(TypeDefinition type) {
        return Type.getType(type.asErasure().getDescriptor());
    }
}
