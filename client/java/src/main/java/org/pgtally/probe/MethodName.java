// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.Objects;
import org.pgtally.segment.Segment;

/**
 * The name of a method in statistics: a group, which stands for the package, and class, method and parameters.
 *
 * <p>A statistic's name has 95 bytes. Parameters that do not fit are replaced by a hash of them, so that overloads stay
 * apart; what still does not fit is cut at its beginning. The same method has the same name in every process.
 */
public final class MethodName {
    /** {@code function::NAME::cpu_inclusive::GROUP} must fit. */
    private static final int MOST = 95 - "function::::cpu_inclusive::".length();
    private static final int MOST_OF_GROUP = 24;

    private final String group;
    private final String name;

    private MethodName(String group, String name) {
        this.group = group;
        this.name = name;
    }

    /**
     * Of a method.
     *
     * @param type the binary name of its class, with the package
     * @param parameters the simple names of its parameters' types, separated by commas
     */
    public static MethodName of(String type, String method, String parameters) {
        int dot = type.lastIndexOf('.');
        String group = group(dot < 0 ? "" : type.substring(0, dot));
        String named = type.substring(dot + 1) + "." + method;
        int most = MOST - group.length();
        String name = named + "(" + parameters + ")";
        if (name.length() > most) {
            name = named + "(#" + hash(parameters) + ")";
        }
        if (name.length() > most) {
            name = "~" + name.substring(name.length() - most + 1);
        }
        return new MethodName(group, ascii(name));
    }

    /** Of a package; the driver's and the pool's are known by shorter names. */
    private static String group(String name) {
        String group = name;
        if (name.equals("org.postgresql") || name.equals("org.postgresql.jdbc")) {
            group = "jdbc";
        } else if (name.startsWith("org.postgresql.")) {
            group = "jdbc." + name.substring("org.postgresql.".length());
        } else if (name.equals("com.zaxxer.hikari") || name.startsWith("com.zaxxer.hikari.")) {
            group = "hikari";
        } else if (name.isEmpty()) {
            group = "default";
        }
        return group.length() <= MOST_OF_GROUP ? group : "~" + group.substring(group.length() - MOST_OF_GROUP + 1);
    }

    private static String hash(String text) {
        return String.format("%08x", text.hashCode());
    }

    /** A byte a character; no separator of statistics' names within. */
    private static String ascii(String name) {
        StringBuilder ascii = new StringBuilder(name.length());
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            ascii.append(c > ' ' && c < 127 && c != ':' ? c : '?');
        }
        return ascii.toString();
    }

    /** The name of one of its figures. */
    String statistic(String figure) {
        return "function::" + name + "::" + figure + "::" + group;
    }

    /**
     * The name of the time of its calls of another. Two names do not fit into one, so each method is known by the hash of
     * its inclusive time's name, by which a reader finds that name.
     */
    String edge(MethodName callee) {
        return "edge::" + id() + "::" + callee.id();
    }

    private String id() {
        return String.format("#%016x", Segment.hash(statistic("inclusive")));
    }

    /** The account of its own time. */
    String account() {
        return group + "::" + name;
    }

    /** As people write it. */
    @Override
    public String toString() {
        return group + "::" + name;
    }

    @Override
    public boolean equals(Object other) {
        return other instanceof MethodName && ((MethodName) other).group.equals(group)
                && ((MethodName) other).name.equals(name);
    }

    @Override
    public int hashCode() {
        return Objects.hash(group, name);
    }
}
