// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.HashMap;
import java.util.Map;
import java.util.function.UnaryOperator;
import org.pgtally.segment.Segment;
import org.pgtally.segment.StatNames;

/**
 * The executed statements, by text. The segment has an id for each, and its text in pieces, as names
 * {@code sql::ID::N::PIECE} that belong to no statistic. Statements beyond the first {@link #MOST}, and those whose names do
 * not fit into the segment, are counted as one. Possible passwords are not included: texts that differ only in hidden parts
 * ({@link Secrets}), or in comments before and after the statement, are the same statement.
 */
final class SqlTexts {
    static final int MOST = 256;
    /** Maximum number of an application's texts that are remembered: there may be any number of literals. */
    private static final int MOST_KNOWN = 2048;
    /** Longer texts are not remembered, because they take the application's memory. */
    private static final int MOST_KNOWN_LETTERS = 4096;
    /** Maximum number of characters of a piece (each has at most 3 bytes), and of a text. */
    private static final int PIECE = 22;
    private static final int LETTERS = 24 * PIECE;

    private final Segment segment;
    private final UnaryOperator<String> hide;
    /** Indexed by the application's texts without outer comments, and by the texts with secrets hidden. */
    private final Map<String, SqlText> texts = new HashMap<>();
    private final Map<String, SqlText> shownTexts = new HashMap<>();
    private final SqlText others;

    SqlTexts(Segment segment) {
        this(segment, Secrets::hide);
    }

    /** The same; {@code hide} returns what may be shown of a text. */
    SqlTexts(Segment segment, UnaryOperator<String> hide) {
        this.segment = segment;
        this.hide = hide;
        others = new SqlText("others", 0, CallFigures.register(segment, "others"), "");
    }

    /** All statements without an entry of their own. */
    SqlText others() {
        return others;
    }

    /** The statement with that text. */
    SqlText of(String text) {
        return ofBare(Secrets.withoutOuterComments(text));
    }

    /** The same for a text without comments before and after it. */
    SqlText ofBare(String text) {
        synchronized (this) {
            SqlText known = texts.get(text);
            if (known != null) {
                return known;
            }
        }
        // Takes long for a long text, so other threads do not wait for it.
        String shown = hide.apply(text);
        synchronized (this) {
            SqlText known = shownTexts.get(shown);
            if (known == null) {
                known = create(shown);
            }
            if (text.length() <= MOST_KNOWN_LETTERS) {
                if (texts.size() == MOST_KNOWN) {
                    texts.clear();
                }
                texts.put(text, known);
            }
            return known;
        }
    }

    private SqlText create(String shown) {
        if (shownTexts.size() == MOST) {
            return others;
        }
        String id = hash(shown);
        int statistic = CallFigures.register(segment, id);
        if (statistic < 0) {
            return others;
        }
        write(id, shown);
        SqlText created = new SqlText(id, shownTexts.size() + 1, statistic, shown);
        shownTexts.put(shown, created);
        return created;
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
