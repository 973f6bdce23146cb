// SPDX-License-Identifier: PostgreSQL
package org.pgtally.test;

import java.util.Arrays;

/**
 * Measures the cost of a probe: blocks of calls of a method with a probe, of the same method without, and of the latter again
 * as a control, in turn. Prints the medians of the differences, in ns per call.
 */
public final class Cost {
    private static final int CALLS = 1_000;

    private int sum;

    private Cost() {
    }

    int probed(int n) {
        sum += n;
        return sum;
    }

    int plain(int n) {
        sum += n;
        return sum;
    }

    private double probedBlock() {
        long begin = System.nanoTime();
        for (int i = 0; i < CALLS; i++) {
            probed(i);
        }
        return (System.nanoTime() - begin) / (double) CALLS;
    }

    private double plainBlock() {
        long begin = System.nanoTime();
        for (int i = 0; i < CALLS; i++) {
            plain(i);
        }
        return (System.nanoTime() - begin) / (double) CALLS;
    }

    /** Argument: number of blocks of each kind. */
    public static void main(String[] arguments) throws Exception {
        int blocks = Integer.parseInt(arguments[0]);
        Cost cost = new Cost();
        Wait.begin();
        for (int i = 0; i < 4000; i++) {
            cost.probedBlock();
            cost.plainBlock();
        }
        double[] probe = new double[blocks];
        double[] control = new double[blocks];
        double[] clock = new double[blocks];
        for (int i = 0; i < blocks; i++) {
            double plain = cost.plainBlock();
            probe[i] = cost.probedBlock() - plain;
            control[i] = cost.plainBlock() - plain;
            clock[i] = clockBlock();
        }
        System.out.printf("probe %.1f ns, control %.2f ns, a reading of the clock %.1f ns; quartiles of the probe %.1f to"
                + " %.1f%n", quantile(probe, 0.5), quantile(control, 0.5), quantile(clock, 0.5), quantile(probe, 0.25),
                quantile(probe, 0.75));
        Wait.end();
    }

    private static double clockBlock() {
        long begin = System.nanoTime();
        long sum = 0;
        for (int i = 0; i < CALLS; i++) {
            sum += System.nanoTime();
        }
        double each = (System.nanoTime() - begin) / (double) CALLS;
        return sum == 0 ? 0 : each;
    }

    private static double quantile(double[] values, double q) {
        double[] sorted = values.clone();
        Arrays.sort(sorted);
        return sorted[(int) (q * (sorted.length - 1))];
    }
}
