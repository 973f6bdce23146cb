// SPDX-License-Identifier: PostgreSQL
package org.pgtally.segment;

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.ByteOrder;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.DirectoryIteratorException;
import java.nio.file.DirectoryStream;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import java.nio.file.NoSuchFileException;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import java.nio.file.attribute.BasicFileAttributes;
import java.nio.file.attribute.UserPrincipal;
import java.util.Arrays;
import java.util.function.Predicate;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Removes a segment that an ended process has left: the file must belong to the same user, and the lock that its writer
 * holds must be free. crates/live, ended_clients, does the same for {@code tally}.
 */
final class LeftSegment {
    /** The first bytes of a segment. */
    static final byte[] MAGIC = "TALLYSEG".getBytes(StandardCharsets.US_ASCII);
    /** A client's segment; that of the warm-up comes before it. */
    private static final Pattern NAME = Pattern.compile("pg_tally\\.(?:java|libpq)\\.([0-9]{1,9})(?:\\.warm)?");
    /** In the mode of a directory: others may write, and may remove only their own files. */
    private static final int WRITABLE = 0022;
    private static final int STICKY = 01000;

    private LeftSegment() {
    }

    /** Makes way for a segment at this path, if the file there is one of this kind. */
    static void replace(Path path, String kind, UserPrincipal owner) throws IOException {
        remove(path, owner, head -> isOfKind(head, kind));
    }

    /** Removes the segments that killed clients have left in this directory, unless they are to be kept. */
    static void sweep(Path folder, UserPrincipal owner) {
        try {
            int mode = (int) Files.getAttribute(folder, "unix:mode");
            if ((mode & WRITABLE) != 0 && (mode & STICKY) == 0) {
                // Another user could exchange a file between the check and the removal.
                return;
            }
            try (DirectoryStream<Path> files = Files.newDirectoryStream(folder, "pg_tally.*")) {
                for (Path path : files) {
                    Matcher name = NAME.matcher(path.getFileName().toString());
                    if (name.matches()) {
                        removeEnded(path, owner, Integer.parseInt(name.group(1)));
                    }
                }
            }
        } catch (IOException | DirectoryIteratorException | UnsupportedOperationException | IllegalArgumentException e) {
            // They stay until the next time.
        }
    }

    private static void removeEnded(Path path, UserPrincipal owner, int pid) {
        try {
            remove(path, owner, head -> hasEnded(head, pid));
        } catch (IOException e) {
            // It stays.
        }
    }

    private static void remove(Path path, UserPrincipal owner, Predicate<ByteBuffer> isToGo) throws IOException {
        Object key;
        try {
            BasicFileAttributes found =
                    Files.readAttributes(path, BasicFileAttributes.class, LinkOption.NOFOLLOW_LINKS);
            key = found.fileKey();
            if (!found.isRegularFile() || OwnFiles.contains(key)
                    || !Files.getOwner(path, LinkOption.NOFOLLOW_LINKS).equals(owner)) {
                return;
            }
        } catch (NoSuchFileException e) {
            return;
        }
        try (FileChannel left = FileChannel.open(path, StandardOpenOption.READ, StandardOpenOption.WRITE,
                LinkOption.NOFOLLOW_LINKS)) {
            ByteBuffer head = ByteBuffer.allocate(Layout.HEADER_SIZE).order(ByteOrder.nativeOrder());
            if (left.read(head, 0) == Layout.HEADER_SIZE
                    && Arrays.equals(head.array(), 0, MAGIC.length, MAGIC, 0, MAGIC.length)
                    && isToGo.test(head) && left.tryLock(0, 1, false) != null && key.equals(OwnFiles.keyOf(path))) {
                Files.deleteIfExists(path);
            }
        }
    }

    private static boolean isOfKind(ByteBuffer head, String kind) {
        byte[] name = kind.getBytes(StandardCharsets.UTF_8);
        return Arrays.equals(head.array(), Layout.HEADER_PRODUCER, Layout.HEADER_PRODUCER + name.length, name, 0, name.length);
    }

    /** Whether the process in the header has ended, and others may remove its file. A pid may be another process's by now. */
    private static boolean hasEnded(ByteBuffer head, int pid) {
        long started = head.getLong(Layout.HEADER_PROCESS_STARTED);
        if ((head.getInt(Layout.HEADER_FLAGS) & Layout.SEGMENT_TRANSIENT) == 0 || head.getInt(Layout.HEADER_SERVER_PID) != pid
                || started == 0) {
            return false;
        }
        long namespace = Host.pidNamespace();
        boolean here = Memory.text(head, Layout.HEADER_BOOT_ID, Layout.HEADER_BOOT_ID_BYTES).equals(Host.bootId());
        return here && namespace != 0 && namespace == head.getLong(Layout.HEADER_PID_NAMESPACE) && Host.started(pid) != started;
    }
}
