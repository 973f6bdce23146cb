// SPDX-License-Identifier: PostgreSQL
package org.pgtally.bench;

import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collection;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.openjdk.jmh.results.RunResult;
import org.openjdk.jmh.runner.Runner;
import org.openjdk.jmh.runner.RunnerException;
import org.openjdk.jmh.runner.options.OptionsBuilder;
import org.openjdk.jmh.runner.options.VerboseMode;

/**
 * Runs {@link Calls} by JMH in a virtual machine for each arm, in turns of order, and prints medians and mean differences
 * to another arm. Arguments: this agent's jar, rounds, and OpenTelemetry's jar; without that its arm is left out.
 */
public final class Compare {
    private static final String METHOD = "org.pgtally.bench.Called";

    private Compare() {
    }

    /** What is run, with which options of the virtual machine, and what it is compared with. */
    private static final class Arm {
        final String benchmark;
        final List<String> options;
        final String base;

        Arm(String benchmark, String base, String... options) {
            this.benchmark = benchmark;
            this.base = base;
            this.options = List.of(options);
        }
    }

    /** See above. */
    public static void main(String[] arguments) throws RunnerException {
        String agent = "-javaagent:" + arguments[0] + "=methods=" + METHOD;
        String ours = agent + "#call";
        Map<String, Arm> arms = new LinkedHashMap<>();
        arms.put("without", new Arm("call", "without"));
        arms.put("without, again", new Arm("call", "without"));
        arms.put("two readings of the clock", new Arm("clock", "without"));
        arms.put("pgtally", new Arm("call", "without", ours));
        arms.put("pgtally, no histograms", new Arm("call", "without", ours + ",histograms=off"));
        arms.put("pgtally, caller and callee", new Arm("nested", "without", agent));
        arms.put("the same, edges=on", new Arm("nested", "pgtally, caller and callee", agent + ",edges=on"));
        if (arguments.length > 2) {
            arms.put("OpenTelemetry", new Arm("call", "without", "-javaagent:" + arguments[2], "-Dotel.traces.exporter=none",
                    "-Dotel.metrics.exporter=none", "-Dotel.logs.exporter=none", "-Dotel.javaagent.logging=none",
                    "-Dotel.instrumentation.methods.include=" + METHOD + "[call]"));
        }
        if (Runtime.version().feature() >= 25) {
            arms.put("Flight Recorder",
                    new Arm("call", "without", "-XX:StartFlightRecording:method-timing=" + METHOD + "::call"));
        }
        Map<String, double[]> times = new LinkedHashMap<>();
        int rounds = Integer.parseInt(arguments[1]);
        arms.keySet().forEach(name -> times.put(name, new double[rounds]));
        for (int round = 0; round < rounds; round++) {
            List<String> order = new ArrayList<>(arms.keySet());
            java.util.Collections.rotate(order, round);
            for (String name : order) {
                times.get(name)[round] = run(arms.get(name));
            }
        }
        System.out.printf("Java %s, %d rounds; ns a call%n", Runtime.version(), rounds);
        times.forEach((name, all) -> print(name, all, times.get(arms.get(name).base)));
    }

    private static double run(Arm arm) throws RunnerException {
        Collection<RunResult> results = new Runner(new OptionsBuilder()
                .include(Calls.class.getName() + "\\." + arm.benchmark + "$")
                .forks(1)
                .verbosity(VerboseMode.SILENT)
                .jvmArgsAppend(arm.options.toArray(new String[0]))
                .build()).run();
        return results.iterator().next().getPrimaryResult().getScore();
    }

    private static void print(String name, double[] all, double[] base) {
        double[] sorted = all.clone();
        Arrays.sort(sorted);
        double sum = 0;
        double squares = 0;
        for (int i = 0; i < all.length; i++) {
            double difference = all[i] - base[i];
            sum += difference;
            squares += difference * difference;
        }
        double mean = sum / all.length;
        double variance = (squares - sum * mean) / (all.length - 1);
        // Student's t for 95 % and a few rounds.
        double half = 2.8 * Math.sqrt(variance / all.length);
        System.out.printf("%-28s %8.1f %+9.1f ± %.1f%n", name, sorted[all.length / 2], mean, half);
    }
}
