// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.util.ArrayList;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.function.BiConsumer;
import java.util.function.Function;
import java.util.function.Predicate;
import java.util.stream.Collectors;
import net.bytebuddy.asm.Advice;
import net.bytebuddy.asm.AsmVisitorWrapper;
import net.bytebuddy.asm.AsmVisitorWrapper.ForDeclaredMethods.MethodVisitorWrapper;
import net.bytebuddy.description.method.MethodDescription;
import net.bytebuddy.description.type.TypeDescription;
import net.bytebuddy.dynamic.ClassFileLocator;
import net.bytebuddy.dynamic.DynamicType;

/**
 * The methods of the driver (pgjdbc 42.2 and later) and of pools that are instrumented for statement statistics. Methods
 * that a version does not have are listed as left out.
 */
final class CallPoints {
    private static final String EXECUTOR = "org.postgresql.core.v3.QueryExecutorImpl";
    private static final String STREAM = "org.postgresql.core.PGStream";
    private static final String INPUT = "org.postgresql.core.VisibleBufferedInputStream";
    private static final String PREPARED = "org.postgresql.jdbc.PgPreparedStatement";
    private static final String RESULT = "org.postgresql.jdbc.PgResultSet";
    private static final String TOMCAT = "org.apache.tomcat.jdbc.pool.ConnectionPool";

    /** Pools, and the classes to which their connections return: a release of the pool has one of them. */
    private static final Map<String, List<String>> RETURNS = Map.of(
            "com.zaxxer.hikari.HikariDataSource", List.of("com.zaxxer.hikari.pool.ProxyConnection"),
            "org.apache.commons.dbcp2.BasicDataSource", List.of("org.apache.commons.dbcp2.PoolableConnection"),
            "org.apache.tomcat.jdbc.pool.DataSourceProxy", List.of(TOMCAT),
            "io.agroal.pool.DataSource", List.of("io.agroal.pool.wrapper.ConnectionWrapper"),
            // The second one since 0.11.
            "com.mchange.v2.c3p0.impl.AbstractPoolBackedDataSource",
            List.of("com.mchange.v2.c3p0.impl.NewProxyConnection", "com.mchange.v2.c3p0.impl.AbstractNewProxyConnection"));

    /** Index of the flags, the sixth parameter of the executor's execute method. */
    private static final int FLAGS = 5;

    private static final ClassFileLocator LOCATOR = ClassFileLocator.ForClassLoader.ofSystemLoader();

    private static final List<Point> POINTS = points();

    /** Methods of one class that get the same code. */
    private static final class Point {
        final String type;
        final String name;
        final Predicate<MethodDescription> wanted;
        private final Function<TypeDescription, AsmVisitorWrapper> code;

        Point(String type, String name, Class<?> advice, Predicate<MethodDescription> wanted) {
            this.type = type;
            this.name = name;
            this.wanted = wanted;
            code = of -> Advice.to(advice, LOCATOR).on(this::is);
        }

        Point(String type, String name, Function<TypeDescription, MethodVisitorWrapper> probe, Predicate<MethodDescription> wanted) {
            this.type = type;
            this.name = name;
            this.wanted = wanted;
            code = of -> new AsmVisitorWrapper.ForDeclaredMethods().method(this::is, probe.apply(of));
        }

        /** The code for this class. */
        AsmVisitorWrapper in(TypeDescription type) {
            return code.apply(type);
        }

        boolean is(MethodDescription method) {
            return !method.isTypeInitializer() && !method.isAbstract() && !method.isNative() && !method.isBridge()
                    && wanted.test(method);
        }
    }

    private CallPoints() {
    }

