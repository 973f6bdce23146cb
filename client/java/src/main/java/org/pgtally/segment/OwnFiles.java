// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.Path;
import java.nio.file.attribute.BasicFileAttributes;
import java.util.Set;
import java.util.concurrent.ConcurrentHashMap;

/** The segments that this process writes. It must not open them again: closing any descriptor of a file ends its lock. */
final class OwnFiles {
    private static final Set<Object> KEYS = ConcurrentHashMap.newKeySet();

    private OwnFiles() {
    }

    static void add(Object key) {
        KEYS.add(key);
    }

    static void remove(Object key) {
        KEYS.remove(key);
    }

    static boolean contains(Object key) {
        return KEYS.contains(key);
    }

    /** Identifies the file of this name, whatever its name will be. */
    static Object keyOf(Path path) throws IOException {
        return Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS).fileKey();
    }
}
