// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.Statement;
import java.util.concurrent.CountDownLatch;

/**
 * A pool of three connections, called "shop". Two are borrowed and used; one of them is returned, the other is kept by a thread
 * called "forgetful" until a line arrives. Arguments: URL, user.
 */
public final class Unused {
    private Unused() {
    }

    /** See the class. */
    public static void main(String[] arguments) throws Exception {
        HikariConfig config = new HikariConfig();
        config.setPoolName("shop");
        config.setJdbcUrl(arguments[0]);
        config.setUsername(arguments[1]);
        config.setPassword(System.getenv("PGPASSWORD"));
        config.setMaximumPoolSize(3);
        try (HikariDataSource pool = new HikariDataSource(config)) {
            CountDownLatch used = new CountDownLatch(1);
            CountDownLatch enough = new CountDownLatch(1);
            Thread forgetful = new Thread(() -> keep(pool, used, enough), "forgetful");
            forgetful.start();
            used.await();
            try (Connection other = pool.getConnection()) {
                use(other);
            }
            Wait.begin();
            enough.countDown();
            forgetful.join();
            Wait.end();
        }
    }

    private static void keep(HikariDataSource pool, CountDownLatch used, CountDownLatch enough) {
        try (Connection kept = pool.getConnection()) {
            use(kept);
            used.countDown();
            enough.await();
        } catch (Exception e) {
            throw new IllegalStateException(e);
        }
    }

    private static void use(Connection connection) throws Exception {
        try (Statement statement = connection.createStatement()) {
            statement.executeQuery("select 1").close();
        }
    }
}
