// SPDX-License-Identifier: PostgreSQL
package org.pgtally.agent;

import java.util.regex.Pattern;

/**
 * A pattern for methods: {@code CLASS} or {@code CLASS#METHOD}. {@code *} matches any characters except the dot, {@code **}
 * any characters, {@code ?} one character.
 */
final class Glob {
    private final String text;
    private final Pattern type;
    private final Pattern method;
    private final boolean publicOnly;

    private Glob(String text, boolean publicOnly) {
        this.text = text;
        this.publicOnly = publicOnly;
        int hash = text.indexOf('#');
        type = pattern(hash < 0 ? text : text.substring(0, hash));
        method = pattern(hash < 0 ? "*" : text.substring(hash + 1));
    }

    /** Matches methods of any visibility. */
    static Glob of(String text) {
        if (text.isEmpty() || text.startsWith("#") || text.endsWith("#") || text.indexOf('#') != text.lastIndexOf('#')) {
            throw new IllegalArgumentException("\"" + text + "\" is not a pattern; write CLASS or CLASS#METHOD, as in"
                    + " com.example.shop.**#find*");
        }
        return new Glob(text, false);
    }

    /** Matches public methods only. */
    static Glob ofPublic(String text) {
        return new Glob(text, true);
    }

    private static Pattern pattern(String glob) {
        StringBuilder regex = new StringBuilder();
        for (int i = 0; i < glob.length(); i++) {
            char c = glob.charAt(i);
            if (c == '*' && i + 1 < glob.length() && glob.charAt(i + 1) == '*') {
                regex.append(".*");
                i++;
            } else if (c == '*') {
                regex.append("[^.]*");
            } else if (c == '?') {
                regex.append("[^.]");
            } else {
                regex.append(Pattern.quote(String.valueOf(c)));
            }
        }
        return Pattern.compile(regex.toString());
    }

    boolean matchesType(String name) {
        return type.matcher(name).matches();
    }

    boolean matches(String typeName, String methodName, boolean isPublic) {
        return (isPublic || !publicOnly) && matchesType(typeName) && method.matcher(methodName).matches();
    }

    @Override
    public String toString() {
        return text;
    }
}