    private static List<Point> points() {
        List<Point> points = new ArrayList<>();
        add(points, EXECUTOR, CallAdvice.Opened.class, "readStartupMessages");
        points.add(new Point(EXECUTOR, "execute", CallAdvice.Execute.class,
                method -> method.getName().equals("execute") && method.getParameters().size() > FLAGS));
        add(points, EXECUTOR, CallAdvice.Function.class, "fastpathCall");
        add(points, EXECUTOR, CallAdvice.Fetch.class, "fetch");
        add(points, EXECUTOR, CallAdvice.StartCopy.class, "startCopy");
        for (String name : List.of("writeToCopy", "flushCopy", "readFromCopy", "endCopy", "cancelCopy")) {
            add(points, EXECUTOR, CallAdvice.GoOnWithCopy.class, name);
        }
        for (String name : List.of("sendSync", "sendParse", "sendBind", "sendDescribePortal", "sendDescribeStatement",
                "sendClosePortal", "sendCloseStatement", "sendSimpleQuery", "sendFastpathCall")) {
            add(points, EXECUTOR, CallAdvice.Send.class, name);
        }
        add(points, EXECUTOR, CallAdvice.SendExecute.class, "sendExecute");
        add(points, EXECUTOR, CallAdvice.Savepoint.class, "sendAutomaticSavepoint");
        add(points, STREAM, CallAdvice.SendByte.class, "sendChar");
        add(points, STREAM, CallAdvice.SendInteger.class, "sendInteger4");
        add(points, STREAM, CallAdvice.Flush.class, "flush");
        add(points, INPUT, CallAdvice.Read.class, "readMore");
        points.add(new Point(INPUT, "read", ReadProbe::new,
                method -> method.getName().equals("read") && method.getParameters().size() == 3));
        points.add(new Point(EXECUTOR, "processResults", type -> new RowsProbe(), method -> method.getName().equals("processResults")));
        points.add(new Point(RESULT, "next", DecodeProbe::new, method -> method.getName().equals("next")));
        points.add(new Point(RESULT, "get*", DecodeProbe::new,
                method -> method.isPublic() && method.getName().startsWith("get") && !method.getParameters().isEmpty()));
        for (String name : List.of("prepareStatement", "prepareCall")) {
            add(points, "org.postgresql.jdbc.PgConnection", CallAdvice.Prepare.class, name);
        }
        points.add(new Point(PREPARED, "new", CallAdvice.Prepared.class, MethodDescription::isConstructor));
        add(points, PREPARED, CallAdvice.ClosePrepared.class, "closeImpl");
        add(points, "org.postgresql.jdbc.PgStatement", CallAdvice.Close.class, "close");
        for (String pool : RETURNS.keySet()) {
            add(points, pool, CallAdvice.Pool.class, "getConnection");
        }
        for (String type : RETURNS.values().stream().flatMap(List::stream).collect(Collectors.toList())) {
            if (!type.equals(TOMCAT)) {
                points.add(new Point(type, "close", CallAdvice.Return.class,
                        method -> method.getName().equals("close") && method.getParameters().isEmpty()));
            }
        }
        add(points, TOMCAT, CallAdvice.TakeBack.class, "returnConnection");
        return List.copyOf(points);
    }

    private static void add(List<Point> points, String type, Class<?> advice, String name) {
        points.add(new Point(type, name, advice, method -> method.getName().equals(name)));
    }

    /** The classes that have them. */
    static Set<String> types() {
        return POINTS.stream().map(point -> point.type).collect(Collectors.toCollection(LinkedHashSet::new));
    }

    /** By pool: the classes to which its connections return, of which each release of the pool has one. */
    static Map<String, List<String>> returns() {
        return RETURNS;
    }

    static boolean areIn(String type) {
        return POINTS.stream().anyMatch(point -> point.type.equals(type));
    }

    /** Inserts the code into a class. {@code listed} gets each point, with the reason if it is left out, otherwise null. */
    static DynamicType.Builder<?> visit(DynamicType.Builder<?> builder, TypeDescription type,
            BiConsumer<String, String> listed) {
        DynamicType.Builder<?> visited = builder;
        for (Point point : POINTS) {
            if (point.type.equals(type.getName())) {
                boolean there = type.getDeclaredMethods().stream().anyMatch(point::is);
                listed.accept("calls " + type.getSimpleName() + "." + point.name,
                        there ? null : "the driver or pool has no such method; statement statistics may be incomplete");
                visited = visited.visit(point.in(type));
            }
        }
        return visited;
    }
}
