// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import org.pgtally.probe.Methods;
import org.pgtally.probe.OwnTime;
import org.pgtally.probe.Session;
import org.pgtally.segment.Segment;

/** The agent's options: {@code key=value} pairs separated by commas. */
final class Options {
    private static final String KNOWN = "methods, calls, cpu, edges, histograms, unused, threads, statistics, directory, file, keep";
    private static final int MOST_THREADS = 4096;
    private static final int DAY = 24 * 60 * 60;
    private static final int MOST_STATISTICS = 4096;

    /** The driver's methods that may wait for the server, and the connection pool: a few calls for each statement. */
    private static final List<Glob> DRIVER = List.of(
            Glob.ofPublic("org.postgresql.Driver#connect"),
            Glob.ofPublic("org.postgresql.jdbc.Pg*Statement#execute"),
            Glob.ofPublic("org.postgresql.jdbc.Pg*Statement#executeQuery"),
            Glob.ofPublic("org.postgresql.jdbc.Pg*Statement#execute*Update"),
            Glob.ofPublic("org.postgresql.jdbc.Pg*Statement#execute*Batch"),
            Glob.ofPublic("org.postgresql.jdbc.PgConnection#commit"),
            Glob.ofPublic("org.postgresql.jdbc.PgConnection#rollback"),
            Glob.ofPublic("org.postgresql.jdbc.PgConnection#setAutoCommit"),
            Glob.ofPublic("org.postgresql.jdbc.PgConnection#isValid"),
            Glob.ofPublic("org.postgresql.jdbc.PgConnection#close"),
            Glob.ofPublic("org.postgresql.jdbc.PgConnection#setSavepoint"),
            Glob.ofPublic("org.postgresql.jdbc.PgConnection#releaseSavepoint"),
            Glob.ofPublic("org.postgresql.jdbc.PgConnection#setReadOnly"),
            Glob.ofPublic("org.postgresql.jdbc.PgConnection#setTransactionIsolation"),
            Glob.ofPublic("org.postgresql.jdbc.PgConnection#setSchema"),
            Glob.of("org.postgresql.core.v3.QueryExecutorImpl#fetch"),
            Glob.of("org.postgresql.core.v3.ConnectionFactoryImpl#openConnectionImpl"),
            Glob.of("org.postgresql.core.VisibleBufferedInputStream#readMore"),
            Glob.ofPublic("com.zaxxer.hikari.HikariDataSource#getConnection"),
            Glob.of("com.zaxxer.hikari.pool.ProxyConnection#close"));

    /** The driver's public methods, its internal methods that may wait, and the connection pool: many calls for each row. */
    private static final List<Glob> WHOLE_DRIVER = List.of(
            Glob.ofPublic("org.postgresql.Driver#connect"),
            Glob.ofPublic("org.postgresql.jdbc.Pg*"),
            Glob.of("org.postgresql.core.v3.QueryExecutorImpl#execute"),
            Glob.of("org.postgresql.core.v3.QueryExecutorImpl#fetch"),
            Glob.of("org.postgresql.core.v3.QueryExecutorImpl#sendQuery"),
            Glob.of("org.postgresql.core.v3.QueryExecutorImpl#processResults"),
            Glob.of("org.postgresql.core.v3.ConnectionFactoryImpl#openConnectionImpl"),
            Glob.of("org.postgresql.core.VisibleBufferedInputStream#readMore"),
            Glob.of("org.postgresql.core.PGStream#flush"),
            Glob.of("org.postgresql.core.PGStream#receiveTupleV3"),
            Glob.ofPublic("com.zaxxer.hikari.HikariDataSource#getConnection"),
            Glob.of("com.zaxxer.hikari.pool.ProxyConnection#close"));

    /** {@code off}: stop measuring. */
    boolean off;
    List<Glob> methods = DRIVER;
    boolean calls = true;
    boolean cpu;
    boolean edges;
    boolean histograms = true;
    /** Connections that are borrowed and unused for so many seconds are named; 0: none is. */
    int unused = 30;
    int threads = 256;
    int statistics = MOST_STATISTICS;
    Path file = defaultFile(Path.of("/dev/shm"));
    /** Keep the file when the process ends. */
    boolean keep;

    private Options() {
    }

    /** @throws IllegalArgumentException with a message for the user */
    static Options parse(String text) {
        Options options = new Options();
        for (String part : text == null ? new String[0] : text.split(",")) {
            if (!part.isBlank()) {
                options.set(part.strip());
            }
        }
        return options;
    }

    /** A session with these options. */
    Session session(Segment segment, Methods methods, OwnTime ownTime) {
        return new Session(segment, methods, cpu, histograms, edges, ownTime);
    }

    private void set(String part) {
        int equals = part.indexOf('=');
        String key = equals < 0 ? part : part.substring(0, equals);
        String value = equals < 0 ? "on" : part.substring(equals + 1);
        switch (key) {
        case "off":
            off = true;
            break;
        case "methods":
            methods = globs(value);
            break;
        case "calls":
            calls = flag(key, value);
            break;
        case "cpu":
            cpu = flag(key, value);
            break;
        case "edges":
            edges = flag(key, value);
            break;
        case "histograms":
            histograms = flag(key, value);
            break;
        case "keep":
            keep = flag(key, value);
            break;
        case "unused":
            unused = number(key, value, 0, DAY);
            break;
        case "threads":
            threads = number(key, value, 1, MOST_THREADS);
            break;
        case "statistics":
            statistics = number(key, value, 64, MOST_STATISTICS);
            break;
        case "directory":
            file = defaultFile(Path.of(value));
            break;
        case "file":
            file = Path.of(value).toAbsolutePath();
            break;
        default:
            throw new IllegalArgumentException("unknown option \"" + key + "\"; options are " + KNOWN + ", and off");
        }
    }

    private static Path defaultFile(Path folder) {
        return folder.toAbsolutePath().resolve("pg_tally.java." + ProcessHandle.current().pid());
    }

    /** Several patterns, separated by colons; {@code driver} stands for the default, {@code driver-all} for all of the driver. */
    private static List<Glob> globs(String value) {
        List<Glob> globs = new ArrayList<>();
        for (String glob : value.split(":")) {
            if (glob.equals("driver")) {
                globs.addAll(DRIVER);
            } else if (glob.equals("driver-all")) {
                globs.addAll(WHOLE_DRIVER);
            } else {
                globs.add(Glob.of(glob));
            }
        }
        return globs;
    }

    private static boolean flag(String key, String value) {
        switch (value) {
        case "on":
        case "true":
            return true;
        case "off":
        case "false":
            return false;
        default:
            throw new IllegalArgumentException(key + "=" + value + ": must be on or off");
        }
    }

    private static int number(String key, String value, int min, int max) {
        try {
            int number = Integer.parseInt(value);
            if (number >= min && number <= max) {
                return number;
            }
        } catch (NumberFormatException e) {
            // Reported below.
        }
        throw new IllegalArgumentException(key + "=" + value + ": must be a number from " + min + " to " + max);
    }
}
