// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.io.File;
import java.lang.ref.WeakReference;
import java.net.MalformedURLException;
import java.net.URL;
import java.net.URLClassLoader;
import java.sql.Connection;
import java.sql.Driver;
import java.sql.ResultSet;
import java.sql.Statement;
import java.util.ArrayList;
import java.util.List;
import java.util.Properties;

/** Loads the driver in a new class loader again and again, as an application server does, and waits until all of them are collected. */
public final class Redeployed {
    private Redeployed() {
    }

    /** Arguments: URL, user, number of times. */
    public static void main(String[] arguments) throws Exception {
        URL[] driver = driver();
        List<WeakReference<ClassLoader>> loaders = new ArrayList<>();
        for (int i = 0; i < Integer.parseInt(arguments[2]); i++) {
            loaders.add(deploy(driver, arguments[0], arguments[1]));
        }
        while (loaders.stream().anyMatch(loader -> loader.get() != null)) {
            System.gc();
            Thread.sleep(1);
        }
        Wait.begin();
        Wait.end();
    }

    private static URL[] driver() throws MalformedURLException {
        for (String path : System.getProperty("java.class.path").split(File.pathSeparator)) {
            if (new File(path).getName().startsWith("postgresql-")) {
                return new URL[] {new File(path).toURI().toURL()};
            }
        }
        throw new AssertionError("no driver");
    }

    private static WeakReference<ClassLoader> deploy(URL[] driver, String url, String user) throws Exception {
        Properties properties = new Properties();
        properties.setProperty("user", user);
        properties.setProperty("password", System.getenv("PGPASSWORD"));
        try (URLClassLoader loader = new URLClassLoader(driver, ClassLoader.getPlatformClassLoader())) {
            Class<?> type = Class.forName("org.postgresql.Driver", true, loader);
            Driver own = (Driver) type.getDeclaredConstructor().newInstance();
            try (Connection connection = own.connect(url, properties);
                    Statement statement = connection.createStatement();
                    ResultSet rows = statement.executeQuery("select 1 as redeployed")) {
                rows.next();
            }
            // DriverManager has the one that the class itself registered.
            type.getMethod("deregister").invoke(null);
            return new WeakReference<>(loader);
        }
    }
}
