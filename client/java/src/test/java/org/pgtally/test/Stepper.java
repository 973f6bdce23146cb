// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import com.sun.jdi.AbsentInformationException;
import com.sun.jdi.Bootstrap;
import com.sun.jdi.Field;
import com.sun.jdi.Location;
import com.sun.jdi.LongValue;
import com.sun.jdi.ReferenceType;
import com.sun.jdi.VirtualMachine;
import com.sun.jdi.connect.Connector;
import com.sun.jdi.connect.LaunchingConnector;
import com.sun.jdi.event.BreakpointEvent;
import com.sun.jdi.event.ClassPrepareEvent;
import com.sun.jdi.event.Event;
import com.sun.jdi.event.EventSet;
import com.sun.jdi.request.BreakpointRequest;
import com.sun.jdi.request.ClassPrepareRequest;
import com.sun.jdi.request.EventRequest;
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.io.OutputStream;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;

/**
 * Stops {@link Stepped} at every line of the package {@code org.pgtally.segment}, the only one that writes shared memory. As a
 * debugger it needs no hooks, so the stepped code is the product's. The protocol is that of libtally/test/stepper.c.
 *
 * <p>In a loop, which copies a text or a histogram, it stops in the first iterations, and in every 16th up to the 96th.
 */
public final class Stepper {
    private static final String WRITERS = "org.pgtally.segment.*";
    private static final String STEPPED = "org.pgtally.test.Stepped";
    /** Those of the methods that only read. */
    private static final Pattern READERS = Pattern.compile("(Layout|Sizes|Histogram|Host|Threads)\\..*"
            + "|Book\\.(head|bucket|statistic|used|hasHistogram|running|levelWord):"
            + "|Directory\\.(hash|at|isAccount):|Merger\\.(kindOf|sameKind):"
            + "|Memory\\.(opaque)?(int|long|Int|Long)At:|SegmentFile\\.(entryAt|book|bookAt|map|after):");
    /** Places that write something new. */
    private static final Pattern UPDATES = Pattern.compile("Book\\.begin:|Directory\\.publish:|CallRing\\.open:");
    private static final int FIRST_TURNS = 3;
    private static final int TURNS_A_STOP = 16;
    private static final int LAST_TURN = 96;

    private final BufferedReader input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    private final VirtualMachine machine;
    private final List<BreakpointRequest> lines = new ArrayList<>();
    private final Pattern stops;
    private ReferenceType stepped;
    private long number;
    private long toGo;
    private final Map<String, Integer> turns = new HashMap<>();
    private final Map<String, List<EventRequest>> disabled = new HashMap<>();

    private Stepper(Pattern stops) throws Exception {
        this.stops = stops;
        LaunchingConnector connector = Bootstrap.virtualMachineManager().defaultConnector();
        var arguments = connector.defaultArguments();
        set(arguments, "main", STEPPED);
        set(arguments, "options", "-Xshare:auto -XX:TieredStopAtLevel=1 -XX:+UseSerialGC -cp \""
                + System.getProperty("java.class.path") + "\"");
        machine = connector.launch(arguments);
        Thread errors = new Thread(() -> {
            try {
                machine.process().getErrorStream().transferTo(System.err);
            } catch (IOException e) {
                // The process has ended.
            }
        });
        errors.setDaemon(true);
        errors.start();
        prepare(STEPPED);
        prepare(WRITERS);
    }

    private static void set(Map<String, Connector.Argument> arguments, String name, String value) {
        arguments.get(name).setValue(value);
    }

    private void prepare(String classes) {
        ClassPrepareRequest request = machine.eventRequestManager().createClassPrepareRequest();
        request.addClassFilter(classes);
        request.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
        request.enable();
    }

    /**
     * Runs the scenarios named on standard input, each with the path of its segment.
     *
     * @param arguments a pattern of the methods to stop in, {@code CLASS.METHOD:}; without it, all
     */
    public static void main(String[] arguments) throws Exception {
        Stepper stepper = new Stepper(Pattern.compile(arguments.length > 0 ? arguments[0] : ".*"));
        try {
            OutputStream toStepped = stepper.machine.process().getOutputStream();
            for (String line = stepper.input.readLine(); line != null; line = stepper.input.readLine()) {
                toStepped.write((line + "\n").getBytes(StandardCharsets.UTF_8));
                toStepped.flush();
                if (!stepper.play()) {
                    return;
                }
                System.out.println("over 0");
            }
        } finally {
            stepper.machine.exit(0);
        }
    }

