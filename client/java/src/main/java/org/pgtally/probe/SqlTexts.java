// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.HashMap;
import java.util.Map;
import org.pgtally.segment.Segment;
import org.pgtally.segment.StatNames;

/**
 * The executed statements, by text. The segment has an id for each, and its text in pieces, as names
 * {@code sql::ID::N::PIECE} that belong to no statistic. Statements beyond the first {@link #MOST} are counted as one. Possible
 * passwords are not included: texts that differ only in hidden parts ({@link Secrets}) are the same statement.
 */
final class SqlTexts {
    private static final int MOST = 256;
    /** Maximum number of characters of a piece (each has at most 3 bytes), and of a text. */
    private static final int PIECE = 22;
    private static final int LETTERS = 24 * PIECE;

    private final Segment segment;
    /** Indexed by the application's texts, and by the texts with secrets hidden. */
    private final Map<String, SqlText> texts = new HashMap<>();
    private final Map<String, SqlText> shownTexts = new HashMap<>();
    private final SqlText others;

    SqlTexts(Segment segment) {
        this.segment = segment;
        others = new SqlText("others", 0, segment.timer(SqlText.statistic(StatNames.CALL_EXECUTE, "others")), "");
    }

    /** The statement with that text. */
    synchronized SqlText of(String text) {
        String stripped = text.strip();
        SqlText known = texts.get(stripped);
        if (known == null) {
            if (texts.size() == MOST) {
                return others;
            }
            known = shownTexts.computeIfAbsent(Secrets.hide(stripped), this::create);
            texts.put(stripped, known);
        }
        return known;
    }

    private SqlText create(String shown) {
        String id = hash(shown);
        write(id, shown);
        return new SqlText(id, shownTexts.size() + 1, segment.timer(SqlText.statistic(StatNames.CALL_EXECUTE, id)), shown);
    }

    private void write(String id, String text) {
        String shown = text.length() <= LETTERS ? text : text.substring(0, LETTERS - 3) + "...";
        int from = 0;
        for (int piece = 0; from < shown.length(); piece++) {
            int to = from;
            int bytes = 0;
            while (to < shown.length() && bytes + 3 <= 3 * PIECE) {
                bytes += shown.charAt(to) < 128 ? 1 : 3;
                to++;
            }
            if (to < shown.length() && Character.isHighSurrogate(shown.charAt(to - 1))) {
                to--;
            }
            segment.text(StatNames.SQL + id + "::" + piece + "::" + shown.substring(from, to));
            from = to;
        }
    }

    /** FNV-1a, 64 bits. */
    private static String hash(String text) {
        long hash = 0xcbf29ce484222325L;
        for (int i = 0; i < text.length(); i++) {
            hash = (hash ^ text.charAt(i)) * 0x100000001b3L;
        }
        return String.format("%016x", hash);
    }
}
