// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.StringReader;
import java.io.StringWriter;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Proxy;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.Map;
import java.util.TreeMap;
import org.postgresql.copy.CopyManager;
import org.postgresql.core.BaseConnection;

/** Runs statements of all kinds on one connection. Proxies and sockets count executions by text, as a reference. */
public final class Statements {
    static final String SELECT = "select ?::int";
    static final String INSERT = "insert into t values (?)";
    static final String CURSOR = "select * from generate_series(1, ?)";
    static final String ALL = "select * from generate_series(1, 12000)";
    static final String CHILD = "select max(a) from t where a < ?";
    /** A value that does not fit into the driver's buffer. */
    static final String LONG = "select repeat(?::text, 100000)";
    static final String UPDATE = "update t set a = a + 1 where a = 0";
    static final String ERROR = "select 1/0";
    static final String IN = "copy t from stdin";
    static final String OUT = "copy (select 1) to stdout";

    private static final Map<String, Integer> COUNTED = new TreeMap<>();

    private Statements() {
    }

    /** Arguments: URL, user, rounds. At the end, prints the reference counts. */
    public static void main(String[] arguments) throws Exception {
        String url = arguments[0] + "&socketFactory=" + CountingSockets.class.getName();
        Wait.begin();
        int rounds = Integer.parseInt(arguments[2]);
        try (Connection real = DriverManager.getConnection(url, arguments[1], System.getenv("PGPASSWORD"))) {
            Connection connection = counting(real);
            execute(connection, "create temporary table t (a int)");
            for (int i = 0; i < rounds; i++) {
                round(connection, real.unwrap(BaseConnection.class));
            }
            connection.setAutoCommit(false);
            for (int i = 0; i < 12; i++) {
                query(connection, CHILD, i, 0);
            }
            connection.commit();
            connection.setAutoCommit(true);
            execute(connection, ALL);
        }
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(url);
        config.setUsername(arguments[1]);
        config.setPassword(System.getenv("PGPASSWORD"));
        config.setMaximumPoolSize(1);
        try (HikariDataSource pool = new HikariDataSource(config)) {
            for (int i = 0; i < 3; i++) {
                pool.getConnection().close();
            }
        }
        COUNTED.forEach((text, count) -> System.out.println("counted " + count + " " + text));
        System.out.println("bytes " + CountingSockets.SENT + " " + CountingSockets.RECEIVED);
        Wait.end();
    }

    private static void round(Connection connection, BaseConnection real) throws Exception {
        query(connection, SELECT, 1, 0);
        text(connection);
        execute(connection, UPDATE);
        try (PreparedStatement insert = connection.prepareStatement(INSERT)) {
            for (int row = 0; row < 3; row++) {
                insert.setInt(1, row);
                insert.addBatch();
            }
            insert.executeBatch();
        }
        connection.setAutoCommit(false);
        query(connection, CURSOR, 25, 10);
        connection.commit();
        connection.setAutoCommit(true);
        try {
            execute(connection, ERROR);
            throw new AssertionError("an error was expected");
        } catch (SQLException e) {
            if (!"22012".equals(e.getSQLState())) {
                throw e;
            }
        }
        CopyManager copies = new CopyManager(real);
        copies.copyIn(IN, new StringReader("7\n8\n"));
        count(IN);
        copies.copyOut(OUT, new StringWriter());
        count(OUT);
    }

    private static void query(Connection connection, String text, int parameter, int fetchSize) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(text)) {
            statement.setFetchSize(fetchSize);
            statement.setInt(1, parameter);
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    rows.getInt(1);
                }
            }
        }
    }

    private static void text(Connection connection) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(LONG)) {
            statement.setString(1, "x");
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    rows.getString(1);
                }
            }
        }
    }

    private static void execute(Connection connection, String text) throws SQLException {
        try (Statement statement = connection.createStatement()) {
            statement.execute(text);
        }
    }

    private static void count(String text) {
        COUNTED.merge(text, 1, Integer::sum);
    }

    private static Connection counting(Connection of) {
        return (Connection) Proxy.newProxyInstance(Statements.class.getClassLoader(), new Class<?>[] {Connection.class},
                (proxy, method, arguments) -> {
                    if (method.getName().equals("commit")) {
                        count("COMMIT");
                    }
                    Object result = called(method, of, arguments);
                    if (result instanceof PreparedStatement) {
                        return counting(PreparedStatement.class, result, (String) arguments[0]);
                    }
                    return result instanceof Statement ? counting(Statement.class, result, null) : result;
                });
    }

    private static Object counting(Class<?> type, Object of, String text) {
        return Proxy.newProxyInstance(Statements.class.getClassLoader(), new Class<?>[] {type},
                (proxy, method, arguments) -> {
                    if (method.getName().startsWith("execute")) {
                        count(text == null ? (String) arguments[0] : text);
                    }
                    return called(method, of, arguments);
                });
    }

    private static Object called(java.lang.reflect.Method method, Object of, Object[] arguments) throws Throwable {
        try {
            return method.invoke(of, arguments);
        } catch (InvocationTargetException e) {
            throw e.getCause();
        }
    }
}
