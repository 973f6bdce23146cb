// SPDX-License-Identifier: PostgreSQL

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.io.IOException;
import java.sql.Connection;
import java.sql.SQLException;
import java.sql.Statement;
import java.util.concurrent.atomic.AtomicInteger;

/**
 * Runs cases of a program that uses an object-relational mapper. Each is one of two kinds by construction: "bad" executes a statement
 * more than ten times in a transaction (or in a borrow of a connection, without transactions) with other parameters, where one
 * statement or a batch would do; "good" does not. After each case, it prints "case KIND BORROWS NAME", with the number of connections
 * that were borrowed, and waits for a line.
 */
final class Harness implements AutoCloseable {
    /** Authors, each with three books, and persons, each with a passport. */
    static final int MANY = 150;
    /** New books: each takes a number from a sequence that gives fifty at once. */
    static final int NEW = 600;
    static final int REQUESTS = 30;

    final HikariDataSource pool;
    private static final AtomicInteger BORROWS = new AtomicInteger();

    /** What may fail. */
    interface Case {
        void run() throws Exception;
    }

    Harness(String[] arguments) throws SQLException {
        // A connection is tested whenever it is borrowed.
        System.setProperty("com.zaxxer.hikari.aliveBypassWindowMs", "0");
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(arguments[0]);
        config.setUsername(arguments[1]);
        config.setPassword(System.getenv("PGPASSWORD"));
        config.setMaximumPoolSize(2);
        pool = new HikariDataSource(config) {
            @Override
            public Connection getConnection() throws SQLException {
                BORROWS.incrementAndGet();
                return super.getConnection();
            }
        };
        try (Connection connection = pool.getConnection(); Statement statement = connection.createStatement()) {
            statement.execute("drop table if exists book, author, passport, person; drop sequence if exists book_numbers;"
                    + " create table author (id int primary key, name text);"
                    + " create table book (id bigint primary key, title text, author_id int references author);"
                    + " create table person (id int primary key, name text);"
                    + " create table passport (id int primary key, number text, person_id int references person);"
                    + " create sequence book_numbers start 100000 increment 50;"
                    + " insert into author select g, 'a' || g from generate_series(1, " + MANY + ") g;"
                    + " insert into book select g, 'b' || g, 1 + g % " + MANY + " from generate_series(1, " + 3 * MANY + ") g;"
                    + " insert into person select g, 'p' || g from generate_series(1, " + MANY + ") g;"
                    + " insert into passport select g, 'n' || g, g from generate_series(1, " + MANY + ") g");
        }
    }

    void bad(String name, Case run) throws Exception {
        step("bad", name, run);
    }

    void good(String name, Case run) throws Exception {
        step("good", name, run);
    }

    /** Cases of the pool, which are the same for all. */
    void ofThePool() throws Exception {
        good("connections borrowed and tested, each for one statement", () -> {
            for (int i = 1; i <= REQUESTS; i++) {
                try (Connection connection = pool.getConnection();
                        var statement = connection.prepareStatement("select name from author where id = ?")) {
                    statement.setInt(1, i);
                    statement.executeQuery().close();
                }
            }
        });
        good("isValid in a transaction", () -> {
            try (Connection connection = pool.getConnection()) {
                connection.setAutoCommit(false);
                for (int i = 0; i < REQUESTS; i++) {
                    connection.isValid(1);
                }
                connection.commit();
            }
        });
    }

    private static void step(String kind, String name, Case run) throws Exception {
        BORROWS.set(0);
        run.run();
        System.out.println("case " + kind + " " + BORROWS + " " + name);
        System.out.flush();
        line();
    }

    private static void line() throws IOException {
        int c = System.in.read();
        while (c >= 0 && c != '\n') {
            c = System.in.read();
        }
    }

    static void check(boolean holds) {
        if (!holds) {
            throw new AssertionError();
        }
    }

    @Override
    public void close() {
        pool.close();
        System.out.println("end");
    }
}
