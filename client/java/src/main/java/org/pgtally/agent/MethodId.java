// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.lang.annotation.ElementType;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.annotation.AnnotationDescription;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.method.ParameterDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.implementation.bytecode.assign.Assigner;
import net.bytebuddy.implementation.bytecode.constant.IntegerConstant;
import org.pgtally.probe.Methods;

/** A parameter of advice: the number of the instrumented method, as a constant in its code. */
@Retention(RetentionPolicy.RUNTIME)
@Target(ElementType.PARAMETER)
@interface MethodId {
    /** Takes numbers from {@code methods}. */
    final class Binding implements Advice.OffsetMapping.Factory<MethodId> {
        private final Methods methods;

        Binding(Methods methods) {
            this.methods = methods;
        }

        @Override
        public Class<MethodId> getAnnotationType() {
            return MethodId.class;
        }

        @Override
        public Advice.OffsetMapping make(ParameterDescription.InDefinedShape target,
                AnnotationDescription.Loadable<MethodId> annotation, AdviceType adviceType) {
            return this::number;
        }

        private Advice.OffsetMapping.Target number(TypeDescription type, MethodDescription method, Assigner assigner,
                Advice.ArgumentHandler arguments, Advice.OffsetMapping.Sort sort) {
            int number = methods.number(Names.of(type, method));
            return new Advice.OffsetMapping.Target.ForStackManipulation(IntegerConstant.forValue(number));
        }
    }
}
