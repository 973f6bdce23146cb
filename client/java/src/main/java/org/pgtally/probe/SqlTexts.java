// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.HashMap;
import java.util.Map;
import org.pgtally.segment.Segment;

/**
 * The statements that were executed, by their text. The segment has an id of each, and its text in pieces: names
 * {@code sql::ID::N::PIECE} of no statistic. Statements beyond the first {@link #MOST} are one. What may be a password is in neither:
 * texts that differ only in what is hidden ({@link Secrets}) are one statement.
 */
final class SqlTexts {
    private static final int MOST = 256;
    /** Letters of a piece, which have 3 bytes at most; and of a text. */
    private static final int PIECE = 22;
    private static final int LETTERS = 24 * PIECE;

    private final Segment segment;
    /** By the texts that the application has, and by what is shown of them. */
    private final Map<String, SqlText> texts = new HashMap<>();
    private final Map<String, SqlText> shownTexts = new HashMap<>();
    private final SqlText others;

    SqlTexts(Segment segment) {
        this.segment = segment;
        others = new SqlText("others", 0, segment.timer(SqlText.statistic("execute", "others")), "");
    }

    /** The statement of a text. */
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
        return new SqlText(id, shownTexts.size() + 1, segment.timer(SqlText.statistic("execute", id)), shown);
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
            segment.text("sql::" + id + "::" + piece + "::" + shown.substring(from, to));
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
