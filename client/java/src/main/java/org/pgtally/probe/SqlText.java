// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.Locale;
import java.util.regex.Pattern;
import org.pgtally.segment.StatNames;

/** The text of a statement in the driver, where parameters are question marks. */
final class SqlText {
    private static final Pattern BEGINS = Pattern.compile("(begin|start\\s+transaction)\\b.*", Pattern.DOTALL);
    private static final Pattern ENDS = Pattern.compile(
            "(commit|end|abort|rollback)(\\s+(work|transaction))?(\\s+and\\s+(no\\s+)?chain)?\\s*;?");
    /** Lists of parameters: a condition that an object-relational mapper fetches in batches, or rows to insert. */
    private static final Pattern LIST = Pattern.compile(
            "\\bin\\s*\\(\\s*\\(*\\s*\\?[^,()]*,|\\b(any|unnest)\\s*\\(\\s*\\?|\\bvalues\\s*\\([^()]*\\)\\s*,\\s*\\(");
    private static final Pattern SEQUENCE = Pattern.compile("\\bnextval\\s*\\(");
    /** The driver's own look-ups of types. */
    private static final Pattern CATALOG = Pattern.compile("\\bpg_catalog\\s*\\.");

    /** What it does with a transaction. */
    enum Role {
        PLAIN, BEGINS, ENDS
    }

    /** Its id in statistics: 16 hexadecimal digits, the same in every process. */
    final String id;
    final int number;
    /** A statistic with the id in its name; negative if there was no space. */
    final int statistic;
    final Role role;
    /**
     * Whether many executions of it in a transaction could be one: not if each of them fetches or writes many rows by a list
     * of parameters, or takes a block of a sequence's numbers.
     */
    final boolean repeatable;

    SqlText(String id, int number, int statistic, String text) {
        this.id = id;
        this.number = number;
        this.statistic = statistic;
        String lower = text.strip().toLowerCase(Locale.ROOT);
        role = ENDS.matcher(lower).matches() ? Role.ENDS : BEGINS.matcher(lower).matches() ? Role.BEGINS : Role.PLAIN;
        repeatable = role == Role.PLAIN && number != 0 && !LIST.matcher(lower).find() && !CATALOG.matcher(lower).find()
                && !(lower.startsWith("select") && SEQUENCE.matcher(lower).find());
    }

    /** The name of a statement's figure. */
    static String statistic(String figure, String id) {
        return StatNames.CALL + figure + "::" + id;
    }
}
