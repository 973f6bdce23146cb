// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.Locale;
import java.util.Set;

/**
 * Hides everything in a statement's text that may be a password: strings, and values of settings that may be secret, become
 * {@code '***'}. Statements other than queries also lose their comments. The server's library does the same
 * (pg_tally/statement/secrets.c), based on the statement's tree; here only the text is available. An unterminated token is
 * hidden to the end of the text.
 */
final class Secrets {
    private static final String HIDDEN = "'***'";
    private static final Set<String> QUERIES =
            Set.of("select", "insert", "update", "delete", "merge", "with", "values", "table");
    private static final String OPERATORS = "~!@#^&|`?+-*/%<>=";
    private static final String PREFIXES = "eEbBxXnN";
    /** Name parts of the server's own settings that may be secret. Applications' settings are unknown, so they are hidden, too. */
    private static final String[] SECRET = {"command", "conninfo", "pass", "secret", "token", "key", "."};

    /** State of parsing a SET: after SET, before a value to hide, after such a value. */
    private enum Setting {
        NONE, NAME, VALUE, MORE
    }

    private final String text;
    private final boolean isQuery;
    private final StringBuilder shown = new StringBuilder();
    private final StringBuilder name = new StringBuilder();
    private Setting setting = Setting.NONE;
    private int at;

    private Secrets(String text) {
        this.text = text;
        isQuery = QUERIES.contains(firstWord());
    }

    /** The text of a statement that may be shown. */
    static String hide(String text) {
        Secrets secrets = new Secrets(text);
        while (secrets.at < text.length()) {
            secrets.token();
        }
        return secrets.shown.toString();
    }

    /** The text without blanks and comments before and after it; a hint for the planner ({@code /*+}) stays. */
    static String withoutOuterComments(String text) {
        if (text.indexOf("--") < 0 && text.indexOf("/*") < 0) {
            return text.strip();
        }
        Secrets secrets = new Secrets(text);
        int begin = -1;
        int end = 0;
        while (secrets.at < text.length()) {
            int from = secrets.at;
            boolean outside = secrets.charAt(from) <= ' ' || secrets.isComment(from) && !text.startsWith("/*+", from);
            secrets.token();
            if (!outside) {
                begin = begin < 0 ? from : begin;
                end = secrets.at;
            }
        }
        return begin < 0 ? "" : text.substring(begin, end);
    }

    private String firstWord() {
        int from = 0;
        while (from < text.length() && !beginsWord(charAt(from))) {
            from = isComment(from) ? commentEnd(from) : from + 1;
        }
        return text.substring(from, wordEnd(from)).toLowerCase(Locale.ROOT);
    }

    private void token() {
        char c = charAt(at);
        if (c <= ' ') {
            show(at + 1);
        } else if (isComment(at)) {
            comment();
        } else if (c == '"') {
            word(quotedEnd(at, '"', false));
        } else if (c == '\'') {
            string(at, false, true);
        } else if (c == '$' && tagEnd() > 0) {
            String tag = text.substring(at, tagEnd());
            int end = text.indexOf(tag, at + tag.length());
            value(end < 0 ? text.length() : end + tag.length());
        } else if (PREFIXES.indexOf(c) >= 0 && charAt(at + 1) == '\'') {
            string(at + 1, c == 'e' || c == 'E', false);
        } else if ((c == 'u' || c == 'U') && text.startsWith("&'", at + 1)) {
            string(at + 2, false, false);
        } else if (beginsWord(c)) {
            word(wordEnd(at));
        } else if (isDigit(c)) {
            word(numberEnd());
        } else {
            symbol(c);
        }
    }

    private void comment() {
        int end = commentEnd(at);
        if (isQuery) {
            show(end);
        } else {
            shown.append("/* ... */");
            at = end;
        }
    }

    private void string(int quote, boolean escapes, boolean plain) {
        int end = quotedEnd(quote, '\'', escapes);
        int next = continuation(end);
        while (next > 0) {
            end = quotedEnd(next, '\'', escapes);
            next = continuation(end);
        }
        // Where it ends depends on standard_conforming_strings.
        boolean unclear = plain && !isQuery && text.substring(quote, end).contains("\\'");
        value(unclear ? text.length() : end);
    }

    /** Hides a string. */
    private void value(int end) {
        shown.append(HIDDEN);
        at = end;
        setting = setting == Setting.VALUE || setting == Setting.MORE ? Setting.MORE : Setting.NONE;
    }

