// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.Set;
import org.pgtally.segment.Segment;
import org.pgtally.segment.StatNames;

/** The figures of a statement, by position, and their names: {@code call::FIGURE::ID}. */
final class CallFigures {
    /** The figures by position. */
    private static final String[] NAMES = {
        StatNames.CALL_EXECUTE, StatNames.CALL_FIRST, StatNames.CALL_FETCH, StatNames.CALL_WAIT,
        StatNames.CALL_DECODE, StatNames.CALL_ROWS, StatNames.CALL_MESSAGES, StatNames.CALL_TRIPS,
        StatNames.CALL_FAILED, StatNames.CALL_BATCH, StatNames.CALL_REPEATED, StatNames.CALL_SENT,
        StatNames.CALL_RECEIVED, StatNames.CALL_PREPARE, StatNames.CALL_CLOSE, StatNames.CALL_UNFETCHED,
        StatNames.CALL_SAVEPOINT};
    /** Those that are no times; each is its own unit. */
    private static final Set<String> VALUES = Set.of(StatNames.CALL_ROWS, StatNames.CALL_MESSAGES, StatNames.CALL_TRIPS,
        StatNames.CALL_BATCH, StatNames.CALL_REPEATED, StatNames.CALL_SENT, StatNames.CALL_RECEIVED,
        StatNames.CALL_UNFETCHED, StatNames.CALL_SAVEPOINT);
    /** Their number. */
    static final int COUNT = NAMES.length;

    private CallFigures() {}

    /** Enters the names of a statement's statistics; returns the number of the first, negative if there is no space. */
    static int register(Segment segment, String id) {
        int first = statistic(segment, 0, id);
        for (int figure = 1; figure < NAMES.length; figure++) {
            if (statistic(segment, figure, id) < 0) {
                return -1;
            }
        }
        return first;
    }

    /** The statistic of a figure of a statement; negative if there is no space. */
    static int statistic(Segment segment, int figure, String id) {
        String name = SqlText.statistic(NAMES[figure], id);
        return VALUES.contains(NAMES[figure]) ? segment.value(name, NAMES[figure]) : segment.timer(name);
    }
}
