// SPDX-License-Identifier: PostgreSQL
package org.pgtally.probe;

import java.util.Objects;
import org.pgtally.segment.Segment;
import org.pgtally.segment.StatNames;

/**
 * The name of a method in statistics: a group, which represents the package, and class, method and parameters.
 *
 * <p>A statistic's name has at most 95 bytes. Parameters that do not fit are replaced by their hash, so that overloads stay
 * distinct; a name that is still too long is truncated at its beginning. The same method has the same name in every process.
 */
public final class MethodName {
    /** {@code function::NAME::cpu_inclusive::GROUP} must fit. */
    private static final int MOST = 95 - (StatNames.FUNCTION + "::" + StatNames.FUNCTION_CPU_INCLUSIVE + "::").length();
    private static final int MOST_OF_GROUP = 24;

    private final String group;
    private final String name;

    private MethodName(String group, String name) {
        this.group = group;
        this.name = name;
    }

    /**
     * The name of a method.
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

    /** The group of a package; the driver's and the pool's packages have short names. */
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

    /** One byte per character, without the separator used in statistics' names. */
    private static String ascii(String name) {
        StringBuilder ascii = new StringBuilder(name.length());
        for (int i = 0; i < name.length(); i++) {
            char c = name.charAt(i);
            ascii.append(c > ' ' && c < 127 && c != ':' ? c : '?');
        }
        return ascii.toString();
    }

    /** The name of one of the method's figures. */
    String statistic(String figure) {
        return StatNames.FUNCTION + name + "::" + figure + "::" + group;
    }

    /**
     * The name of the time of its calls to another method. Two names do not fit into one, so each method is represented by the
     * hash of its inclusive time's name, from which a reader finds that name.
     */
    String edge(MethodName callee) {
        return StatNames.EDGE + id() + "::" + callee.id();
    }

    private String id() {
        return String.format("#%016x", Segment.hash(statistic(StatNames.FUNCTION_INCLUSIVE)));
    }

    /** The account of its own time. */
    String account() {
        return group + "::" + name;
    }

    /** The name in the usual notation. */
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