    /** A keyword, a name, or a number. */
    private void word(int end) {
        String word = text.substring(at, end).toLowerCase(Locale.ROOT);
        if (setting == Setting.VALUE && !word.equals("default")) {
            value(end);
            return;
        }
        if (word.equals("set")) {
            setting = Setting.NAME;
            name.setLength(0);
        } else if (setting == Setting.NAME && word.equals("to")) {
            setting = isSecret() ? Setting.VALUE : Setting.NONE;
        } else if (setting == Setting.NAME) {
            if (name.length() > 0 || !word.equals("local") && !word.equals("session")) {
                name.append(word);
            }
        } else {
            setting = Setting.NONE;
        }
        show(end);
    }

    private void symbol(char c) {
        int end = at + 1;
        if (OPERATORS.indexOf(c) >= 0) {
            while (end < text.length() && OPERATORS.indexOf(charAt(end)) >= 0 && !isComment(end)
                    && "+-".indexOf(charAt(end)) < 0) {
                end++;
            }
        }
        String symbol = text.substring(at, end);
        if (setting == Setting.NAME) {
            if (c == '.') {
                name.append(c);
            } else {
                setting = symbol.equals("=") && isSecret() ? Setting.VALUE : Setting.NONE;
            }
        } else if (setting == Setting.MORE) {
            setting = c == ',' ? Setting.VALUE : Setting.NONE;
        } else if (setting == Setting.VALUE && OPERATORS.indexOf(c) < 0) {
            // A parameter, for example.
            setting = Setting.NONE;
        }
        show(end);
    }

    private boolean isSecret() {
        for (String part : SECRET) {
            if (name.indexOf(part) >= 0) {
                return true;
            }
        }
        return false;
    }

    private void show(int end) {
        shown.append(text, at, end);
        at = end;
    }

    private char charAt(int i) {
        return i < text.length() ? text.charAt(i) : '\0';
    }

    private static boolean isDigit(char c) {
        return c >= '0' && c <= '9';
    }

    private static boolean beginsWord(char c) {
        return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c >= 128;
    }

    private int wordEnd(int from) {
        int end = from;
        while (beginsWord(charAt(end)) || isDigit(charAt(end)) || charAt(end) == '$') {
            end++;
        }
        return end;
    }

    private int numberEnd() {
        int end = at;
        while (beginsWord(charAt(end)) || isDigit(charAt(end)) || charAt(end) == '.') {
            end++;
        }
        return end;
    }

    /** The end of the opening dollar quote; 0 if there is none. */
    private int tagEnd() {
        int end = at + 1;
        while (beginsWord(charAt(end)) || end > at + 1 && isDigit(charAt(end))) {
            end++;
        }
        return charAt(end) == '$' ? end + 1 : 0;
    }

    private boolean isComment(int i) {
        return text.startsWith("--", i) || text.startsWith("/*", i);
    }

    /** Block comments nest. */
    private int commentEnd(int from) {
        int end = from;
        if (charAt(from) == '-') {
            while (end < text.length() && charAt(end) != '\n' && charAt(end) != '\r') {
                end++;
            }
            return end;
        }
        int depth = 0;
        do {
            boolean opens = text.startsWith("/*", end);
            boolean closes = !opens && text.startsWith("*/", end);
            depth += opens ? 1 : closes ? -1 : 0;
            end += opens || closes ? 2 : 1;
        } while (depth > 0 && end < text.length());
        return Math.min(end, text.length());
    }

    /** Quotes inside are doubled. */
    private int quotedEnd(int quote, char mark, boolean escapes) {
        int end = quote + 1;
        while (end < text.length()) {
            char c = charAt(end);
            if (c == '\\' && escapes) {
                end++;
            } else if (c == mark) {
                if (charAt(end + 1) != mark) {
                    return end + 1;
                }
                end++;
            }
            end++;
        }
        return text.length();
    }

    /** Where a string continues, after a line break; 0 if it does not. */
    private int continuation(int from) {
        boolean line = false;
        int next = from;
        while (next < text.length() && (charAt(next) <= ' ' || text.startsWith("--", next))) {
            line |= charAt(next) == '\n' || charAt(next) == '\r';
            next = charAt(next) == '-' ? commentEnd(next) : next + 1;
        }
        return line && charAt(next) == '\'' ? next : 0;
    }
}
