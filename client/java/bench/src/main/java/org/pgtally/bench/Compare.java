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
 * to the arm without an agent. Arguments: this agent's jar, OpenTelemetry's, rounds.
 */
public final class Compare {
    private static final String METHOD = "org.pgtally.bench.Called";

    private Compare() {
    }

    /** See above. */
    public static void main(String[] arguments) throws RunnerException {
        String ours = "-javaagent:" + arguments[0] + "=methods=" + METHOD + "#call";
        Map<String, List<String>> arms = new LinkedHashMap<>();
        arms.put("without", List.of());
        arms.put("without, again", List.of());
        arms.put("two readings of the clock", List.of());
        arms.put("pgtally", List.of(ours));
        arms.put("pgtally, no histograms", List.of(ours + ",histograms=off"));
        arms.put("OpenTelemetry", List.of("-javaagent:" + arguments[1], "-Dotel.traces.exporter=none",
                "-Dotel.metrics.exporter=none", "-Dotel.logs.exporter=none", "-Dotel.javaagent.logging=none",
                "-Dotel.instrumentation.methods.include=" + METHOD + "[call]"));
        if (Runtime.version().feature() >= 25) {
            arms.put("Flight Recorder", List.of("-XX:StartFlightRecording:method-timing=" + METHOD + "::call"));
        }
        Map<String, double[]> times = new LinkedHashMap<>();
        int rounds = Integer.parseInt(arguments[2]);
        arms.keySet().forEach(name -> times.put(name, new double[rounds]));
        for (int round = 0; round < rounds; round++) {
            List<String> order = new ArrayList<>(arms.keySet());
            java.util.Collections.rotate(order, round);
            for (String name : order) {
                times.get(name)[round] = run(name.startsWith("two") ? "clock" : "call", arms.get(name));
            }
        }
        System.out.printf("Java %s, %d rounds; ns a call%n", Runtime.version(), rounds);
        times.forEach((name, all) -> print(name, all, times.get("without")));
    }

    private static double run(String benchmark, List<String> options) throws RunnerException {
        Collection<RunResult> results = new Runner(new OptionsBuilder()
                .include(Calls.class.getName() + "\\." + benchmark + "$")
                .forks(1)
                .verbosity(VerboseMode.SILENT)
                .jvmArgsAppend(options.toArray(new String[0]))
                .build()).run();
        return results.iterator().next().getPrimaryResult().getScore();
    }

    private static void print(String name, double[] all, double[] without) {
        double[] sorted = all.clone();
        Arrays.sort(sorted);
        double sum = 0;
        double squares = 0;
        for (int i = 0; i < all.length; i++) {
            double difference = all[i] - without[i];
            sum += difference;
            squares += difference * difference;
        }
        double mean = sum / all.length;
        double variance = (squares - sum * mean) / (all.length - 1);
        // Student's t for 95 % and a few rounds.
        double half = 2.8 * Math.sqrt(variance / all.length);
        System.out.printf("%-26s %8.1f %+9.1f ± %.1f%n", name, sorted[all.length / 2], mean, half);
    }
}
