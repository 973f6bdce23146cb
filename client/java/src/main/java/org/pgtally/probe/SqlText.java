// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import org.pgtally.segment.StatNames;

/** The text of a statement in the driver, where parameters are question marks. */
final class SqlText {
    /** Its id in statistics: 16 hexadecimal digits, the same in every process. */
    final String id;
    final int number;
    /** A statistic with the id in its name; negative if there was no space. */
    final int statistic;
    /** True if it ends a transaction. */
    final boolean endsTransaction;

    SqlText(String id, int number, int statistic, String text) {
        this.id = id;
        this.number = number;
        this.statistic = statistic;
        endsTransaction = text.equalsIgnoreCase("COMMIT") || text.equalsIgnoreCase("ROLLBACK");
    }

    /** The name of a statement's figure. */
    static String statistic(String figure, String id) {
        return StatNames.CALL + figure + "::" + id;
    }
}