    /** Runs one scenario; false: standard input has ended. */
    private boolean play() throws Exception {
        for (;;) {
            EventSet events = machine.eventQueue().remove();
            boolean ends = false;
            for (Event event : events) {
                if (event instanceof ClassPrepareEvent) {
                    prepared(((ClassPrepareEvent) event).referenceType());
                } else if (event instanceof BreakpointEvent) {
                    Location location = ((BreakpointEvent) event).location();
                    boolean marks = location.declaringType().equals(stepped);
                    if (marks && location.method().name().equals("begin")) {
                        number = 0;
                        turns.clear();
                        disabled.clear();
                        System.out.println("ready " + machine.process().pid());
                        if (!waitAt("begin")) {
                            return false;
                        }
                        lines.forEach(BreakpointRequest::enable);
                    } else if (marks) {
                        lines.forEach(BreakpointRequest::disable);
                        number++;
                        if (!waitAt("end")) {
                            return false;
                        }
                        ends = true;
                    } else if (turn((BreakpointEvent) event) && !stop(location)) {
                        return false;
                    }
                }
            }
            events.resume();
            if (ends) {
                return true;
            }
        }
    }

    private void prepared(ReferenceType type) {
        boolean marks = type.name().equals(STEPPED);
        if (marks) {
            stepped = type;
        }
        for (Location location : locations(type)) {
            String name = location.method().name();
            boolean isMark = name.equals("begin") || name.equals("end");
            boolean writes = stops.matcher(name(location)).matches() && !READERS.matcher(name(location)).matches();
            if (marks ? isMark && location.codeIndex() == 0 : writes) {
                BreakpointRequest request = machine.eventRequestManager().createBreakpointRequest(location);
                request.setSuspendPolicy(EventRequest.SUSPEND_EVENT_THREAD);
                if (marks) {
                    request.enable();
                } else {
                    lines.add(request);
                    request.setEnabled(number > 0);
                }
            }
        }
    }

    private static List<Location> locations(ReferenceType type) {
        try {
            return type.allLineLocations();
        } catch (AbsentInformationException e) {
            // An interface without code.
            return List.of();
        }
    }

    /** Whether the writer stops here, in this iteration of a loop. The rest of a loop runs without a debugger. */
    private boolean turn(BreakpointEvent event) {
        Location location = event.location();
        String method = name(location);
        if (UPDATES.matcher(method).matches()) {
            turns.clear();
        }
        if (location.codeIndex() == 0) {
            turns.keySet().removeIf(line -> line.startsWith(method) && !line.equals(method));
            List<EventRequest> resting = disabled.remove(method);
            if (resting != null) {
                resting.forEach(EventRequest::enable);
            }
            return isStop(turns.merge(method, 1, Integer::sum));
        }
        if (!isStop(turns.getOrDefault(method, 0))) {
            return false;
        }
        int turn = turns.merge(method + location.lineNumber(), 1, Integer::sum);
        if (turn == LAST_TURN) {
            event.request().disable();
            disabled.computeIfAbsent(method, key -> new ArrayList<>()).add(event.request());
        }
        return isStop(turn);
    }

    private static boolean isStop(int turn) {
        return turn <= FIRST_TURNS || turn % TURNS_A_STOP == 0;
    }

    /** The location's class and method. */
    private static String name(Location location) {
        String type = location.declaringType().name();
        return type.substring(type.lastIndexOf('.') + 1) + "." + location.method().name() + ":";
    }

    private boolean stop(Location location) throws IOException {
        number++;
        if (toGo == 0 || --toGo > 0) {
            return true;
        }
        return waitAt(name(location) + location.lineNumber());
    }

    /** Returns false if standard input has ended. */
    private boolean waitAt(String where) throws IOException {
        System.out.println("stop " + number + " " + value("begun") + " " + value("done") + " " + where);
        String line = input.readLine();
        if (line == null) {
            return false;
        }
        toGo = line.isEmpty() ? 0 : Long.parseLong(line);
        return true;
    }

    private long value(String field) {
        Field of = stepped.fieldByName(field);
        return ((LongValue) stepped.getValue(of)).value();
    }
}
