// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.lang.instrument.Instrumentation;
import java.util.List;
import net.bytebuddy.ByteBuddy;
import net.bytebuddy.agent.builder.AgentBuilder;
import net.bytebuddy.agent.builder.AgentBuilder.RedefinitionStrategy;
import net.bytebuddy.agent.builder.ResettableClassFileTransformer;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.dynamic.scaffold.MethodGraph;
import net.bytebuddy.dynamic.scaffold.TypeValidation;
import net.bytebuddy.matcher.ElementMatcher;
import net.bytebuddy.matcher.ElementMatchers;
import net.bytebuddy.utility.JavaModule;
import org.pgtally.probe.Methods;
import org.pgtally.segment.Segment;

/** Inserts the probes into methods, of classes already loaded and of those loaded later, and removes them again. */
final class Instrumenter {
    /** Parts of the Java platform, and this agent, are never instrumented, because the probes call them. */
    private static final ElementMatcher.Junction<TypeDescription> IGNORED = ElementMatchers
            .<TypeDescription>nameStartsWith("java.").or(ElementMatchers.nameStartsWith("javax."))
            .or(ElementMatchers.nameStartsWith("jdk.")).or(ElementMatchers.nameStartsWith("sun."))
            .or(ElementMatchers.nameStartsWith("com.sun.")).or(ElementMatchers.nameStartsWith("org.pgtally.agent."))
            .or(ElementMatchers.nameStartsWith("org.pgtally.probe."))
            .or(ElementMatchers.nameStartsWith("org.pgtally.segment."))
            .or(ElementMatchers.nameStartsWith("org.pgtally.shaded."));

    private final Instrumentation instrumentation;
    private final ResettableClassFileTransformer transformer;

    static {
        // Otherwise it looks for sun.misc.Unsafe, which the agent does not need, and of which Java 24 and later warn.
        System.setProperty(ByteBuddy.class.getPackageName() + ".safe", "true");
    }

    Instrumenter(Instrumentation instrumentation, List<Glob> globs, boolean calls, Methods methods,
            Segment segment) {
        this.instrumentation = instrumentation;
        Advice advice = Advice.withCustomMapping().bind(new MethodId.Binding(methods)).to(MethodAdvice.class,
                ClassFileLocator.ForClassLoader.ofSystemLoader());
        // Types above a class are not looked up: those that another agent has added have no class files.
        ByteBuddy byteBuddy = new ByteBuddy().with(TypeValidation.DISABLED)
                .with(MethodGraph.Compiler.ForDeclaredMethods.INSTANCE);
        transformer = new AgentBuilder.Default(byteBuddy)
                .disableClassFormatChanges()
                .with(RedefinitionStrategy.RETRANSFORMATION)
                .with(RedefinitionStrategy.Listener.BatchReallocator.splitting())
                .with(new Refusals(segment))
                .with(new Failures(segment))
                .ignore(IGNORED.or(ElementMatchers.isInterface()))
                .type(type -> calls && CallPoints.areIn(type.getName()))
                .transform((builder, type, loader, module, domain) -> CallPoints.visit(builder, type, segment::probe))
                .type(type -> globs.stream().anyMatch(glob -> glob.matchesType(type.getName())))
                .transform((builder, type, loader, module, domain) -> builder.visit(advice.on(wanted(globs, segment, type))))
                .installOn(instrumentation);
        AfterAgents.run(instrumentation, this::moveToTheEnd);
    }

    /** Methods with code that match a pattern. Each is listed in the segment. */
    private static ElementMatcher<MethodDescription> wanted(List<Glob> globs, Segment segment, TypeDescription type) {
        return method -> {
            boolean code = !method.isAbstract() && !method.isNative();
            boolean written = method.isMethod() && !method.isSynthetic() && !method.isBridge();
            boolean wanted = written && globs.stream()
                    .anyMatch(glob -> glob.matches(type.getName(), method.getName(), method.isPublic()));
            if (wanted) {
                segment.probe("function " + Names.of(type, method),
                        code ? null : method.isNative() ? "the method is native" : "the method is abstract");
            }
            return wanted && code;
        };
    }

    /**
     * Moves our transformer after those of agents that started later: OpenTelemetry's starts from a class's original code and
     * drops the additions of earlier transformers.
     */
    private void moveToTheEnd() {
        if (instrumentation.removeTransformer(transformer)) {
            instrumentation.addTransformer(transformer, true);
        }
    }

    /** Restores the original code of every class. */
    void remove() {
        transformer.reset(instrumentation, RedefinitionStrategy.RETRANSFORMATION);
    }

    /** Reports a loaded class whose code the JVM refuses to replace; it stays unchanged. */
    private static final class Refusals extends RedefinitionStrategy.Listener.Adapter {
        private final Segment segment;

        Refusals(Segment segment) {
            this.segment = segment;
        }

        @Override
        public Iterable<? extends List<Class<?>>> onError(int index, List<Class<?>> batch, Throwable error,
                List<Class<?>> types) {
            if (batch.size() == 1) {
                segment.note(true, "could not instrument " + batch.get(0).getName() + ", which is already loaded: " + error);
            }
            return List.of();
        }
    }

    /** Reports a class that cannot be instrumented; it stays unchanged. */
    private static final class Failures extends AgentBuilder.Listener.Adapter {
        private final Segment segment;

        Failures(Segment segment) {
            this.segment = segment;
        }

        @Override
        public void onError(String type, ClassLoader loader, JavaModule module, boolean loaded, Throwable error) {
            segment.note(true, "could not instrument " + type + ": " + error);
        }
    }
}
