// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.LongAdder;
import javax.sql.DataSource;

/**
 * Runs threads that work on a server through a pool. As a reference, every object of the driver is behind a proxy that counts
 * its calls.
 */
public final class Driver {
    private static final Map<String, LongAdder> COUNTED = new ConcurrentHashMap<>();

    private Driver() {
    }

    /** Arguments: URL, user, threads, rounds of each. At the end, prints the proxies' counts. */
    public static void main(String[] arguments) throws Exception {
        HikariConfig config = new HikariConfig();
        config.setDataSource(counting(arguments[0], arguments[1]));
        config.setMaximumPoolSize(2);
        int rounds = Integer.parseInt(arguments[3]);
        try (HikariDataSource pool = new HikariDataSource(config)) {
            try (Connection connection = pool.getConnection(); Statement statement = connection.createStatement()) {
                statement.execute("create table if not exists t (a int, b text)");
            }
            Wait.begin();
            List<Thread> threads = new ArrayList<>();
            for (int i = 0; i < Integer.parseInt(arguments[2]); i++) {
                Thread thread = new Thread(() -> work(pool, rounds), "worker " + i);
                thread.start();
                threads.add(thread);
            }
            for (Thread thread : threads) {
                thread.join();
            }
        }
        new TreeMap<>(COUNTED).forEach((name, count) -> System.out.println("counted " + name + " " + count.sum()));
        Wait.end();
    }

    private static void work(DataSource pool, int rounds) {
        try {
            for (int i = 0; i < rounds; i++) {
                try (Connection connection = pool.getConnection()) {
                    round(connection, i);
                }
            }
        } catch (SQLException e) {
            throw new IllegalStateException(e);
        }
    }

    private static void round(Connection connection, int i) throws SQLException {
        connection.setAutoCommit(false);
        try (PreparedStatement insert = connection.prepareStatement("insert into t values (?, ?)")) {
            for (int row = 0; row < 3; row++) {
                insert.setInt(1, i);
                insert.setString(2, "row " + row);
                insert.addBatch();
            }
            insert.executeBatch();
        }
        connection.commit();
        try (PreparedStatement select = connection.prepareStatement("select g, g::text from generate_series(1, ?) g")) {
            select.setFetchSize(10);
            select.setInt(1, 25);
            try (ResultSet rows = select.executeQuery()) {
                int sum = 0;
                while (rows.next()) {
                    sum += rows.getInt(1) + rows.getString(2).length();
                }
                if (sum != 325 + 41) {
                    throw new AssertionError("sum " + sum);
                }
            }
        }
        connection.rollback();
        connection.setAutoCommit(true);
        try (Statement statement = connection.createStatement()) {
            statement.executeQuery("select 1/0");
            throw new AssertionError("an error was expected");
        } catch (SQLException e) {
            if (!"22012".equals(e.getSQLState())) {
                throw e;
            }
        }
    }

    private static DataSource counting(String url, String user) {
        return (DataSource) Proxy.newProxyInstance(Driver.class.getClassLoader(), new Class<?>[] {DataSource.class},
                (proxy, method, arguments) -> {
                    if (method.getName().equals("getConnection")) {
                        Properties properties = new Properties();
                        properties.setProperty("user", user);
                        properties.setProperty("password", System.getenv("PGPASSWORD"));
                        return counted(new org.postgresql.Driver().connect(url, properties));
                    }
                    return method.getReturnType() == int.class ? 0 : null;
                });
    }

    /** The object, or the proxy that counts its calls if it is the driver's. */
    private static Object counted(Object of) {
        if (of == null || !of.getClass().getName().startsWith("org.postgresql.jdbc.Pg")
                || !(of instanceof Connection || of instanceof Statement || of instanceof ResultSet)) {
            return of;
        }
        return Proxy.newProxyInstance(Driver.class.getClassLoader(), interfaces(of), (proxy, method, arguments) -> {
            COUNTED.computeIfAbsent(name(of, method), key -> new LongAdder()).increment();
            try {
                return counted(method.invoke(of, arguments));
            } catch (InvocationTargetException e) {
                throw e.getCause();
            }
        });
    }

    private static Class<?>[] interfaces(Object of) {
        if (of instanceof Connection) {
            return new Class<?>[] {Connection.class};
        }
        if (of instanceof PreparedStatement) {
            return new Class<?>[] {PreparedStatement.class};
        }
        return new Class<?>[] {of instanceof Statement ? Statement.class : ResultSet.class};
    }

    /** The class that contains the method's code, as named by the agent. */
    private static String name(Object of, java.lang.reflect.Method method) throws NoSuchMethodException {
        Class<?> type = of.getClass().getMethod(method.getName(), method.getParameterTypes()).getDeclaringClass();
        StringBuilder parameters = new StringBuilder();
        for (Class<?> parameter : Arrays.asList(method.getParameterTypes())) {
            parameters.append(parameters.length() == 0 ? "" : ",").append(parameter.getSimpleName());
        }
        return type.getSimpleName() + "." + method.getName() + "(" + parameters + ")";
    }
}
