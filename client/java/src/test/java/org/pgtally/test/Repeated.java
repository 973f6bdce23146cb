// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.DriverManager;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.sql.Statement;

/**
 * Executes statements repeatedly as applications do: by mistake, each a child of the last result (N+1), and for good reasons. The
 * name of a statement's column says which it is: {@code bad...} or {@code good...}. Then executes many different texts.
 * Arguments: URL, user. Prints the number of executions.
 */
public final class Repeated {
    private static final int MANY = 12;
    private static final int TEXTS = 300;

    private final HikariDataSource pool;
    private int executions;

    private Repeated(HikariDataSource pool) {
        this.pool = pool;
    }

    /** See the class. */
    public static void main(String[] arguments) throws Exception {
        Wait.begin();
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(arguments[0]);
        config.setUsername(arguments[1]);
        config.setPassword(System.getenv("PGPASSWORD"));
        config.setMaximumPoolSize(1);
        try (HikariDataSource pool = new HikariDataSource(config);
                Connection alone = DriverManager.getConnection(arguments[0], arguments[1], System.getenv("PGPASSWORD"))) {
            Repeated repeated = new Repeated(pool);
            repeated.inTransactions();
            repeated.withoutTransactions();
            repeated.onItsOwn(alone);
            for (int i = 0; i < TEXTS; i++) {
                repeated.execute(alone, "select " + i);
            }
            alone.setAutoCommit(false);
            // This run does not end before it is looked at.
            repeated.children(alone, "bad_going_on");
            System.out.println("executed " + repeated.executions);
            Wait.end();
        }
    }

    private void inTransactions() throws SQLException {
        try (Connection connection = pool.getConnection()) {
            execute(connection, "create temporary table child (parent int, number int)");
            execute(connection, "insert into child select g % 20, g from generate_series(1, 100) g");
            execute(connection, "create temporary sequence numbers increment 50");
            connection.setAutoCommit(false);
            // A lazy collection: several rows for each parent.
            children(connection, "bad_collection");
            connection.commit();
            executions++;
            for (int i = 0; i < MANY; i++) {
                child(connection, "bad_one", i);
                child(connection, "bad_other", i);
            }
            // Comments for tracing differ with each execution.
            for (int i = 0; i < MANY; i++) {
                query(connection, "select number bad_commented from child where parent = ? /*traceparent='" + i + "'*/", i);
            }
            for (int i = 0; i < MANY; i++) {
                query(connection, "insert into child values (?, 1) returning number bad_insert", i);
            }
            connection.commit();
            executions++;
            for (int i = 0; i < MANY; i++) {
                child(connection, "good_same", 1);
                query(connection, "select nextval('numbers') good_sequence where ? >= 0", i);
                query(connection, "select number good_batch from child where parent in (?, ?, 3)", i, i + 1);
            }
            batch(connection);
            connection.commit();
            executions++;
            for (int i = 0; i < 3 * MANY; i++) {
                child(connection, "good_few_each", i);
                if (i % 6 == 5) {
                    connection.commit();
                    executions++;
                }
            }
            connection.setAutoCommit(true);
        }
    }

    private void withoutTransactions() throws SQLException {
        try (Connection connection = pool.getConnection()) {
            for (int i = 0; i < MANY; i++) {
                child(connection, "bad_borrow", i);
                execute(connection, "select 1 good_ping");
            }
        }
        for (int i = 0; i < 5 * MANY; i++) {
            // Each is a request of its own.
            try (Connection connection = pool.getConnection()) {
                child(connection, "good_request", i);
            }
        }
        try (Connection connection = pool.getConnection()) {
            for (int i = 0; i < MANY / 2; i++) {
                child(connection, "good_then_transaction", i);
            }
            connection.setAutoCommit(false);
            for (int i = 0; i < MANY / 2; i++) {
                child(connection, "good_then_transaction", MANY + i);
            }
            connection.commit();
            executions++;
            connection.setAutoCommit(true);
        }
    }

    private void onItsOwn(Connection connection) throws SQLException {
        execute(connection, "create temporary table child (parent int, number int)");
        child(connection, "bad_going_on", 0);
        children(connection, "bad_alone");
        execute(connection, "begin");
        for (int i = 0; i < MANY; i++) {
            child(connection, "bad_begun", i);
            execute(connection, "select 1 good_ping");
        }
        execute(connection, "commit");
    }

    private void children(Connection connection, String column) throws SQLException {
        for (int i = 0; i < MANY; i++) {
            child(connection, column, i);
        }
    }

    private void child(Connection connection, String column, int parent) throws SQLException {
        query(connection, "select number " + column + " from child where parent = ?", parent);
    }

    private void query(Connection connection, String text, int... parameters) throws SQLException {
        executions++;
        try (PreparedStatement statement = connection.prepareStatement(text)) {
            for (int i = 0; i < parameters.length; i++) {
                statement.setInt(i + 1, parameters[i]);
            }
            try (ResultSet rows = statement.executeQuery()) {
                while (rows.next()) {
                    rows.getLong(1);
                }
            }
        }
    }

    private void batch(Connection connection) throws SQLException {
        try (PreparedStatement insert = connection.prepareStatement("insert into child (number, parent) values (?, 1)")) {
            for (int times = 0; times < MANY; times++) {
                for (int row = 0; row < 3; row++) {
                    insert.setInt(1, row);
                    insert.addBatch();
                }
                insert.executeBatch();
                executions++;
            }
        }
    }

    private void execute(Connection connection, String text) throws SQLException {
        executions++;
        try (Statement statement = connection.createStatement()) {
            statement.execute(text);
        }
    }
}
