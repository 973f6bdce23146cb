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
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Removes a segment that an ended process has left: the file must belong to the same user, and the lock that its writer
 * holds must be free. crates/live, ended_clients, does the same for {@code tally}.
 */
final class LeftSegment {
    /** The first bytes of a segment. */
    static final byte[] MAGIC = "TALLYSEG".getBytes(StandardCharsets.US_ASCII);
    /**
     * A client's segment; that of the warm-up comes before it. While its process creates it, its name also has the process's pid
     * namespace and start ({@link #unfinished}; libtally/src/create.c).
     */
    private static final Pattern NAME = Pattern.compile("pg_tally\\.(?:java|libpq)\\.([0-9]{1,9})(?:\\.warm)?"
            + "(?:\\.new\\.([0-9]{1,18})\\.([0-9]{1,18})\\.[0-9a-f.-]{1,36})?");
    /** In the mode of a directory: others may write, and may remove only their own files. */
    private static final int WRITABLE = 0022;
    private static final int STICKY = 01000;

    private LeftSegment() {
    }

    /** Whether an open file is to be removed. */
    private interface Condition {
        boolean isMetBy(FileChannel file) throws IOException;
    }

    /** What is added to a segment's name while this process creates it, when its header cannot tell yet whose it is. */
    static String unfinished() {
        return ".new." + Host.pidNamespace() + "." + Host.started(ProcessHandle.current().pid()) + "." + UUID.randomUUID();
    }

    /** Makes way for a segment at this path, if the file there is one of this kind. */
    static void replace(Path path, String kind, UserPrincipal owner) throws IOException {
        remove(path, owner, file -> {
            ByteBuffer head = head(file);
            return head != null && isOfKind(head, kind);
        });
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
                        removeEnded(path, owner, name);
                    }
                }
            }
        } catch (IOException | DirectoryIteratorException | UnsupportedOperationException | IllegalArgumentException e) {
            // They stay until the next time.
        }
    }

    private static void removeEnded(Path path, UserPrincipal owner, Matcher name) {
        int pid = Integer.parseInt(name.group(1));
        try {
            remove(path, owner, name.group(2) == null ? file -> hasEnded(head(file), pid)
                    : file -> hasEnded(pid, Long.parseLong(name.group(3)), Long.parseLong(name.group(2))));
        } catch (IOException e) {
            // It stays.
        }
    }

    private static void remove(Path path, UserPrincipal owner, Condition condition) throws IOException {
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
            if (condition.isMetBy(left) && left.tryLock(0, 1, false) != null && key.equals(OwnFiles.keyOf(path))) {
                Files.deleteIfExists(path);
            }
        }
    }

    /** The header; null if the file is no segment. */
    private static ByteBuffer head(FileChannel file) throws IOException {
        ByteBuffer head = ByteBuffer.allocate(Layout.HEADER_SIZE).order(ByteOrder.nativeOrder());
        boolean whole = file.read(head, 0) == Layout.HEADER_SIZE;
        return whole && Arrays.equals(head.array(), 0, MAGIC.length, MAGIC, 0, MAGIC.length) ? head : null;
    }

    private static boolean isOfKind(ByteBuffer head, String kind) {
        byte[] name = kind.getBytes(StandardCharsets.UTF_8);
        return Arrays.equals(head.array(), Layout.HEADER_PRODUCER, Layout.HEADER_PRODUCER + name.length, name, 0, name.length);
    }

    /** Whether the process in the header has ended, and others may remove its file. */
    private static boolean hasEnded(ByteBuffer head, int pid) {
        return head != null && (head.getInt(Layout.HEADER_FLAGS) & Layout.SEGMENT_TRANSIENT) != 0
                && head.getInt(Layout.HEADER_SERVER_PID) == pid
                && Memory.text(head, Layout.HEADER_BOOT_ID, Layout.HEADER_BOOT_ID_BYTES).equals(Host.bootId())
                && hasEnded(pid, head.getLong(Layout.HEADER_PROCESS_STARTED), head.getLong(Layout.HEADER_PID_NAMESPACE));
    }

    /** Whether the process has ended that had this pid in this namespace. Another process may have it by now. */
    private static boolean hasEnded(int pid, long started, long namespace) {
        return started != 0 && namespace != 0 && namespace == Host.pidNamespace() && Host.started(pid) != started;
    }
}
