// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.HashMap;
import java.util.Map;

/** The instrumented methods of this process, by number. Numbers are never reused. */
public final class Methods {
    /** Offsets from a method's inclusive time to its other figures. */
    static final int EXCLUSIVE = Blocks.STEP;
    static final int ACCOUNT = 2 * Blocks.STEP;
    static final int CPU_INCLUSIVE = 3 * Blocks.STEP;
    static final int CPU_EXCLUSIVE = 4 * Blocks.STEP;
    static final int FIGURES = 3;
    static final int FIGURES_WITH_CPU = 5;

    private final Map<MethodName, Integer> numbers = new HashMap<>();
    private volatile MethodName[] names = {};

    /** The number of a method. Classes with the same name in several loaders share it. */
    public synchronized int number(MethodName name) {
        Integer number = numbers.get(name);
        if (number == null) {
            number = numbers.size();
            numbers.put(name, number);
            MethodName[] more = java.util.Arrays.copyOf(names, number + 1);
            more[number] = name;
            names = more;
        }
        return number;
    }

    MethodName name(int number) {
        return names[number];
    }

    /** Number of methods. */
    public int size() {
        return names.length;
    }
}
