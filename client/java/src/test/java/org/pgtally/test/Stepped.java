// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.RandomAccessFile;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.Collections;
import org.pgtally.probe.Calls;
import org.pgtally.probe.Frame;
import org.pgtally.probe.MethodName;
import org.pgtally.probe.Methods;
import org.pgtally.probe.Probe;
import org.pgtally.probe.Session;
import org.pgtally.segment.Layout;
import org.pgtally.segment.Segment;

/** The program that {@link Stepper} steps through: it calls methods and executes statements, without any agent. */
public final class Stepped {
    /** Calls and executions whose counting has begun, and those that have been counted. */
    static long begun;
    static long done;

    /** A connection, like the driver's. */
    public static final class Connection {
        private final int pid;

        Connection(int pid) {
            this.pid = pid;
        }

        /** Like the driver's class. */
        public int getBackendPID() {
            return pid;
        }
    }

    private final Segment segment;
    private final int outer;
    private final int inner;

    private Stepped(Path path) throws IOException {
        segment = new Segment(path, 2, 256, new Segment.About("stepped", "test", "Java"));
        Methods methods = new Methods();
        outer = methods.number(MethodName.of("org.example.Work", "outer", ""));
        inner = methods.number(MethodName.of("org.example.Work", "inner", "int"));
        Probe.use(new Session(segment, methods, false, true, true));
    }

    /** Plays the scenarios named on standard input. */
    public static void main(String[] arguments) throws Exception {
        BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = input.readLine(); line != null; line = input.readLine()) {
            int space = line.indexOf(' ');
            Stepped stepped = new Stepped(Path.of(line.substring(space + 1)));
            begun = 0;
            done = 0;
            begin();
            stepped.play(line.substring(0, space));
            end();
            Probe.use(null);
            stepped.segment.remove();
        }
    }

    private void play(String scenario) throws Exception {
        switch (scenario) {
        case "calls":
            run("first thread", this::calls);
            run("another thread", this::calls);
            break;
        case "statements":
            run("first thread", this::statements);
            break;
        case "level":
            run("first thread", this::level);
            break;
        case "notes":
            notes();
            break;
        default:
            throw new IllegalArgumentException(scenario);
        }
    }

    /** Runs in a thread that ends, and whose slot is merged. */
    private void run(String name, Runnable what) throws InterruptedException {
        Thread thread = new Thread(what, name);
        thread.start();
        thread.join();
        segment.sweep();
    }

    private void calls() {
        for (int i = 0; i < 2; i++) {
            Frame frame = Probe.enter(outer);
            call(i == 0);
            begun++;
            Probe.exit(frame, null);
            done++;
        }
    }

    private void call(boolean fails) {
        Frame frame = Probe.enter(inner);
        begun++;
        Probe.exit(frame, fails ? new IllegalStateException() : null);
        done++;
    }

    /** The n-th execution has n messages and n rows, on its own connection. */
    private void statements() {
        for (int n = 1; n <= 3; n++) {
            Connection connection = new Connection(100 + n);
            Calls.opened(connection);
            begun++;
            Object call = Calls.executes(connection, text(n), null, 0);
            for (int i = 0; i < n; i++) {
                Object begun = Calls.sends();
                Calls.byteSent('Q');
                Calls.integerSent(10 * n - 1);
                Calls.sent(begun);
            }
            Calls.waited(Calls.waits(true), true, 100 * n);
            Calls.rows(Collections.nCopies(n, "row"));
            Calls.ended(call, null);
            done++;
        }
    }

    private static String text(int n) {
        return "select " + String.valueOf(n).repeat(20 * n);
    }

    /** Switched off in between, as by {@code tally level}. */
    private void level() {
        calls();
        setLevel(0);
        Probe.exit(Probe.enter(outer), null);
        setLevel(1);
        calls();
    }

    private void setLevel(int level) {
        try (RandomAccessFile file = new RandomAccessFile(segment.path().toFile(), "rw")) {
            ByteBuffer head = file.getChannel().map(FileChannel.MapMode.READ_WRITE, 0, Layout.HEADER_LEVEL_WORD + 4)
                    .order(ByteOrder.nativeOrder());
            head.putInt(Layout.HEADER_LEVEL_WORD, level);
        } catch (IOException e) {
            throw new IllegalStateException(e);
        }
    }

    private void notes() {
        for (int n = 1; n <= 2; n++) {
            begun++;
            segment.note(false, "event " + n + " and as much again, event " + n);
            done++;
            segment.probe("probe " + n, n == 1 ? null : "left out because of " + n);
        }
    }

    private static void begin() {
        // A debugger stops here.
    }

    private static void end() {
        // A debugger stops here, too.
    }
}
